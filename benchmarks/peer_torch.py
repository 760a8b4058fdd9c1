"""A deep network of torch, trained on values and gradients as users of torch would: the peer of trained networks."""

import time
from itertools import chain, pairwise

import numpy as np
import torch


class Network:
    """A network of three layers of 64 SiLU neurons, trained by Adam with a falling step size.

    The loss is the mean squared error of the values, plus that of the gradients in units of their mean square. Inputs
    are scaled to [-1, 1], values have mean zero and variance one. Nothing is tuned.

    Parameters
    ----------
    seconds : float
        The time of the training. Some steps are timed beforehand, so that the step size reaches zero at its end.
    seed : int
    """

    def __init__(self, seconds, seed=0, batch=250, rate=5e-3, hidden=(64, 64, 64)):
        self.seconds, self.seed, self.batch, self.rate, self.hidden = seconds, seed, batch, rate, hidden

    def fit(self, X, y, gradients=None):
        """Train the network."""
        torch.manual_seed(self.seed)
        torch.set_num_threads(1)
        self.center, self.half = (X.min(axis=0) + X.max(axis=0)) / 2, np.ptp(X, axis=0) / 2
        self.mean, self.unit = y.mean(), y.std()
        rows = [(X - self.center) / self.half, (y - self.mean) / self.unit]
        rows += [] if gradients is None else [gradients * self.half / self.unit]
        rows = [torch.tensor(part, dtype=torch.float32) for part in rows]
        sizes = (X.shape[1], *self.hidden)
        layers = [(torch.nn.Linear(a, b), torch.nn.SiLU()) for a, b in pairwise(sizes)]
        self.model = torch.nn.Sequential(*chain(*layers), torch.nn.Linear(sizes[-1], 1))
        n_trial = 100
        self._train(rows, n_trial, n_trial)  # the first steps take longer
        start = time.process_time()
        self._train(rows, n_trial, n_trial)
        n_steps = max(1, int(n_trial * self.seconds / (time.process_time() - start)))
        for layer in self.model:
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
        self._train(rows, n_steps, n_steps)
        return self

    def _train(self, rows, n_steps, n_all):
        optimiser = torch.optim.Adam(self.model.parameters(), self.rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_all)
        scale = torch.mean(torch.sum(rows[2] ** 2, dim=1)) if len(rows) > 2 else 1.0
        for _ in range(n_steps):
            chosen = torch.randint(len(rows[0]), (min(self.batch, len(rows[0])),))
            X, y, *slopes = (part[chosen] for part in rows)
            X.requires_grad_(bool(slopes))
            values = self.model(X)[:, 0]
            loss = torch.mean((values - y) ** 2)
            if slopes:
                (found,) = torch.autograd.grad(values.sum(), X, create_graph=True)
                loss = loss + torch.mean(torch.sum((found - slopes[0]) ** 2, dim=1)) / scale
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()

    def predict(self, X):
        """Return the values."""
        points = torch.tensor((X - self.center) / self.half, dtype=torch.float32)
        with torch.no_grad():
            return self.model(points)[:, 0].double().numpy() * self.unit + self.mean
