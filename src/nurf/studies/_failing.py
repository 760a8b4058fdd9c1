"""The probability that a run of the simulator ends with a value."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.tree import DecisionTreeClassifier

from nurf._types import Array, Mask
from nurf.studies._space import Space
from nurf.studies._store import DONE, FAILED, Run, as_array

MOST = 300  # runs that are compared: the nearest to the runs that failed
LEAST_SHARE = 0.7  # of failures on one side of a limit, for the limit to be named


@dataclass(frozen=True, eq=False)
class Failing:
    """The probability that a run at given inputs ends with a value.

    Parameters
    ----------
    space : Space
    X : array of shape (n, d)
    failed : array of shape (n,)
    classifier : object or None
        A process classifier in the unit cube; None if no run failed, or all did.
    """

    space: Space
    X: Array
    failed: Mask
    classifier: Any

    @classmethod
    def of(cls, runs: Sequence[Run], space: Space) -> Failing:
        """Return the probabilities, fitted to the runs that ended."""
        ended = [run for run in runs if run.state in (DONE, FAILED)]
        X = as_array(ended, "x").reshape(-1, space.dimension)
        failed = np.array([run.state == FAILED for run in ended], bool)
        classifier = _fitted(space.to_unit(X), failed) if failed.any() and not failed.all() else None
        return cls(space, X, failed, classifier)

    def works(self, X: Array) -> Array:
        """Return the probabilities (m,) that runs at inputs end with a value."""
        if self.classifier is None:
            return np.ones(len(X))
        return np.asarray(self.classifier.predict_proba(self.space.to_unit(X))[:, 0])

    def describe(self) -> str:
        """Return a text: the number of failed runs, and the limit of one input beyond which most of them lie."""
        total, n = int(self.failed.sum()), len(self.failed)
        text = f"{total} of {n} runs"
        if self.classifier is None:
            return text
        tree = DecisionTreeClassifier(max_depth=1, class_weight="balanced").fit(self.X, self.failed).tree_
        if tree.node_count < 3:
            return text
        j, limit = int(tree.feature[0]), float(tree.threshold[0])
        beyond = self.X[:, j] > limit
        side, sign = (beyond, ">") if self.failed[beyond].mean() >= self.failed[~beyond].mean() else (~beyond, "<=")
        inside = int(self.failed[side].sum())
        if inside < LEAST_SHARE * total or side.mean() > LEAST_SHARE:
            return text
        return f"{text}, {inside} of {int(side.sum())} with {self.space.free.names[j]} {sign} {limit:.4g}"


def _fitted(U: Array, failed: Mask) -> Any:
    """Return a process classifier of runs at points of the unit cube."""
    rows = np.arange(len(U))
    if len(U) > MOST:
        distances = np.min(np.sum((U[:, None] - U[failed][:MOST]) ** 2, axis=-1), axis=1)
        rows = np.argsort(distances, kind="stable")[:MOST]
        if failed[rows].all():
            rows[-1] = np.flatnonzero(~failed)[np.argmin(distances[~failed])]
    kernel = ConstantKernel(1.0, (0.01, 100)) * RBF(0.5, (0.05, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scales at the ends of their ranges
        return GaussianProcessClassifier(kernel).fit(U[rows], failed[rows])
