"""A model that knows its function: what is asked of it shows the errors of the questions alone."""

import numpy as np
from sklearn.base import BaseEstimator

from nurf._scaling import Scaling


class ExactDraws:
    """Functions ``f + s g`` with numbers ``s``; the fit has ``s = 0``."""

    def __init__(self, value, gradient, shifts, single=False):
        self.value_of, self.gradient_of, self.shifts, self.single = value, gradient, shifts, single

    @property
    def fit(self):
        return ExactDraws(self.value_of, self.gradient_of, np.zeros(1), True)

    def __len__(self):
        return len(self.shifts)

    def __getitem__(self, index):
        chosen = self.shifts[index]
        return ExactDraws(self.value_of, self.gradient_of, np.atleast_1d(chosen), np.ndim(chosen) == 0)

    def value(self, X):
        """Draws are shifted by a constant."""
        return self._each(self.value_of, X, self.shifts)

    def gradient(self, X):
        return self._each(self.gradient_of, X, np.zeros(len(self.shifts)))

    def _each(self, function, X, shifts):
        if np.ndim(X) == 3:
            return np.array([function(x) + shift for x, shift in zip(X, shifts, strict=True)])
        found = np.add.outer(shifts, function(X))
        return found[0] if self.single else found


class Exact(BaseEstimator):
    """A fitted model of a known function on a box, whose draws differ from it by normal constants."""

    def __init__(self, value, gradient, low, high, spread=0.0):
        self.value, self.gradient, self.low, self.high, self.spread = value, gradient, low, high, spread
        low, high = np.asarray(low, float), np.asarray(high, float)
        half = (high - low) / 2 * np.sqrt(len(low))
        self.scaling_ = Scaling((low + high) / 2, half, np.zeros(()), np.ones(()))
        self.n_features_in_ = len(low)

    def fit(self, X, y):
        return self

    def draws(self, n, random_state=None):
        shifts = self.spread * np.random.default_rng(random_state).normal(size=n)
        return ExactDraws(self.value, self.gradient, shifts)
