"""What a fit returns."""

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
    """One stage of a fit: the network after some of its neurons were added.

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
        How the neurons of the stage were sampled, and how much derivatives counted.
    fallback : str or None
        Why the neurons of the stage were not sampled as the setting says, if they were not.
    convergence : Convergence or None
        How far an iterative solver came, if the outer weights were found by one.
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
    """How a fit was chosen.

    Attributes
    ----------
    data : str
        What was fitted: "all data" or "values alone".
    known : tuple of str
        The kinds of derivatives that were given.
    optimism : float
        The factor by which its error is larger because it is the best of several candidates.
    n_samples : int
        Number of samples with which it was chosen.
    n_decisive : int
        The smallest number of samples that carry nine tenths of the squared error.
    """

    data: str
    known: tuple[str, ...]
    optimism: float
    n_samples: int
    n_decisive: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """A fitted network and its estimated error: all that is common to the ways to fit one.

    Attributes
    ----------
    network : Network
    output_errors : array of shape (k,)
        The estimated root mean square error of each output.
    loss : Loss
        How much derivatives counted.
    attempts : tuple of Attempt
        What was tried, if there was a choice.
    origin : Origin or None
        How the fit was chosen; None for blocks of rows.
    """

    network: Network
    output_errors: Array
    loss: Loss = VALUES_ONLY
    attempts: tuple[Attempt, ...] = ()
    origin: Origin | None = None

    @property
    def error(self) -> float:
        """The estimated root mean square error, outputs added up."""
        return float(np.sqrt(np.sum(self.output_errors**2)))

    def with_unseen(self, share: float) -> Self:
        """Return the fit with errors that count a share of the variance which they do not show.

        The inputs were reduced by the derivatives of all samples, also of those that leave the fit. In scaled units the
        variance of each output is one.
        """
        return replace(self, output_errors=np.sqrt(self.output_errors**2 + share)) if share > 0 else self


@dataclass(frozen=True, eq=False, kw_only=True)
class ShallowFit(Fit):
    """A fitted shallow network and how its regularisation was chosen.

    Attributes
    ----------
    network : ShallowNetwork
    alpha : float
        The chosen regularisation, in units of the mean energy of a feature.
    alphas : array of shape (A,)
        The path that was tried.
    mean_squares : array of shape (A, k)
        The estimated mean squared errors of its members.
    history : tuple of Stage
        The stages of the fit.
    ridge_alpha : float
        The chosen regularisation, in the units of ``Ridge``.
    precise : bool
        Whether alpha is so small that it took ``PreciseRidge``.
    stage : Stage or None
        The stage that gave the network its last neurons. It is not the last one if that did not help.
    left_out : LeftOut or None
        The errors along the path at samples that are not in the fit, while fits are compared.
    crossfit : CrossFit or None
        The fits without each of the folds, if errors were estimated by them.
    optimism : array of shape (k,) or None
        The factor by which leave-one-out errors are typically too small, if some samples were held out in the end.
    convergence : Convergence or None
        How far an iterative solver came, if the outer weights were found by one.
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
        """Return the fit with errors, and standard deviations, that count a share of the variance."""
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
