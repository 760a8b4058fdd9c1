"""The predictions of a regressor as a Gaussian process of BoTorch. Importing this module needs botorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.model import FantasizeMixin, Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal

from nurf.export._basis import DrawBasis

JITTER = 1e-10  # share of the variance before the observations that keeps covariances positive definite


class NurfModel(Model, FantasizeMixin):  # type: ignore[misc]
    """A fitted regressor of nurf as ``f(x) = m(x) + phi(x).w`` with normal weights ``w``, one for each draw.

    Parameters
    ----------
    regressor : regressor
        A fitted regressor.
    draws : Draws
        Draws of the regressor. Their differences from the mean are ``phi``.
    known : Known, optional
        Further observations.
    """

    def __init__(self, regressor: Any, draws: Any, known: Known | None = None) -> None:
        super().__init__()
        self.regressor = regressor
        self.basis = DrawBasis(regressor, draws)
        self.known = known

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return self.basis.n_outputs

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch of observations on which the model is conditioned; empty without any."""
        return torch.Size([]) if self.known is None else self.known.solved.shape[:-1]

    def transform_inputs(self, X: Any, input_transform: Any = None) -> Any:
        """Return the inputs as they are: the regressor scales them."""
        return X

    def posterior(
        self,
        X: Any,
        output_indices: list[int] | None = None,
        observation_noise: Any = False,
        posterior_transform: Any = None,
    ) -> Any:
        """Return the joint normal distribution at points of shape (..., q, d).

        ``observation_noise`` adds the variance of the noise of values: the regressor's if it is True, or a tensor.
        """
        X = X if X.dim() > 1 else X[None]
        chosen = list(range(self.num_outputs)) if output_indices is None else output_indices
        if len(chosen) * X.shape[-2] == 1 and self.known is None:
            mean, variance = (part[..., chosen] for part in _Predicted.apply(X, self.basis))
            covariance = variance
        else:
            mean, columns = self._columns(X, chosen)
            mean, covariance = self._given(mean.flatten(-2), columns.flatten(-3, -2))
            mean = mean.reshape(*mean.shape[:-1], X.shape[-2], len(chosen))
        noise = self._noise(observation_noise)[..., chosen].expand(mean.shape).flatten(-2)
        posterior = NurfPosterior(_normal(mean, covariance + torch.diag_embed(noise.to(mean))))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def gradient_posterior(self, X: Any) -> Any:
        """Return the joint normal distribution of values and gradients at points of shape (..., q, d).

        The outputs are the values of all outputs, then the gradients of the first output, of the second one, and so on:
        k (1 + d) in all. The distribution is not differentiable with respect to ``X``.
        """
        X = X if X.dim() > 1 else X[None]
        mean, columns = (torch.as_tensor(part).to(X) for part in self.basis.with_gradients(_rows(X)))
        mean = mean.reshape(*X.shape[:-1], -1)
        flat = columns.reshape(*X.shape[:-2], X.shape[-2] * mean.shape[-1], -1)
        found, covariance = self._given(mean.flatten(-2), flat)
        return NurfPosterior(_normal(found.reshape(*found.shape[:-1], *mean.shape[-2:]), covariance))

    def condition_on_observations(self, X: Any, Y: Any, noise: Any = None, gradients: Any = None, **_: Any) -> Any:
        """Return the model given further observations.

        Parameters
        ----------
        X : tensor of shape (..., n, d)
        Y : tensor of shape (..., n, k)
            The values, with further batch dimensions in front if there are several for the same points.
        noise : tensor, optional
            The variances of the values, of a shape that broadcasts with ``Y``; by default the regressor's.
        gradients : tensor of shape (..., n, k, d), or (..., n, d) with one output, optional
            The gradients, without noise.
        """
        mean, columns = self._columns(X, list(range(self.num_outputs)))
        variances = self._noise(True if noise is None else noise).to(Y).expand(Y.shape).flatten(-2)
        mean, columns, values = mean.flatten(-2), columns.flatten(-3, -2), Y.flatten(-2)
        if gradients is not None:
            both = (torch.as_tensor(part).to(X) for part in self.basis.with_gradients(_rows(X)))
            k, d, n = self.num_outputs, X.shape[-1], X.shape[-2]
            slopes, slope_columns = (part.reshape(*X.shape[:-2], n, k * (1 + d), -1)[..., k:, :] for part in both)
            mean = torch.cat([mean, slopes.flatten(-3)], dim=-1)
            columns = torch.cat([columns, slope_columns.flatten(-3, -2)], dim=-2)
            further = gradients.reshape(*Y.shape[:-1], k * d).flatten(-2)
            values, variances = (
                torch.cat(pair, dim=-1) for pair in ((values, further), (variances, torch.zeros_like(further)))
            )
        return NurfModel(self.regressor, self.basis.draws, Known.of(columns, values - mean, variances, self.known))

    def fantasize(self, X: Any, sampler: Any, observation_noise: Any = None, **options: Any) -> Any:
        """Return the model given values at points of shape (..., n, d) that are sampled from its posterior."""
        noise = True if observation_noise is None else observation_noise
        Y = sampler(self.posterior(X, observation_noise=noise))
        return self.condition_on_observations(X, Y, None if observation_noise is None else observation_noise)

    def path(self, seed: int | None = None) -> Any:
        """Return a sample of the posterior as a deterministic model of BoTorch: a function of the inputs."""
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        weights = torch.randn(self.basis.n_draws, dtype=torch.double, generator=generator)
        if self.known is not None:
            weights = self.known.weights(weights)

        def function(X: Any) -> Any:
            mean, columns = self._columns(X, list(range(self.num_outputs)))
            return mean + columns @ weights.to(columns)

        return GenericDeterministicModel(function, num_outputs=self.num_outputs)

    def _columns(self, X: Any, chosen: list[int]) -> tuple[Any, Any]:
        """Return ``m`` (..., q, k) and ``phi`` (..., q, k, n_draws) at points."""
        mean, variance, differences = _Differences.apply(X, self.basis)
        squares = differences.square().sum(-1)
        scales = (variance / torch.where(squares > 0, squares, 1.0)).sqrt()
        return mean[..., chosen], (scales[..., None] * differences)[..., chosen, :]

    def _given(self, mean: Any, columns: Any) -> tuple[Any, Any]:
        """Return the mean and the covariance of rows ``mean + columns @ w`` given the observations."""
        least = torch.diag_embed(JITTER * columns.square().sum(-1))
        if self.known is None:
            return mean, columns @ columns.mT + least
        mean, covariance = self.known.given(mean, columns)
        return mean, covariance + least

    def _noise(self, given: Any) -> Any:
        """Return the variances of the noise of values, which broadcast with (..., q, k)."""
        if isinstance(given, torch.Tensor):
            return given.expand(*given.shape[:-1], self.num_outputs)
        return torch.as_tensor(self.basis.noise if given else np.zeros(self.num_outputs))


class NurfPosterior(GPyTorchPosterior):  # type: ignore[misc]
    """A normal distribution whose variances may be of any size: values are not standardised."""

    @property
    def variance(self) -> Any:
        """The variances, of shape (..., q, k)."""
        diagonal = self.distribution.lazy_covariance_matrix.diagonal(dim1=-2, dim2=-1)
        return diagonal.reshape(self.mean.shape)


@dataclass(frozen=True, eq=False)
class Known:
    """Observations ``columns @ w = values`` with noise.

    Parameters
    ----------
    columns : tensor of shape (..., p, n_draws)
    values, variances : tensors of shape (..., p)
    factor : tensor of shape (..., p, p)
        The Cholesky factor of the covariance ``columns @ columns^T`` of the observations, noise included.
    solved : tensor of shape (..., p)
        This covariance's inverse times the values.
    """

    columns: Any
    values: Any
    variances: Any
    factor: Any
    solved: Any

    @classmethod
    def of(cls, columns: Any, values: Any, variances: Any, before: Known | None) -> Known:
        """Return observations in addition to others; batch dimensions broadcast."""
        if before is not None:
            columns = _joined(before.columns, columns, 2)
            values, variances = _joined(before.values, values, 1), _joined(before.variances, variances, 1)
        noise = torch.broadcast_to(variances, values.shape) + JITTER * columns.square().sum(-1)
        factor = torch.linalg.cholesky(columns @ columns.mT + torch.diag_embed(noise))
        factor = factor.expand(*values.shape, values.shape[-1])
        solved = torch.cholesky_solve(values[..., None], factor)[..., 0]
        return cls(columns, values, variances, factor, solved)

    def given(self, mean: Any, columns: Any) -> tuple[Any, Any]:
        """Return the mean and the covariance of rows ``mean + columns @ w``."""
        across = columns @ self.columns.mT
        mean = mean + (across @ self.solved[..., None])[..., 0]
        rest = torch.linalg.solve_triangular(self.factor, across.mT, upper=False)
        return mean, columns @ columns.mT - rest.mT @ rest

    def weights(self, drawn: Any) -> Any:
        """Return weights given the observations from independent ones (n_draws,), by Matheron's rule."""
        noise = self.variances.sqrt() * torch.randn_like(self.variances)
        errors = self.values - (self.columns @ drawn.to(self.columns)) - noise
        return drawn + (self.columns.mT @ torch.cholesky_solve(errors[..., None], self.factor))[..., 0].to(drawn)


def _joined(first: Any, second: Any, n: int) -> Any:
    """Return two tensors one after the other along the first of their last ``n`` dimensions; others broadcast."""
    batch = torch.broadcast_shapes(first.shape[:-n], second.shape[:-n])
    return torch.cat([part.expand(*batch, *part.shape[-n:]) for part in (first, second)], dim=-n)


def _normal(mean: Any, covariance: Any) -> Any:
    """Return the normal distribution of values (..., q, k) with their covariance (..., q k, q k)."""
    if mean.shape[-1] == 1:
        return MultivariateNormal(mean[..., 0], covariance)
    return MultitaskMultivariateNormal(mean, covariance)


class _Predicted(torch.autograd.Function):  # type: ignore[misc]
    """The mean and the variance at points (..., d), both of shape (..., k)."""

    @staticmethod
    def forward(ctx: Any, X: Any, basis: DrawBasis) -> tuple[Any, ...]:
        ctx.save_for_backward(X)
        ctx.basis = basis
        found = basis.mean_and_variance(_rows(X))
        return tuple(torch.as_tensor(part.reshape(*X.shape[:-1], -1)).to(X) for part in found)

    @staticmethod
    def backward(ctx: Any, by_mean: Any, by_variance: Any) -> tuple[Any, None]:
        (X,) = ctx.saved_tensors
        slopes = ctx.basis.slopes(_rows(X))
        total = sum(
            np.einsum("nk,nkd->nd", _rows(outer), slope)
            for outer, slope in zip((by_mean, by_variance), slopes, strict=True)
        )
        return torch.as_tensor(np.reshape(total, X.shape)).to(X), None


class _Differences(torch.autograd.Function):  # type: ignore[misc]
    """The mean and the variance at points (..., d), of shape (..., k), and the differences of draws, (..., k, S)."""

    @staticmethod
    def forward(ctx: Any, X: Any, basis: DrawBasis) -> tuple[Any, ...]:
        ctx.save_for_backward(X)
        ctx.basis = basis
        points = _rows(X)
        found = (*basis.mean_and_variance(points), basis.differences(points))
        return tuple(torch.as_tensor(part.reshape(*X.shape[:-1], *part.shape[1:])).to(X) for part in found)

    @staticmethod
    def backward(ctx: Any, by_mean: Any, by_variance: Any, by_differences: Any) -> tuple[Any, None]:
        (X,) = ctx.saved_tensors
        points = _rows(X)
        mean, variance = ctx.basis.slopes(points)
        outer = _array(by_differences).reshape(len(points), -1, by_differences.shape[-1])
        total = np.einsum("nk,nkd->nd", _rows(by_mean), mean) + np.einsum("nk,nkd->nd", _rows(by_variance), variance)
        total += np.einsum("nks,nksd->nd", outer, ctx.basis.difference_slopes(points), optimize=True)
        return torch.as_tensor(np.reshape(total, X.shape)).to(X), None


def _array(tensor: Any) -> Any:
    return np.asarray(tensor.detach().cpu().numpy(), float)


def _rows(tensor: Any) -> Any:
    """Return a tensor of shape (..., m) as an array of shape (n, m)."""
    return _array(tensor).reshape(-1, tensor.shape[-1])
