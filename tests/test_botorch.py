"""Models of BoTorch: predictions and their derivatives as distributions, and Bayesian optimisation with them."""

import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from nurf import DeepFeatureRegressor, GradientPipeline, KernelFeatureRegressor, RandomFeatureRegressor, export

with warnings.catch_warnings():  # torch warns of what BoTorch's dependencies do
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    pytest.importorskip("botorch")
    from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound, qLogExpectedImprovement
    from botorch.acquisition.objective import ScalarizedPosteriorTransform
    from botorch.optim import optimize_acqf

UNITS = np.array([1.0, 500.0])
BOUNDS = torch.tensor(np.array([[0.0, 0.0], [1.0, 500.0]]))


def wave(X):
    u = X / UNITS
    return -np.sin(5 * u[:, 0]) * np.cos(4 * u[:, 1])


def wave_gradient(X):
    u = X / UNITS
    by_first = -5 * np.cos(5 * u[:, 0]) * np.cos(4 * u[:, 1])
    return np.stack([by_first, 4 * np.sin(5 * u[:, 0]) * np.sin(4 * u[:, 1])], axis=1) / UNITS


def points(n, seed=0):
    return np.random.default_rng(seed).uniform(0, 1, (n, 2)) * UNITS


@pytest.fixture(scope="module")
def wide():
    X = points(8)
    return KernelFeatureRegressor("gaussian", metric="scales").fit(X, wave(X), gradients=wave_gradient(X))


@pytest.fixture(scope="module")
def two_outputs():
    X = points(20)
    y = np.stack([wave(X), X[:, 1]], axis=1)
    return DeepFeatureRegressor((8,), steps=30, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def sampled():
    X = points(160)
    return RandomFeatureRegressor(30, width=0.5, random_state=0).fit(X, wave(X))


@pytest.mark.parametrize("name", ["wide", "two_outputs", "sampled"])
@pytest.mark.parametrize("shape", [(2,), (7, 2), (3, 1, 2), (2, 3, 1, 2)])
def test_means_and_variances_are_those_of_predictions(name, shape, request):
    model = request.getfixturevalue(name)
    X = points(int(np.prod(shape[:-1])), seed=1)
    values, deviations = model.predict(X, return_std=True)
    expected = (*shape[:-1], -1)
    if len(shape) == 1:
        shape, expected = (1, 2), (1, -1)
    posterior = export.to_botorch(model).posterior(torch.tensor(X.reshape(shape)))
    assert_allclose(posterior.mean.numpy(), values.reshape(expected), rtol=1e-12)
    assert_allclose(posterior.variance.numpy(), (deviations**2).reshape(expected), rtol=1e-12)


@pytest.mark.parametrize("name", ["wide", "two_outputs", "sampled"])
def test_derivatives_are_those_of_predictions(name, request):
    """By Richardson's extrapolation of differences of predictions, in units of the inputs."""
    model = request.getfixturevalue(name)
    X = points(4, seed=2)
    inputs = torch.tensor(X.reshape(4, 1, 2), requires_grad=True)
    posterior = export.to_botorch(model).posterior(inputs)
    n_outputs = posterior.mean.shape[-1]
    weights = np.random.default_rng(3).uniform(1, 2, (2, 4, n_outputs))

    def total(X):
        values, deviations = model.predict(X, return_std=True)
        parts = values.reshape(len(X), -1), deviations.reshape(len(X), -1) ** 2
        return sum((w * part).sum(axis=1) for w, part in zip(weights, parts, strict=True))

    mean, variance = posterior.mean[:, 0], posterior.variance[:, 0]
    (torch.tensor(weights[0]) * mean + torch.tensor(weights[1]) * variance).sum().backward()
    found = inputs.grad.numpy()[:, 0] * UNITS
    for j in range(2):
        move = 1e-3 * UNITS * np.eye(2)[j]
        near, far = total(X + move) - total(X - move), total(X + 2 * move) - total(X - 2 * move)
        difference = (8 * near - far) / 12e-3
        assert_allclose(found[:, j], difference, atol=1e-4 * np.abs(difference).max())


def test_expected_improvement_is_its_formula(wide):
    X = points(5, seed=4)
    mean, deviation = wide.predict(X, return_std=True)
    best = 0.3
    z = (mean - best) / deviation
    expected = deviation * (z * norm.cdf(z) + norm.pdf(z))
    acquisition = LogExpectedImprovement(export.to_botorch(wide), best_f=best)
    # It changes by no more than mean and deviation do, which differ by the rounding of coefficients that cancel out.
    assert_allclose(acquisition(torch.tensor(X[:, None])).exp().numpy(), expected, rtol=1e-6, atol=1e-6)


def test_samples_at_one_point(wide):
    X = points(2, seed=5)
    mean, deviation = wide.predict(X, return_std=True)
    torch.manual_seed(0)
    samples = export.to_botorch(wide).posterior(torch.tensor(X[:, None])).rsample(torch.Size([4000])).numpy()[..., 0, 0]
    # Standard errors: s / 63 of the mean, s / 89 of the deviation. Five of them.
    assert np.all(np.abs(samples.mean(axis=0) - mean) < 5 * deviation / 63)
    assert np.all(np.abs(samples.std(axis=0) - deviation) < 5 * deviation / 89)


def test_several_points_are_not_drawn_together(wide):
    model = export.to_botorch(wide)
    acquisition = qLogExpectedImprovement(model, best_f=0.0)
    assert acquisition(torch.tensor(points(3)[:, None])).shape == (3,)
    with pytest.raises(NotImplementedError, match="cannot be drawn together, got q = 2"):
        acquisition(torch.tensor(points(2)[None]))
    with pytest.raises(NotImplementedError, match="got q = 3"):
        model.posterior(torch.tensor(points(3))).rsample()


def test_outputs_are_chosen_and_combined(two_outputs):
    model, X = export.to_botorch(two_outputs), torch.tensor(points(3, seed=6)[:, None])
    assert model.num_outputs == 2
    both, second = model.posterior(X), model.posterior(X, output_indices=[1])
    assert_allclose(second.mean.numpy()[..., 0], both.mean.numpy()[..., 1])
    assert_allclose(second.variance.numpy()[..., 0], both.variance.numpy()[..., 1])
    weights = torch.tensor([2.0, -1.0], dtype=torch.double)
    summed = model.posterior(X, posterior_transform=ScalarizedPosteriorTransform(weights))
    assert_allclose(summed.mean.numpy()[..., 0], both.mean.numpy() @ [2, -1])
    assert_allclose(summed.variance.numpy()[..., 0], both.variance.numpy() @ [4, 1], rtol=1e-6)


def test_an_optimum_is_found(wide):
    """The upper confidence bound without uncertainty is the surrogate: its maximum is that of the wave."""
    acquisition = UpperConfidenceBound(export.to_botorch(wide), beta=0.0)
    torch.manual_seed(0)
    found, value = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=3, raw_samples=32)
    assert abs(float(value) - 1) < 0.1  # the maximum, at (3 pi / 10, 0) and (pi / 10, pi / 4)
    assert wave(found.numpy())[0] > 0.9


def test_what_is_no_regressor_is_refused(wide):
    X = points(10)
    pipeline = GradientPipeline([("model", RandomFeatureRegressor(5, width=0.5))]).fit(X, wave(X))
    with pytest.raises(ValueError, match="a regressor of nurf can be exported, got GradientPipeline"):
        export.to_botorch(pipeline)


def test_the_extra_is_named_if_botorch_is_missing(wide, monkeypatch):
    monkeypatch.setitem(sys.modules, "botorch.models.model", None)
    monkeypatch.delitem(sys.modules, "nurf.export._botorch_model", raising=False)
    with pytest.raises(ImportError, match=r'pip install "nurf\[botorch\]"'):
        export.to_botorch(wide)
