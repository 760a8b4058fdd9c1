"""The chain rule: derivatives of maps, and of functions before and after maps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array, Index

FULL_RANK = 1e-6  # largest difference of a matrix times its pseudo-inverse from the identity


@dataclass(frozen=True, eq=False)
class Derivative:
    """The derivatives of a map ``T`` from ``d`` to ``p`` numbers at ``n`` points, with the chain rule.

    Parameters
    ----------
    jacobian : array of shape (n, p, d) or (1, p, d)
        ``dT_j / dx_i``; one matrix if it is the same at all points.
    curvature : array of shape (n, p, d, d), optional
        The second derivatives; None if they are zero or not requested.
    """

    jacobian: Array
    curvature: Array | None = None

    @property
    def is_constant(self) -> bool:
        """Whether the map is affine."""
        return len(self.jacobian) == 1 and self.curvature is None

    @property
    def is_elementwise(self) -> bool:
        """Whether each output depends on at most one input, and each input affects at most one output."""
        links = np.any(self.jacobian != 0, axis=0)
        return bool(links.sum(axis=0).max() <= 1 and links.sum(axis=1).max() <= 1)

    @property
    def right_inverse(self) -> Array | None:
        """Matrices ``W`` with ``J W = 1``, the pseudo-inverses, of shape (n, d, p); None if there are none.

        If the map is elementwise, a column is zero where the derivative is.
        """
        J = self.jacobian
        if self.is_elementwise:
            return np.swapaxes(np.divide(1.0, J, where=J != 0, out=np.zeros_like(J)), 1, 2)
        if J.shape[1] > J.shape[2]:
            return None
        W = np.asarray(np.linalg.pinv(J), np.float64)
        return W if np.abs(J @ W - np.eye(J.shape[1])).max() < FULL_RANK else None

    def then(self, outer: Derivative) -> Derivative:
        """Return the derivatives of ``outer(T(x))`` from the derivatives of ``outer`` at ``T(x)``."""
        curvature = outer.curvature
        if curvature is None and self.curvature is not None:
            _, q, p = outer.jacobian.shape
            curvature = np.zeros((1, q, p, p))
        return Derivative(*self.after(outer.jacobian, curvature))

    def of_columns(self, columns: Index, d: int) -> Derivative:
        """Return the derivatives of a map of ``d`` inputs that depends on some of them only."""
        jacobian = np.zeros((*self.jacobian.shape[:2], d))
        jacobian[:, :, columns] = self.jacobian
        if self.curvature is None:
            return Derivative(jacobian)
        curvature = np.zeros((*self.curvature.shape[:2], d, d))
        curvature[:, :, columns[:, None], columns] = self.curvature
        return Derivative(jacobian, curvature)

    def inverted(self) -> Derivative:
        """Return the derivatives of the inverse map, at the images of the points."""
        W = np.asarray(np.linalg.inv(self.jacobian), np.float64)
        if self.curvature is None:
            return Derivative(W)
        return Derivative(W, -np.einsum("nlm,nmij,nia,njb->nlab", W, self.curvature, W, W, optimize=True))

    def after(self, gradients: Array, hessians: Array | None) -> tuple[Array, Array | None]:
        """Return gradients (n, k, d) and Hessians (n, k, d, d) of ``g(T(x))`` from derivatives of ``g`` at ``T(x)``."""
        J = self.jacobian
        if hessians is not None:
            hessians = np.swapaxes(J, 1, 2)[:, None] @ hessians @ J[:, None]
            if self.curvature is not None:
                hessians = hessians + np.einsum("nkp,npij->nkij", gradients, self.curvature)
        return gradients @ J, hessians

    def before(self, gradients: Array, hessians: Array | None) -> tuple[Array, Array | None]:
        """Return gradients (n, p, d) and Hessians of ``T(f(x))`` from gradients (n, k, d) and Hessians of ``f``."""
        J = self.jacobian
        if hessians is not None:
            shape = (len(hessians), J.shape[1], *hessians.shape[2:])
            hessians = known_product(J, hessians.reshape(*hessians.shape[:2], -1)).reshape(shape)
            if self.curvature is not None:
                n, k, d = gradients.shape
                pairs = gradients[:, :, None, :, None] * gradients[:, None, :, None, :]
                curvature = self.curvature.reshape(*self.curvature.shape[:2], k * k)
                hessians = hessians + known_product(curvature, pairs.reshape(n, k * k, d * d)).reshape(shape)
        return known_product(J, gradients), hessians


def known_product(matrices: Array, columns: Array) -> Array:
    """Return ``matrices @ columns``, with NaN only where an unknown entry (NaN) of the columns contributes.

    Parameters
    ----------
    matrices : array of shape (..., a, b)
    columns : array of shape (..., b, c)
    """
    unknown = np.isnan(columns)
    product = matrices @ np.where(unknown, 0.0, columns)
    if unknown.any():
        product[(matrices != 0).astype(float) @ unknown > 0] = np.nan
    return np.asarray(product)


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives at points, before and after transformers.

    Parameters
    ----------
    gradients : array of shape (n, k, d), optional
        Gradients, NaN if unknown. With ``directions``, directional derivatives of shape (n, k, q).
    hessians : array of shape (n, k, d, d), optional
    directions : array of shape (n, q, d), optional
    """

    gradients: Array | None
    hessians: Array | None = None
    directions: Array | None = None

    def of_values(self, target: Derivative) -> Slopes:
        """Return the derivatives of the transformed values."""
        if self.gradients is None:
            if target.curvature is not None:
                raise ValueError("`hessians` need `gradients` to go through a `target` that is not affine, got none")
            assert self.hessians is not None
            n, k, d, _ = self.hessians.shape
            return Slopes(None, target.before(np.zeros((n, k, d)), self.hessians)[1])
        gradients, hessians = target.before(self.gradients, self.hessians)
        return Slopes(gradients, hessians, self.directions)

    def through(self, step: Derivative, name: str) -> Slopes:
        """Return the derivatives with respect to the outputs of a step, from derivatives with respect to its inputs.

        With the Jacobian ``J`` (p, d) of the step and ``J W = 1``, the gradient is ``W^T grad f``: the derivatives of
        ``f`` along the columns of ``W``, which are the directions that the step keeps. Without such a ``W`` (a step
        with more outputs than inputs), or if all columns of a square ``W`` need unknown partial derivatives, ``df /
        dx_i`` is used as the derivative along column ``i`` of ``J``.
        """
        p, d = step.jacobian.shape[1:]
        if self.directions is not None:
            if p < d:
                raise ValueError(
                    f"derivatives along `directions` do not go through {name!r}, which makes {p} inputs of {d}: it "
                    "loses directions. Give `gradients` with all partial derivatives"
                )
            return replace(self, directions=self.directions @ np.swapaxes(step.jacobian, 1, 2))
        W = step.right_inverse
        incomplete = self.gradients is not None and np.isnan(self.gradients).any()
        if W is not None and (p < d or step.is_elementwise or not incomplete):
            return self._by_inverse(step, W, name)
        if self.hessians is not None:
            raise ValueError(
                f"`hessians` do not go through {name!r}: that takes a step with as many inputs as outputs or more, an "
                f"invertible Jacobian and complete gradients, got {d} inputs and {p} outputs"
            )
        assert self.gradients is not None
        directions = np.swapaxes(step.jacobian, 1, 2)
        return Slopes(self.gradients, directions=np.broadcast_to(directions, (len(self.gradients), d, p)))

    def _by_inverse(self, step: Derivative, W: Array, name: str) -> Slopes:
        across = np.swapaxes(W, 1, 2)
        lost = np.asarray(~across.any(axis=2))[:, None, :]  # derivatives along these are unknown
        gradients = self.gradients
        if gradients is not None:
            gradients = np.swapaxes(known_product(across, np.swapaxes(gradients, 1, 2)), 1, 2)
            gradients = np.where(lost, np.nan, gradients)
        if self.hessians is None:
            return Slopes(gradients)
        hessians = self.hessians
        if step.curvature is not None:
            if gradients is None:
                raise ValueError(f"`hessians` need `gradients` to go through {name!r}, which is not affine, got none")
            if W.shape[1] > W.shape[2] and not step.is_elementwise:
                raise ValueError(f"`hessians` do not go through {name!r}, which is not affine and loses directions")
            matrices = np.moveaxis(step.curvature, 1, 3)  # (n, d, d, p)
            slopes = np.swapaxes(np.where(lost, 0.0, gradients), 1, 2)[:, None]
            hessians = hessians - np.moveaxis(known_product(matrices, slopes), 3, 1)
        across = across[:, None]
        half = known_product(across, hessians)
        hessians = np.swapaxes(known_product(across, np.swapaxes(half, 2, 3)), 2, 3)
        return Slopes(gradients, np.where(lost[..., None] | np.swapaxes(lost[..., None], 2, 3), np.nan, hessians))
