"""The least-squares problem of the outer weights, with its features and data. It selects the solver."""

from __future__ import annotations

import numpy as np

from nurf._types import Array, Precision
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import VALUES_ONLY, Loss, rows_per_sample
from nurf.solvers.ridge._base import Ridge
from nurf.solvers.ridge._cholesky import CholeskyRidge
from nurf.solvers.ridge._dual import DualRidge
from nurf.solvers.ridge._iterative import IterativeRidge
from nurf.solvers.ridge._normal_equations import NormalEquations
from nurf.solvers.ridge._precise import PreciseRidge, precise_cost, triangle_of, weighted_triangle
from nurf.solvers.ridge._primal import PrimalRidge

FEW = 300  # neurons up to which an eigendecomposition takes little time
MANY = 6000  # neurons and rows above which a factorisation takes minutes, and several times the memory of a Gram matrix
VERY_MANY = 20_000  # neurons above which a Gram matrix takes more than 3 GB


class LeastSquares:
    """The least-squares problem of the outer weights of ``features``, on the values and derivatives of ``jet``.

    Normal equations of values, gradients and Hessians, and the triangles of the precise form, are computed once, when
    they are needed, and used for all losses.

    Parameters
    ----------
    features : Features
    jet : Jet
    smaller : LeastSquares, optional
        A problem with the same data and the first of the neurons. Its normal equations are extended to the others.
    dtype : numpy.float64 or numpy.float32
        Precision of the features in normal equations. Forms without normal equations use double precision.
    """

    def __init__(
        self,
        features: Features,
        jet: Jet,
        smaller: LeastSquares | None = None,
        dtype: Precision = np.float64,
    ) -> None:
        self.features, self.jet, self.dtype = features, jet, dtype
        self._smaller: dict[int, NormalEquations] = {} if smaller is None else smaller._smaller | smaller._equations
        self._equations: dict[int, NormalEquations] = {}
        self._triangles: dict[int, Array] = {}

    def ridge(self, loss: Loss = VALUES_ONLY, *, precise: bool = False, alphas: Array | None = None) -> Ridge:
        """Return the factorised ridge regression problem, with the solver that suits its size.

        The dual form is used if there are more neurons than rows, the primal form otherwise, and conjugate gradients if
        there are more than ``MANY`` of both, without a Gram matrix if there are more than ``VERY_MANY`` neurons. The
        precise form, which costs more, is used on request. If there is one alpha, and it is not tiny, a Cholesky
        factorisation replaces the eigendecomposition; ``alphas`` are in units of the mean energy of a feature.
        """
        loss.require(self.jet)
        if precise:
            return PreciseRidge(self.features, self.jet, loss, self._triangle(loss))
        rows = len(self.jet) * rows_per_sample(self.jet, loss)
        if min(self.features.n_neurons, rows) > MANY:
            equations = self.equations(loss) if self.features.n_neurons <= VERY_MANY else None
            return IterativeRidge(self.features, self.jet, loss, equations)
        if self.features.n_neurons > rows:
            return DualRidge(self.features, self.jet, loss)
        equations = self.equations(loss)
        if alphas is not None and len(alphas) == 1 and self.features.n_neurons > FEW:
            cholesky = CholeskyRidge(self.features, self.jet, loss, equations)
            if cholesky.resolves(float(alphas[0])):
                return cholesky
        return PrimalRidge(self.features, self.jet, loss, equations)

    def equations(self, loss: Loss) -> NormalEquations:
        """Return the normal equations of the values and of the derivatives in the loss."""
        orders = loss.all_orders
        if not any(order in known for order in orders for known in (self._equations, self._smaller)):
            self._equations |= NormalEquations.from_orders(self.features, self.jet, orders, self.dtype)
        total = self._of_order(0)
        for order, weight in loss.orders:
            total += weight * self._of_order(order)
        return total

    def precise_cost(self, loss: Loss) -> float:
        """Return the approximate number of operations of the precise form of ridge regression."""
        return precise_cost(len(self.jet) * rows_per_sample(self.jet, loss), self.features.n_neurons)

    def _triangle(self, loss: Loss) -> Array:
        for order in loss.all_orders:
            if order not in self._triangles:
                self._triangles[order] = triangle_of(self.features, self.jet, order)
        return weighted_triangle(self._triangles, loss)

    def _of_order(self, order: int) -> NormalEquations:
        if order not in self._equations:
            old = self._smaller.pop(order, None) if self.features.n_neurons <= MANY else None  # takes much memory
            self._equations[order] = (
                NormalEquations.from_rows(self.features, self.jet, order, self.dtype)
                if old is None
                else old.grown(self.features, self.jet, order, self.dtype)
            )
        return self._equations[order]
