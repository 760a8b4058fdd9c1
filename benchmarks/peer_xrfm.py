"""A recursive feature machine of xrfm with the contract of scikit-learn: `fit` and `predict`."""

import numpy as np
import torch
from xrfm import xRFM


class Machine:
    """A kernel machine that learns a metric of the inputs; a fifth of the samples chooses between its iterations.

    Parameters
    ----------
    iterations : int
    seed : int
    """

    def __init__(self, iterations, seed=0):
        self.iterations, self.seed = iterations, seed

    def fit(self, X, y):
        """Fit the machine."""
        torch.set_num_threads(1)
        held = np.random.default_rng(self.seed).permutation(len(X)) < len(X) // 5
        options = {"kernel": "l2", "bandwidth": 10.0, "exponent": 1.4, "diag": False, "bandwidth_mode": "constant"}
        parameters = {"model": options, "fit": {"reg": 1e-6, "iters": self.iterations, "verbose": False}}
        self.model_ = xRFM(
            rfm_params=parameters, device="cpu", tuning_metric="mse", verbose=False, random_state=self.seed
        )
        parts = [torch.tensor(part, dtype=torch.float32) for part in (X[~held], y[~held, None], X[held], y[held, None])]
        self.model_.fit(*parts)
        return self

    def predict(self, X):
        """Return the values."""
        return np.asarray(self.model_.predict(torch.tensor(X, dtype=torch.float32))).reshape(len(X))
