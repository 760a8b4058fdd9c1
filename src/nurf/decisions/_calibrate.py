"""Which inputs of a model explain measurements."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize as descend
from scipy.stats import norm, qmc

from nurf._types import Array
from nurf._validation import is_whole
from nurf.decisions._chains import Chains, hamiltonian
from nurf.decisions._estimate import COVERAGE, table_of
from nurf.decisions._inputs import Inputs, data_box, input_names, warn_beyond
from nurf.decisions._models import FixedInputs, with_draws, without_numbers
from nurf.decisions._observed import Known, Likelihood, Observed
from nurf.estimators import Report, as_generator

SCREENED = 1024  # points of the prior, among which the search and the chains start
STEPS = 100  # of the search for the most probable inputs
CHAINS = 16
LEAST_STEPS = 20  # of a chain
POWERS = 0.7 ** np.arange(40)  # of the likelihood that are tried for starts
STEP = 1e-4  # of differences of gradients and of prior densities, in standard deviations of the prior
LEAST_CURVATURE = 0.1  # of the normal approximation; the curvature of the prior is one
FARTHEST = 8.0  # standard deviations of the prior within which inputs are searched
WARM = 0.5  # share of the steps of a chain in which step sizes are chosen
TEMPERED = 2.0  # effective points of the prior for each chain, among which chains start
R_HAT, EFFECTIVE = 1.05, 100  # beyond which the sample is not to be trusted


@dataclass(frozen=True, eq=False)
class Calibration:
    """The inputs that explain measurements.

    Parameters
    ----------
    names : tuple of str
        The unknown inputs.
    x : array of shape (u,)
        The most probable inputs: the largest density given the measurements.
    sample : array of shape (s, u)
        A sample of the inputs given the measurements.
    laplace : array of shape (u, u)
        The covariance of the inputs in the normal approximation around the most probable ones.
    misfit : float
        The mean squared error of the measurements at ``x``, in units of the variances of noise and model: about one
        if both explain it, and much larger if the model does not hold.
    r_hat : array of shape (u,)
        How far the chains of the sampler agree: 1 if they do.
    effective : array of shape (u,)
        The number of independent points that the sample is worth.
    prior : Inputs
        The distribution of the inputs before the measurements.
    """

    names: tuple[str, ...]
    x: Array
    sample: Array
    laplace: Array
    misfit: float
    r_hat: Array
    effective: Array
    prior: Inputs

    @property
    def mean(self) -> Array:
        """The means of the inputs given the measurements, of shape (u,)."""
        return np.asarray(self.sample.mean(axis=0))

    value = mean

    @property
    def std(self) -> Array:
        """The standard deviations, of shape (u,)."""
        unit = np.abs(self.sample).max(axis=0)  # squares of 1e200 would be infinite
        unit = np.where(unit > 0, unit, 1.0)
        return np.asarray(unit * (self.sample / unit).std(axis=0, ddof=1))

    @property
    def covariance(self) -> Array:
        """The covariance matrix, of shape (u, u)."""
        return np.atleast_2d(np.cov(self.sample.T))

    @property
    def interval(self) -> Array:
        """The intervals that hold the inputs with probability 0.9, of shape (u, 2)."""
        return self.interval_of(COVERAGE)

    def interval_of(self, coverage: float) -> Array:
        """Return the intervals for another probability, of shape (u, 2)."""
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must be a number between 0 and 1, got {coverage!r}")
        return np.quantile(self.sample, ((1 - coverage) / 2, (1 + coverage) / 2), axis=0).T

    def table(self) -> Any:
        """Return all inputs with their intervals, R-hat and effective sizes: a data frame, or its columns."""
        low, high = self.interval.T
        columns = {"x": self.x, "mean": self.mean, "std": self.std, "low": low, "high": high}
        columns |= {"laplace_std": np.sqrt(np.diag(self.laplace)), "r_hat": self.r_hat, "effective": self.effective}
        return table_of({"input": np.array(self.names), **columns})

    def report(self) -> Report:
        """Return the inputs with their 90% intervals: text in a terminal, a table in a notebook."""
        lines = []
        for name, x, mean, (low, high) in zip(self.names, self.x, self.mean, self.interval, strict=True):
            lines.append((name, f"{mean:.4g} ({low:.4g} to {high:.4g}), most probable {x:.4g}"))
        lines.append(
            ("misfit", f"{self.misfit:.2g}; about 1 if noise and errors of the model explain the measurements")
        )
        trust = f"{len(self.sample)}, worth {self.effective.min():.0f} independent ones; R-hat {self.r_hat.max():.3f}"
        lines.append(("sample", trust))
        return Report("Inputs that explain the measurements: means, with 90% intervals", tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw the 90% intervals in units of the probability before the measurements, and return the axes.

        Without any knowledge an interval goes from 0.05 to 0.95.
        """
        from nurf.plots import axes_or_current, literal

        ax, places = axes_or_current(ax), np.arange(len(self.names))
        marks = np.column_stack([self.interval, self.x])
        shares = np.array([m.cdf(row) for m, row in zip(self.prior.marginals, marks, strict=True)])
        ax.hlines(places, shares[:, 0], shares[:, 1], lw=5, alpha=0.5, label="90% interval")
        ax.plot(shares[:, 2], places, "k|", ms=14, label="most probable")
        ax.set_yticks(places, [literal(name) for name in self.names])
        ax.set(xlabel="probability before the measurements", xlim=(0, 1), ylim=(len(places) - 0.5, -0.5))
        ax.legend()
        return ax


def calibrate(
    model: Any,
    observations: Any,
    noise: Any,
    prior: Any = None,
    *,
    at: Any = None,
    correlation: Any = None,
    n_samples: int = 4000,
    n_draws: int = 100,
    random_state: Any = None,
) -> Calibration:
    """Return which inputs of a model explain measurements: the most probable ones, and a sample of them.

    The measurements are normal around the values of the model, with the variance of the noise and the covariance of the
    errors of the model there, from its draws: an uncertain model leaves the inputs less certain, and its errors at
    close points are no independent evidence. The inputs are functions of independent standard normal variables, so that
    the search and the sampler need no bounds. The sample comes from Hamiltonian Monte Carlo with 16 chains, scaled by
    the normal approximation.

    Parameters
    ----------
    model : fitted estimator
    observations : float, or array of shape (k,), (r,), (r, k), (m,) or (m, k)
        The measured outputs, NaN where nothing was measured: of a model of ``k`` outputs, or ``r`` times of one output.
        With known inputs, a row for each of ``m`` measurements.
    noise : float or array
        The standard deviations of the noise: one, one for each output, or one for each observation. They may be far
        below the errors of the model, but together they must exceed the rounding errors of its values.
    prior : dict or sequence of distributions, optional
        What is known of the unknown inputs before: continuous distributions of ``scipy.stats``, by name or in their
        order; a number for an input that is known. By default they are uniform over the box of the data.
    at : data frame, or dict of sequences of length m, optional
        Known inputs of each measurement, by name or place: for a model of a curve, its times.
    correlation : array of shape (u, u), optional
        The correlations of the normal scores of the unknown inputs. By default they are independent.
    n_samples : int, default 4000
        The size of the sample, rounded up to the same number for all chains.
    n_draws : int, default 100
        The number of draws, from which the covariance of the errors of the model is taken.
    random_state : int, RandomState, Generator or None, default None

    Returns
    -------
    Calibration

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from nurf import KernelFeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (40, 2))
    >>> model = KernelFeatureRegressor().fit(X, X @ [[1.0, 1.0], [1.0, -1.0]])
    >>> result = calibrate(model, [1.0, 0.0], 0.1, [norm(), norm()], random_state=0)
    >>> result.x.round(1), result.std.round(2)
    (array([0.5, 0.5]), array([0.07, 0.07]))
    """
    rng, model = as_generator(random_state), with_draws(model)
    model, prior = without_numbers(model, prior, "prior")
    if not is_whole(n_samples):
        raise ValueError(f"`n_samples` must be a whole number >= 1, got {n_samples!r}")
    known, draws = Known.of(at, input_names(model)), model.draws(n_draws, rng)
    own = FixedInputs(model, known.unknown, np.full(len(known.names), np.nan))
    distribution = Inputs.of(own, prior, correlation)
    center = np.zeros((1, distribution.dimension))
    k = draws.fit.value(known.inputs(distribution.from_normal(center))[0])[0].size
    spread = norm.ppf(qmc.Halton(distribution.dimension, scramble=False).random(CHAINS + 1)[1:])  # the first one is 0
    likelihood = Likelihood.of(Observed.of(observations, noise, known, k), draws, distribution.from_normal(spread))
    _warn_known(model, known)
    posterior = Posterior(distribution, likelihood)
    starts = posterior.like(center).starts(rng)
    modes = posterior.like(center).searched(starts)
    mode = posterior.searched(modes[:1])
    factor = posterior.factor(mode)
    n_steps = max(-(-int(n_samples) // CHAINS), LEAST_STEPS)
    around = modes + rng.standard_normal(modes.shape) @ factor.T
    similar, n_warm = posterior.like(mode), int(WARM * n_steps)
    with np.errstate(over="ignore", invalid="ignore"):  # orbits that diverge are rejected
        chains = hamiltonian(posterior.log, similar.slopes, around, factor, n_warm, n_steps, rng)
    x = distribution.from_normal(posterior.searched(mode, of_inputs=True))
    slopes = distribution.slopes(mode, distribution.from_normal(mode))[0] @ factor
    with np.errstate(over="ignore", under="ignore"):  # covariances of inputs of 1e200 are infinite
        laplace = np.asarray(slopes @ slopes.T)
    sample = distribution.from_normal(chains.all())
    warn_beyond(own, sample, "of the sample")
    _warn_chains(chains)
    return Calibration(
        tuple(distribution.names),
        x[0],
        sample,
        laplace,
        likelihood.misfit(x),
        chains.r_hat,
        chains.effective,
        distribution,
    )


@dataclass(frozen=True, eq=False)
class Posterior:
    """The density of standard normal variables, of which the inputs are functions, given measurements.

    Parameters
    ----------
    distribution : Inputs
    likelihood : Likelihood or Similar
    """

    distribution: Inputs
    likelihood: Any

    def like(self, z: Array) -> Posterior:
        """Return a similar density, which takes the fit only: the errors of the model are those at a point (1, u)."""
        return Posterior(self.distribution, self.likelihood.like(self.distribution.from_normal(z)))

    def log(self, Z: Array) -> Array:
        """Return the logarithms of the density at points (p, u), of shape (p,), up to a constant."""
        return np.asarray(self.likelihood.log(self.distribution.from_normal(Z)) - np.sum(Z**2, axis=1) / 2)

    def slopes(self, Z: Array) -> Array:
        """Return their gradients, of shape (p, u)."""
        return self._of_likelihood(Z) - Z

    def _of_likelihood(self, Z: Array) -> Array:
        X = self.distribution.from_normal(Z)
        return np.asarray(np.einsum("pi,pij->pj", self.likelihood.slopes(X), self.distribution.slopes(Z, X)))

    def starts(self, rng: np.random.Generator) -> Array:
        """Return points of the prior that are drawn by their likelihoods, to a power at which some are left."""
        d = self.distribution.dimension
        U = qmc.Sobol(d, seed=rng).random_base2(int(np.log2(SCREENED)))
        Z = norm.ppf(U.clip(1 / SCREENED**2, 1 - 1 / SCREENED**2))
        logs = self.likelihood.log(self.distribution.from_normal(Z))
        for power in POWERS:
            weights = np.exp(power * (logs - logs.max()))
            if weights.sum() ** 2 >= TEMPERED * CHAINS * np.sum(weights**2):
                break
        return np.asarray(Z[rng.choice(len(Z), CHAINS, p=weights / weights.sum())])

    def searched(self, Z: Array, of_inputs: bool = False) -> Array:
        """Return maxima of the density, or of the density of the inputs, near points (p, u), the largest first."""
        prior = self._density_of_inputs if of_inputs else _of_normals
        shape = Z.shape

        def total(flat: Array) -> tuple[float, Array]:
            points = flat.reshape(shape)
            logs, slopes = prior(points)
            logs = logs + self.likelihood.log(self.distribution.from_normal(points))
            return -float(logs.sum()), -(slopes + self._of_likelihood(points)).ravel()

        bounds = [(-FARTHEST, FARTHEST)] * Z.size
        found = descend(total, Z.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
        points = found.x.reshape(shape)
        return np.asarray(
            points[np.argsort(-prior(points)[0] - self.likelihood.log(self.distribution.from_normal(points)))]
        )

    def _density_of_inputs(self, Z: Array) -> tuple[Array, Array]:
        """Return the logarithms (p,) of the density of the inputs before the measurements, and their gradients."""
        u = Z.shape[1]
        around = Z[:, None] + STEP * np.concatenate([np.zeros((1, u)), np.eye(u), -np.eye(u)])
        scores = around @ self.distribution.factor.T
        X = self.distribution.from_normal(around)
        logs = np.sum((scores**2 - around**2) / 2, axis=-1)
        for j, marginal in enumerate(self.distribution.marginals):
            logs = logs + marginal.logpdf(X[..., j])
        return logs[:, 0], (logs[:, 1 : u + 1] - logs[:, u + 1 :]) / (2 * STEP)

    def factor(self, z: Array) -> Array:
        """Return a factor of the covariance of the normal approximation at a point (1, u): differences of slopes."""
        steps = STEP * np.eye(z.shape[1])
        hessian = (self.slopes(z - steps) - self.slopes(z + steps)) / (2 * STEP)
        eigenvalues, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
        return np.asarray(vectors / np.sqrt(np.maximum(eigenvalues, LEAST_CURVATURE)))


def _of_normals(Z: Array) -> tuple[Array, Array]:
    return -np.sum(Z**2, axis=1) / 2, -Z


def _warn_known(model: Any, known: Known) -> None:
    """Warn if known inputs are beyond the data."""
    low, high = (end[known.places] for end in data_box(model))
    outside = (known.values < low) | (known.values > high)
    if outside.any():
        name = known.names[known.places[int(np.argmax(outside.any(axis=0)))]]
        warnings.warn(
            f"`at` is beyond the data in {name}: the model knows little there, and intervals grow", stacklevel=3
        )


def _warn_chains(chains: Chains) -> None:
    """Warn if chains do not agree."""
    if chains.r_hat.max() > R_HAT or chains.effective.min() < EFFECTIVE:
        warnings.warn(
            f"the chains of the sample do not agree (R-hat {chains.r_hat.max():.2f}, worth "
            f"{chains.effective.min():.0f} independent points): take a larger `n_samples`, or a narrower prior if "
            "there are several explanations",
            stacklevel=3,
        )
