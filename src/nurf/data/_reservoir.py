"""A random sample of the rows of a stream, drawn in one pass, which does not depend on the blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nurf._types import Array, Index
from nurf.jets import Jet


@dataclass(frozen=True, eq=False)
class Reservoir:
    """At most ``size`` rows, drawn without replacement, with probabilities that grow with their weights.

    Row ``k`` has the key ``-log(u_k) / w_k`` with a uniform random number ``u_k`` that depends only on the seed and the
    row number; the rows with the smallest keys are kept (Efraimidis and Spirakis, Information Processing Letters 97,
    2006). The reservoir of a union of rows follows from the reservoirs of its parts, so that the result does not depend
    on the blocks and their order. Given the smallest key ``t`` that was left out, row ``k`` is kept with probability
    ``1 - exp(-w_k t)``. Weighted by the inverse of this probability, sums over the kept rows are unbiased estimates of
    sums over the data (Cohen and Kaplan, PODC 2007).

    Parameters
    ----------
    jet : Jet
        The rows, smallest keys first.
    keys : array of shape (m,)
        The keys of the rows.
    rows : array of shape (m,)
        The row numbers in the data.
    size : int
    threshold : float
        The smallest key of a row that was left out; infinite if there is none.
    """

    jet: Jet
    keys: Array
    rows: Index
    size: int
    threshold: float = np.inf

    @classmethod
    def of(cls, jet: Jet, rows: Index, numbers: Array, size: int) -> Reservoir:
        """Return the reservoir of a jet, given its row numbers and a random number in (0, 1) for each row.

        Rows of weight zero are left out.
        """
        weights = jet.weights(0)
        used = weights > 0
        keys = -np.log(numbers[used]) / weights[used]
        return cls(jet if used.all() else jet[used], keys, rows[used], size)._smallest()

    def __add__(self, other: Reservoir) -> Reservoir:
        """Return the reservoir of the union of the rows."""
        keys, rows = np.concatenate([self.keys, other.keys]), np.concatenate([self.rows, other.rows])
        threshold = min(self.threshold, other.threshold)
        return Reservoir(self.jet + other.jet, keys, rows, self.size, threshold)._smallest()

    def _smallest(self) -> Reservoir:
        order = np.lexsort((self.rows, self.keys))
        kept, out = order[: self.size], order[self.size : self.size + 1]
        threshold = min(self.threshold, float(self.keys[out].min(initial=np.inf)))
        return replace(self, jet=self.jet[kept], keys=self.keys[kept], rows=self.rows[kept], threshold=threshold)

    @property
    def multiples(self) -> Array:
        """The number of rows that each kept row represents, of shape (m,)."""
        return np.asarray(-1 / np.expm1(-self.jet.weights(0) * self.threshold))


def uniform_numbers(rows: npt.NDArray[np.int64], seed: int) -> Array:
    """Return a random number in (0, 1) for each row number, determined by the row number and the seed (SplitMix64).

    >>> bool(uniform_numbers(np.array([5, 6]), 1)[1] == uniform_numbers(np.array([6]), 1)[0])
    True
    """
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64) + np.uint64(1)
        z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z ^= z >> np.uint64(31)
    return np.asarray(((z >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53)
