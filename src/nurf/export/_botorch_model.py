"""The predictions of a regressor as normal distributions of BoTorch. Importing this module needs botorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator.operators import DiagLinearOperator

from nurf._types import Array
from nurf.export._points import as_fitted

STEP = 1e-4  # of differences of variances, in units of the range of an input
JOINT = (
    "the covariance between the values at several points is not known, so that they cannot be drawn together, got "
    "q = {}: use q = 1, one point after the other"
)


class NurfModel(Model):  # type: ignore[misc]
    """A fitted regressor of nurf."""

    def __init__(self, regressor: Any) -> None:
        super().__init__()
        self.regressor = regressor

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return int(np.prod(self.regressor.fit_.network.output_shape))

    @property
    def batch_shape(self) -> Any:
        """The batch shape, which is empty because there is one model."""
        return torch.Size([])

    def posterior(
        self,
        X: Any,
        output_indices: list[int] | None = None,
        observation_noise: Any = False,
        posterior_transform: Any = None,
    ) -> Any:
        """Return the normal distributions at points of shape (..., q, d)."""
        mean, variance = _Predicted.apply(X, self.regressor)
        if output_indices is not None:
            mean, variance = mean[..., output_indices], variance[..., output_indices]
        if mean.shape[-1] == 1:
            normal = MultivariateNormal(mean[..., 0], DiagLinearOperator(variance[..., 0]))
        else:
            normal = MultitaskMultivariateNormal(mean, DiagLinearOperator(variance.flatten(-2)))
        posterior = NurfPosterior(normal)
        return posterior if posterior_transform is None else posterior_transform(posterior)


class NurfPosterior(GPyTorchPosterior):  # type: ignore[misc]
    """A normal distribution at each point, without covariances between points."""

    def rsample(self, sample_shape: Any = None) -> Any:
        """Return samples at one point."""
        self._require_one_point()
        return super().rsample(sample_shape)

    def rsample_from_base_samples(self, sample_shape: Any, base_samples: Any) -> Any:
        """Return samples at one point."""
        self._require_one_point()
        return super().rsample_from_base_samples(sample_shape, base_samples)

    def _require_one_point(self) -> None:
        n = self.mean.shape[-2]
        if n > 1:
            raise NotImplementedError(JOINT.format(n))


class _Predicted(torch.autograd.Function):  # type: ignore[misc]
    """Mean and variance at points (..., d), both of shape (..., k)."""

    @staticmethod
    def forward(ctx: Any, X: Any, regressor: Any) -> tuple[Any, ...]:
        ctx.save_for_backward(X)
        ctx.regressor = regressor
        found = _mean_and_variance(regressor, _rows(X))
        return tuple(torch.as_tensor(part.reshape(*X.shape[:-1], -1)).to(X) for part in found)

    @staticmethod
    def backward(ctx: Any, by_mean: Any, by_variance: Any) -> tuple[Any, None]:
        (X,) = ctx.saved_tensors
        slopes = _slopes(ctx.regressor, _rows(X))
        outer = (_rows(part) for part in (by_mean, by_variance))
        total = sum(np.einsum("nk,nkd->nd", a, b) for a, b in zip(outer, slopes, strict=True))
        return torch.as_tensor(np.reshape(total, X.shape)).to(X), None


def _rows(tensor: Any) -> Array:
    """Return a tensor of shape (..., m) as an array of shape (n, m)."""
    return np.asarray(tensor.detach().cpu().numpy(), float).reshape(-1, tensor.shape[-1])


def _mean_and_variance(model: Any, points: Array) -> tuple[Array, Array]:
    """Return the mean and the variance at points (n, d), each of shape (n, k)."""
    values, deviations = model.predict(as_fitted(model, points), return_std=True)
    return values.reshape(len(points), -1), deviations.reshape(len(points), -1) ** 2


def _slopes(model: Any, points: Array) -> tuple[Array, Array]:
    """Return the gradients of the mean and of the variance, both of shape (n, k, d)."""
    n, d = points.shape
    curves, steps = model.warping_.inputs, np.broadcast_to(STEP * model.scaling_.x_scale, (n, d))
    steps = steps if curves is None else steps / curves.slopes(points)
    moved = points + np.stack([np.eye(d), -np.eye(d)])[:, :, None] * steps
    variances = _mean_and_variance(model, moved.reshape(-1, d))[1].reshape(2, d, n, -1)
    differences = (variances[0] - variances[1]) / (2 * steps.T[..., None])
    return model.predict_gradient(as_fitted(model, points)).reshape(n, -1, d), np.moveaxis(differences, 0, 2)
