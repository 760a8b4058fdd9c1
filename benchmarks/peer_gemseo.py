"""Polynomial chaos of GEMSEO on values and gradients with the contract of scikit-learn: `fit` and `predict`."""

import numpy as np
from gemseo.algos.parameter_space import ParameterSpace
from gemseo.datasets.io_dataset import IODataset
from gemseo.mlearning.linear_model_fitting.linear_regression_settings import LinearRegression_Settings
from gemseo.mlearning.regression.algos.fce import FCERegressor


class Polynomial:
    """A polynomial of a total degree, fitted by least squares to values and gradients (`learn_jacobian_data`).

    Parameters
    ----------
    degree : int
    """

    def __init__(self, degree):
        self.degree = degree

    def fit(self, X, y, gradients=None):
        """Fit the polynomial to points in [-1, 1]."""
        space = ParameterSpace()
        space.add_random_vector("x", "OTUniformDistribution", X.shape[1], minimum=[-1.0], maximum=[1.0])
        data = IODataset()
        data.add_input_variable("x", X)
        data.add_output_variable("y", y[:, None])
        if gradients is not None:
            data.add_group(data.GRADIENT_GROUP, gradients, ["@y"], {"@y": X.shape[1]})
        data.misc["input_space"] = space
        self.model_ = FCERegressor(
            data,
            degree=self.degree,
            learn_jacobian_data=gradients is not None,
            linear_model_fitter_settings=LinearRegression_Settings(),
        )
        self.model_.learn()
        return self

    def predict(self, X):
        """Return the values."""
        return np.asarray(self.model_.predict(X))[:, 0]
