"""A process of GPy on gradients with the contract of scikit-learn: `fit` and `predict`."""

import GPy
import numpy as np


class GradientProcess:
    """A Gaussian process of GPy on values and gradients (`DiffKern`), with a length for each input.

    The kernel is RBF. Values and each partial derivative have a variance of the noise. GPy's optimiser maximises the
    likelihood.

    Parameters
    ----------
    steps : int
        The largest number of steps of the optimiser.
    """

    def __init__(self, steps=200):
        self.steps = steps

    def fit(self, X, y, gradients):
        """Fit the process to points, values and gradients."""
        d = X.shape[1]
        kernel = GPy.kern.RBF(d, ARD=True)
        kernels = [kernel, *(GPy.kern.DiffKern(kernel, j) for j in range(d))]
        noises = [GPy.likelihoods.Gaussian(variance=1e-4) for _ in range(d + 1)]
        values = [y[:, None], *(partials[:, None] for partials in gradients.T)]
        self.model_ = GPy.models.MultioutputGP([X] * (d + 1), values, kernels, noises)
        self.model_.optimize(max_iters=self.steps)
        return self

    def predict(self, X):
        """Return the values."""
        index = np.zeros((len(X), 1), dtype=int)
        means, _ = self.model_.predict_noiseless([X], Y_metadata={"output_index": index, "trials": np.ones_like(index)})
        return means[: len(X), 0]
