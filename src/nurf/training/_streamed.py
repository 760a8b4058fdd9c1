"""The outer weights from a stream: normal equations of all blocks, and errors at a sample of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array, Precision
from nurf.data import Block, Units
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers import Loss, Rule
from nurf.solvers.ridge import NormalEquations, PrimalRidge
from nurf.solvers.ridge._selection import TOLERANCE
from nurf.training._fit import ShallowFit
from nurf.training._outer import fit_ridge

MANY_ROWS = 20  # for each neuron, with which a smaller alpha costs nothing: ...
ALPHA_TOLERANCE = 0.005  # ... then the largest alpha within so much of the smallest error is taken, noise included


@dataclass(frozen=True, eq=False)
class Accumulation:
    """Normal equations of a number of rows.

    Parameters
    ----------
    n_rows : int
        Number of rows of positive weight.
    equations : tuple of NormalEquations
        Those of each network.
    """

    n_rows: int
    equations: tuple[NormalEquations, ...]

    def __add__(self, other: Accumulation) -> Accumulation:
        """Return those of the rows of both."""
        pairs = zip(self.equations, other.equations, strict=True)
        return Accumulation(self.n_rows + other.n_rows, tuple(mine + more for mine, more in pairs))


@dataclass(frozen=True, eq=False)
class Accumulate:
    """The map from a block to the normal equations of one or more networks.

    Parameters
    ----------
    read : callable
        From a block to a jet.
    units : Units
    problems : tuple of (Features, Loss)
        What is fitted.
    dtype : numpy.float64 or numpy.float32
        See ``fit_outer``.
    """

    read: Callable[[Block], Jet]
    units: Units
    problems: tuple[tuple[Features, Loss], ...]
    dtype: Precision = np.float64

    def __call__(self, block: Block) -> Accumulation:
        """Return the normal equations of a block."""
        jet = self.units(self.read(block))
        equations = tuple(
            NormalEquations.from_some(features, jet, loss, self.dtype) for features, loss in self.problems
        )
        return Accumulation(int(np.count_nonzero(jet.weights(0))), equations)


def fit_accumulated(
    fit: ShallowFit, equations: NormalEquations, sample: Jet, rule: Rule, alphas: Array | None
) -> ShallowFit:
    """Return the fit with the outer weights of the normal equations, and alpha and the errors chosen anew.

    Parameters
    ----------
    fit : ShallowFit
        Its features and its loss are kept.
    equations : NormalEquations
        Those of all rows, with this loss.
    sample : Jet
        Some of these rows, with the weights that they have there.
    rule : Rule
        How the error is estimated at the sample.
    alphas : array of shape (A,) or None
        See ``fit_outer``.
    """
    ridge = PrimalRidge(fit.network.features, sample, fit.loss, equations)
    many = equations.total_weight > MANY_ROWS * ridge.n_neurons  # weights have the mean one
    found = fit_ridge(ridge, alphas, rule, ALPHA_TOLERANCE if many else TOLERANCE)
    return replace(found, stage=fit.stage, history=fit.history, trials=fit.trials)


def fit_of_sample(fit: ShallowFit, accumulated: ShallowFit, held: Jet, multiples: Array) -> ShallowFit | None:
    """Return the fit to the sample with its errors at held rows, or None if that to all rows is as good.

    A Gram matrix of all rows cannot resolve the small alphas that a fit to a sample can have. They help if a smooth
    function is known without noise, and then more rows do not.

    Parameters
    ----------
    fit, accumulated : ShallowFit
        Fits to the sample and to all rows.
    held : Jet
        Rows that are not in the sample, with their weights.
    multiples : array of shape (n,)
        The number of rows for which each of them stands.
    """
    if not fit.precise:
        return None
    weights = held.weights(0) * multiples
    squares = (held.y - fit.network.value(held.X)).reshape(len(held), -1) ** 2
    errors = replace(fit, output_errors=np.sqrt(weights @ squares / weights.sum()))
    return errors if errors.error < accumulated.error else None
