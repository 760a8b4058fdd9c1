"""The commands of studies: new, ask, tell, run and status."""

from __future__ import annotations

import io
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from nurf._tables import ColumnChoice, read_table, require_target, write_bytes, write_table
from nurf.cli._input_files import InputFile
from nurf.cli._options import Seed, split_names
from nurf.cli._terminal import working
from nurf.studies import Command, Study
from nurf.studies.goals import read_goal

STANDARD = Path("-")
OWN = ("constraints",)  # entries of the file of inputs that only studies have
BESIDE = ("run", "cost", "message", "compute")  # columns that are neither inputs nor targets

commands = typer.Typer(
    help="Where to run a simulator next: a study asks for points, takes results, and says when the answer is known.",
    no_args_is_help=True,
)

File = Annotated[Path, typer.Option("--study", "-s", help="File of the study.")]
STUDY = Path("study.nurf")


@commands.command(epilog="Example: nurf study new inputs.toml --goal error:0.01 --max-runs 200")
def new(
    inputs: Annotated[
        Path,
        typer.Argument(help="TOML file of the inputs, as for the other commands, also with x = { levels = [1, 2] }."),
    ],
    goal: Annotated[
        str,
        typer.Option(
            help="The question to answer: error:0.01, minimum:0.01, failure:above=3, level:0.5, sensitivities, "
            "calibration:[1.7,0.5],noise=0.1."
        ),
    ] = "error:0.01",
    study: File = STUDY,
    max_runs: Annotated[int | None, typer.Option(help="The budget of runs.", min=1, show_default=False)] = None,
    seed: Seed = 0,
) -> None:
    """Create a study in a new file."""
    content = _toml(inputs)
    entries = content.get("inputs")
    if not isinstance(entries, dict):
        raise ValueError(f"{inputs.name}: expected a table [inputs] with an entry for each input")
    levels = {name: entry["levels"] for name, entry in entries.items() if isinstance(entry, dict) and "levels" in entry}
    rest = {name: entry for name, entry in entries.items() if name not in levels}
    shared = {key: value for key, value in content.items() if key not in OWN} | {"inputs": rest}
    try:
        read = InputFile.of(shared, list(rest))
    except ValueError as error:
        raise ValueError(f"{inputs.name}: {error}") from error
    if read.correlation is not None and levels:
        raise ValueError(f"{inputs.name}: inputs with levels and correlations do not go together")
    given = {name: levels.get(name, read.inputs.get(name)) for name in entries}
    options: dict[str, Any] = {"constraints": content.get("constraints", ()), "correlation": read.correlation}
    Study(given, read_goal(goal), path=study, max_runs=max_runs, random_state=seed, **options)
    typer.echo(study)


def _opened(path: Path) -> Study:
    """Return the study in a file; raise a ``FileNotFoundError`` that says how to create one if there is no file."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; `nurf study new` creates a study")
    return Study.load(path)


@commands.command(epilog="Example: nurf study ask -n 8 > points.csv")
def ask(
    n: Annotated[int, typer.Option("-n", help="Number of points.", min=1)] = 1,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File: .csv, .parquet, .npz.", show_default="CSV to the standard output")
    ] = STANDARD,
    study: File = STUDY,
) -> None:
    """Print the points to run next, with the numbers of the runs."""
    require_target(out, table=True)
    own = _opened(study)
    with working("Choosing"):
        points = own.ask(n)
    write_table(points.reset_index(), out)


@commands.command(epilog='Example: nurf study tell results.csv --target drag --gradients "ddrag_*"')
def tell(
    results: Annotated[Path, typer.Argument(help="Table with inputs and targets; empty targets are failed runs.")],
    target: Annotated[
        list[str] | None, typer.Option("--target", "-t", help="Targets.", show_default="all other columns")
    ] = None,
    gradients: Annotated[
        list[str] | None, typer.Option("--gradients", "-g", help="Columns of partial derivatives.", show_default=False)
    ] = None,
    study: File = STUDY,
) -> None:
    """Add results of runs, in any order, also of runs that the study did not ask for."""
    own, frame = _opened(study), read_table(results).frame
    inputs = [name for name in frame.columns if name in own.inputs]
    beside = [name for name in BESIDE if name in frame.columns and name not in own.inputs]
    patterns, others = split_names(gradients), [name for name in frame.columns if name not in (*inputs, *beside)]
    targets = split_names(target) or _targets(others, patterns)
    fixed = [name for name in inputs if name not in own.varying]
    unused = [*beside, *fixed, *(name for name in others if name not in targets and not patterns)]
    choice = ColumnChoice(targets, patterns, own.varying, tuple(unused))
    roles = choice.roles([str(name) for name in frame.columns])
    numbers = frame[[*roles.targets]].apply(pd.to_numeric, errors="coerce")
    slopes = None
    if roles.partials:
        parts = [frame[[partials[name] for name in roles.inputs]] for partials in roles.partials]
        slopes = pd.concat(parts, axis=1).apply(pd.to_numeric, errors="coerce").to_numpy(float)
        slopes = slopes.reshape(len(frame), len(parts), -1)
    points = frame[inputs]
    if "run" in beside:
        points = points.set_index(pd.Index(frame["run"], name="run"))
    costs = frame["cost"].to_numpy(float) if "cost" in beside else None
    texts = frame["message"].fillna("").astype(str).tolist() if "message" in beside else None
    y = numbers.set_index(points.index)
    own.tell(points, y if len(roles.targets) > 1 else y.iloc[:, 0], gradients=slopes, cost=costs, message=texts)
    typer.echo(f"{len(frame)} runs told")


@commands.command(epilog='Example: nurf study run --command "./simulate {r} {L}" --jobs 4 --max-runs 100')
def run(
    command: Annotated[str, typer.Option(help="Program with the names of inputs in braces; no shell is used.")],
    parse: Annotated[
        str | None,
        typer.Option(help="Regular expression with a group for each value, (?P<d_r>...) for a partial derivative."),
    ] = None,
    max_runs: Annotated[int | None, typer.Option(help="The largest number of runs.", min=1, show_default=False)] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Runs at a time.", min=1)] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds for each run.", show_default=False)] = None,
    study: File = STUDY,
) -> None:
    """Run a program until the study is done. Several of these commands may share a study."""
    from concurrent.futures import ThreadPoolExecutor

    own, simulator = _opened(study), Command(command, parse, timeout)
    with working("Running"), ThreadPoolExecutor(jobs) as executor:  # programs are processes of their own
        own.run(simulator, max_runs=max_runs, n_jobs=jobs, executor=executor)
    typer.echo(str(own.report()))


@commands.command(epilog="Example: nurf study status --plot status.png")
def status(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for a table of all runs.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="File for a picture: .png, .svg, .pdf.", show_default=False)
    ] = None,
    study: File = STUDY,
) -> None:
    """Show the answer so far, and whether more runs are needed."""
    if out is not None:
        require_target(out, table=True)
    own = _opened(study)
    with working("Fitting"):
        report = own.report()
    typer.echo(str(report))
    if out is not None:
        write_table(own.runs.reset_index(), out)
    if plot is not None:
        from matplotlib.figure import Figure

        require_target(plot)
        figure, buffer = Figure(layout="constrained"), io.BytesIO()
        own.plot(figure.subplots())
        figure.savefig(buffer, format=plot.suffix.lstrip(".") or "png")
        write_bytes(buffer.getvalue(), plot)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: not a TOML file: {error}") from error


def _targets(others: list[str], patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that are no gradients."""
    found = tuple(name for name in others if not any(fnmatchcase(name, pattern) for pattern in patterns))
    if not found:
        raise ValueError("expected a column of a target beside the inputs, got none")
    return found
