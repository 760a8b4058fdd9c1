"""The command ``nurf``. It needs typer, rich, pandas, matplotlib and jinja2: ``pip install "nurf[cli]"``."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]

NEEDED = ("typer", "rich", "pandas", "matplotlib", "jinja2")


def main() -> None:
    """Run the command with the arguments of the process, or say in one line what to install."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f'nurf: the command needs {", ".join(missing)}: pip install "nurf[cli]"', file=sys.stderr)
        raise SystemExit(2)
    from nurf.cli._run import run

    run(sys.argv[1:])
