"""The model of a study: refitted after many more runs, and updated in between."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from nurf._types import Array
from nurf.estimators import KernelFeatureRegressor
from nurf.studies._space import Space
from nurf.studies._store import DONE, Run, as_array

LEAST = 3  # runs, of which a model can be made
ROWS = 2500  # values and derivatives of a fit: with 3300, 300 runs of 10 inputs, an update takes 1.5 s, not 0.7
FEW = 400  # values and derivatives, of which a fit takes less than 1 s
MORE = 1.25  # times the runs of the last fit, at which few rows are fitted anew
TWICE = 2.0  # times the runs of the last fit, at which more rows are fitted anew


@dataclass(frozen=True, eq=False)
class Data:
    """The runs that ended with values, without those outside the inputs of the study.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n, k)
    gradients : array of shape (n, k, d) or None
        NaN if unknown; None if there are none.
    runs : tuple of int
        The numbers of the runs.
    """

    X: Array
    y: Array
    gradients: Array | None
    runs: tuple[int, ...]

    @classmethod
    def of(cls, runs: Sequence[Run], space: Space) -> Data:
        """Return the data of runs inside a space."""
        done, d = [run for run in runs if run.state == DONE], space.dimension
        inside = space.contains(as_array(done, "x").reshape(-1, d))
        done = [run for run, is_inside in zip(done, inside, strict=True) if is_inside]
        k = len(done[0].y or ()) if done else 1
        gradients = np.full((len(done), k, d), np.nan)
        for place, run in enumerate(done):
            if run.gradients is not None:
                gradients[place] = run.gradients
        X, y = as_array(done, "x").reshape(-1, d), as_array(done, "y").reshape(-1, k)
        return cls(X, y, None if np.all(np.isnan(gradients)) else gradients, tuple(run.run for run in done))

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.X)

    @property
    def n_rows(self) -> int:
        """The number of values and partial derivatives."""
        return self.y.size + (0 if self.gradients is None else int(np.sum(~np.isnan(self.gradients))))


@dataclass(eq=False)
class Learner:
    """The model of a study, and its fits to the runs.

    Parameters
    ----------
    space : Space
    template : estimator or None
        A regressor of nurf; by default an infinitely wide network that sees logarithms of inputs over decades.
    """

    space: Space
    template: Any = None
    model: Any = None
    data: Data | None = None
    fitted: int = 0  # runs of the last fit
    notes: tuple[str, ...] = field(default=())

    def learn(self, data: Data) -> Any:
        """Return the model of the data: the previous model, updated if needed, or a new fit."""
        if self.data is not None and self.data.runs == data.runs:
            return self.model
        if len(data) < LEAST:
            raise ValueError(f"a model needs at least {LEAST} runs with values, got {len(data)}")
        anew = self.model is None or self._is_stale(data)
        X = self.space.named(data.X)
        y = data.y[:, 0] if data.y.shape[1] == 1 else data.y
        slopes = data.gradients
        if slopes is not None and y.ndim == 1:
            slopes = slopes[:, 0]
        model = self._new() if anew else self.model
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (model.fit if anew else model.update)(X, y, gradients=slopes)
        self.notes = tuple(dict.fromkeys(str(warning.message) for warning in caught))
        self.model, self.data = model, data
        if anew:
            self.fitted = len(data)
        return model

    def _is_stale(self, data: Data) -> bool:
        kinds = None if self.data is None else (self.data.gradients is None, self.data.y.shape[1])
        if kinds is not None and kinds != (data.gradients is None, data.y.shape[1]):
            return True
        return len(data) >= (MORE if data.n_rows <= FEW else TWICE) * self.fitted

    def _new(self) -> Any:
        if self.template is not None:
            return clone(self.template)
        logarithms = list(self.space.logarithmic)
        curves = logarithms if any(logarithms) else None
        return KernelFeatureRegressor(max_rows=ROWS, inputs=curves, check_gradients=False)
