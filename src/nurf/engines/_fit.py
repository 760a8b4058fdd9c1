"""Results of fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nurf._types import Array
from nurf.choosing import Attempt
from nurf.engines._crossfit import CrossFit
from nurf.engines._settings import Setting
from nurf.networks import Network, ShallowNetwork
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers.ridge import Convergence, LeftOut


@dataclass(frozen=True)
class Stage:
    """A stage of a fit: the network after neurons were added.

    Attributes
    ----------
    n_neurons : int
        Neurons after the stage.
    error : float
        The estimated root mean square error.
    alpha : float
        The chosen regularisation.
    seconds : float
        Time that the stage took.
    setting : Setting or None
        The density of the neurons of the stage, and the weights of the derivatives.
    fallback : str or None
        The reason, if the neurons of the stage were not sampled by the setting.
    convergence : Convergence or None
        The convergence of the iterative solver, if one was used for the outer weights.
    """

    n_neurons: int
    error: float
    alpha: float
    seconds: float
    setting: Setting | None = None
    fallback: str | None = None
    convergence: Convergence | None = None


@dataclass(frozen=True)
class Origin:
    """The data and the selection behind a fit.

    Attributes
    ----------
    data : str
        The fitted data: "all data" or "values alone".
    known : tuple of str
        The kinds of given derivatives.
    optimism : float
        The factor for the estimated error because the fit is the best of several candidates.
    n_samples : int
        Number of samples at the time of the choice.
    n_decisive : int
        The smallest number of samples that carry nine tenths of the squared error.
    """

    data: str
    known: tuple[str, ...]
    optimism: float
    n_samples: int
    n_decisive: int


@dataclass(frozen=True, eq=False)
class Shape:
    """How a fit meets conditions on its shape.

    Attributes
    ----------
    n_points : int
        Number of virtual points, where a condition would fail without them.
    violation : float
        By how much conditions fail at most at the points from which these are taken, samples included, in units of the
        root mean square of the value or derivative.
    violation_between : float
        The same at further points.
    growth : array of shape (k,)
        The ratio of errors of fits without each fold that meet the conditions to errors of fits that need not.
    """

    n_points: int
    violation: float
    violation_between: float
    growth: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """A fitted network and its estimated error, from any engine.

    Attributes
    ----------
    network : Network
    output_errors : array of shape (k,)
        The estimated root mean square error of each output.
    loss : Loss
        The weights of the derivatives.
    attempts : tuple of Attempt
        The candidates of the race, if there was one.
    origin : Origin or None
        The data and the selection; None for blocks of rows.
    shape : Shape or None
        How the fit meets conditions on its shape, if there are any.
    """

    network: Network
    output_errors: Array
    loss: Loss = VALUES_ONLY
    attempts: tuple[Attempt, ...] = ()
    origin: Origin | None = None
    shape: Shape | None = None

    @property
    def error(self) -> float:
        """The estimated root mean square error, outputs added up."""
        return float(np.sqrt(np.sum(self.output_errors**2)))

    def with_unseen(self, share: float) -> Self:
        """Return the fit with a share of the variance added to its squared errors, which they cannot detect.

        The inputs were reduced with the derivatives of all samples, left-out samples included, so that left-out errors
        do not contain the loss of the reduction. In scaled units the variance of each output is one.
        """
        return replace(self, output_errors=np.sqrt(self.output_errors**2 + share)) if share > 0 else self


@dataclass(frozen=True, eq=False, kw_only=True)
class ShallowFit(Fit):
    """A fitted shallow network and the path of its regularisation.

    Attributes
    ----------
    network : ShallowNetwork
    alpha : float
        The chosen regularisation, in units of the mean energy of a feature.
    alphas : array of shape (A,)
        The path of alphas.
    mean_squares : array of shape (A, k)
        The estimated mean squared errors along the path.
    history : tuple of Stage
        The stages of the fit.
    ridge_alpha : float
        The chosen regularisation, in the units of ``Ridge``.
    precise : bool
        Whether alpha is so small that ``PreciseRidge`` was needed.
    stage : Stage or None
        The stage that added the last neurons of the network; later stages did not help.
    left_out : LeftOut or None
        The errors along the path at left-out samples, while fits are compared.
    crossfit : CrossFit or None
        The fits without each fold, if errors were estimated by them.
    optimism : array of shape (k,) or None
        The factor by which leave-one-out errors are too small, if it was measured on held-out samples.
    convergence : Convergence or None
        The convergence of the iterative solver, if one was used for the outer weights.
    """

    network: ShallowNetwork
    alpha: float
    alphas: Array
    mean_squares: Array
    history: tuple[Stage, ...] = ()
    ridge_alpha: float = 0.0
    precise: bool = False
    stage: Stage | None = None
    left_out: LeftOut | None = None
    crossfit: CrossFit | None = None
    optimism: Array | None = None
    convergence: Convergence | None = None

    def with_unseen(self, share: float) -> Self:
        """Return the fit with a share of the variance added to squared errors and to variances."""
        if not share > 0:
            return self
        fit = super().with_unseen(share)
        ones = np.ones_like(fit.output_errors)
        factors = np.divide(fit.output_errors, self.output_errors, out=ones, where=self.output_errors > 0)
        return replace(fit, optimism=factors * (1.0 if self.optimism is None else self.optimism))

    @property
    def errors(self) -> Array:
        """The estimated errors along the path, outputs added up, of shape (A,)."""
        return np.asarray(np.sqrt(self.mean_squares.sum(axis=1)))
