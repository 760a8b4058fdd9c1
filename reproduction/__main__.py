"""The command line: ``nurf reproduce``."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer

MISSING = 'the command line needs typer, rich, jinja2 and matplotlib: pip install "nurf[reproduction]"'


def main() -> None:
    """Run the command line; without its extra, say what to install."""
    try:
        app = make_app()
    except ModuleNotFoundError as error:
        sys.exit(f"nurf: {MISSING} ({error})")
    app()


def make_app() -> "typer.Typer":
    """Return the commands."""
    import typer

    app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"nurf {version('nurf')}")
            raise typer.Exit

    @app.callback()
    def options(
        show: Annotated[
            bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
        ] = False,
    ) -> None:
        """Surrogates that know where to look: shallow networks whose neurons are sampled from derivative data."""

    @app.command()
    def reproduce(
        figures: Annotated[list[str] | None, typer.Argument(help="fig1 .. fig11; by default all.")] = None,
        trials: Annotated[int | None, typer.Option(help="Trials of each law; by default the paper's 10 and 4.")] = None,
        out: Annotated[Path, typer.Option(help="Folder for the report, pictures, tables, results.")] = Path(
            "reproduction"
        ),
        quick: Annotated[bool, typer.Option("--quick", help="Two trials and shorter training: minutes.")] = False,
        jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    ) -> None:
        """Compute and draw the paper's figures; report on its claims, and on the authors' errors beside ours."""
        try:
            import reproduction

            reproduction.reproduce(figures, out=out, quick=quick, trials=trials, jobs=jobs, say=typer.echo)
        except ImportError as error:
            typer.echo(f"nurf: {MISSING} ({error})", err=True)
            raise typer.Exit(1) from error
        except ValueError as error:
            typer.echo(f"nurf: {error}", err=True)
            raise typer.Exit(2) from error
        except KeyboardInterrupt:
            typer.echo("\nnurf: stopped; what is done is kept, and the same command goes on from there", err=True)
            raise typer.Exit(130) from None

    return app


if __name__ == "__main__":
    main()
