"""What the training of a deep network returns, and what it needs to go on."""

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
        The root mean square error of the rows that are held out, outputs added up; NaN if there are none.
    seconds : float
        Time that the cycle took.
    label : str
        The setting, or for the last cycle ``ALL_ROWS``, or ``ALL_BLOCKS`` if they are read in turn.
    """

    n_steps: int
    loss: float
    error: float
    seconds: float
    label: str


@dataclass(frozen=True, eq=False)
class Folds:
    """Which points were held out of which run, so that they are held out again if training goes on.

    Attributes
    ----------
    keys : array of shape (n,)
        Hashes of the points, sorted.
    fold_of : array of shape (n,)
        The fold of each point; -1 if all networks were trained with it.
    networks : tuple of DeepNetwork
        The networks that were trained without fold 0, 1, ...
    """

    keys: npt.NDArray[np.uint64]
    fold_of: Index
    networks: tuple[DeepNetwork, ...]

    def assigned(self, X: Array, fold_of: Index) -> Index:
        """Return the folds of the points: as they were for those that are known, and ``fold_of`` for others."""
        keys = _hashes(X)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.fold_of[place], fold_of)

    def updated(self, X: Array, fold_of: Index, networks: dict[int, DeepNetwork]) -> Folds:
        """Return the folds with further points, and with the networks that were trained since."""
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
    """A trained deep network, and how it was trained.

    Attributes
    ----------
    network : DeepNetwork
    setting : DeepSetting
        What was chosen.
    history : tuple of DeepCycle
        The cycles of the chosen run, and the last one with all rows.
    crossfit : CrossFit or None
        The fits without rows that were held out, if there are any.
    folds : Folds
        Which rows were held out, for training that goes on.
    units : Scaling
        The units of the training, in those of the data.
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
