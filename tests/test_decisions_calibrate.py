"""Inputs that explain measurements, against exact posteriors and quadrature, and what cannot be asked."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import lognorm, norm, uniform

from exact import Exact
from nurf import KernelFeatureRegressor
from nurf.decisions import calibrate
from nurf.decisions._chains import Chains, hamiltonian

A = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
LINEAR = Exact(lambda X: X @ A.T, lambda X: np.broadcast_to(A, (len(X), 4, 3)), [-4] * 3, [4] * 3)


def curve(X):
    """Decay with a rate, from a height, at a time."""
    height, rate, time = X.T
    return height * np.exp(-rate * time)


def curve_gradient(X):
    height, rate, time = X.T
    decay = np.exp(-rate * time)
    return np.stack([decay, -height * time * decay, -height * rate * decay], axis=1)


def decay(spread=0.0):
    return Exact(curve, curve_gradient, [0.5, 0.1, 0], [4, 3, 4], spread=spread)


TIMES, MEASURED = np.array([0.2, 0.7, 1.5, 2.5]), np.array([1.75, 1.0, 0.5, 0.15])
PRIOR = {"x0": uniform(0.5, 3.5), "x1": lognorm(0.5, scale=1.0)}


def linear_posterior(rows, y, variances, prior=1.0):
    """The mean and the covariance of a normal vector given linear measurements."""
    precision = np.eye(3) / prior + rows.T @ (rows / variances[:, None])
    covariance = np.linalg.inv(precision)
    return covariance @ (rows.T @ (y / variances)), covariance


def by_quadrature(log_likelihood, n=400):
    """The mean and the covariance of height and rate on a grid, and the most probable of its points."""
    height, rate = np.linspace(0.5, 4, n), np.linspace(0.02, 5, n)
    grid = np.stack(np.meshgrid(height, rate, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = log_likelihood(grid) + PRIOR["x1"].logpdf(grid[:, 1])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    return mean, (grid - mean).T @ ((grid - mean) * weights[:, None]), grid[np.argmax(logs)]


def of_curve(covariance):
    """The logarithm of the likelihood of the measured curve with a covariance of its errors."""

    def log_likelihood(grid):
        errors = MEASURED - grid[:, :1] * np.exp(-grid[:, 1:] * TIMES)
        return -np.sum(errors @ np.linalg.inv(covariance) * errors, axis=1) / 2

    return log_likelihood


def agrees(found, mean, covariance):
    """Whether means and standard deviations of a sample are as they should be.

    With an effective size of 400 or more, means have standard errors of 0.05 deviations and deviations of 0.035; bounds
    are more than four of these, and at least as wide as what draws leave open.
    """
    deviations = np.sqrt(np.diag(covariance))
    assert found.effective.min() > 400
    assert found.r_hat.max() < 1.05
    assert np.all(np.abs(found.mean - mean) < 0.22 * deviations)
    assert_allclose(found.std, deviations, rtol=0.17)
    correlations = found.covariance / np.outer(found.std, found.std)
    assert_allclose(correlations, covariance / np.outer(deviations, deviations), atol=0.2)


class TestLinear:
    y, noise = np.array([1.0, -0.5, 0.3, 0.7]), np.array([0.5, 0.3, 1.0, 0.8])

    def test_posterior(self):
        found = calibrate(LINEAR, self.y, self.noise, [norm()] * 3, n_draws=2, random_state=0)
        mean, covariance = linear_posterior(A, self.y, self.noise**2)
        assert_allclose(found.x, mean, atol=1e-4)
        assert_allclose(found.laplace, covariance, rtol=1e-4, atol=1e-6)
        agrees(found, mean, covariance)
        errors = self.y - A @ mean
        assert_allclose(found.misfit, np.mean((errors / self.noise) ** 2), rtol=1e-4)

    def test_outputs_that_are_not_measured(self):
        y = np.where([True, False, True, True], self.y, np.nan)
        found = calibrate(LINEAR, y, self.noise, [norm()] * 3, n_draws=2, random_state=0)
        known = ~np.isnan(y)
        mean, covariance = linear_posterior(A[known], y[known], self.noise[known] ** 2)
        assert_allclose(found.x, mean, atol=1e-4)
        agrees(found, mean, covariance)

    @pytest.mark.parametrize("seed", range(6))
    def test_two_explanations(self, seed):
        """A square has two roots, the larger with the probability 0.55: 300 independent points know it within 0.03."""
        model = Exact(lambda X: X[:, 0] ** 2, lambda X: 2 * X, [-3], [3])
        found = calibrate(model, 1.0, 0.05, [norm(0.1, 1)], n_draws=2, random_state=seed)
        assert found.r_hat.max() < 1.05
        assert_allclose(np.mean(found.sample > 0), 0.55, atol=0.15)
        assert_allclose(np.abs(found.sample).mean(), 1.0, atol=0.02)

    def test_repeated_measurements(self):
        y = self.y + 0.3 * np.random.default_rng(0).normal(size=(5, 4))
        y[2, 1:] = np.nan
        found = calibrate(LINEAR, y, self.noise, [norm()] * 3, n_draws=2, random_state=0)
        rows, known = np.tile(A, (5, 1)), ~np.isnan(y.ravel())
        mean, covariance = linear_posterior(rows[known], y.ravel()[known], np.tile(self.noise**2, 5)[known])
        assert_allclose(found.x, mean, atol=1e-4)
        assert_allclose(found.laplace, covariance, rtol=1e-4, atol=1e-6)

    def test_errors_of_the_model_count(self):
        """Draws are shifted by one number for all points: repeated measurements do not make that smaller."""
        model = Exact(lambda X: X[:, 0], lambda X: np.ones((len(X), 1)), [-4], [4], spread=0.5)
        found = calibrate(model, np.full(1000, 0.8), 0.1, [norm()], n_draws=4000, random_state=0)
        variance = 1 / (1 + 1 / (0.25 + 0.1**2 / 1000))
        # 4000 draws know the variance of the model within 2.2% (one standard error)
        assert_allclose(found.laplace, variance, rtol=0.09)
        assert_allclose(found.std, np.sqrt(variance), rtol=0.2)
        assert_allclose(found.x, 0.8 * (1 - variance), rtol=0.05)

    @pytest.mark.parametrize("noise", [1e-9, 1e-200])
    def test_noise_far_below_the_errors_of_the_model(self, noise):
        """The posterior is that of measurements with the errors of the model alone."""
        model = Exact(lambda X: X[:, 0], lambda X: np.ones((len(X), 1)), [-4], [4], spread=0.5)
        found = calibrate(model, 0.8, noise, [norm()], n_draws=4000, random_state=0)
        assert_allclose(found.laplace, 1 / (1 + 1 / 0.25), rtol=0.09)  # 4000 draws: as above
        assert_allclose(found.std, np.sqrt(0.2), rtol=0.2)
        assert_allclose(found.x, 0.8 * 0.8, rtol=0.05)


class TestCurve:
    @pytest.mark.parametrize("frame", [True, False])
    def test_posterior(self, frame):
        at = {2: TIMES}
        model = decay()
        found = (
            calibrate(model, MEASURED, 0.15, PRIOR, at=at, n_draws=2, random_state=0)
            if frame
            else calibrate(
                model,
                MEASURED[:, None],
                np.full((4, 1), 0.15),
                list(PRIOR.values()),
                at={"x2": TIMES},
                n_draws=2,
                random_state=1,
            )
        )
        mean, covariance, top = by_quadrature(of_curve(0.15**2 * np.eye(4)))
        agrees(found, mean, covariance)
        assert_allclose(found.x, top, atol=0.02)  # the grid has steps of 0.0125

    def test_errors_of_the_model(self):
        found = calibrate(decay(0.2), MEASURED, 0.1, PRIOR, at={"x2": TIMES}, n_draws=1000, random_state=0)
        mean, covariance, top = by_quadrature(of_curve(0.1**2 * np.eye(4) + 0.2**2))
        agrees(found, mean, covariance)
        assert_allclose(found.x, top, atol=0.06)

    @pytest.mark.filterwarnings("ignore:.*beyond the data", "ignore:.*carry 90% of the squared error")
    def test_of_a_fit(self):
        """A surrogate of 60 samples in frames gives the posterior of the function, and times come by name."""
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.uniform([0.5, 0.1, 0], [4, 3, 4], (60, 3)), columns=["height", "rate", "time"])
        model = KernelFeatureRegressor().fit(X, curve(X.to_numpy()), gradients=curve_gradient(X.to_numpy()))
        prior = {"height": PRIOR["x0"], "rate": PRIOR["x1"]}
        found = calibrate(model, MEASURED, 0.15, prior, at=pd.DataFrame({"time": TIMES}), n_samples=800, random_state=0)
        mean, covariance, _ = by_quadrature(of_curve(0.15**2 * np.eye(4)))
        deviations = np.sqrt(np.diag(covariance))
        assert found.names == ("height", "rate")
        assert np.all(np.abs(found.mean - mean) < 0.3 * deviations)
        assert np.all((found.std > 0.8 * deviations) & (found.std < 1.5 * deviations))
        fixed = calibrate(
            model, MEASURED, 0.15, prior | {"height": 2.0}, at={"time": TIMES}, n_samples=320, random_state=0
        )
        assert fixed.names == ("rate",)
        assert 0.5 < fixed.x[0] < 1.5


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_any_units(unit):
    found = []
    for scale in (1.0, unit):
        model = Exact(
            lambda X, s=scale: s * np.tanh(X[:, 0] / s),
            lambda X, s=scale: np.cosh(X / s) ** -2.0,
            [-2 * scale],
            [2 * scale],
        )
        found.append(calibrate(model, 0.5 * scale, 0.1 * scale, n_draws=2, n_samples=320, random_state=0))
    assert_allclose(found[1].x / unit, found[0].x, rtol=1e-3)
    assert_allclose(found[1].std / unit, found[0].std, rtol=0.3)


class TestSampler:
    def test_two_explanations(self):
        """The square of a number was measured: both roots are as probable."""
        model = Exact(lambda X: X[:, 0] ** 2, lambda X: 2 * X, [-3], [3])
        found = calibrate(model, 2.25, 0.2, [norm(0, 1.5)], n_draws=2, random_state=0)
        assert_allclose(np.abs(found.sample).mean(), 1.5, atol=0.03)
        assert 0.35 < np.mean(found.sample > 0) < 0.65
        assert_allclose(np.abs(found.x), 1.48, atol=0.05)

    def test_a_wrong_slope_is_made_up_for(self):
        """The leapfrog method with the slope of another normal distribution samples the right one."""
        rng, deviations = np.random.default_rng(0), np.array([1.0, 3.0])
        chains = hamiltonian(
            lambda z: -np.sum((z / deviations) ** 2, axis=1) / 2,
            lambda z: -0.7 * (z + 0.1) / deviations**2,
            rng.normal(size=(16, 2)),
            np.diag(deviations),
            200,
            500,
            rng,
        )
        assert_allclose(chains.all().std(axis=0), deviations, rtol=0.1)
        assert np.all(np.abs(chains.all().mean(axis=0)) < 0.15 * deviations)

    def test_effective_sizes_and_agreement(self):
        """Of an autoregressive series with coefficient 0.8, nine points are worth one; shifted chains do not agree."""
        rng = np.random.default_rng(0)
        points = np.empty((4000, 8, 1))
        points[0] = rng.normal(size=(8, 1)) / 0.6
        for i in range(1, len(points)):
            points[i] = 0.8 * points[i - 1] + rng.normal(size=(8, 1))
        chains = Chains(points, 1.0)
        assert_allclose(chains.effective, 32000 / 9, rtol=0.15)
        assert chains.r_hat < 1.01
        shifted = Chains(points + np.arange(8)[:, None], 1.0)
        assert shifted.r_hat > 1.3
        assert shifted.effective < 100
        assert Chains(rng.normal(size=(500, 4, 1)), 1.0).effective > 1500


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"observations": [1.0, 2.0]}, r"shape \(4,\), or \(r, 4\) if they are repeated, got \(2,\)"),
            ({"observations": [np.nan] * 4}, "at least one a number"),
            ({"observations": [np.inf] * 4}, "finite, or NaN"),
            ({"observations": []}, "shape"),
            ({"noise": 0.0}, "> 0, got 0"),
            ({"noise": 1e-200}, "larger than the rounding errors of its values.* noise 1e-200 and errors of .* 0"),
            ({"noise": [0.1, 0.2]}, r"for each observation of shape \(4,\), got shape \(2,\)"),
            ({"noise": np.nan}, "finite"),
            ({"prior": {"x0": norm()}}, "missing"),
            ({"prior": [norm()]}, "3 distributions"),
            ({"prior": [1.0, 2.0, 3.0]}, "at least one input free"),
            ({"at": [1.0]}, "data frame of known inputs, or a dict"),
            ({"at": {"speed": [1.0]}}, "some of the inputs"),
            ({"at": {0: [1.0], "x0": [1.0]}}, "each once"),
            ({"at": {0: [1.0], 1: [1.0], 2: [1.0]}}, "at least one input unknown"),
            ({"at": {0: [1.0], 1: [1.0, 2.0]}}, "as many values"),
            ({"at": {0: [1.0, 2.0]}}, r"shape \(2, 4\), got \(4,\)"),
            ({"n_samples": 0}, "`n_samples`"),
        ],
    )
    def test_what_cannot_be_asked(self, options, match):
        given = {"observations": [0.0] * 4, "noise": 1.0} | options
        with pytest.raises(ValueError, match=match):
            calibrate(LINEAR, given.pop("observations"), given.pop("noise"), n_draws=2, **given)

    def test_warns(self):
        with pytest.warns(UserWarning, match="`at` is beyond the data in x2"):
            calibrate(decay(), MEASURED, 0.15, PRIOR, at={2: 10 * TIMES}, n_draws=2, random_state=0)
        square = Exact(lambda X: X[:, 0] ** 2, lambda X: 2 * X, [-3], [3])
        with pytest.warns(UserWarning, match="do not agree"):
            calibrate(square, 2.25, 1e-3, n_samples=1, n_draws=2, random_state=0)


def test_tables_reports_and_pictures():
    from matplotlib.figure import Figure

    found = calibrate(LINEAR, [0.0] * 4, 0.5, [norm()] * 3, n_draws=2, n_samples=800, random_state=0)
    table = found.table()
    assert_allclose(table["mean"], found.value)
    assert_allclose(table["low"], found.interval[:, 0])
    assert "misfit" in str(found.report())
    assert len(found.plot(Figure().subplots()).get_yticks()) == 3
    with pytest.raises(ValueError, match="`coverage`"):
        found.interval_of(2)
