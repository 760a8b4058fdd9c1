"""Commands as simulators."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf.data import partial_owners

PLACE = re.compile(r"\{([^{}]*)\}")
SHOWN = 300  # characters of what a command wrote, in messages


@dataclass(frozen=True)
class Command:
    """A program as a simulator: a callable for ``study.run``.

    The program is started without a shell. Its output is read as follows: without ``parse`` the last line is JSON (a
    number, a list of values, or an object with "y" and "gradients"), or numbers between blanks or commas, which are the
    values. With ``parse``, each group of the regular expression is a value; named groups that end with the name of an
    input, such as ``(?P<d_r>...)``, are partial derivatives. An exit code other than 0 is a failure.

    Parameters
    ----------
    text : str
        The command, with the names of inputs in braces: ``"./simulate {r} {L}"``.
    parse : str, optional
        A regular expression, whose last match in the output counts.
    timeout : float, optional
        Seconds, after which the program and its own processes are killed.

    Examples
    --------
    >>> import sys
    >>> simulate = Command(f"{sys.executable} -c 'print({{a}} * {{b}})'")
    >>> simulate({"a": 2.0, "b": 3.5})
    7.0
    """

    text: str
    parse: str | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not shlex.split(self.text):
            raise ValueError("a command must have a program, got none")
        if self.parse is not None and not re.compile(self.parse).groups:
            raise ValueError(f"`parse` must have groups for the values, such as '= (.*)', got {self.parse!r}")

    def require(self, names: Sequence[str]) -> None:
        """Raise an error if the command has placeholders for inputs that do not exist."""
        unknown = [name for name in PLACE.findall(self.text) if name not in names]
        if unknown:
            raise ValueError(f"a command may have the inputs {list(names)}, got {{{unknown[0]}}}")

    def __call__(self, point: Mapping[str, float], compute: str | None = None) -> Any:
        """Run the command at a point, and return the values, or values and gradients."""
        values = {name: repr(float(value)) for name, value in point.items()} | {"compute": compute or "value"}
        arguments = [PLACE.sub(lambda m: values.get(m[1], m[0]), part) for part in shlex.split(self.text)]
        output = _output(arguments, self.timeout)
        return _last_line(output) if self.parse is None else _groups(self.parse, output, list(point))


def _output(arguments: list[str], timeout: float | None) -> str:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(arguments, text=True, start_new_session=os.name == "posix", **pipes) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise TimeoutError(f"timeout after {timeout:g} s") from None
        except BaseException:
            _kill(process)
            raise
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}: {(errors or output).strip()[-SHOWN:]}")
    return str(output)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a process, and on POSIX systems also the processes that it started."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _last_line(output: str) -> Any:
    lines = output.strip().splitlines()
    if not lines:
        raise ValueError("the command must write its values, and wrote nothing")
    try:
        return json.loads(lines[-1])
    except json.JSONDecodeError:
        pass
    try:
        return [float(part) for part in re.split(r"[\s,;]+", lines[-1].strip(" \t,;"))]
    except ValueError:
        raise ValueError(f"the last line of the output must be JSON or numbers, got {lines[-1][:SHOWN]!r}") from None


def _groups(parse: str, output: str, inputs: list[str]) -> Any:
    matches = list(re.finditer(parse, output))
    if not matches:
        raise ValueError(f"the output must match {parse!r}, got {output.strip()[-SHOWN:]!r}")
    match, names = matches[-1], {place: name for name, place in re.compile(parse).groupindex.items()}
    groups = {place + 1: float(text) for place, text in enumerate(match.groups())}
    owners = {place: partial_owners([names[place]], inputs)[0] if place in names else None for place in groups}
    values = [value for place, value in groups.items() if owners[place] is None]
    if all(owner is None for owner in owners.values()):
        return values
    partials = {owners[place]: value for place, value in groups.items()}
    return values, np.array([partials.get(name, np.nan) for name in inputs])
