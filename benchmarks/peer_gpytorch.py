"""A process of GPyTorch on gradients with the contract of scikit-learn: `fit`, and `predict` with deviations."""

import gpytorch
import numpy as np
import torch
from linear_operator.utils.errors import NanError, NotPSDError
from scipy.optimize import minimize
from torch.nn.utils import parameters_to_vector, vector_to_parameters

BATCH = 100  # points that are predicted at once: GPyTorch makes a dense covariance of all their rows


class GradientProcess:
    """A Gaussian process of GPyTorch on values and gradients, with a length for each input.

    Inputs and values are standardised, in double precision. Lengths, the variance, a constant mean and the noise of
    the values and of each partial maximise the marginal likelihood, by L-BFGS from several starts.

    Parameters
    ----------
    lengths : tuple of float
        The lengths that optimisation starts from, for all inputs alike, in standard deviations of the inputs.
    n_steps : int
        The largest number of steps from each start.
    noise : float
        The least variance of the noise, in units of the variance of the values.
    kernel : {"RBFKernelGrad", "Matern52KernelGrad"}
        The class of `gpytorch.kernels`.
    """

    def __init__(self, lengths=(1.0, 4.0), n_steps=80, noise=1e-10, kernel="RBFKernelGrad"):
        self.kernel = kernel
        self.lengths = lengths
        self.n_steps = n_steps
        self.noise = noise

    def fit(self, X, y, gradients):
        """Fit the process to points, values and gradients."""
        self.center_, self.width_ = X.mean(axis=0), X.std(axis=0)
        self.mean_, self.unit_ = y.mean(), y.std()
        rows = np.column_stack([(y - self.mean_) / self.unit_, gradients * self.width_ / self.unit_])
        points = torch.tensor((X - self.center_) / self.width_)
        fits = [self._optimised(points, torch.tensor(rows), length) for length in self.lengths]
        loss, self.model_ = min(fits, key=lambda fit: fit[0])
        if not loss < np.inf:
            raise RuntimeError("no start has a covariance that can be factored")
        return self

    def _optimised(self, points, rows, length):
        """Return the loss and the process after optimisation from one length."""
        model = Process(points, rows, length, self.noise, self.kernel)
        likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        parameters = list(model.parameters())

        def loss(vector):
            vector_to_parameters(torch.tensor(vector), parameters)
            model.zero_grad()
            try:
                value = -likelihood(model(points), rows)
                value.backward()
            except (NanError, NotPSDError):
                return np.inf, np.zeros_like(vector)  # the line search takes a shorter step
            return value.item(), parameters_to_vector([parameter.grad for parameter in parameters]).numpy()

        start = parameters_to_vector(parameters).detach().numpy()
        with gpytorch.settings.fast_computations(False, False, False):  # matrices of any size are factored
            found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": self.n_steps})
        vector_to_parameters(torch.tensor(found.x), parameters)
        return found.fun, model.eval()

    def predict(self, X, return_std=False):
        """Return the values, and their standard deviations if asked for."""
        parts = []
        with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
            for batch in np.array_split((X - self.center_) / self.width_, -(-len(X) // BATCH)):
                found = self.model_(torch.tensor(batch))
                parts.append(np.stack([found.mean[:, 0], found.variance[:, 0]]))
        means, variances = np.concatenate(parts, axis=1)
        values = self.mean_ + self.unit_ * means
        return (values, self.unit_ * np.sqrt(np.maximum(variances, 0))) if return_std else values


class Process(gpytorch.models.ExactGP):
    """The process before optimisation, conditioned on rows of values and partials.

    Parameters
    ----------
    points : tensor of shape (n, d)
    rows : tensor of shape (n, 1 + d)
        The value and the gradient at each point.
    length : float
        The length of the kernel, for all inputs alike.
    noise : float
        The least variance of the noise.
    kernel : str
        The class of `gpytorch.kernels`.
    """

    def __init__(self, points, rows, length, noise, kernel):
        n_rows = rows.shape[1]
        constraint = gpytorch.constraints.GreaterThan(noise)
        likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(
            n_rows, noise_constraint=constraint, has_global_noise=False
        )
        super().__init__(points, rows, likelihood)
        self.mean_module = gpytorch.means.ConstantMeanGrad()
        kernel = getattr(gpytorch.kernels, kernel)(ard_num_dims=n_rows - 1)
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel)
        self.double()
        kernel.lengthscale = length
        self.covar_module.outputscale = 1.0
        likelihood.task_noises = rows.new_full((n_rows,), 1e-4)

    def forward(self, x):
        """Return the prior at points."""
        return gpytorch.distributions.MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))
