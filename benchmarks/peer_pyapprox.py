"""Polynomial chaos of pyapprox on values and gradients with the contract of scikit-learn: `fit` and `predict`."""

import numpy as np
from pyapprox.probability.univariate import UniformMarginal
from pyapprox.surrogates.affine.expansions.fitters import GradientEnhancedPCEFitter
from pyapprox.surrogates.affine.expansions.pce import create_pce_from_marginals
from pyapprox.util.backends.numpy import NumpyBkd


class Polynomial:
    """A polynomial of a total degree that interpolates the values and is fitted to the gradients by least squares.

    Interpolation needs at least one term for each sample; the library raises an error if there are fewer.

    Parameters
    ----------
    degree : int
    """

    def __init__(self, degree):
        self.degree = degree

    def fit(self, X, y, gradients):
        """Fit the polynomial to points in [-1, 1]."""
        backend = NumpyBkd()
        marginals = [UniformMarginal(-1.0, 1.0, backend) for _ in X.T]
        expansion = create_pce_from_marginals(marginals, self.degree, backend)
        fitter = GradientEnhancedPCEFitter(backend)
        self.model_ = fitter.fit(expansion, X.T, y[None], gradients.T).surrogate()
        return self

    def predict(self, X):
        """Return the values."""
        return np.asarray(self.model_(X.T))[0]
