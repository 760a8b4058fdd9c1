"""Changes of the mean of processes given their rows, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._types import Array
from nurf.kernels import Centers, Functionals, KernelAverage, covariance
from nurf.solvers.process._process import Process


@dataclass(frozen=True, eq=False)
class ProcessChanges:
    """An average of processes given their rows, each of which may change.

    A change ``d_i`` of process ``i`` costs the square of its norm in the Hilbert space of the posterior covariance
    ``s_i^2 k_i``, times the weight ``w_i`` of the process, so that the average ``sum_i w_i d_i`` changes by multiples
    of ``sum_i w_i s_i^2 k_i``.

    Parameters
    ----------
    network : KernelAverage
        The means of the processes.
    processes : tuple of Process
    """

    network: KernelAverage
    processes: tuple[Process, ...]

    def root(self, parts: Sequence[Functionals], output: int) -> Array:
        """Return ``F`` for which ``F F^T`` are the covariances of functionals of an output, of shape (p, p)."""
        total = sum(
            weight * process.variances[output] * self._changes[place].covariances(parts)
            for place, (weight, process) in enumerate(zip(self.network.weights, self.processes, strict=True))
        )
        values, vectors = np.linalg.eigh(np.asarray(total))
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    def moved(self, parts: Sequence[Functionals], multipliers: Array) -> KernelAverage:
        """Return the average plus covariances with functionals times multipliers (p, k)."""
        members = []
        for place, (member, process) in enumerate(zip(self.network.members, self.processes, strict=True)):
            coefficients, tail = self._changes[place].solved(parts)
            weighted = multipliers * process.variances
            rows = process.rows.parts
            mean = process.coefficients - coefficients @ weighted
            centers = tuple(center.merged() for center in (*_centers(rows, mean), *_centers(parts, weighted)))
            members.append(replace(member, centers=centers, tail_coef=process.tail_coef - tail @ weighted))
        return replace(self.network, members=tuple(members))

    @cached_property
    def _changes(self) -> tuple[_Changes, ...]:
        return tuple(_Changes(process) for process in self.processes)


def _centers(parts: Sequence[Functionals], coefficients: Array) -> list[Centers]:
    """Return functionals of one order after the other with their coefficients (m, k), without empty parts."""
    ends = np.cumsum([len(part) for part in parts])
    split = np.split(coefficients, ends[:-1])
    return [Centers(part, coef) for part, coef in zip(parts, split, strict=True) if len(part)]


@dataclass(frozen=True, eq=False)
class _Changes:
    """Posterior covariances of a process in units of ``s^2``, of functionals at virtual points.

    With covariances ``k_v`` of a functional with the rows and its monomials ``p_v``, they are ``k_vw - k_v.C - p_v.b``,
    where ``K C + H b = k_w`` and ``H^T C = p_w`` with the kernel matrix ``K`` of the rows and their monomials ``H``.
    """

    process: Process

    @cached_property
    def _kernel_matrix(self) -> Array:
        return self.process._covariances()

    def covariances(self, parts: Sequence[Functionals]) -> Array:
        """Return the covariances of functionals, of shape (p, p)."""
        (across, monomials, own), (coefficients, tail) = self._given(parts), self.solved(parts)
        return np.asarray(own - across.T @ coefficients - monomials @ tail)

    def solved(self, parts: Sequence[Functionals]) -> tuple[Array, Array]:
        """Return the coefficients ``C`` of the rows (N, p), and ``b`` of the mean (t, p)."""
        across, monomials, _ = self._given(parts)
        contrasts, t = self.process.rows.contrasts, len(self.process.rows.contrasts)
        first = np.zeros_like(across)
        first[:t] = contrasts.first_coordinates(monomials)
        particular = contrasts.back(first)
        coefficients, tail = self.process.conditioned(across - self._kernel_matrix @ particular)
        return particular + coefficients, tail

    def _given(self, parts: Sequence[Functionals]) -> tuple[Array, Array, Array]:
        """Return covariances of functionals with the rows (N, p), their monomials (p, t) and own covariances (p, p)."""
        process, kernel = self.process, self.process.kernel
        mapped = [part.mapped(process.metric) for part in parts]
        rows = [part.mapped(process.metric) for part in process.rows.parts]
        across = np.block([[covariance(kernel, row, part) for part in mapped] for row in rows])
        own = np.block([[covariance(kernel, one, other) for other in mapped] for one in mapped])
        monomials = np.concatenate([part.monomials(process.rows.degree) for part in parts])
        return across, monomials, (own + own.T) / 2
