"""RealMLP of pytabkit with the contract of scikit-learn: `fit` and `predict`."""

import numpy as np
import torch
from pytabkit import RealMLP_TD_Regressor


class Network:
    """RealMLP with its tuned defaults; a fifth of the samples chooses the epoch.

    Parameters
    ----------
    epochs : int
    seed : int
    """

    def __init__(self, epochs, seed=0):
        self.epochs, self.seed = epochs, seed

    def fit(self, X, y):
        """Train the network."""
        torch.set_num_threads(1)
        self.model_ = RealMLP_TD_Regressor(
            device="cpu", n_epochs=self.epochs, random_state=self.seed, n_threads=1, verbosity=0
        ).fit(X, y)
        return self

    def predict(self, X):
        """Return the values."""
        return np.ravel(self.model_.predict(X))
