"""What a fit chose and why, in a few lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np

from nurf._types import Array
from nurf.solvers import VALUES_ONLY
from nurf.training import Fit, Setting, Trial

SHOWN = 5  # of the arms that were tried at one size
MAX_OUTPUTS = 10  # whose errors are shown


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


def describe(fit: Fit, n_samples: int, n_features: int, y_scale: Array, rule: str) -> Report:
    """Return what was chosen, and what else was tried.

    Parameters
    ----------
    fit : Fit
    n_samples, n_features : int
    y_scale : array of shape () or (k,)
        The standard deviation of the values of each output.
    rule : str
        How alpha was chosen.
    """
    features = fit.network.features
    setting = None if fit.stage is None else fit.stage.setting
    sizes = " -> ".join(str(stage.n_neurons) for stage in fit.history)
    lines = [("neurons", f"{features.n_neurons}" + (f" (stages of {sizes})" if len(fit.history) > 1 else ""))]
    if setting is not None:
        lines += [("density", _density(setting)), ("width", _width(setting, fit))]
    lines += [
        ("derivatives in the loss", _loss(fit)),
        ("alpha", f"{fit.alpha:.2g}, by {rule}"),
        *_errors(fit, y_scale),
        *_race(fit.trials),
    ]
    fallbacks = [stage.fallback for stage in fit.history if stage.fallback]
    if fallbacks:
        lines.append(("note", f"a stage sampled from the data, not the residual: {fallbacks[-1]}"))
    seconds = sum(trial.seconds for trial in fit.trials)
    title = f"{features.n_neurons} neurons for {n_samples} samples in {n_features} dimensions, {seconds:.2g} s"
    return Report(title, tuple(lines))


def _errors(fit: Fit, y_scale: Array) -> list[tuple[str, str]]:
    """Return the estimated error, and that of each output if there are several; if there are many, the largest."""
    errors, scales = fit.output_errors, np.atleast_1d(y_scale)
    text = f"{fit.error:.2g} of the standard deviation of the values"
    if len(errors) == 1:
        return [("estimated error", f"{text}, {fit.error * scales[0]:.2g} in their units")]
    order = np.arange(len(errors)) if len(errors) <= MAX_OUTPUTS else np.argsort(-errors)[:MAX_OUTPUTS]
    lines = [("estimated error", f"{text}, outputs added up")]
    lines += [("", f"{errors[j]:.2g}, {errors[j] * scales[j]:.2g} in its units: output {j}") for j in order]
    hidden = len(errors) - len(order)
    return [*lines, ("", f"less for the other {hidden} outputs")] if hidden else lines


def _density(setting: Setting) -> str:
    origin = "estimated derivatives" if not setting.source.keeps_neurons else f"the {setting.source.name}"
    text = type(setting.density).__name__ + (f" of {origin}" if setting.needs else "")
    return text + (f", in a {setting.metric.name} metric" if setting.metric.needs else "")


def _width(setting: Setting, fit: Fit) -> str:
    if not np.any(fit.network.activation.width):
        return "0: the activation is sharp"
    widths = np.unique(np.round(np.atleast_1d(np.asarray(fit.network.activation.width, float)), 6))
    text = f"{np.mean(setting.activation.width):.3g} of the radius of the data"
    return text + (f"; {widths[0]:.3g} to {widths[-1]:.3g} in all" if len(widths) > 1 else "")


def _loss(fit: Fit) -> str:
    """Return how much derivatives count, and the best error with and without them at the last size that tried both."""
    text = ", ".join(f"{kind} {getattr(fit.loss, kind):g}" for kind in fit.loss.kinds) or "none"
    for size in sorted({trial.size for trial in fit.trials}, reverse=True):
        trials = [trial for trial in fit.trials if trial.size == size]
        with_, without = _best(trials, lambda trial: trial.loss != VALUES_ONLY), _best(trials, _without)
        if np.isfinite([with_, without]).all():
            guides = fit.stage is not None and fit.stage.setting is not None and fit.stage.setting.needs
            verdict = "they guide the sampling, but do not help here" if guides else "they do not help"
            verdict = "they help" if fit.loss != VALUES_ONLY else verdict
            return f"{text}: {verdict}, error {with_:.2g} with and {without:.2g} without them ({size} neurons)"
    return text


def _without(trial: Trial) -> bool:
    return trial.loss == VALUES_ONLY


def _best(trials: list[Trial], condition: Callable[[Trial], bool]) -> float:
    """Return the smallest error of the trials that meet a condition; NaN if there is none."""
    return min((trial.error for trial in trials if condition(trial)), default=np.nan)


def _race(trials: tuple[Trial, ...]) -> list[tuple[str, str]]:
    """Return, for each size, how many arms were tried in which time, and the best of them."""
    lines = []
    for size in sorted({trial.size for trial in trials}):
        tried = sorted((trial for trial in trials if trial.size == size), key=lambda trial: trial.error)
        seconds = sum(trial.seconds for trial in tried)
        lines.append((f"race, {size} neurons", f"{len(tried)} tried in {seconds:.2g} s, the best of them:"))
        lines += [("", f"{trial.error:.2g}  {trial.label} ({trial.lane})") for trial in tried[:SHOWN]]
    return lines
