"""Messages beside the output: lines and progress on the standard error, progress only in a terminal."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

_COMMAND: ContextVar[str] = ContextVar("command", default="")


def command_line() -> str:
    """Return the command that is running, as it can be typed; empty if it was not started by ``run``."""
    return _COMMAND.get()


@contextmanager
def named(arguments: Sequence[str]) -> Iterator[None]:
    """Make ``command_line`` return the command with these arguments."""
    token = _COMMAND.set(shlex.join(["nurf", *arguments]))
    try:
        yield
    finally:
        _COMMAND.reset(token)


def say(text: str) -> None:
    """Write a line to the standard error."""
    print(f"nurf: {text}", file=sys.stderr, flush=True)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a moving bar and the time in a terminal, and nothing in a pipe; warnings become lines at the end."""
    console = Console(stderr=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            if console.is_terminal:
                columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
                with Progress(*columns, console=console, transient=True) as progress:
                    progress.add_task(text, total=None)
                    yield
            else:
                yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                say(" ".join(message.split()))
