"""Options that several commands share."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from nurf import problems
from nurf._tables import ColumnChoice

COLUMNS = "a name, a pattern such as 'y*', or several with commas"


def split_names(texts: list[str] | None) -> tuple[str, ...]:
    """Return the names of options that may be given several times, each a line of CSV.

    >>> split_names(["a,b", '"c, d"'])
    ('a', 'b', 'c, d')
    """
    try:
        lines = [next(csv.reader([text], skipinitialspace=True, strict=True), []) for text in texts or []]
    except csv.Error as error:
        raise typer.BadParameter(f"expected names with commas between them, got {', '.join(texts or [])}") from error
    return tuple(name.strip() for line in lines for name in line if name.strip())


def complete_columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the columns of the file that start like this, for the completion of a shell."""
    given = [ctx.params.get("samples"), *ctx.args]  # `args` if the option has no value yet
    files = [path for path in map(Path, filter(None, given)) if path.is_file()]
    try:
        with files[0].open(encoding="utf-8-sig") as file:
            names = split_names([file.readline(100_000)])
    except (IndexError, OSError, UnicodeError, typer.BadParameter):
        return []
    before, comma, start = incomplete.rpartition(",")
    written = [f'"{name}"' if "," in name else name for name in names]
    return [f"{before}{comma}{name}" for name in written if name.startswith(start)]


def complete_problems(incomplete: str) -> list[str]:
    """Return the names of the problems that start like this."""
    return [name for name in problems.names() if name.startswith(incomplete)]


Samples = Annotated[Path, typer.Argument(help="Table of samples: .csv, .parquet, .npz, or - for CSV from a pipe.")]
Model = Annotated[Path, typer.Argument(help="File of a model, as `nurf fit` writes it.")]
Target = Annotated[
    list[str],
    typer.Option("--target", "-t", help=f"Columns to learn: {COLUMNS}.", autocompletion=complete_columns),
]
Gradients = Annotated[
    list[str] | None,
    typer.Option(
        "--gradients",
        "-g",
        help="Columns of partial derivatives, such as 'dy_*'; each ends with the name of its input. With several "
        "targets, {target} stands for each of them, as in 'd{target}_*'.",
        autocompletion=complete_columns,
        show_default=False,
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--inputs",
        "-x",
        help=f"Inputs: {COLUMNS}. By default all columns that are nothing else.",
        autocompletion=complete_columns,
        show_default=False,
    ),
]
Ignored = Annotated[
    list[str] | None,
    typer.Option("--ignore", help="Columns that are not used.", autocompletion=complete_columns, show_default=False),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.", min=0)]


def chosen(
    target: list[str], gradients: list[str] | None, inputs: list[str] | None, ignored: list[str] | None
) -> ColumnChoice:
    """Return the choice of columns from the options."""
    return ColumnChoice(*map(split_names, (target, gradients, inputs, ignored)))
