"""Ridge regression by conjugate gradients, for networks that are too large to factorise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd

from nurf._blocks import BLOCK_ELEMENTS, row_blocks
from nurf._types import Array, Index
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import VALUES_ONLY, Loss, rows_per_sample, sample_rows
from nurf.solvers.ridge._base import EPS, Convergence, Ridge, inverse_factor, stacked, unstacked, with_tail
from nurf.solvers.ridge._normal_equations import NormalEquations
from nurf.solvers.ridge._primal import pseudo_inverse

SHARE = 0.2  # the largest share of the samples that is left out at once
Product = Callable[[Array], Array]  # from columns (N, c) to their products with a matrix (N, N)


@dataclass(frozen=True)
class Iterations:
    """Settings of the conjugate gradients.

    Parameters
    ----------
    tolerance : float, default 1e-8
        Iterations stop if the residual, relative to the right-hand side, is below this number for all alphas.
    limit : int, default 500
        The largest number of iterations.
    rank : float, default 0.25
        Rank of the preconditioner, relative to the number of neurons.
    max_rank : int, default 1000
        The largest rank of the preconditioner.
    smallest_alpha : float, default 8e-14
        The smallest alpha of a path, in units of the mean energy of a feature: smaller ones take many iterations.
    """

    tolerance: float = 1e-8
    limit: int = 500
    rank: float = 0.25
    max_rank: int = 1000
    smallest_alpha: float = 8e-14


WITHOUT_GRAM = Iterations(
    limit=100, rank=0.1, max_rank=1000, smallest_alpha=1e-9
)  # each iteration is a pass over the rows


class IterativeRidge(Ridge):
    """Ridge regression by products with the Gram matrix of the features, which is neither modified nor copied.

    ``(A + alpha N) c = b`` with ``A = Phi^T W Phi / W``, tail eliminated, is solved for all alphas and outputs at once
    by conjugate gradients, with a Nystrom approximation ``A ~ U diag(lambda) U^T`` of rank ``s`` as preconditioner

        P^-1 = (lambda_s + alpha N) U (lambda + alpha N)^-1 U^T + 1 - U U^T

    (Frangella, Tropp, Udell, SIAM Journal on Matrix Analysis and Applications 44, 2023). Without normal equations each
    product is a pass over the rows in blocks, and memory is needed for one block and ``N s`` numbers. The seed of the
    approximation is fixed: its random numbers change the number of iterations, but not the solution.

    Parameters
    ----------
    features, jet, loss
        See ``Ridge``.
    equations : NormalEquations, optional
        The normal equations, if there is memory for them.
    numbers : Iterations, optional
    """

    def __init__(
        self,
        features: Features,
        jet: Jet,
        loss: Loss = VALUES_ONLY,
        equations: NormalEquations | None = None,
        numbers: Iterations | None = None,
    ) -> None:
        super().__init__(features, jet, loss)
        self._equations = equations
        self._solution: tuple[Array, Array] | None = None  # of the last call, which rules repeat
        self._numbers = numbers or (WITHOUT_GRAM if equations is None else Iterations())
        N = self.n_neurons
        rank = max(1, min(N, self._numbers.max_rank, round(self._numbers.rank * N)))
        sketch = _orthonormal_sketch(N, rank)
        sums = _Sums.zero(features, jet.y[:1].size) if equations is None else _Sums.of(equations)
        sketched: Array = np.zeros(sketch.shape if equations is None else 0)
        for design, targets in self._blocks() if equations is None else ():
            sums.add(design, targets)
            sketched += design[:, :N].T @ (design[:, :N] @ sketch)
        self._system = sums.system(self.total_weight)
        self.tail_rank = self._system.tail_rank
        noise = 0.0 if equations is None else equations.noise / self.total_weight
        self._set_energy(*self._energies(sums.squares), noise)
        self.smallest_alpha = max(self.smallest_alpha, self._numbers.smallest_alpha)
        products = sketched / self.total_weight if equations is None else self._product(sketch)
        core, shift = _nystrom_core(sketch, self._system.without_tail(products, sketch))
        del sketch, sketched  # both are large
        _times(products, core)
        root = np.asfortranarray(products)
        del products  # SciPy overwrites the root, NumPy would need three more arrays of its size
        self.vectors, sizes, _ = svd(root, full_matrices=False, overwrite_a=True, check_finite=False)
        self.eigenvalues = np.maximum(sizes**2 - shift, 0.0)

    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""
        if self._solution is None or not np.array_equal(self._solution[0], alphas):
            path, self.convergence = self._solved(self._system, self._product, alphas)
            self._solution = (np.array(alphas, float), path)
        return self._solution[1]

    def left_out(self, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the residuals of samples that are left out of the fit in groups, of shape (m, R, A, k).

        Leaving them out one by one would need one solve per sample. Each group has at most a fifth of all samples, so
        that the residuals are slightly larger than leave-one-out residuals, and not systematically smaller.
        """
        groups = int(np.ceil(len(index) / (SHARE * len(self.jet))))
        R, k = rows_per_sample(self.jet, self.loss), self._system.moments.shape[1]
        result = np.empty((len(index), R, len(alphas), k))
        for group in range(groups):
            result[group::groups] = self._left_out_together(alphas, index[group::groups], shares[group::groups])
        return result

    def _left_out_together(self, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the residuals of samples that are left out together, of shape (m, R, A, k)."""
        design, targets = sample_rows(self.features, self.jet[index], self.loss)
        roots = np.sqrt(shares / self.total_weight)[:, None, None]
        rows, values = ((part * roots).reshape(-1, part.shape[2]) for part in (design, targets))
        neurons = np.ascontiguousarray(rows[:, : self.n_neurons])

        def product(columns: Array) -> Array:
            return self._product(columns) - neurons.T @ (neurons @ columns)

        path, _ = self._solved(self._system.minus(rows, values), product, alphas)
        predictions = design @ stacked(path)
        return np.asarray(targets[:, :, None, :] - predictions.reshape(*design.shape[:2], len(alphas), -1))

    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the mean square of all residuals, in one pass over the rows."""
        path = stacked(self.solve(alphas))
        total: Array = np.zeros(path.shape[1])
        for design, targets in self._blocks():
            total += np.sum((np.tile(targets, len(alphas)) - design @ path) ** 2, axis=0)
        return np.asarray(total.reshape(len(alphas), -1) / self.total_weight)

    def covariance_factor(self, alpha: float) -> Array:
        """Return a factor of the covariance from the Nystrom approximation, and from alpha alone beyond its span."""
        factor = inverse_factor(self.vectors, self.eigenvalues, alpha * self.n_neurons)
        system = self._system
        elimination = system.tail_inverse @ system.tail_products
        return np.asarray(with_tail(factor, elimination, system.tail_inverse) / np.sqrt(self.total_weight))

    def _blocks(self) -> Iterator[tuple[Array, Array]]:
        """Yield blocks of the rows (m, N + t) and of their targets (m, k)."""
        R = rows_per_sample(self.jet, self.loss)
        for block in row_blocks(len(self.jet), R * self.features.n_columns, 8 * BLOCK_ELEMENTS):
            design, targets = sample_rows(self.features, self.jet[block], self.loss)
            yield design.reshape(-1, design.shape[2]), targets.reshape(-1, targets.shape[2])

    def _product(self, columns: Array) -> Array:
        """Return the products of the Gram matrix of the neurons, divided by the total weight, with columns (N, c)."""
        if self._equations is not None:
            products = self._equations.gram[: self.n_neurons, : self.n_neurons] @ columns
            products /= self.total_weight
            return products
        result: Array = np.zeros_like(columns)
        for design, _ in self._blocks():
            neurons = design[:, : self.n_neurons]
            result += neurons.T @ (neurons @ columns)
        return result / self.total_weight

    def _solved(self, system: _System, product: Product, alphas: Array) -> tuple[Array, tuple[Convergence, ...]]:
        """Return the coefficients (A, N + t, k) that solve a system, and the convergence for each alpha."""
        k, shifts, numbers = system.moments.shape[1], self._shifts(alphas)[:, 0], self._numbers
        right = system.right()
        found, counts, residuals = conjugate_gradients(
            lambda columns: system.without_tail(product(columns), columns),
            np.tile(right, len(alphas)),
            np.repeat(shifts, k),
            self.vectors,
            self.eigenvalues,
            numbers,
        )
        convergence = tuple(
            Convergence(int(count.max()), float(residual.max()), numbers.tolerance, len(self.eigenvalues))
            for count, residual in zip(counts.reshape(-1, k), residuals.reshape(-1, k), strict=True)
        )
        coef = unstacked(found, len(alphas))
        tail = system.tail_inverse @ (system.moments[self.n_neurons :] - system.tail_products @ coef)
        return np.concatenate([coef, tail], axis=1), convergence

    def _energies(self, squares: Array) -> tuple[float, float]:
        """Return the mean energy of a feature after and before elimination of the tail."""
        system, before = self._system, float(squares.mean() / self.total_weight)
        removed = np.sum(system.tail_products * (system.tail_inverse @ system.tail_products)) / self.n_neurons
        return before - float(removed), before


@dataclass(frozen=True, eq=False)
class _System:
    """The normal equations without the Gram matrix of the neurons, divided by the total weight.

    Attributes
    ----------
    moments : array of shape (N + t, k)
    tail_gram : array of shape (t, t)
    tail_products : array of shape (t, N)
        Products of the tail with the neurons.
    tail_inverse : array of shape (t, t)
    tail_rank : int
    """

    moments: Array
    tail_gram: Array
    tail_products: Array
    tail_inverse: Array
    tail_rank: int

    @classmethod
    def of(cls, moments: Array, tail_gram: Array, tail_products: Array) -> _System:
        """Return the system from its sums."""
        return cls(moments, tail_gram, tail_products, *pseudo_inverse(tail_gram))

    def without_tail(self, products: Array, columns: Array) -> Array:
        """Return products (N, c) of a Gram matrix with columns after elimination of the tail, in the same memory."""
        products -= self.tail_products.T @ (self.tail_inverse @ (self.tail_products @ columns))
        return products

    def right(self) -> Array:
        """Return the right-hand side after elimination of the tail, of shape (N, k)."""
        N = self.tail_products.shape[1]
        return np.asarray(self.moments[:N] - self.tail_products.T @ (self.tail_inverse @ self.moments[N:]))

    def minus(self, rows: Array, targets: Array) -> _System:
        """Return the system without some rows (m, N + t) and their targets (m, k), with the same penalty."""
        N = self.tail_products.shape[1]
        tail = rows[:, N:].T @ rows
        return _System.of(
            self.moments - rows.T @ targets, self.tail_gram - tail[:, N:], self.tail_products - tail[:, :N]
        )


@dataclass(eq=False)
class _Sums:
    """The sums over rows that all systems need."""

    moments: Array
    tail_rows: Array
    squares: Array

    @classmethod
    def zero(cls, features: Features, k: int) -> _Sums:
        """Return the sums over no rows with ``k`` targets."""
        N, columns = features.n_neurons, features.n_columns
        return cls(np.zeros((columns, k)), np.zeros((columns - N, columns)), np.zeros(N))

    @classmethod
    def of(cls, equations: NormalEquations) -> _Sums:
        """Return the sums that normal equations contain."""
        N = equations.n_neurons
        return cls(equations.moments, equations.gram[N:], equations.gram.diagonal()[:N])

    def add(self, design: Array, targets: Array) -> None:
        """Add rows (m, N + t) and their targets (m, k)."""
        N = len(self.squares)
        self.moments += design.T @ targets
        self.tail_rows += design[:, N:].T @ design
        self.squares += np.einsum("mn,mn->n", design[:, :N], design[:, :N])

    def system(self, weight: float) -> _System:
        """Return the system of all rows that were added, over their total weight."""
        N, tail = len(self.squares), self.tail_rows / weight
        return _System.of(self.moments / weight, tail[:, N:], tail[:, :N])


def _orthonormal_sketch(n_neurons: int, rank: int) -> Array:
    """Return an orthonormal basis of random columns (N, s), in the memory of these.

    ``Omega (L^-1)^T`` with ``Omega^T Omega = L L^T``, twice: random columns are well conditioned unless there are as
    many columns as rows, and then the second pass corrects the rounding errors of the first.
    """
    sketch = np.random.default_rng(0).standard_normal((n_neurons, rank))
    for _ in range(2):
        _times(sketch, np.linalg.inv(np.linalg.cholesky(sketch.T @ sketch)).T)
    return sketch


def _times(columns: Array, matrix: Array) -> None:
    """Multiply columns (N, s) by a matrix (s, s), in place."""
    for rows in row_blocks(len(columns), columns.shape[1]):
        columns[rows] = columns[rows] @ matrix


def _nystrom_core(sketch: Array, products: Array) -> tuple[Array, float]:
    """Return ``C`` (s, s) and a shift with ``A + shift ~ (Y C) (Y C)^T``, from ``Y = A Omega`` (N, s), overwritten.

    ``A ~ Y (Omega^T Y)^-1 Y^T`` for orthonormal ``Omega``; ``Y`` is shifted by its rounding errors first.
    """
    shift = EPS * max(float(np.linalg.norm(products)), np.finfo(float).tiny) * np.sqrt(len(sketch))
    for rows in row_blocks(len(sketch), sketch.shape[1]):
        products[rows] += shift * sketch[rows]
    core = sketch.T @ products
    values, vectors = np.linalg.eigh((core + core.T) / 2)
    return np.asarray(vectors / np.sqrt(np.maximum(values, shift))), shift


def conjugate_gradients(
    product: Product, right: Array, shifts: Array, vectors: Array, eigenvalues: Array, numbers: Iterations
) -> tuple[Array, Index, Array]:
    """Return the solutions (N, c) of ``(A + shift_j) x_j = b_j``, the numbers of iterations and the residuals (c,).

    Parameters
    ----------
    product : callable
        Multiplies columns by ``A``.
    right : array of shape (N, c)
        The right-hand sides ``b_j``.
    shifts : array of shape (c,)
    vectors : array of shape (N, s)
    eigenvalues : array of shape (s,)
        The eigenvectors and eigenvalues of the approximation of ``A`` that defines the preconditioner.
    numbers : Iterations
    """

    def preconditioned(residuals: Array, shift: Array) -> Array:
        along = vectors.T @ residuals
        factors = (eigenvalues[-1] + shift) / (eigenvalues[:, None] + shift) - 1
        return np.asarray(residuals + vectors @ (factors * along))

    sizes = np.linalg.norm(right, axis=0)
    found: Array = np.zeros_like(right)
    active = np.flatnonzero(sizes > 0)
    residuals, step = right[:, active], preconditioned(right[:, active], shifts[active])
    energy = np.sum(residuals * step, axis=0)
    counts, left = np.zeros(len(shifts), np.int64), np.zeros(len(shifts))
    left[active] = 1.0
    for _ in range(numbers.limit):
        if not len(active):
            break
        counts[active] += 1
        image = product(step) + shifts[active] * step
        lengths = energy / np.sum(step * image, axis=0)
        found[:, active] += lengths * step
        residuals = residuals - lengths * image
        left[active] = np.linalg.norm(residuals, axis=0) / sizes[active]
        going = left[active] > numbers.tolerance
        active, residuals, step, energy = active[going], residuals[:, going], step[:, going], energy[going]
        directions = preconditioned(residuals, shifts[active])
        before, energy = energy, np.sum(residuals * directions, axis=0)
        step = directions + energy / before * step
    return found, counts, left
