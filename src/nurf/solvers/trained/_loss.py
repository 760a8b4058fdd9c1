"""The loss of a deep network on values and derivatives, and its gradient with respect to all weights.

With the rows of the row model, each a value or a derivative along a direction, and the weight ``W`` of all values::

    L = 1 / W sum_k ( w_k |f(x_k) - y_k|^2 + lambda w'_k |P_k (grad f(x_k) - g_k)|^2 ),

where ``P_k`` projects onto the partial derivatives or directions that are known at ``x_k``, and outputs are added up.
With several outputs the second term is ``|P_k (grad (u_k.f) - u_k.g_k)|^2`` with random signs ``u_k``, drawn anew in
each step: its expectation is the sum over the outputs, and it costs as much as one output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nurf._blocks import row_blocks
from nurf._types import Floats
from nurf.jets import Jet
from nurf.networks import Nonlinearity
from nurf.solvers._rows import Loss, known_components

BLOCK_ELEMENTS = 2**14  # of the states of a layer: larger arrays are returned to the system after each operation
Parameters = Sequence[Floats]  # [W; b] of each layer: the optimiser treats the bias as a further row


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """All rows of a loss, in the precision of the training.

    Attributes
    ----------
    X : array of shape (n, d)
    values : array of shape (n, k)
        The values, zero if unknown.
    value_roots : array of shape (n,)
        ``(n w_k / W)^(1/2)``, so that a mean over some points estimates the loss; zero if values are unknown.
    slopes : array of shape (n, k, d), or None
        The gradients, zero if unknown; None if derivatives are not in the loss.
    slope_roots : array of shape (n,)
        ``(n lambda w'_k / W)^(1/2)``.
    known : array of shape (n, d), or None
        1 for known partial derivatives, 0 for unknown ones; None if all are known.
    frames : array of shape (n, r, d), or None
        The directions of directional derivatives.
    """

    X: Floats
    values: Floats
    value_roots: Floats
    slopes: Floats | None = None
    slope_roots: Floats | None = None
    known: Floats | None = None
    frames: Floats | None = None

    @classmethod
    def of(cls, jet: Jet, loss: Loss, dtype: npt.DTypeLike = np.float64) -> TrainingRows:
        """Return the rows of the known values and gradients of a jet."""
        n, valued = len(jet), jet.has_value
        value_weights = np.where(valued, jet.weights(0), 0.0)
        arrays: dict[str, Any] = {"X": jet.X, "values": np.where(valued[:, None], jet.y.reshape(n, -1), 0.0)}
        unit = value_weights.sum() / n or 1.0
        if loss.gradients > 0 and "gradients" in jet.known:
            slope_weights = loss.gradients * jet.weights(1) * jet.has_derivative(1)
            unit = max(unit, slope_weights.max() * np.sqrt(np.finfo(dtype).eps))  # larger weights overflow
            if jet.frames is None:
                known, slopes = known_components(jet, 1)
                arrays |= {"slopes": slopes, "known": None if known.all() else known}
            else:
                arrays |= {"slopes": jet.derivative_rows(1), "frames": jet.frames}
            arrays["slope_roots"] = np.sqrt(slope_weights / unit)
        arrays["value_roots"] = np.sqrt(value_weights / unit)
        converted: dict[str, Any] = {}
        with np.errstate(over="ignore"):  # an infinite loss ends the training
            for name, array in arrays.items():
                converted[name] = None if array is None else np.asarray(array, dtype)
        return cls(**converted)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: Any) -> TrainingRows:
        """Return the rows of some points."""
        parts: dict[str, Any] = {name: None if array is None else array[index] for name, array in vars(self).items()}
        return TrainingRows(**parts)

    def projected(self, slopes: Floats) -> Floats:
        """Return the projections by ``P_k`` of vectors (n, d)."""
        if self.known is not None:
            return slopes * self.known
        if self.frames is not None:
            return np.asarray((np.swapaxes(self.frames, 1, 2) @ (self.frames @ slopes[..., None]))[..., 0])
        return slopes


def random_signs(n: int, k: int, rng: np.random.Generator) -> Floats | None:
    """Return random signs ``u`` (n, k) of the outputs for one step, or None if there is one output."""
    return None if k == 1 else 2.0 * rng.integers(2, size=(n, k)) - 1


def loss_and_gradient(
    parameters: Parameters, activation: Nonlinearity, rows: TrainingRows, signs: Floats | None = None
) -> tuple[float, list[Floats]]:
    """Return the loss and its gradients with respect to the parameters of all layers.

    The gradient of the network is one reverse pass. Its adjoint runs from the first layer to the last, the adjoint of
    the forward pass from the last to the first: about six products of points x width x width for each layer, for any
    number of inputs.
    """
    widest = max(layer.shape[1] for layer in parameters)
    blocks = list(row_blocks(len(rows), widest, BLOCK_ELEMENTS))
    if len(blocks) < 2:
        return _loss_and_gradient(parameters, activation, rows, signs)
    total, sums = 0.0, [np.zeros_like(layer) for layer in parameters]
    for block in blocks:
        share = (block.stop - block.start) / len(rows)
        some = None if signs is None else signs[block]
        loss, gradients = _loss_and_gradient(parameters, activation, rows[block], some)
        total += share * loss
        for partial, gradient in zip(sums, gradients, strict=True):
            partial += partial.dtype.type(share) * gradient
    return total, sums


def _loss_and_gradient(
    parameters: Parameters, activation: Nonlinearity, rows: TrainingRows, signs: Floats | None
) -> tuple[float, list[Floats]]:
    """Return the loss and its gradients for one block of points."""
    n = len(rows)
    order = 1 if rows.slopes is None else 2
    matrices = [layer[:-1] for layer in parameters]
    states, curves = [rows.X], []
    for matrix, layer in zip(matrices[:-1], parameters[:-1], strict=True):
        state, *derivatives = activation(states[-1] @ matrix + layer[-1], order)
        states.append(state)
        curves.append(derivatives)
    roots = rows.value_roots[:, None]
    errors = roots * (states[-1] @ matrices[-1] + parameters[-1][-1] - rows.values)
    total = float(np.sum(errors * errors)) / n
    pull = (2 / n) * roots * errors  # the adjoint of the values
    gradients = [np.empty_like(layer) for layer in parameters]
    gradients[-1][:-1], gradients[-1][-1] = states[-1].T @ pull, pull.sum(axis=0)
    bends: list[Floats] = []
    if rows.slopes is not None:
        slope_loss, slope_gradients, bends = _slope_terms(matrices, curves, rows, signs)
        total += slope_loss
    pull = pull @ matrices[-1].T
    for number in range(len(curves) - 1, -1, -1):
        pull = pull * curves[number][0]
        if bends:
            pull += bends[number]
        gradients[number][:-1], gradients[number][-1] = states[number].T @ pull, pull.sum(axis=0)
        if number:
            pull = pull @ matrices[number].T
    if rows.slopes is not None:
        for gradient, term in zip(gradients, slope_gradients, strict=True):
            gradient[:-1] += term
    return total, gradients


def _slope_terms(
    matrices: list[Floats], curves: list[list[Floats]], rows: TrainingRows, signs: Floats | None
) -> tuple[float, list[Floats], list[Floats]]:
    """Return the loss of the derivatives, its gradients by the matrices alone, and its adjoints by the ``z_l``.

    The reverse pass is ``D_l = B_l sigma'(z_l)``, ``B_{l-1} = D_l W_l^T``, with ``B_L = u W_{L+1}^T``. The adjoint
    ``C_0`` of ``B_0`` is propagated from the first layer to the last: the adjoint of ``W_l`` is ``C_{l-1}^T D_l``, the
    adjoint of ``D_l`` is ``C_{l-1} W_l``, the adjoint of ``z_l`` is ``C_{l-1} W_l B_l sigma''(z_l)``, and ``C_l`` is
    ``C_{l-1} W_l sigma'(z_l)``.
    """
    assert rows.slopes is not None
    assert rows.slope_roots is not None
    n, depth = len(rows), len(curves)
    if signs is None:
        signs = np.ones((n, 1), rows.X.dtype)
    signs = signs.astype(rows.X.dtype, copy=False)
    upper, driven = signs @ matrices[-1].T, []  # B_l and D_l
    sensitivities = [upper]
    for layer in range(depth - 1, -1, -1):
        driven.append(upper * curves[layer][0])
        upper = driven[-1] @ matrices[layer].T
        sensitivities.append(upper)
    targets = rows.slopes[:, 0] if signs.shape[1] == 1 else (signs[:, None, :] @ rows.slopes)[:, 0]
    errors = rows.slope_roots[:, None] * rows.projected(upper - targets)
    total = float(np.sum(errors * errors)) / n
    pull = (2 / n) * rows.slope_roots[:, None] * errors
    gradients, bends = [], []
    for layer in range(depth):
        gradients.append(pull.T @ driven[depth - 1 - layer])
        pull = pull @ matrices[layer]
        bends.append(pull * sensitivities[depth - 1 - layer] * curves[layer][1])
        pull = pull * curves[layer][0]
    gradients.append(pull.T @ signs)
    return total, gradients, bends
