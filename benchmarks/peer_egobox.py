"""A Gaussian process of egobox with the contract of scikit-learn: `fit` and `predict`."""

import numpy as np
from egobox import CorrelationSpec, GpMix, RegressionSpec


class Kriging:
    """A Gaussian process of the values with a length for each input.

    Parameters
    ----------
    starts : int
        Number of starts of the optimiser.
    seed : int
    """

    def __init__(self, starts=10, seed=0):
        self.starts, self.seed = starts, seed

    def fit(self, X, y):
        """Fit the process."""
        options = {"regr_spec": RegressionSpec.CONSTANT, "corr_spec": CorrelationSpec.SQUARED_EXPONENTIAL}
        self.model_ = GpMix(theta_n_start=self.starts, seed=self.seed, **options).fit(X, y[:, None])
        return self

    def predict(self, X):
        """Return the values."""
        return np.ravel(self.model_.predict(X))
