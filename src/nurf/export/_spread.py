"""Standard deviations of fitted regressors as numbers for programs that do not have the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from nurf._scaling import Scaling
from nurf._types import Array
from nurf.engines import CrossFit
from nurf.export._cores import KernelSums, Term
from nurf.export._forms import Form, network_form
from nurf.export._functions import profiles_of
from nurf.kernels import KernelAverage
from nurf.networks import ShallowNetwork
from nurf.solvers import MIN_ERRORS, Reach, calibration
from nurf.solvers.process import Process, ProcessPosterior
from nurf.solvers.ridge import Posterior

MOST_NUMBERS = 300_000  # of a standard deviation that is written without being asked for: 3.2 MB of text


@dataclass(frozen=True, eq=False)
class FoldSpread:
    """The variance ``c^2 + max(0, (J - 1) mean_j (f_{-j} - f)^2 - floor)``, in scaled units.

    Parameters
    ----------
    folds : tuple of Form
        The fits without each fold, in scaled units, less the constant of the fit.
    multiple : float
        ``J - 1``.
    least, floor : array of shape (k,)
        ``c``, and the largest variance of the fit at a sample.
    """

    folds: tuple[Form, ...]
    multiple: float
    least: Array
    floor: Array


@dataclass(frozen=True, eq=False)
class CoefficientSpread:
    """The variance ``s^2 (1 + unit |F(x)|^2)`` of ridge regression in the Bayesian view, in scaled units.

    Parameters
    ----------
    factor : Form
        The features at a point times a factor of the covariance of the coefficients.
    unit : float
    noise : array of shape (k,)
        ``s``.
    """

    factor: Form
    unit: float
    noise: Array


@dataclass(frozen=True, eq=False)
class ProcessSpread:
    """The variance of one Gaussian process given the data, in scaled units.

    Parameters
    ----------
    mean : Form
    rows : KernelSums
        The functionals of the data, without coefficients.
    sums : sparse array or None
        The coefficients of the last functionals in rows that are sums of several.
    V, T, R : array
        The reflections that separate the mean of the process.
    first : array of shape (t, N)
        The first rows of the turned kernel matrix.
    factor : array of shape (N - t, N - t)
        The Cholesky factor of the rest.
    prior, least, noise : float
        The variance without data, the least one that is resolved, and the noise of a measurement.
    scale : array of shape (k,)
        The variance of each output.
    """

    mean: Form
    rows: KernelSums
    sums: csr_array | None
    V: Array
    T: Array
    R: Array
    first: Array
    factor: Array
    prior: float
    least: float
    noise: float
    scale: Array


@dataclass(frozen=True, eq=False)
class MixtureSpread:
    """The variance ``c^2 s^2 (s / u)^2p`` from the variance ``s^2`` of a mixture of processes, in scaled units.

    Parameters
    ----------
    members : tuple of ProcessSpread
    weights : array of shape (m,)
    factors : array of shape (k,)
        ``c``.
    power : float
        ``p``.
    unit, smallest, largest : array of shape (k,)
        ``u``, and the ``s`` below and above which ``s / u`` does not change.
    """

    members: tuple[ProcessSpread, ...]
    weights: Array
    factors: Array
    power: float
    unit: Array
    smallest: Array
    largest: Array


Spread = FoldSpread | CoefficientSpread | MixtureSpread


@dataclass(frozen=True, eq=False)
class Deviation:
    """The standard deviation of a new measurement: a variance, and a further one beyond the reach of the samples.

    Parameters
    ----------
    variance : FoldSpread, CoefficientSpread or MixtureSpread
    reach : Reach
    """

    variance: Spread
    reach: Reach


def deviation_of(model: Any, whole: bool) -> Deviation | str:
    """Return the standard deviation of a fitted regressor, or why it is not written.

    Unless it must be ``whole``, more than ``MOST_NUMBERS`` numbers are a reason, which is known before they are
    computed.
    """
    uncertainty = getattr(model, "uncertainty_", None)
    if uncertainty is None:
        return "the model has no standard deviations: there were too few samples"
    kind = type(uncertainty)
    if kind not in _KINDS:
        return f"standard deviations of {kind.__name__} cannot be exported"
    errors, size, spread = _KINDS[kind]
    if errors(uncertainty) < MIN_ERRORS:
        return f"standard deviations need at least {MIN_ERRORS} samples with a value"
    if not whole and size(uncertainty) > MOST_NUMBERS:
        return f"the standard deviation takes {size(uncertainty):.2g} numbers, more than {MOST_NUMBERS:.2g}"
    scaling = replace(model.scaling_, y_center=np.zeros(()), y_scale=np.ones(()))
    return Deviation(spread(uncertainty, scaling), uncertainty.reach)


def _folds(posterior: CrossFit, scaling: Scaling) -> FoldSpread:
    base = network_form(posterior.network, scaling).constant
    forms = (network_form(fold, scaling) for fold in posterior.folds)
    folds = tuple(replace(form, constant=form.constant - base) for form in forms)
    least = calibration(np.abs(posterior.errors), posterior.effective)
    return FoldSpread(folds, posterior.n_folds - 1.0, least, posterior.variances.max(axis=0))


def _coefficients(posterior: Posterior, scaling: Scaling) -> CoefficientSpread:
    factor = ShallowNetwork(posterior.network.features, posterior.factor)
    return CoefficientSpread(network_form(factor, scaling), posterior.unit, posterior.noise)


def _mixture(posterior: ProcessPosterior, scaling: Scaling) -> MixtureSpread:
    pairs = zip(posterior.network.members, posterior.processes, strict=True)
    members = tuple(
        _process(process, network_form(KernelAverage((member,), np.ones(1)), scaling)) for member, process in pairs
    )
    growth = posterior.growth
    factors, ends = growth.factors(posterior.held_out.effective), (growth.smallest, growth.largest)
    return MixtureSpread(members, posterior.network.weights, factors, growth.power, growth.unit, *ends)


def _process(process: Process, mean: Form) -> ProcessSpread:
    given = process.conditioning
    terms = tuple(
        Term(part.points[part.index], part.directions, np.empty((len(part), 0))) for part in given.parts if len(part)
    )
    rows = KernelSums(process.metric.T, terms, profiles_of(process.kernel))
    contrasts = given.contrasts
    return ProcessSpread(
        mean,
        rows,
        given.sums,
        contrasts.V,
        contrasts.T,
        contrasts.R,
        given.first,
        given.factor,
        given.prior,
        given.least,
        given.noise,
        process.variances,
    )


# How many samples give errors, the number of numbers, and the spread.
_KINDS: dict[type, tuple[Callable[[Any], int], Callable[[Any], int], Callable[[Any, Scaling], Spread]]] = {
    CrossFit: (
        lambda posterior: len(posterior.errors),
        lambda posterior: 0,  # some networks of the size of the fit
        _folds,
    ),
    Posterior: (
        lambda posterior: int(np.count_nonzero(posterior.samples.has_value)),
        lambda posterior: posterior.network.features.n_columns**2,
        _coefficients,
    ),
    ProcessPosterior: (
        lambda posterior: len(posterior.held_out.errors),
        lambda posterior: len(posterior.rows) ** 2 // 2 * len(posterior.network.members),
        _mixture,
    ),
}
