"""What a fit chose and why, in a few lines."""

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
from nurf.engines import DeepFit, Fit, Isotropic, Setting, ShallowFit, SparseFit, Stage, WideFit
from nurf.engines._deep_fit import ALL_BLOCKS, ALL_ROWS
from nurf.solvers import VALUES_ONLY
from nurf.solvers._coverage import MIN_ERRORS
from nurf.solvers.process import rounding_floor

SHOWN = 5  # of the candidates that were tried at one size
MAX_OUTPUTS = 10  # whose errors are shown
MAX_INPUTS = 8  # whose scales are shown


@dataclass(frozen=True)
class Report:
    """Lines of a label and a text; ``print`` shows them, and a notebook shows a table."""

    title: str
    lines: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.lines)
        return "\n".join([self.title, *(f"  {label:<{width}}  {text}" for label, text in self.lines)])

    def _repr_html_(self) -> str:
        cell = "text-align:left;vertical-align:top;padding:0.15em 0.8em 0.15em 0"
        rows = "".join(
            f'<tr><th scope="row" style="{cell}">{escape(label)}</th><td style="{cell}">{escape(text)}</td></tr>'
            for label, text in self.lines
        )
        return f'<table><caption style="text-align:left;font-weight:bold">{escape(self.title)}</caption>{rows}</table>'


def describe(
    fit: ShallowFit,
    n_samples: int,
    n_features: int,
    y_scale: Array,
    rule: str,
    derivatives: str,
    reduction: tuple[tuple[str, str], ...] = (),
) -> Report:
    """Return what was chosen, and what else was tried.

    Parameters
    ----------
    fit : ShallowFit
    n_samples, n_features : int
    y_scale : array of shape () or (k,)
        The standard deviation of the values of each output.
    rule : str
        How alpha was chosen.
    derivatives : str
        What became of the derivatives.
    reduction : tuple of (str, str)
        Lines on the directions of the inputs, if these are some of all.
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
    """Return how many directions of the inputs the network depends on, and what is lost, if these are not all."""
    if scaling.x_basis is None:
        return ()
    d, r = scaling.x_basis.shape
    return (("inputs", f"{r} directions of {d}, found from the gradients: {scaling.lost:.2g} of the variance is lost"),)


def describe_sparse(
    fit: SparseFit, n_samples: int, y_scale: Array, given: bool, check: DerivativeCheck | None
) -> Report:
    """Return what was chosen on the path of sparse training, and its other networks of small errors.

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
    """Return what was chosen for a deep network, what else was tried, and the course of its training.

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
        error = "" if np.isnan(cycle.error) else f", error {cycle.error:.2g} of rows that are held out"
        rows = f" with {cycle.label}" if cycle.label in (ALL_ROWS, ALL_BLOCKS) else ""
        text = f"{cycle.n_steps} steps{rows}: loss {cycle.loss:.2g}{error}, {cycle.seconds:.2g} s"
        lines.append(("" if number else "training", text))
    title = f"{len(network.hidden)} hidden layers for {n_samples} samples in {network.dimension} dimensions"
    return Report(title, tuple(lines))


def _errors(fit: Fit, y_scale: Array) -> list[tuple[str, str]]:
    """Return the estimated errors in all and of each output, or of the worst ones, and how many samples carry them."""
    errors, scales = fit.output_errors, np.atleast_1d(y_scale)
    if np.isnan(errors).any():
        return [("estimated error", f"not known: that takes at least {MIN_ERRORS} samples")]
    text = f"{fit.error:.2g} of the standard deviation of the values"
    carried = [] if fit.origin is None else [("", f"90% of its square is that of {_counted(fit.origin.n_decisive)}")]
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
    """Return what an infinitely wide network has learned, and what else was tried.

    Parameters
    ----------
    fit : WideFit
    relevance : list of (name, number)
        How much each input matters.
    noise : dict
        Standard deviations of the noise of values and derivatives.
    y_scale : array of shape () or (k,)
        The standard deviation of the values of each output.
    derivatives : str
        What became of the derivatives.
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
    """Return what became of the derivatives: all were used, some, or none, and why.

    Parameters
    ----------
    fit : WideFit
    n_given : int
        Number of values and derivatives that were given; 0 if there were no derivatives.
    n_rows : int
        Number of those that were used.
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
    """Return what became of the derivatives: how much they count in the loss, or why they do not.

    Parameters
    ----------
    fit : Fit
    given : bool
        Whether any were given.
    check : DerivativeCheck or None
        The comparison of the gradients with the values.
    unused : str
        What became of them if they do not count in the loss.
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
    """Return the best errors with and without derivatives in the loss, at the last size at which both were tried."""
    for size in sorted({attempt.size for attempt in attempts}, reverse=True):
        tried = [attempt for attempt in attempts if attempt.size == size]
        with_, without = _best(tried, lambda attempt: not _without(attempt)), _best(tried, _without)
        if np.isfinite([with_, without]).all():
            return f"error {with_:.2g} with and {without:.2g} without them ({size} neurons)"
    return ""


def describe_sampling(setting: Setting | None) -> str:
    """Return what became of derivatives that do not count in the loss of a sampled network."""
    if setting is None or not setting.needs:
        return "not used"  # derivatives that are estimated may contain the known ones, or not
    return "used in the sampling only" if setting.source.keeps_neurons else "not used in the loss"


def _densities(history: Sequence[Stage]) -> str:
    """Return the densities of the stages whose neurons are in the network, if these differ."""
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
    """Return the smallest error of the attempts that meet a condition; NaN if there is none."""
    return min((attempt.error for attempt in attempts if condition(attempt)), default=np.nan)


def _race(attempts: tuple[Attempt, ...], unit: str = "neurons") -> list[tuple[str, str]]:
    """Return, for each size, how many candidates were tried in which time, and the best of them."""
    lines = []
    for size in sorted({attempt.size for attempt in attempts}):
        tried = sorted((attempt for attempt in attempts if attempt.size == size), key=lambda attempt: attempt.error)
        seconds = sum(attempt.seconds for attempt in tried)
        lines.append((f"race, {size} {unit}", f"{len(tried)} tried in {seconds:.2g} s, the best of them:"))
        lines += [("", f"{attempt.error:.2g}  {attempt.label} ({attempt.data})") for attempt in tried[:SHOWN]]
    return lines
