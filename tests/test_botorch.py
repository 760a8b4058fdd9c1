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
    from botorch.acquisition import (
        LogExpectedImprovement,
        UpperConfidenceBound,
        qKnowledgeGradient,
        qLogExpectedImprovement,
    )
    from botorch.acquisition.objective import ScalarizedPosteriorTransform
    from botorch.generation import MaxPosteriorSampling
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler

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
    """Without the noise of values, where the model knows it."""
    model = request.getfixturevalue(name)
    X = points(int(np.prod(shape[:-1])), seed=1)
    values, deviations = model.predict(X, return_std=True)
    expected = (*shape[:-1], -1)
    if len(shape) == 1:
        shape, expected = (1, 2), (1, -1)
    noise = getattr(model, "noise_", {"values": 0.0})["values"]
    exported, inputs = export.to_botorch(model), torch.tensor(X.reshape(shape))
    for noisy, variances in ((False, deviations**2 - noise**2), (True, deviations**2)):
        posterior = exported.posterior(inputs, observation_noise=noisy)
        assert_allclose(posterior.mean.numpy(), values.reshape(expected), rtol=1e-12)
        # The least variance that keeps a covariance positive definite is 1e-10 of the largest.
        assert_allclose(posterior.variance.numpy(), variances.reshape(expected), rtol=1e-6, atol=1e-9 * variances.max())


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
        parts = values.reshape(len(X), -1), deviations.reshape(len(X), -1) ** 2  # noise is constant
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


@pytest.mark.parametrize("name", ["wide", "two_outputs", "sampled"])
def test_correlations_are_those_of_draws(name, request):
    """Of other draws: correlations of ``n`` draws have a standard error of ``n^-1/2`` at most."""
    model, X = request.getfixturevalue(name), points(4, seed=7)
    posterior = export.to_botorch(model, n_draws=1000).posterior(torch.tensor(X))
    covariance = posterior.distribution.covariance_matrix.numpy()
    others = model.draws(1000, 1).value(X).reshape(1000, -1)
    deviations = np.sqrt(np.diag(covariance))
    expected = np.corrcoef(others, rowvar=False)
    assert np.max(np.abs(covariance / np.outer(deviations, deviations) - expected)) < 5 * np.sqrt(2 / 1000)


def test_derivatives_of_covariances(two_outputs):
    """By differences of the covariances."""
    model, X = export.to_botorch(two_outputs, n_draws=30), torch.tensor(points(3, seed=2))

    def total(X):
        weights = torch.arange(36.0, dtype=torch.double).reshape(6, 6)
        return (weights * model.posterior(X).distribution.covariance_matrix).sum()

    inputs = X.clone().requires_grad_()
    total(inputs).backward()
    for i, j in ((0, 0), (1, 1), (2, 0)):
        move = torch.zeros_like(X)
        move[i, j] = 1e-4 * UNITS[j]
        difference = float(total(X + move) - total(X - move)) / 2e-4
        assert_allclose(float(inputs.grad[i, j]) * UNITS[j], difference, rtol=1e-3, atol=1e-3 * float(total(X)))


def dense_posterior(model, known, y, noise, X):
    """Return the mean and the covariance at points given observations, by the textbook formula on joint normals."""
    both = torch.cat([known, X])
    prior = model.posterior(both)
    mean, covariance = prior.mean.flatten().numpy(), prior.distribution.covariance_matrix.numpy()
    n = y.size
    gain = covariance[n:, :n] @ np.linalg.inv(covariance[:n, :n] + np.diag(np.broadcast_to(noise, n)))
    return mean[n:] + gain @ (y.ravel() - mean[:n]), covariance[n:, n:] - gain @ covariance[:n, n:]


@pytest.mark.parametrize("name", ["wide", "two_outputs"])
def test_further_observations_are_those_of_the_textbook(name, request):
    model = export.to_botorch(request.getfixturevalue(name))
    known, X = (torch.tensor(points(n, seed=seed)) for n, seed in ((3, 8), (2, 9)))
    scale = float(model.posterior(known).variance.max())
    y = model.posterior(known).mean.numpy() + np.sqrt(scale)
    given = model.condition_on_observations(known, torch.tensor(y), noise=torch.full((1, 1), 0.1 * scale))
    step = model.condition_on_observations(known[:1], torch.tensor(y[:1]), noise=torch.full((1, 1), 0.1 * scale))
    step = step.condition_on_observations(known[1:], torch.tensor(y[1:]), noise=torch.full((1, 1), 0.1 * scale))
    mean, covariance = dense_posterior(model, known, y, 0.1 * scale, X)
    for each in (given, step):
        found = each.posterior(X)
        assert_allclose(found.mean.flatten().numpy(), mean, rtol=1e-6, atol=1e-6 * np.sqrt(scale))
        assert_allclose(found.distribution.covariance_matrix.numpy(), covariance, atol=1e-6 * scale)


def test_gradients_of_samples(wide):
    """The gradient of a path is normal with the mean and covariance of the gradient posterior."""
    model, X = export.to_botorch(wide, n_draws=40), torch.tensor(points(2, seed=3))
    joint = model.gradient_posterior(X)
    assert_allclose(joint.mean[:, 1:].numpy(), wide.predict_gradient(X.numpy()), rtol=1e-6)
    assert_allclose(joint.variance[:, 0].numpy(), model.posterior(X).variance[:, 0].numpy(), rtol=1e-6)
    columns = model.basis.with_gradients(X.numpy())[1]
    for j, unit in enumerate(UNITS):
        move = np.eye(2)[j] * 1e-4 * unit
        sides = [model.basis.with_gradients(X.numpy() + side * move)[1][:, 0] for side in (1, -1)]
        difference = (sides[0] - sides[1]) / (2e-4 * unit)
        assert_allclose(columns[:, 1 + j], difference, atol=2e-3 * np.abs(difference).max())


def test_observed_gradients(wide):
    model, X = export.to_botorch(wide), torch.tensor(points(1, seed=3))
    slopes = torch.tensor([[2.0, 0.01]]).double()
    given = model.condition_on_observations(X, torch.ones(1, 1).double(), gradients=slopes)
    found = given.gradient_posterior(X)
    assert_allclose(found.mean.numpy(), [[1.0, 2.0, 0.01]], rtol=1e-3)
    assert np.all(found.variance.numpy() < 1e-4 * model.gradient_posterior(X).variance.numpy())


def test_fantasies_keep_the_mean_and_know_more(wide):
    """The mean over fantasies is the mean before; its standard error is that of 256 quasi-random values."""
    model, X = export.to_botorch(wide), torch.tensor(points(3, seed=4))
    torch.manual_seed(0)
    fantasies = model.fantasize(X[:1], SobolQMCNormalSampler(torch.Size([256]), seed=0))
    assert fantasies.batch_shape == (256,)
    before, after = model.posterior(X), fantasies.posterior(X.expand(256, 3, 2))
    deviations = before.variance.sqrt().numpy()[:, 0]
    assert np.all(np.abs(after.mean.mean(dim=0).numpy() - before.mean.numpy())[:, 0] < 5 * deviations / 16)
    assert np.all(after.variance[0].numpy() < before.variance.numpy() * (1 + 1e-6))


def test_acquisition_functions_of_several_points(wide):
    model = export.to_botorch(wide)
    torch.manual_seed(0)
    improvement = qLogExpectedImprovement(model, best_f=0.9)
    pair, value = optimize_acqf(improvement, BOUNDS, q=2, num_restarts=2, raw_samples=16)
    assert pair.shape == (2, 2)
    assert value >= improvement(torch.tensor(points(2)[None])).item() - 1e-6
    gradient = qKnowledgeGradient(model, num_fantasies=4)
    found, value = optimize_acqf(gradient, BOUNDS, q=1, num_restarts=2, raw_samples=8)
    assert found.shape == (1, 2)
    assert np.isfinite(float(value))
    candidates = torch.tensor(points(300, seed=5))
    best = MaxPosteriorSampling(model, replacement=False)(candidates, num_samples=3)
    assert best.shape == (3, 2)
    posterior = model.posterior(candidates)
    mean, deviations = posterior.mean.numpy()[:, 0], posterior.variance.sqrt().numpy()[:, 0]
    places = [int(np.flatnonzero((candidates == each).all(dim=1).numpy())[0]) for each in best]
    # A sample is larger there than where the mean is largest; five standard deviations at either point.
    assert np.all((mean + 5 * deviations)[places] > mean.max() - 5 * deviations[np.argmax(mean)])


def test_paths_are_functions(wide):
    model, X = export.to_botorch(wide), torch.tensor(points(3, seed=6))
    values = np.stack([model.path(seed)(X).numpy()[:, 0] for seed in range(400)])
    assert_allclose(model.path(7)(X).numpy()[:, 0], values[7])
    posterior = model.posterior(X)
    deviations = posterior.variance.sqrt().numpy()[:, 0]
    # Standard errors: s / 20 of the mean, s / 28 of the deviation. Five of them.
    assert np.all(np.abs(values.mean(axis=0) - posterior.mean.numpy()[:, 0]) < 5 * deviations / 20)
    assert np.all(np.abs(values.std(axis=0) - deviations) < 5 * deviations / 28)
    known = model.condition_on_observations(X[:1], torch.full((1, 1), 0.5).double())
    assert_allclose([float(known.path(seed)(X[:1])) for seed in range(5)], 0.5, atol=5e-3)


def test_outputs_are_chosen_and_combined(two_outputs):
    model, X = export.to_botorch(two_outputs), torch.tensor(points(3, seed=6)[:, None])
    assert model.num_outputs == 2
    both, second = model.posterior(X), model.posterior(X, output_indices=[1])
    assert_allclose(second.mean.numpy()[..., 0], both.mean.numpy()[..., 1])
    assert_allclose(second.variance.numpy()[..., 0], both.variance.numpy()[..., 1])
    weights = torch.tensor([2.0, -1.0], dtype=torch.double)
    summed = model.posterior(X, posterior_transform=ScalarizedPosteriorTransform(weights))
    assert_allclose(summed.mean.numpy()[..., 0], both.mean.numpy() @ [2, -1])
    covariances = both.distribution.covariance_matrix.numpy()
    assert_allclose(summed.variance.numpy()[:, 0, 0], [[2, -1] @ each @ [2, -1] for each in covariances], rtol=1e-6)


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


def test_values_of_any_size(wide):
    """BoTorch rounds variances below 1e-10 up, because it expects standardised values."""
    X, inputs = points(8), torch.tensor(points(3, seed=1))
    y, gradients = 1e-8 * wave(X), 1e-8 * wave_gradient(X)
    small = KernelFeatureRegressor("gaussian", metric="scales").fit(X, y, gradients=gradients)
    variances, expected = (export.to_botorch(model).posterior(inputs).variance.numpy() for model in (small, wide))
    assert_allclose(1e16 * variances, expected, rtol=1e-3, atol=1e-3 * expected.max())
