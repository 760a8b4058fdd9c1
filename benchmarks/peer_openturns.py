"""Polynomial chaos of OpenTURNS with the contract of scikit-learn: `fit` and `predict`."""

import numpy as np
import openturns as ot


class Chaos:
    """A sparse polynomial of the values: `FunctionalChaosAlgorithm` with its own choice of the terms.

    Parameters
    ----------
    size : int
        The largest number of terms that are considered; 0 for the library's own choice.
    """

    def __init__(self, size=0):
        self.size = size

    def fit(self, X, y):
        """Fit the polynomial to points in [-1, 1]."""
        inputs = ot.JointDistribution([ot.Uniform(-1.0, 1.0)] * X.shape[1])
        options = []
        if self.size:
            families = ot.PolynomialFamilyCollection([ot.LegendreFactory()] * X.shape[1])
            basis = ot.OrthogonalProductPolynomialFactory(
                families, ot.HyperbolicAnisotropicEnumerateFunction(X.shape[1], 0.6)
            )
            selection = ot.LeastSquaresMetaModelSelectionFactory(ot.LARS(), ot.CorrectedLeaveOneOut())
            options = [ot.FixedStrategy(basis, self.size), ot.LeastSquaresStrategy(selection)]
        algorithm = ot.FunctionalChaosAlgorithm(X, y[:, None], inputs, *options)
        algorithm.run()
        self.model_ = algorithm.getResult().getMetaModel()
        return self

    def predict(self, X):
        """Return the values."""
        return np.ravel(self.model_(X))
