"""Kriging models of smt with the contract of scikit-learn: `fit`, and `predict` with standard deviations."""

import numpy as np
from smt import surrogate_models

PER_INPUT = ("n_comp", "extra_points")  # options that are at most the number of inputs


class Kriging:
    """A Kriging model of smt; GEKPLS adds points beside the samples by means of the gradients.

    With as many added points as there are inputs all of a gradient is used, and GEKPLS is the indirect form of
    gradient-enhanced Kriging with scales from partial least squares.

    Parameters
    ----------
    name : {"KRG", "GEKPLS"}
        The class of `smt.surrogate_models`.
    options : dict
        Its options beside those that say where inputs are and that nothing is printed.
    """

    def __init__(self, name, **options):
        self.name = name
        self.options = options

    def fit(self, X, y, gradients=None):
        """Fit the model to points of the unit cube."""
        limits = np.tile([0.0, 1.0], (X.shape[1], 1))
        d = X.shape[1]
        options = {key: min(value, d) if key in PER_INPUT else value for key, value in self.options.items()}
        self.model_ = getattr(surrogate_models, self.name)(print_global=False, xlimits=limits, **options)
        self.model_.set_training_values(X, y)
        if gradients is not None:
            for j, partials in enumerate(gradients.T):
                self.model_.set_training_derivatives(X, partials[:, None], j)
        self.model_.train()
        return self

    def predict(self, X, return_std=False):
        """Return the values, and their standard deviations if asked for."""
        values = self.model_.predict_values(X)[:, 0]
        if not return_std:
            return values
        return values, np.sqrt(np.maximum(self.model_.predict_variances(X)[:, 0], 0))
