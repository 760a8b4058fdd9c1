"""Runs the command, with errors as one line and an exit code."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence

from nurf.cli._app import app
from nurf.cli._terminal import named, say

DEBUG = "--debug"
FAILED = 2  # as for wrong usage; 1 is the verdict of `check` alone, as of `diff` and `grep`


def run(arguments: Sequence[str]) -> None:
    """Run the command and exit: 0 if all is well, 2 for an error or wrong usage, 130 if it is interrupted.

    1 says that `check` found wrong gradients. typer handles usage and interrupts. With ``--debug`` at any place, errors
    have tracebacks.
    """
    debug = DEBUG in arguments
    try:
        used = [argument for argument in arguments if argument != DEBUG]
        with named(used):
            app(args=used, prog_name="nurf")
    except Exception as error:
        if debug:
            traceback.print_exc()
        else:
            say(_words(error))
        raise SystemExit(FAILED) from None


def _words(error: Exception) -> str:
    """Return an error in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ValueError | OSError | ImportError):
        return text
    return f"{type(error).__name__}: {text} (nurf --debug shows where)"
