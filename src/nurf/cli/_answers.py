"""The commands that ask a model: sensitivity, propagate, failure, minimize, calibrate; a template of their inputs."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from nurf import decisions
from nurf._tables import read_table, require_target, write_bytes, write_table, write_text
from nurf.cli._input_files import InputFile, template
from nurf.cli._measurements import measurements
from nurf.cli._models import input_names, loaded, target_names
from nurf.cli._options import Model, Seed, split_names
from nurf.cli._terminal import working

STANDARD = Path("-")

InputsFile = Annotated[
    Path | None,
    typer.Option(
        "--inputs",
        "-i",
        help="TOML file with the distributions of the inputs: see `nurf inputs`.",
        show_default="uniform over the box of the data",
    ),
]
Table = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="File for a table: .csv, .parquet, .npz, or - for CSV alone.", show_default=False),
]
Picture = Annotated[
    Path | None, typer.Option("--plot", help="File for a picture: .png, .svg, .pdf.", show_default=False)
]
Limits = Annotated[
    list[str] | None,
    typer.Option(help="A limit: a number, or target=number if there are several targets.", show_default=False),
]


class Combine(StrEnum):
    """Which limits must be exceeded."""

    any = "any"
    all = "all"


class Method(StrEnum):
    """Where points are drawn."""

    auto = "auto"
    importance = "importance"
    subset = "subset"


def inputs(
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File for the template.", show_default="the standard output")
    ] = STANDARD,
) -> None:
    """Write a file of inputs with the box of the data, to be edited, for the commands that take --inputs."""
    fitted = loaded(model)
    text = template(model.name, input_names(fitted), *decisions.data_box(fitted))
    if out == STANDARD:
        typer.echo(text, nl=False)
    else:
        require_target(out)
        write_text(text, out)


def sensitivity(
    model: Model,
    inputs: InputsFile = None,
    second: Annotated[bool, typer.Option("--second", help="Add closed indices and interactions of pairs.")] = False,
    shapley: Annotated[bool, typer.Option("--shapley", help="Add Shapley effects, of at most eight inputs.")] = False,
    out: Table = None,
    plot: Picture = None,
    seed: Seed = 0,
) -> None:
    """Compute which inputs make the outputs vary: Sobol indices with 90% intervals."""
    _answer(model, inputs, out, plot, decisions.sensitivity, second=second, shapley=shapley, random_state=seed)


def propagate(model: Model, inputs: InputsFile = None, out: Table = None, plot: Picture = None, seed: Seed = 0) -> None:
    """Compute the distribution of the outputs: mean, standard deviation and quantiles with 90% intervals."""
    _answer(model, inputs, out, plot, decisions.propagate, random_state=seed)


def failure(
    model: Model,
    above: Limits = None,
    below: Limits = None,
    inputs: InputsFile = None,
    combine: Annotated[Combine, typer.Option(help="Whether any limit is exceeded, or all of them.")] = Combine.any,
    method: Annotated[
        Method,
        typer.Option(help="Importance sampling around design points, subset simulation, or the more accurate of both."),
    ] = Method.auto,
    out: Table = None,
    plot: Picture = None,
    seed: Seed = 0,
) -> None:
    """Compute the probability that limits are exceeded: values above --above, or below --below."""
    if not (above or below):
        raise typer.BadParameter("expected a limit", param_hint="--above or --below")
    names = target_names(loaded(model))
    limits = {"above": _by_target("--above", above, names), "below": _by_target("--below", below, names)}
    options: dict[str, Any] = {"combine": combine.value, "method": method.value, "random_state": seed}
    _answer(model, inputs, out, plot, decisions.failure, **limits, **options)


def minimize(
    model: Model,
    target: Annotated[str | None, typer.Option("--target", "-t", help="What is minimised.", show_default=False)] = None,
    inputs: InputsFile = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="A range of another target: 'stress=:200' or 'mass=1:3'.", show_default=False),
    ] = None,
    out: Table = None,
    plot: Picture = None,
    seed: Seed = 0,
) -> None:
    """Find the smallest value of a target within the bounds of --inputs: all local optima with 90% intervals."""
    fitted = loaded(model)
    names = target_names(fitted)
    if target is None and len(names) > 1:
        raise typer.BadParameter(f"expected one of {', '.join(names)}", param_hint="--target")
    output = 0 if target is None else _place("--target", target, names)
    bounds = None if inputs is None else InputFile.read(inputs, input_names(fitted)).box()
    ranges = dict(_range(text, names) for text in split_names(constraint))

    def ask(fitted: Any, _: Any, **options: Any) -> Any:
        return decisions.minimize(fitted, bounds, output=output, constraints=ranges, **options)

    _answer(model, None, out, plot, ask, random_state=seed)


def calibrate(
    model: Model,
    observations: Annotated[
        Path,
        typer.Argument(
            help="Table with measured outputs, and inputs that are known for each row: .csv, .parquet, .npz, or -."
        ),
    ],
    noise: Annotated[
        list[str],
        typer.Option(help="Standard deviation of the noise: a number, or target=number.", show_default=False),
    ],
    inputs: InputsFile = None,
    n_samples: Annotated[int, typer.Option(help="Size of the sample of the inputs.", min=1)] = 4000,
    out: Table = None,
    plot: Picture = None,
    seed: Seed = 0,
) -> None:
    """Find the inputs that explain measurements: the most probable ones, and means with 90% intervals.

    Columns of the table are named like the targets; a single column of measurements can have any name. Empty cells
    were not measured. Columns that are named like inputs are known. What is known of the others is in --inputs.
    """
    fitted = loaded(model)
    targets = target_names(fitted)
    at, measured = measurements(read_table(observations), input_names(fitted), targets)
    deviations = _noise(noise, targets, ~np.isnan(measured).all(axis=0))

    def ask(fitted: Any, prior: Any, **options: Any) -> Any:
        return decisions.calibrate(fitted, measured, deviations, prior, at=at, **options)

    known = () if at is None else tuple(at.columns)
    _answer(model, inputs, out, plot, ask, known, n_samples=n_samples, random_state=seed)


def answers_of(model: Any, inputs: Path | None, above: list[str] | None, below: list[str] | None) -> dict[str, Any]:
    """Return the answers for a report by their headings: none without inputs and limits."""
    if inputs is None and not (above or below):
        return {}
    file = None if inputs is None else InputFile.read(inputs, input_names(model))
    given, correlation = (None, None) if file is None else (file.inputs, file.correlation)
    options: dict[str, Any] = {"correlation": correlation, "random_state": 0}
    names = target_names(model)
    limits = {"above": _by_target("--above", above, names), "below": _by_target("--below", below, names)}
    with working("Asking the model and its draws"):
        found = {
            "Which inputs matter": decisions.sensitivity(model, given, **options),
            "Distribution of the outputs": decisions.propagate(model, given, **options),
        }
        if above or below:
            found["Failure"] = decisions.failure(model, given, **limits, **options)
    return found


def _answer(
    model: Path,
    inputs: Path | None,
    out: Path | None,
    plot: Path | None,
    question: Callable[..., Any],
    known: Sequence[str] = (),
    **options: Any,
) -> None:
    """Ask a question, print its report, and write its table and its picture. Known inputs have no distributions."""
    if out is not None:
        require_target(out, table=True)
    if plot is not None:
        _require_picture(plot)
    fitted, given = loaded(model), None
    if inputs is not None:
        file = InputFile.read(inputs, input_names(fitted), known)
        given = file.inputs
        options |= {"correlation": file.correlation}
    with working("Asking the model and its draws"):
        answer = question(fitted, given, **options)
    if out != STANDARD:
        typer.echo(str(answer.report()))
    if out is not None:
        write_table(_with_targets(answer.table(), target_names(fitted)), out)
    if plot is not None:
        _draw(answer, plot)


def _with_targets(table: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """Return a table with the names of outputs in place of their numbers; an input of this name has no whole ones."""
    if "output" not in table or table["output"].dtype.kind != "i":
        return table
    return table.assign(output=np.array(names)[table["output"]])


def _draw(answer: Any, path: Path) -> None:
    from matplotlib.figure import Figure  # takes a second

    figure, buffer = Figure(figsize=(6.4, 4.2), layout="constrained"), io.BytesIO()
    answer.plot(figure.subplots())
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=150)
    write_bytes(buffer.getvalue(), path)


def _require_picture(path: Path) -> None:
    """Raise a ``ValueError`` if there can be no picture at the path, before anything is computed."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"{path.name}: expected a picture: {', '.join('.' + kind for kind in sorted(known))}")
    require_target(path)


def _by_target(option: str, texts: list[str] | None, names: tuple[str, ...]) -> Any:
    """Return a number for each target, NaN for none; None if there are none at all."""
    if not texts:
        return None
    numbers = np.full(len(names), np.nan)
    for text in split_names(texts):
        name, equals, number = text.rpartition("=")
        if not equals and len(names) > 1:
            raise typer.BadParameter(f"expected target=number with {', '.join(names)}, got {text}", param_hint=option)
        place = _place(option, name, names) if equals else 0
        if not np.isnan(numbers[place]):
            raise typer.BadParameter(f"expected one number for {names[place]}, got {texts}", param_hint=option)
        numbers[place] = _number(option, number)
    return numbers if len(names) > 1 else float(numbers[0])


def _noise(texts: list[str], names: tuple[str, ...], measured: Any) -> Any:
    """Return a standard deviation, or one for each target, which is any number for a target that is not measured."""
    if len(texts) == 1 and "=" not in texts[0]:
        return _number("--noise", texts[0])
    deviations = np.atleast_1d(_by_target("--noise", texts, names))
    missing = [name for name, none in zip(names, np.isnan(deviations) & measured, strict=True) if none]
    if missing:
        raise typer.BadParameter(f"expected a number for {', '.join(missing)} too", param_hint="--noise")
    return np.where(np.isnan(deviations), 1.0, deviations)


def _range(text: str, names: tuple[str, ...]) -> tuple[int, tuple[float | None, float | None]]:
    """Return the number of a target and the range that 'target=low:high' says."""
    name, _, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    if not (name and colon):
        raise typer.BadParameter(f"expected target=low:high, got {text}", param_hint="--constraint")
    numbers = [None if not end.strip() else _number("--constraint", end) for end in (low, high)]
    return _place("--constraint", name, names), (numbers[0], numbers[1])


def _place(option: str, name: str, names: tuple[str, ...]) -> int:
    if name.strip() not in names:
        raise typer.BadParameter(f"expected one of {', '.join(names)}, got {name}", param_hint=option)
    return names.index(name.strip())


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, got {text}", param_hint=option) from None


EXAMPLES: dict[Callable[..., None], str] = {
    inputs: "nurf inputs model.nurf > inputs.toml",
    sensitivity: "nurf sensitivity model.nurf --inputs inputs.toml --plot indices.png",
    propagate: "nurf propagate model.nurf --inputs inputs.toml --out quantiles.csv",
    failure: "nurf failure model.nurf --above 12.5 --inputs inputs.toml",
    minimize: "nurf minimize model.nurf --target mass --constraint 'stress=:200'",
    calibrate: "nurf calibrate model.nurf observations.csv --noise 0.1 --inputs inputs.toml",
}


def add_to(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command, example in EXAMPLES.items():
        app.command(epilog=f"Example: {example}")(command)
