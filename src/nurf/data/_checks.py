"""The check of gradients before a fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nurf.data._derivative_checks import DerivativeCheck, check_derivatives
from nurf.jets import Jet


def checked_gradients(jet: Jet, check_gradients: Any, remark: str = "") -> tuple[DerivativeCheck | None, list[Warning]]:
    """Return the result of comparing gradients with values, and a list with a warning if they contradict each other.

    If ``check_gradients`` is "raise", a contradiction is an error instead. The result is None if ``check_gradients`` is
    False or if no gradients are known. A ``remark`` on the data is added to the message.
    """
    named = isinstance(check_gradients, str) and check_gradients in ("warn", "raise")
    if check_gradients is not False and not named:
        raise ValueError(f"`check_gradients` must be 'warn', 'raise' or False, got {check_gradients!r}")
    if check_gradients is False or jet.gradients is None:
        return None, []
    counts = jet.weights(1) > 0
    if jet.frames is not None:  # directional derivatives alone do not explain differences of values
        counts &= np.sum(jet.frames**2, axis=(1, 2)) > jet.n_features - 0.5
    gradients = jet.gradients
    if not counts.all():
        gradients = np.where(counts.reshape(-1, *[1] * (gradients.ndim - 1)), gradients, np.nan)
    finding = check_derivatives(jet.X, jet.y, gradients)
    finding = replace(finding, message=finding.message + remark)
    if finding.consistent is not False:
        return finding, []
    message = f"`gradients` contradict the values: {finding.message}"
    if check_gradients == "raise":
        raise ValueError(message)
    return finding, [UserWarning(message)]
