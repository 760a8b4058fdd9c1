"""Results of training a deep network, from which training can continue."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from nurf._scaling import Scaling
from nurf._types import Array, Index
from nurf.engines._crossfit import CrossFit
from nurf.engines._deep import DeepSetting
from nurf.engines._fit import Fit
from nurf.networks import DeepNetwork

ALL_ROWS, ALL_BLOCKS = "all rows", "all blocks"


@dataclass(frozen=True)
class DeepCycle:
    """One cycle of a run, from a large step size to zero.

    Attributes
    ----------
    n_steps : int
        Steps so far.
    loss : float
        The mean loss of the last batches.
    error : float
        The root mean square error of the held-out rows, outputs added up; NaN if there are none.
    seconds : float
        Time that the cycle took.
    label : str
        The setting; for the last cycle ``ALL_ROWS``, or ``ALL_BLOCKS`` if rows are read in blocks.
    """

    n_steps: int
    loss: float
    error: float
    seconds: float
    label: str


@dataclass(frozen=True, eq=False)
class Folds:
    """The points that each run held out, so that they are held out again if training continues.

    Attributes
    ----------
    keys : array of shape (n,)
        Hashes of the points, sorted.
    fold_of : array of shape (n,)
        The fold of each point; -1 if all networks were trained with it.
    networks : tuple of DeepNetwork
        The networks trained without each fold, in the order of the folds.
    """

    keys: npt.NDArray[np.uint64]
    fold_of: Index
    networks: tuple[DeepNetwork, ...]

    def assigned(self, X: Array, fold_of: Index) -> Index:
        """Return the folds of the points: known points keep their folds, other points get ``fold_of``."""
        keys = _hashes(X)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.fold_of[place], fold_of)

    def updated(self, X: Array, fold_of: Index, networks: dict[int, DeepNetwork]) -> Folds:
        """Return the folds with further points and newly trained networks."""
        keys, first = np.unique(np.concatenate([_hashes(X), self.keys]), return_index=True)
        merged = dict(enumerate(self.networks)) | networks
        return Folds(keys, np.concatenate([fold_of, self.fold_of])[first], tuple(merged[k] for k in sorted(merged)))


NO_FOLDS = Folds(np.empty(0, np.uint64), np.empty(0, np.int64), ())


def _hashes(X: Array) -> npt.NDArray[np.uint64]:
    """Return a hash of each point, the same in every process."""
    digests = [blake2b(row.tobytes(), digest_size=8).digest() for row in np.ascontiguousarray(X)]
    return np.frombuffer(b"".join(digests), np.uint64)


@dataclass(frozen=True, eq=False, kw_only=True)
class DeepFit(Fit):
    """A trained deep network, and the history of its training.

    Attributes
    ----------
    network : DeepNetwork
    setting : DeepSetting
        The chosen setting.
    history : tuple of DeepCycle
        The cycles of the chosen run, and the last cycle with all rows.
    crossfit : CrossFit or None
        The fits without held-out rows, if there are any.
    folds : Folds
        The held-out rows, for further training.
    units : Scaling
        The scaling from the units of the data to the units of the training.
    """

    network: DeepNetwork
    setting: DeepSetting
    history: tuple[DeepCycle, ...]
    units: Scaling
    folds: Folds
    crossfit: CrossFit | None = None

    @property
    def n_steps(self) -> int:
        """The number of steps of the chosen run, and of the last cycle."""
        return self.history[-1].n_steps
