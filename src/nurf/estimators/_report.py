"""Reports of fits: the choice and its reasons, in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array
from nurf.choosing import Attempt
from nurf.data import DerivativeCheck
from nurf.engines import ALL_BLOCKS, ALL_ROWS, DeepFit, Fit, Isotropic, Setting, ShallowFit, SparseFit, Stage, WideFit
from nurf.solvers import MIN_ERRORS, VALUES_ONLY
from nurf.solvers.process import rounding_floor

SHOWN = 5  # entries of a list in a report: candidates of each size, factors of a base

MAX_OUTPUTS = 10  # outputs whose errors are shown
MAX_INPUTS = 8  # inputs whose relevance is shown


@dataclass(frozen=True)
class Report:
    """Lines of a label and a text; ``print`` shows them, and a notebook shows a table.

    Parameters
    ----------
    title : str
    lines : tuple of (str, str)
    engines : Leaderboard, optional
        The comparison of engines, which is shown first.
    """

    title: str
    lines: tuple[tuple[str, str], ...]
    engines: Any = None

    def __str__(self) -> str:
        rows = [] if self.engines is None else str(self.engines).splitlines()
        lines = [*zip(["engines", *[""] * len(rows)], rows, strict=False), *self.lines]
        width = max(len(label) for label, _ in lines)
        return "\n".join([self.title, *(f"  {label:<{width}}  {text}" for label, text in lines)])

    def _repr_html_(self) -> str:
        cell = "text-align:left;vertical-align:top;padding:0.15em 0.8em 0.15em 0"
        rows = ""
        if self.engines is not None:
            board = self.engines._repr_html_()
            rows = f'<tr><th scope="row" style="{cell}">engines</th><td style="{cell}">{board}</td></tr>'
        rows += "".join(
            f'<tr><th scope="row" style="{cell}">{escape(label)}</th><td style="{cell}">{escape(text)}</td></tr>'
            for label, text in self.lines
        )
        return f'<table><caption style="text-align:left;font-weight:bold">{escape(self.title)}</caption>{rows}</table>'


def with_error(html: str, errors: Any, y_scale: Any) -> str:
    """Return the HTML of a fitted estimator with its estimated error below."""
    columns = list(zip(np.ravel(errors).tolist(), np.ravel(y_scale).tolist(), strict=True))
    texts = [f"{error:.3g} ({error / scale:.2g} standard deviations of the values)" for error, scale in columns]
    more = f", and {len(texts) - MAX_OUTPUTS} more outputs" if len(texts) > MAX_OUTPUTS else ""
    known = ", ".join(texts[:MAX_OUTPUTS]) + more if np.all(np.isfinite(errors)) else "not known: too few samples"
    return f"{html}<p>Estimated error at new points: {known}.</p>"


def describe(
    fit: ShallowFit,
    n_samples: int,
    n_features: int,
    y_scale: Array,
    rule: str,
    derivatives: str,
    reduction: tuple[tuple[str, str], ...] = (),
) -> Report:
    """Return the report of a shallow network: the choice, and the other candidates.

    Parameters
    ----------
    fit : ShallowFit
    n_samples, n_features : int
    y_scale : array of shape () or (k,)
        The standard deviation of the values of each output.
    rule : str
        How alpha was chosen.
    derivatives : str
        The use of the derivatives in words.
    reduction : tuple of (str, str)
        Lines on the directions of the inputs, if inputs are projected.
    """
    features = fit.network.features
    setting = None if fit.stage is None else fit.stage.setting
    sizes = " -> ".join(str(stage.n_neurons) for stage in fit.history)
    lines = [("neurons", f"{features.n_neurons}" + (f" (stages of {sizes})" if len(fit.history) > 1 else ""))]
    lines += reduction
    if setting is not None:
        lines += [("density", _densities(fit.history) or _density(setting)), ("width", _width(setting, fit))]
    lines += [
        ("derivatives in the loss", derivatives),
        ("alpha", f"{fit.alpha:.2g}, by {rule}"),
        *_errors(fit, y_scale),
        *_race(fit.attempts),
    ]
    if fit.convergence is not None:
        lines.append(("solver", str(fit.convergence)))
    fallbacks = [stage.fallback for stage in fit.history if stage.fallback]
    if fallbacks:
        lines.append(("note", f"a stage sampled from the data, not the residual: {fallbacks[-1]}"))
    seconds = sum(attempt.seconds for attempt in fit.attempts)
    title = f"{features.n_neurons} neurons for {n_samples} samples in {n_features} dimensions, {seconds:.2g} s"
    return Report(title, tuple(lines))


def describe_reduction(scaling: Scaling) -> tuple[tuple[str, str], ...]:
    """Return the number of directions on which the network depends, and the lost variance, if inputs are projected."""
    if scaling.x_basis is None:
        return ()
    d, r = scaling.x_basis.shape
    return (("inputs", f"{r} directions of {d}, found from the gradients: {scaling.lost:.2g} of the variance is lost"),)


def describe_sparse(
    fit: SparseFit, n_samples: int, y_scale: Array, given: bool, check: DerivativeCheck | None
) -> Report:
    """Return the report of a sparse network: the choice on the path, and other networks with small errors.

    Parameters
    ----------
    fit : SparseFit
    n_samples : int
    y_scale : array of shape () or (k,)
        The standard deviation of the values of each output.
    given : bool
        Whether derivatives were given.
    check : DerivativeCheck or None
        The comparison of the gradients with the values.
    """
    step, seconds = fit.step, sum(step.seconds for step in fit.history)
    lines = [
        ("neurons", f"{step.n_neurons}"),
        ("derivatives in the loss", describe_loss(fit, given, check, "not used")),
        ("alpha", f"{fit.alpha:.2g}, the best of {len(fit.history)}"),
        ("certificate", f"{step.certificate:.4g}: no further neuron helps if it is at most 1"),
        *_errors(fit, y_scale),
    ]
    best = sorted(fit.history, key=lambda step: step.error)[:SHOWN]
    for number, other in enumerate(best):
        text = f"{other.error:.2g}  {other.n_neurons} neurons, alpha {other.alpha:.2g}"
        lines.append(("" if number else f"path, {seconds:.2g} s", text))
    title = f"{step.n_neurons} trained neurons for {n_samples} samples in {fit.network.dimension} dimensions"
    return Report(title, tuple(lines))


def describe_deep(fit: DeepFit, n_samples: int, y_scale: Array, given: bool, check: DerivativeCheck | None) -> Report:
    """Return the report of a deep network: the choice, the other candidates, and the course of the training.

    Parameters
    ----------
    fit : DeepFit
    n_samples : int
    y_scale : array of shape () or (k,)
        The standard deviation of the values of each output.
    given : bool
        Whether derivatives were given.
    check : DerivativeCheck or None
        The comparison of the gradients with the values.
    """
    network, setting = fit.network, fit.setting
    sampled = "used in the sampling only" if setting.density.needs else "not used"
    lines = [
        ("hidden layers", " x ".join(map(str, network.hidden))),
        ("first layer", type(setting.density).__name__ + (" of the data" if setting.density.needs else "")),
        ("derivatives in the loss", describe_loss(fit, given, check, sampled)),
        *_errors(fit, y_scale),
        *_race(fit.attempts),
    ]
    for number, cycle in enumerate(fit.history):
        error = "" if np.isnan(cycle.error) else f", error {cycle.error:.2g} at held-out rows"
        rows = f" with {cycle.label}" if cycle.label in (ALL_ROWS, ALL_BLOCKS) else ""
        text = f"{cycle.n_steps} steps{rows}: loss {cycle.loss:.2g}{error}, {cycle.seconds:.2g} s"
        lines.append(("" if number else "training", text))
    title = f"{len(network.hidden)} hidden layers for {n_samples} samples in {network.dimension} dimensions"
    return Report(title, tuple(lines))


def _errors(fit: Fit, y_scale: Array) -> list[tuple[str, str]]:
    """Return the estimated errors, in total and of outputs, and the number of samples that carry them."""
    errors, scales = fit.output_errors, np.atleast_1d(y_scale)
    if np.isnan(errors).any():
        return [("estimated error", f"unknown: it needs at least {MIN_ERRORS} samples")]
    text = f"{fit.error:.2g} of the standard deviation of the values"
    carried = [] if fit.origin is None else [("", f"90% of the squared error from {_counted(fit.origin.n_decisive)}")]
    if len(errors) == 1:
        return [("estimated error", f"{text}, {fit.error * scales[0]:.2g} in their units"), *carried]
    order = np.arange(len(errors)) if len(errors) <= MAX_OUTPUTS else np.argsort(-errors)[:MAX_OUTPUTS]
    lines = [("estimated error", f"{text}, outputs added up"), *carried]
    lines += [("", f"{errors[j]:.2g}, {errors[j] * scales[j]:.2g} in its units: output {j}") for j in order]
    hidden = len(errors) - len(order)
    return [*lines, ("", f"less for the other {hidden} outputs")] if hidden else lines


def _counted(n_samples: int) -> str:
    return f"{n_samples} sample{'s' * (n_samples != 1)}"


def describe_process(
    fit: WideFit,
    relevance: list[tuple[str, float]],
    noise: dict[str, Any],
    y_scale: Array,
    derivatives: str,
    n_samples: int,
) -> Report:
    """Return the report of an infinitely wide network: the learned scales and noise, and the other candidates.

    Parameters
    ----------
    fit : WideFit
    relevance : list of (name, number)
        The importance of each input.
    noise : dict
        Standard deviations of the noise of values and derivatives.
    y_scale : array of shape () or (k,)
        The standard deviation of the values of each output.
    derivatives : str
        The use of the derivatives in words.
    n_samples : int
    """
    d, rows = len(relevance), fit.posterior.rows
    ordered = sorted(relevance, key=lambda pair: -pair[1])
    shown = ", ".join(f"{name} {size:.2g}" for name, size in ordered[:MAX_INPUTS])
    rest = f", and {d - MAX_INPUTS} more" if d > MAX_INPUTS else ""
    floor = np.sqrt(rounding_floor(len(rows)) * fit.posterior.variances.max())
    lines = [
        ("kernel", fit.label),
        ("relevance of inputs", f"{shown}{rest}"),
        ("noise", _noise(noise) + f"; rounding allows {floor:.2g} of the standard deviation of the values"),
        ("mean", "affine" if rows.degree else "constant"),
        ("derivatives", derivatives),
        *_errors(fit, y_scale),
        *_race(fit.attempts, "samples"),
    ]
    seconds = sum(attempt.seconds for attempt in fit.attempts)
    inputs = f"{d} dimension{'s' * (d > 1)}"
    title = f"An infinitely wide network for {n_samples} samples in {inputs}, {len(rows)} rows, {seconds:.2g} s"
    return Report(title, tuple(lines))


def describe_derivatives(fit: WideFit, n_given: int, n_rows: int, check: DerivativeCheck | None) -> str:
    """Return the use of the derivatives in words: all, some or none, and the reason.

    Parameters
    ----------
    fit : WideFit
    n_given : int
        Number of given values and derivatives; 0 without derivatives.
    n_rows : int
        Number of used values and derivatives.
    check : DerivativeCheck or None
        The comparison of the gradients with the values.
    """
    if not n_given:
        return "none were given"
    wrong = f"although they contradict the values ({check.message})" if check and check.consistent is False else ""
    last = {attempt.data: attempt for attempt in sorted(fit.attempts, key=lambda attempt: attempt.data)}
    size = fit.attempts[-1].size
    names = {
        data: data if attempt.size == size else f"{data} ({attempt.size} samples)" for data, attempt in last.items()
    }
    errors = "error " + " and ".join(f"{attempt.error:.2g} with {names[data]}" for data, attempt in last.items())
    used = "used" if n_rows == n_given else f"{n_rows} of {n_given} values and derivatives used, for `max_rows`"
    if not fit.posterior.kinds:
        used, wrong = "not used: they do not help here", wrong.replace("although they", "they")
    return ", ".join(filter(None, (used, wrong, errors)))


def _noise(noise: dict[str, Any]) -> str:
    """Return the standard deviations of the noise in words."""
    units = {"values": "in their units"}
    parts = [
        f"{kind} {np.max(size):.2g} {units.get(kind, 'in scaled units')}" + (" at most" if np.ndim(size) else "")
        for kind, size in noise.items()
    ]
    return ", ".join(parts)


def describe_loss(fit: Fit, given: bool, check: DerivativeCheck | None, unused: str) -> str:
    """Return the use of the derivatives in words: their weight in the loss, or the reason for zero weight.

    Parameters
    ----------
    fit : Fit
    given : bool
        Whether derivatives were given.
    check : DerivativeCheck or None
        The comparison of the gradients with the values.
    unused : str
        The text if their weight in the loss is zero.
    """
    if not given:
        return "none were given"
    wrong = f"they contradict the values ({check.message})" if check is not None and check.consistent is False else ""
    errors = _errors_with_and_without(fit.attempts)
    if fit.loss != VALUES_ONLY:
        used = ", ".join(f"{kind} {getattr(fit.loss, kind):.3g}" for kind in fit.loss.kinds)
        reasons = [f"although {wrong}" if wrong else "", f"they help, {errors}" if errors else ""]
    else:
        used = unused
        no_help = "they do not help here" if errors else "their weight is 0"
        reasons = [wrong or no_help, errors]
    return ": ".join(part for part in (used, ", ".join(filter(None, reasons))) if part)


def _errors_with_and_without(attempts: tuple[Attempt, ...]) -> str:
    """Return the best errors with and without derivatives in the loss, at the last size with both."""
    for size in sorted({attempt.size for attempt in attempts}, reverse=True):
        tried = [attempt for attempt in attempts if attempt.size == size]
        with_, without = _best(tried, lambda attempt: not _without(attempt)), _best(tried, _without)
        if np.isfinite([with_, without]).all():
            return f"error {with_:.2g} with and {without:.2g} without them ({size} neurons)"
    return ""


def describe_sampling(setting: Setting | None) -> str:
    """Return the use of derivatives with zero weight in the loss of a sampled network, in words."""
    if setting is None or not setting.needs:
        return "not used"  # estimated derivatives may replace the known ones, or not
    return "used in the sampling only" if setting.source.keeps_neurons else "not used in the loss"


def _densities(history: Sequence[Stage]) -> str:
    """Return the densities of the stages of the network, if they differ."""
    kept: list[Setting] = []
    for stage in history:
        if stage.setting is not None:
            kept = [*(kept if stage.setting.source.keeps_neurons else ()), stage.setting]
    last_of_each = {type(setting.density): setting for setting in kept}
    return ", then ".join(map(_density, last_of_each.values())) if len(last_of_each) > 1 else ""


def _density(setting: Setting) -> str:
    origin = "estimated derivatives" if not setting.source.keeps_neurons else f"the {setting.source.name}"
    text = type(setting.density).__name__ + (f" of {origin}" if setting.needs else "")
    return text + (f", in a {setting.metric.name} metric" if setting.metric != Isotropic() else "")


def _width(setting: Setting, fit: ShallowFit) -> str:
    if not np.any(fit.network.activation.width):
        return "0: the activation is sharp"
    widths = np.unique(np.round(np.atleast_1d(np.asarray(fit.network.activation.width, float)), 6))
    text = f"{np.mean(setting.activation.width):.3g} of the radius of the data"
    return text + (f"; {widths[0]:.3g} to {widths[-1]:.3g} in all" if len(widths) > 1 else "")


def _without(attempt: Attempt) -> bool:
    return attempt.loss == VALUES_ONLY


def _best(attempts: list[Attempt], condition: Callable[[Attempt], bool]) -> float:
    """Return the smallest error of the attempts with a condition; NaN if there are none."""
    return min((attempt.error for attempt in attempts if condition(attempt)), default=np.nan)


def _race(attempts: tuple[Attempt, ...], unit: str = "neurons") -> list[tuple[str, str]]:
    """Return the number of candidates, their time and the best of them, for each size."""
    lines = []
    for size in sorted({attempt.size for attempt in attempts}):
        tried = sorted((attempt for attempt in attempts if attempt.size == size), key=lambda attempt: attempt.error)
        seconds = sum(attempt.seconds for attempt in tried)
        lines.append((f"race, {size} {unit}", f"{len(tried)} tried in {seconds:.2g} s, the best of them:"))
        lines += [("", f"{attempt.error:.2g}  {attempt.label} ({attempt.data})") for attempt in tried[:SHOWN]]
    return lines
