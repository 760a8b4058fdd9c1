"""The command line of the reproduction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reproduction.figures import FIGURES
from reproduction.reproduce import OUT, reproduce

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def command(
    figures: Annotated[
        list[str] | None, typer.Argument(help=f"{' '.join(FIGURES)}; by default all.", show_default=False)
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Trials per method; by default 10 for d <= 2, 4 above.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the report, figures, tables and results.")] = OUT,
    quick: Annotated[bool, typer.Option("--quick", help="Two trials and shorter training: minutes.")] = False,
    jobs: Annotated[int, typer.Option(help="Number of processes.")] = 1,
    docs: Annotated[
        Path | None,
        typer.Option(help="Folder of the documentation, for its page, tables and pictures.", show_default=False),
    ] = None,
) -> None:
    """Compute and draw the paper's figures, decide its claims, and compare our errors with the authors' code."""
    try:
        reproduce(figures, out=out, quick=quick, trials=trials, jobs=jobs, docs=docs, say=typer.echo)
    except ValueError as error:
        typer.echo(f"reproduction: {error}", err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        typer.echo("\nreproduction: stopped; the same command continues from the results so far", err=True)
        raise typer.Exit(130) from None
