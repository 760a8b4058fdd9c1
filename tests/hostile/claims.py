"""What must hold of every fit: each claim takes data, how to make a model for them, and a generator."""

import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from hostile.forms import repeated_rows
from hostile.models import fit
from nurf import load

# With alpha = 1e-3 the normal equations of a fixed model have condition numbers of about 20 neurons / 1e-3 = 2e4, and
# derivatives of the neurons add a factor of 1 / width^2: rounding errors grow from 1e-16 to about 1e-11.
ROUNDING = 1e-8
COVERAGES = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)


def size_of(data):
    """The size of the values."""
    return np.ptp(data.y) + np.abs(np.mean(data.y)) + 1e-300


def same(found, expected, data):
    """Predictions that differ by rounding only."""
    assert_allclose(found, expected, atol=ROUNDING * size_of(data))


def as_good_as(found, expected, data):
    """Predictions whose terms were added up in another order: six digits agree, whatever the coefficients."""
    assert_allclose(found, expected, rtol=0, atol=1e-6 * (size_of(data) + np.abs(expected).max()))


def is_sound(data, make, rng):
    """Predictions are finite, have the right shape, and are the same for one row as for many, and for functions.

    So they are at new points, and along a line of steps of 1e-7 of the box. Networks are straight along it, up to the
    rounding of their terms.
    """
    model = fit(make(data), data)
    X = np.asarray(data.X, float)
    (n, d), outputs = X.shape, np.shape(data.y)[1:]
    values = model.predict(data.X)
    gradients = model.predict_gradient(data.X)
    assert values.shape == (n, *outputs)
    assert gradients.shape == (n, *outputs, d)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(gradients))
    few = X[:5]
    as_good_as(np.concatenate([model.predict(few[[i]]) for i in range(len(few))]), values[:5], data)
    function = model.function()
    as_good_as(function(few), values[:5], data)
    as_good_as(np.array([function(x) for x in few]), values[:5], data)
    low, extent = X.min(axis=0), np.ptp(X, axis=0)
    fresh = low + extent * rng.random((20, d))
    line = fresh[0] + 1e-7 * extent * np.arange(20)[:, None] * rng.uniform(-1, 1, d)
    for points in (fresh, line):
        as_good_as(function(points), model.predict(points), data)
        as_good_as(np.array([function(x) for x in points]), model.predict(points), data)
    along = model.predict(line)
    straight = along[0] + np.multiply.outer(np.linspace(0, 1, len(along)), along[-1] - along[0])
    as_good_as(along, straight, data)
    slopes, size = gradients[:5], size_of(data) / np.maximum(extent, 1e-9)
    for found in (function.gradient(few), np.array([function.value_and_gradient(x)[1] for x in few])):
        assert_allclose(found / size, slopes / size, rtol=1e-6, atol=1e-6 * (1 + np.abs(slopes / size).max()))


def can_be_copied(data, make, rng):
    """A pickle predicts the same, and so does a clone that is fitted again."""
    model = fit(make(data), data)
    values = model.predict(data.X)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(data.X), values)
    assert_array_equal(fit(clone(model), data).predict(data.X), values)
    assert_array_equal(fit(model, data).predict(data.X), values)


def can_be_saved(data, make, rng):
    """To files, links and pipes, with the same predictions; a device stays one, and a folder is refused."""
    model = fit(make(data), data)
    with TemporaryDirectory() as name, ThreadPoolExecutor(1) as pool:
        folder = Path(name)
        file, link, pipe, device = (folder / kind for kind in ("file", "link", "pipe", "device"))
        link.symlink_to(file)
        model.save(link)
        assert_array_equal(load(file).predict(data.X), model.predict(data.X))
        assert link.is_symlink()
        with pytest.raises(IsADirectoryError):
            model.save(folder)
        if Path(os.devnull).is_char_device():
            device.symlink_to(os.devnull)
            model.save(device)
            assert device.is_symlink()
            assert device.is_char_device()
        if hasattr(os, "mkfifo"):
            os.mkfifo(pipe)
            found = pool.submit(pipe.read_bytes)
            model.save(pipe)
            assert found.result() == file.read_bytes()
            assert pipe.is_fifo()
        assert {path.name for path in folder.iterdir()} <= {"file", "link", "pipe", "device"}


def has_true_gradients(data, make, rng):
    """Gradients and Hessians are central differences of predictions, with one of some steps.

    Rounding is 1e-7 / step of the values at most, and truncation step^2 / width^2: no step is the best one for
    all networks, and a wrong gradient differs by more with each of them.
    """
    model = fit(make(data), data)
    X = np.asarray(data.X, float)[:3]
    values, gradients, hessians = model.predict(X), model.predict_gradient(X), model.predict_hessian(X)
    size, d = 1 + np.abs(values).max(), X.shape[1]
    assert gradients.shape == (*values.shape, d)
    assert hessians.shape == (*values.shape, d, d)
    for j in rng.choice(d, min(3, d), replace=False):
        shifts = [step * np.eye(d)[j] for step in (1e-6, 1e-5, 1e-4, 1e-3)]
        for predict, expected, tolerance in (
            (model.predict, gradients[..., j], 1e-3),
            (model.predict_gradient, hessians[..., j, :], 1e-2),
        ):
            slopes = [(predict(X + shift) - predict(X - shift)) / (2 * shift[j]) for shift in shifts]
            errors = np.min(np.abs(np.array(slopes) - expected), axis=0)
            assert_allclose(errors, 0, atol=tolerance * (size + np.abs(expected).max()))


def knows_its_error(data, make, rng):
    """The estimated error is finite, and with 30 samples or more it is right up to a factor of ten.

    Errors below 1e-5 of the standard deviation do not matter, and a warning may say that the estimate is uncertain.
    Chance may leave a fifth of all points beyond the
    samples, and nothing in these shows it: there, standard deviations must be right up to a factor of ten.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model = make(data).fit(**data.arguments)
    assert np.isfinite(model.estimated_error_)
    if len(data.y) < 30 or any("the estimated error may be far too small" in str(each.message) for each in caught):
        return
    X, y = data.fresh(300, rng)
    unit, samples = np.std(y), np.asarray(data.X, float)
    predictions, deviations = model.predict(X, return_std=True)
    errors, low, high = predictions - y, samples.min(axis=0), samples.max(axis=0)
    error = np.sqrt(np.mean(errors[np.all((low <= X) & (high >= X), axis=1)] ** 2))
    assert np.sqrt(np.mean(errors**2)) < 10 * np.sqrt(np.mean(deviations**2)) + 1e-5 * unit
    assert error < 10 * model.estimated_error_ + 1e-5 * unit
    assert model.estimated_error_ < 10 * error + 1e-5 * unit


def has_ordered_intervals(data, make, rng):
    """Intervals have their ends in order, contain narrower ones, and standard deviations are positive."""
    model = fit(make(data), data)
    X = np.concatenate([np.asarray(data.X, float), 2 * rng.uniform(-1, 1, (20, data.X.shape[1]))])
    values, deviations = model.predict(X, return_std=True)
    slack = 1e-9 * (np.ptp(data.y) + np.abs(data.y).max())
    inner = None
    for coverage in COVERAGES:
        found = model.predict_interval(X, coverage)
        assert found.shape == (*values.shape, 2)
        assert np.all(np.isfinite(found))
        assert np.all(found[..., 0] <= found[..., 1])
        if inner is not None:
            assert np.all(found[..., 0] <= inner[..., 0] + slack)
            assert np.all(inner[..., 1] <= found[..., 1] + slack)
        inner = found
    assert deviations.shape == values.shape
    assert np.all(np.isfinite(deviations) & (deviations >= 0))


def ignores_the_order_of_rows(data, make, rng):
    rows = rng.permutation(len(data.y))
    elsewhere = "gradients_at" in data.arguments
    arguments = {k: v[rows] for k, v in data.arguments.items() if not (elsewhere and k.startswith("gradients"))}
    same(fit(make(data), data.using(**arguments)).predict(data.X), fit(make(data), data).predict(data.X), data)


def takes_repeated_rows_as_weights(data, make, rng):
    twice = repeated_rows(data, rng)
    weights = {"sample_weight": np.full(len(data.y), 2.0)}
    same(fit(make(data), twice).predict(data.X), fit(make(data), data.using(**weights)).predict(data.X), data)


def takes_some_repeated_rows_as_weights(data, make, rng):
    """Rows that are given twice, others once: those count double."""
    if "gradients_at" in data.arguments:
        return
    weights = rng.integers(1, 4, len(data.y))
    more = data.using(**{name: np.repeat(value, weights, axis=0) for name, value in data.arguments.items()})
    weighted = data.using(sample_weight=weights.astype(float))
    same(fit(make(data), more).predict(data.X), fit(make(data), weighted).predict(data.X), data)


def ignores_the_unit_of_weights(data, make, rng):
    """The unit of the weights of values and derivatives, which they share."""
    names = {"sample_weight": "y", "derivative_weight": "gradients"}
    weights = {k: rng.uniform(0.5, 2, len(data.arguments[v])) for k, v in names.items() if v in data.arguments}
    unit = 10.0 ** rng.choice([-300, -10, 10, 300])
    one, other = (data.using(**{k: factor * w for k, w in weights.items()}) for factor in (1.0, unit))
    same(fit(make(data), other).predict(data.X), fit(make(data), one).predict(data.X), data)


def ignores_units(data, make, rng):
    """Units of inputs and values, from 1e-150 to 1e150, with the chain rule for derivatives."""
    x, y = 10.0 ** rng.choice([-100, -30, -3, 3, 30, 100], data.X.shape[1]), 10.0 ** rng.choice([-150, -9, 9, 150])
    arguments = {name: value * x for name, value in data.arguments.items() if name in ("X", "gradients_at")}
    arguments["y"] = data.y * y
    if data.knows == "directions":
        arguments |= {"directions": data.arguments["directions"] * x, "gradients": data.arguments["gradients"] * y}
    elif "gradients" in data.arguments:
        arguments["gradients"] = data.arguments["gradients"] * y / x
    if "hessians" in data.arguments:
        arguments["hessians"] = data.arguments["hessians"] * y / x / x[:, None]
    one, other = fit(make(data), data), fit(make(data), data.using(**arguments))
    same(other.predict(arguments["X"]) / y, one.predict(data.X), data)
    slopes = one.predict_gradient(data.X)
    assert_allclose(other.predict_gradient(arguments["X"]) / y * x, slopes, atol=1e-6 * (1 + np.abs(slopes).max()))


def ignores_the_order_of_columns(data, make, rng):
    """Other hyperplanes are sampled, but they are as good: no error is five times as large, unless it is small."""
    X, y = data.fresh(300, rng)
    order = rng.permutation(X.shape[1])
    arguments = {name: value[:, order] for name, value in data.arguments.items() if np.ndim(value) == 2}
    if "hessians" in data.arguments:
        arguments["hessians"] = data.arguments["hessians"][:, order][:, :, order]
    one, other = fit(make(data), data), fit(make(data), data.using(**arguments))
    errors = [np.sqrt(np.mean((values - y) ** 2)) for values in (one.predict(X), other.predict(X[:, order]))]
    assert errors[1] < 5 * errors[0] + 0.5 * np.std(y)


def can_be_fitted_in_threads(data, make, rng):
    expected = fit(make(data), data).predict(data.X)
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("ignore", UserWarning)  # in the main thread: filters are shared by all
        found = list(pool.map(lambda _: make(data).fit(**data.arguments).predict(data.X), range(4)))
    for values in found:
        assert_array_equal(values, expected)


def is_the_same_in(form):
    """The claim that a fit to the data in another container is the same."""

    def claim(data, make, rng):
        values = fit(make(data), data).predict(data.X)
        other = form(data, rng)
        same(fit(make(data), other).predict(other.X).reshape(values.shape), values, data)

    return claim


def survives(oddity):
    """The claim that a fit to odd data is sound."""
    return lambda data, make, rng: is_sound(oddity(data, rng), make, rng)
