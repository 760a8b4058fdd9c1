"""The commands: each reads its options, calls the library and prints."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from nurf import problems
from nurf._tables import ColumnChoice, columns_of, read_table, require_target, write_table, write_text
from nurf._tables import Samples as SampleTable
from nurf.cli import _study
from nurf.cli._answers import InputsFile, Limits, add_to, answers_of
from nurf.cli._models import input_names, loaded, predictions, target_names
from nurf.cli._options import (
    Gradients,
    Ignored,
    Inputs,
    Model,
    Samples,
    Seed,
    Target,
    chosen,
    complete_problems,
    split_names,
)
from nurf.cli._terminal import command_line, say, working
from nurf.data import check_derivatives
from nurf.estimators import Surrogate

CONTRADICTION = 1  # exit code of `check`, which no error has
STANDARD = Path("-")
Y = ["y"]

EPILOG = """Three commands from a table to a report:

nurf sample borehole -n 200 --out samples.csv

nurf fit samples.csv --target y --gradients "dy_*" --out model.nurf

nurf report model.nurf"""

app = typer.Typer(
    help="Surrogate models from values and derivatives. Exit codes: 0 success, 1 wrong gradients "
    "that `check` found, 2 an error or wrong usage. --debug, anywhere, shows tracebacks.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class EngineName(StrEnum):
    """Engines of a surrogate."""

    auto = "auto"
    wide = "wide"
    sampled = "sampled"
    trained = "trained"
    sparse = "sparse"


class Transform(StrEnum):
    """Transformations of the targets."""

    auto = "auto"
    none = "none"
    log = "log"
    asinh = "asinh"


@app.callback(invoke_without_command=True)
def common(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Take the options of all commands."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"nurf {installed('nurf')}")
        raise typer.Exit


@app.command(
    epilog='Example: nurf fit samples.csv --target y --gradients "dy_*" --out model.nurf\n\n'
    'Several targets: nurf fit runs.parquet -t lift,drag -g "d{target}_*" --ignore run -o wing.nurf'
)
def fit(
    samples: Samples,
    target: Target,
    gradients: Gradients = None,
    inputs: Inputs = None,
    ignore: Ignored = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the model.")] = Path("model.nurf"),
    engine: Annotated[EngineName, typer.Option(help="How to fit; auto takes the best.")] = EngineName.auto,
    target_transform: Annotated[
        Transform, typer.Option(help="What is fitted in place of targets over decades; auto takes what is better.")
    ] = Transform.auto,
    log_inputs: Annotated[
        list[str] | None,
        typer.Option(
            help="Inputs over decades whose logarithms are fitted: names with commas, 'all' or 'none'.",
            show_default="those for which that is better",
        ),
    ] = None,
    time_budget: Annotated[float, typer.Option(help="Seconds that the fit may take.", min=0.1)] = 20.0,
    test: Annotated[
        bool,
        typer.Option(help="Fit again without some rows, so that reports show errors at rows that did not train."),
    ] = True,
    seed: Seed = 0,
) -> None:
    """Fit a model to samples, in your units, and write it to a file.

    Empty cells of gradients are unknown derivatives. Rows with an empty target are not used.
    """
    require_target(out)
    table = SampleTable.of(read_table(samples), chosen(target, gradients, inputs, ignore))
    for note in table.notes:
        say(note)
    engines = "auto" if engine is EngineName.auto else [engine.value]
    transform = None if target_transform is Transform.none else target_transform.value
    logarithms = _logarithms(split_names(log_inputs))
    model = Surrogate(time_budget, engines=engines, target=transform, inputs=logarithms, random_state=seed)
    n, d = table.X.shape
    with working(f"Fitting {n} samples in {d} dimensions"):
        model.fit(table.X, table.y, gradients=table.gradients)
    with working("Testing on rows that do not train"):
        _gather(model, table, samples.name, time_budget if test else 0.0, seed).attach(model)
    model.save(out)
    _print_fit(model, table, out)


@app.command(epilog="Example: nurf predict model.nurf new.csv --gradient --std --interval 0.9 > predictions.csv")
def predict(
    model: Model,
    points: Annotated[Path, typer.Argument(help="Table with the inputs of the model: .csv, .parquet, .npz, or -.")],
    gradient: Annotated[bool, typer.Option("--gradient", help="Add the partial derivatives.")] = False,
    std: Annotated[bool, typer.Option("--std", help="Add standard deviations of new measurements.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(help="Add intervals that hold new values with this probability, such as 0.9.", show_default=False),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="File for the predictions: .csv, .parquet, .npz.",
            show_default="CSV to the standard output",
        ),
    ] = STANDARD,
) -> None:
    """Predict at new points. The result has a row for each row of the table; columns are named after the targets."""
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(f"expected a number between 0 and 1, got {interval}", param_hint="--interval")
    require_target(out, table=True)
    fitted = loaded(model)
    table = read_table(points)
    X = columns_of(table, input_names(fitted))
    with working(f"Predicting {len(X)} rows"):
        frame = predictions(fitted, X, gradient=gradient, std=std, interval=interval)
    write_table(frame, out)


@app.command(epilog="Example: nurf report model.nurf --out report.html")
def report(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page.")] = Path("report.html"),
    test: Annotated[
        Path | None,
        typer.Option(help="Table of rows that were not fitted, to show errors at these.", show_default=False),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="Targets in --test; by default as in the fit.", show_default=False),
    ] = None,
    gradients: Gradients = None,
    inputs: InputsFile = None,
    above: Limits = None,
    below: Limits = None,
) -> None:
    """Write a report of a model: one HTML page with its pictures, which needs no network.

    With --inputs, the page has sections with sensitivities and the distribution of the outputs, and with --above or
    --below the probability that limits are exceeded.
    """
    from nurf.report import predicted_at, render  # matplotlib takes a second

    require_target(out)
    fitted, evidence = loaded(model), None
    answers = answers_of(fitted, inputs, above, below)
    if test is not None:
        names = split_names(target) or target_names(fitted)
        choice = ColumnChoice(names, split_names(gradients), tuple(input_names(fitted)))
        rows = SampleTable.of(read_table(test), choice, vary=False)
        points = rows.X if hasattr(fitted, "feature_names_in_") else rows.X.to_numpy()
        evidence = predicted_at(
            fitted, points, rows.y, gradients=rows.gradients, targets=rows.roles.targets, source=test.name
        )
    with working("Drawing"):
        page = render(fitted, title=model.name, evidence=evidence, command=command_line(), answers=answers)
    write_text(page, out)
    typer.echo(out)


@app.command(epilog='Example: nurf check samples.csv --target y --gradients "dy_*"')
def check(
    samples: Samples,
    target: Target = Y,
    gradients: Gradients = None,
    inputs: Inputs = None,
    ignore: Ignored = None,
) -> None:
    """Check whether gradients are consistent with the values, name the likely mistake, and estimate the noise of both.

    Without --gradients, the columns 'd{target}_*' are used. The exit code is 1 if they contradict the values, and 2 if
    they could not be compared.
    """
    table = SampleTable.of(read_table(samples), chosen(target, gradients or ["d{target}_*"], inputs, ignore))
    for note in table.notes:
        say(note)
    wrong = False
    for output, name in enumerate(table.roles.targets):
        y = table.y.reshape(len(table.y), -1)[:, output]
        slopes = table.gradients.reshape(len(y), -1, table.X.shape[1])[:, output]  # type: ignore[union-attr]
        finding = check_derivatives(table.X.to_numpy(), y, slopes)
        verdict = {True: "consistent", False: "contradiction", None: "not decided"}[finding.consistent]
        typer.echo(f"{name}: {verdict}: {finding.message}")
        wrong |= finding.consistent is False
    if wrong:
        raise typer.Exit(CONTRADICTION)


@app.command("problems")
def list_problems() -> None:
    """List the test functions of `nurf sample`."""
    for name in problems.names():
        kind = problems._PROBLEMS[name]
        lowest, highest = kind.dimensions
        size = (
            f"{lowest}" if lowest == highest else f"{lowest} or more" if highest is None else f"{lowest} to {highest}"
        )
        words = (kind.__doc__ or "").strip().split("\n")[0]
        typer.echo(f"{name:<14} {size + ' inputs':<18} {words}")


@app.command(epilog="Example: nurf sample borehole -n 2000 --out samples.csv")
def sample(
    problem: Annotated[str, typer.Argument(help="A name of `nurf problems`.", autocompletion=complete_problems)],
    n: Annotated[int, typer.Option("-n", help="Number of samples.", min=1)] = 1000,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File: .csv, .parquet, .npz.", show_default="CSV to the standard output")
    ] = STANDARD,
    dimension: Annotated[int | None, typer.Option(help="Number of inputs.", show_default=False)] = None,
    noise: Annotated[float, typer.Option(help="Standard deviation of noise in the values.", min=0.0)] = 0.0,
    gradients: Annotated[bool, typer.Option(help="Whether to write derivatives.")] = True,
    seed: Seed = 0,
) -> None:
    """Draw samples of a test function, with columns x1, x2, ..., y, dy_x1, dy_x2, ..."""
    require_target(out, table=True)
    parameters = {} if dimension is None else {"dimension": dimension}
    function = problems.get(problem, native=True, **parameters)
    rng = np.random.default_rng(seed)
    jet = function.jet(function.sample(n, rng), noise=noise, rng=rng)
    names = [f"x{j + 1}" for j in range(function.dimension)]
    columns: dict[str, Any] = dict(zip(names, jet.X.T, strict=True)) | {"y": jet.y}
    if gradients and jet.gradients is not None:
        columns |= {f"dy_{name}": column for name, column in zip(names, jet.gradients.T, strict=True)}
    write_table(pd.DataFrame(columns), out)


class Format(StrEnum):
    """Kinds of programs to which models are exported."""

    onnx = "onnx"
    torch = "torch"
    jax = "jax"
    python = "python"
    c = "c"
    js = "js"


@app.command(epilog="Example: nurf export model.nurf --to c --out model.c")
def export(
    model: Model,
    to: Annotated[Format, typer.Option(help="Kind of program.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File; by default named like the model.", show_default=False),
    ] = None,
) -> None:
    """Write a model as a program that does not need nurf."""
    from nurf.cli._export import export_to

    path = export_to(loaded(model), to.value, model if out is None else out, named=out is not None)
    typer.echo(path)


add_to(app)
app.add_typer(_study.commands, name="study")


def _logarithms(names: tuple[str, ...]) -> Any:
    """Return the parameter ``inputs`` of an estimator."""
    words = {(): "auto", ("none",): None, ("all",): "log"}
    return words[names] if names in words else dict.fromkeys(names, "log")


def _gather(model: Surrogate, table: SampleTable, source: str, seconds: float, seed: int) -> Any:
    """Return the samples and predictions for a report, to be stored with the model."""
    from nurf.report import gather

    rng = np.random.default_rng(seed)
    return gather(
        model,
        table.X,
        table.y,
        gradients=table.gradients,
        targets=table.roles.targets,
        source=source,
        rng=rng,
        seconds=seconds,
        command=command_line(),
    )


def _print_fit(model: Surrogate, table: SampleTable, out: Path) -> None:
    typer.echo(str(model.leaderboard_))
    scales = np.ravel(model.y_scale_)
    for name, error, scale in zip(table.roles.targets, np.ravel(model.estimated_error_), scales, strict=True):
        share = f"{error:.3g} at new points, {100 * error / scale:.2g}% of its standard deviation"
        typer.echo(f"{name}: estimated error {share if np.isfinite(error) else 'not known: there are too few samples'}")
    typer.echo(f"wrote {out}")
