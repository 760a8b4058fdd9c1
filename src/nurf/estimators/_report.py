"""What a fit chose and why, in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from html import escape
from typing import TypeVar

import numpy as np

from nurf.solvers import VALUES_ONLY
from nurf.training import Fit, Setting, Stage, Trial

Key = TypeVar("Key", bound=Hashable)


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


def describe(fit: Fit, n_samples: int, n_features: int, deviation: str, estimated: bool, rule: str) -> Report:
    """Say what was chosen, from the history of the stages."""
    features = fit.network.features
    chosen = last_stage(fit)
    assert chosen.setting is not None
    seconds = sum(stage.seconds for stage in fit.history)
    sizes = " -> ".join(str(stage.n_neurons) for stage in fit.history)
    lines = [
        ("neurons", f"{features.n_neurons}" + (f" (stages of {sizes})" if len(fit.history) > 1 else "")),
        ("law", _law(chosen.setting, fit.history, estimated)),
        ("width", _width(chosen.setting, fit)),
        ("derivatives in the loss", _weights(fit)),
        ("alpha", f"{fit.alpha:.2g}, by {rule}"),
        ("estimated error", f"{fit.error:.2g} of the standard deviation of the values{deviation}"),
    ]
    fallback = [stage.fallback for stage in fit.history if stage.fallback]
    if fallback:
        lines.append(("note", f"a stage sampled from the data, not the residual: {fallback[-1]}"))
    title = f"{features.n_neurons} neurons for {n_samples} samples in {n_features} dimensions, {seconds:.2g} s"
    return Report(title, tuple(lines))


def last_stage(fit: Fit) -> Stage:
    """Return the stage that gave the network its last neurons: that of the smallest error, maybe not the last one."""
    size = fit.network.features.n_neurons
    return next(stage for stage in fit.history if stage.n_neurons == size and stage.error == fit.error)


def _law(setting: Setting, history: tuple[Stage, ...], estimated: bool) -> str:
    """Name the law that was sampled, with the errors of all at the last stage that compared them."""
    name = type(setting.density).__name__ + (" of estimated derivatives" if estimated else "")
    for stage in reversed(history):
        errors = _best_by(stage.trials, lambda trial: type(trial.setting.density).__name__)
        if len(errors) > 1:
            own = errors.pop(type(setting.density).__name__, np.nan)
            others = ", ".join(f"{other} {error:.2g}" for other, error in errors.items())
            return f"{name}: error {own:.2g} with {stage.n_neurons} neurons, against {others}"
    return name


def _width(setting: Setting, fit: Fit) -> str:
    if not np.any(fit.network.activation.width):
        return "0: the activation is sharp"
    widths = np.unique(np.round(np.atleast_1d(np.asarray(fit.network.activation.width, float)), 6))
    tried = {float(np.mean(trial.setting.activation.width)) for stage in fit.history for trial in stage.trials}
    text = f"{np.mean(setting.activation.width):.3g} of the radius of the data"
    if len(widths) > 1:
        text += f"; {widths[0]:.3g} to {widths[-1]:.3g} in all"
    return text + (f" (tried {min(tried):.3g} to {max(tried):.3g})" if len(tried) > 1 else "")


def _weights(fit: Fit) -> str:
    """Say how much derivatives count, and what the same neurons gave without them."""
    loss = fit.loss
    trials = [trial for stage in fit.history for trial in stage.trials]
    counted = loss != VALUES_ONLY
    text = f"gradients {loss.gradients:g}" + (f", Hessians {loss.hessians:g}" if loss.hessians else "")
    if all(trial.setting.loss == loss for trial in trials):
        return text if counted else "none"
    stage = [stage for stage in fit.history if len({trial.setting.loss for trial in stage.trials}) > 1][-1]
    best = _best_by(stage.trials, lambda trial: trial.setting.loss != VALUES_ONLY)
    without, with_ = best.get(False, np.nan), best.get(True, np.nan)
    if not counted:
        return f"none: they do not help, error {without:.2g} without and {with_:.2g} with them"
    return f"{text}: they help, error {with_:.2g} against {without:.2g} without ({stage.n_neurons} neurons)"


def _best_by(trials: tuple[Trial, ...], key: Callable[[Trial], Key]) -> dict[Key, float]:
    """Return the smallest error of the trials with the same key."""
    best: dict[Key, float] = {}
    for trial in trials:
        best[key(trial)] = min(trial.error, best.get(key(trial), np.inf))
    return best
