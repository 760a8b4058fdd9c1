"""Fits that go on with more samples, without another choice."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import nurf
from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)

MODELS = {
    "wide": lambda: KernelFeatureRegressor(),
    "sampled": lambda: RandomFeatureRegressor(200, random_state=0),
    "robust": lambda: RandomFeatureRegressor(100, loss="huber", random_state=0),
    "trained": lambda: DeepFeatureRegressor((32, 32), steps=400, random_state=0),
    "sparse": lambda: SparseFeatureRegressor(random_state=0),
    "surrogate": lambda: Surrogate(None, engines=["wide", "sampled"], random_state=0),
}


def samples(n, seed=0, outputs=1):
    """Return points, values and gradients of a smooth function of two inputs."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    y = np.sin(3 * X[:, 0]) * np.exp(X[:, 1] / 2)
    gradients = np.stack([3 * np.cos(3 * X[:, 0]) * np.exp(X[:, 1] / 2), y / 2], axis=1)
    if outputs == 1:
        return X, y, gradients
    return X, np.stack([y, -2 * y], axis=1), np.stack([gradients, -2 * gradients], axis=1)


def error(model, fresh, truth):
    return float(np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)))


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "robust"])  # which is for gross errors
@pytest.mark.parametrize("with_gradients", [False, True])
def test_more_samples_give_a_better_model(kind, with_gradients):
    """Twice as many samples, on the median of three sets: the error is not larger than before."""
    fresh, truth, _ = samples(1000, 99)
    ratios = []
    for seed in range(3):
        X, y, gradients = samples(50, seed)
        first, every = ({"gradients": gradients[:n]} if with_gradients else {} for n in (25, 50))
        model = MODELS[kind]().fit(X[:25], y[:25], **first)
        before = error(model, fresh, truth)
        ratios.append(error(model.update(X, y, **every), fresh, truth) / before)
    assert np.median(ratios) < 1


def test_half_as_many_samples_again_are_as_good_as_a_new_fit():
    """The geometric mean of the ratios of both errors is 1.0 (16 seeds), and their logarithms vary by 0.6.

    The mean of six logarithms is 4 standard errors above zero with a probability below 1e-4: exp(4 * 0.6 / 6**0.5) is
    2.7.
    """

    def friedman(X):
        waves = 10 * np.sin(np.pi * (X[:, 0] + 1) * (X[:, 1] + 1) / 4)
        return waves + 5 * X[:, 2] ** 2 + 5 * X[:, 3] + 2.5 * X[:, 4]

    logs = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, fresh = rng.uniform(-1, 1, (90, 5)), rng.uniform(-1, 1, (500, 5))
        y, truth = friedman(X), friedman(fresh)
        model = KernelFeatureRegressor("gaussian").fit(X[:60], y[:60]).update(X, y)
        new = KernelFeatureRegressor("gaussian").fit(X, y)
        logs.append(np.log(error(model, fresh, truth) / error(new, fresh, truth)))
    assert np.mean(logs) < np.log(2.7)


@pytest.mark.parametrize("kind", MODELS)
def test_the_estimated_error_is_renewed(kind):
    X, y, gradients = samples(60)
    fresh, truth, _ = samples(1000, 99)
    noise = np.random.default_rng(1).normal(0, 0.2, 60)
    model = MODELS[kind]().fit(X[:40], (y + noise)[:40], gradients=gradients[:40])
    model.update(X, y + noise, gradients=gradients)
    measured = np.sqrt(error(model, fresh, truth) ** 2 + 0.2**2)
    assert measured / 3 < model.estimated_error_ < 3 * measured
    low, high = model.predict_interval(fresh, 0.9).T
    share = np.mean((low <= truth) & (truth <= high))
    assert share > 0.8  # of values without noise, which vary less than measurements


@pytest.mark.parametrize("kind", MODELS)
def test_what_was_chosen_stays(kind):
    X, y, gradients = samples(40, outputs=2)
    model = MODELS[kind]().fit(X[:30], y[:30], gradients=gradients[:30])
    scaling, attempts, chosen = model.scaling_, model.fit_.attempts, getattr(model, "engine_", None)
    model.update(X, y, gradients=gradients)
    assert model.scaling_ is scaling
    assert model.fit_.attempts == attempts
    assert getattr(model, "engine_", None) == chosen
    assert model.predict(X).shape == y.shape
    assert str(model.report())


def test_the_network_of_new_samples_is_that_of_a_dense_process():
    """Without noise, the mean of a process passes through all samples, old and new."""
    X, y, _ = samples(40)
    model = KernelFeatureRegressor("gaussian").fit(X[:30], y[:30])
    before = np.max(np.abs(model.predict(X[30:]) - y[30:]))
    assert np.max(np.abs(model.update(X, y).predict(X) - y)) < before / 10


def test_a_loaded_model_goes_on(tmp_path):
    X, y, gradients = samples(40)
    for kind, make in MODELS.items():
        model = make().fit(X[:30], y[:30], gradients=gradients[:30])
        model.save(tmp_path / kind)
        loaded = nurf.load(tmp_path / kind)
        results = [each.update(X, y, gradients=gradients).predict(X) for each in (model, loaded)]
        assert_array_equal(*results, err_msg=kind)


def test_says_if_there_are_many_more_samples():
    X, y, _ = samples(45)
    model = RandomFeatureRegressor(20, random_state=0).fit(X[:20], y[:20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.update(X[:40], y[:40])
    with pytest.warns(UserWarning, match="45 samples, and settings were chosen with 20"):
        model.update(X, y)


class TestBadInput:
    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            RandomFeatureRegressor().update(*samples(20)[:2])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X, y, g: (X[:, :1], y, g[:, :1]), "1 features"),
            (lambda X, y, g: (X, np.stack([y, y], axis=1), np.stack([g, g], axis=1)), r"shape \(\), as in the last"),
            (lambda X, y, g: (X, y, None), "derivatives that the last fit had, gradients, got no derivatives"),
            (lambda X, y, g: (X, np.full_like(y, np.nan), g), "NaN"),
        ],
    )
    @pytest.mark.parametrize("kind", ["wide", "sampled", "surrogate"])
    def test_loses_nothing(self, kind, change, message):
        X, y, gradients = samples(20)
        model = MODELS[kind]().fit(X, y, gradients=gradients)
        before = model.predict(X)
        X_changed, y_changed, g_changed = change(X, y, gradients)
        with pytest.raises(ValueError, match=message):
            model.update(X_changed, y_changed, gradients=g_changed)
        assert_array_equal(model.predict(X), before)

    def test_after_blocks(self):
        X, y, _ = samples(25_000)
        model = RandomFeatureRegressor(20, width=0.5, density="uniform", random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="partial_fit"):
            model.update(X, y)
