"""What must hold of every fit: each claim takes data, how to make a model for them, and a generator."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from hostile.forms import repeated_rows
from hostile.models import fit, outer_weights

# With alpha = 1e-3 the normal equations of a fixed model have condition numbers of about 20 neurons / 1e-3 = 2e4, and
# derivatives of the neurons add a factor of 1 / width^2: rounding errors grow from 1e-16 to about 1e-11.
ROUNDING = 1e-8


def same(found, expected, data):
    """Predictions that differ by rounding only."""
    assert_allclose(found, expected, atol=ROUNDING * (np.ptp(data.y) + np.abs(np.mean(data.y)) + 1e-300))


def is_sound(data, make, rng):
    """Predictions are finite, have the right shape, and are the same for one row as for many."""
    model = fit(make(data), data)
    n, d = np.shape(data.X)
    outputs = np.shape(data.y)[1:]
    values = model.predict(data.X)
    gradients = model.predict_gradient(data.X)
    assert values.shape == (n, *outputs)
    assert gradients.shape == (n, *outputs, d)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(gradients))
    assert np.all(np.isfinite(outer_weights(model.network_)))
    alone = np.concatenate([model.predict(np.asarray(data.X)[[i]]) for i in range(min(n, 5))])
    # Products are added up in another order: eps times the sum of all terms, with arguments that are divided by widths.
    terms = np.abs(outer_weights(model.fit_.network)).sum() * np.max(model.scaling_.y_scale)
    assert_allclose(alone, values[:5], rtol=1e-9, atol=1e-12 * terms)


def can_be_copied(data, make, rng):
    """A pickle predicts the same, and so does a clone that is fitted again."""
    model = fit(make(data), data)
    values = model.predict(data.X)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(data.X), values)
    assert_array_equal(fit(clone(model), data).predict(data.X), values)
    assert_array_equal(fit(model, data).predict(data.X), values)


def has_true_gradients(data, make, rng):
    """Gradients and Hessians are central differences of predictions."""
    model = fit(make(data), data)
    X = np.asarray(data.X, float)[:3]
    step, outputs = 1e-6, np.shape(data.y)[1:]
    for j in rng.choice(X.shape[1], min(3, X.shape[1]), replace=False):
        shift = step * np.eye(X.shape[1])[j]
        differences = (model.predict(X + shift) - model.predict(X - shift)) / (2 * step)
        gradients, hessians = model.predict_gradient(X)[..., j], model.predict_hessian(X)[..., j, :]
        curvatures = (model.predict_gradient(X + shift) - model.predict_gradient(X - shift)) / (2 * step)
        # Rounding: eps / step = 2e-10 of the size of the terms, which may cancel; truncation: step^2 / width^2 = 1e-8.
        size = 1 + np.abs(model.predict(X)).max() + np.abs(outer_weights(model.fit_.network)).max()
        assert gradients.shape == (len(X), *outputs)
        assert_allclose(differences, gradients, atol=1e-4 * size, rtol=1e-3)
        assert_allclose(curvatures, hessians, atol=1e-2 * size, rtol=1e-2)


def knows_its_error(data, make, rng):
    """The estimated error is finite, and with 30 samples or more it is not far too small or too large.

    Of 58 fits to 8 samples it was too small by a factor of 70 in one, and of 51 fits to 30 samples by at most 14: eight
    samples allow no bound that holds for each seed. Errors below 1e-3 of the standard deviation do not matter.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model = make(data).fit(**data.arguments)
    assert np.isfinite(model.estimated_error_)
    if len(data.y) < 30 or caught:
        return
    X, y = data.fresh(300, rng)
    unit, factor = np.std(y), 100 if len(data.y) < 150 else 30
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    assert error < factor * model.estimated_error_ + 1e-3 * unit
    assert model.estimated_error_ < factor * error + unit


def has_ordered_intervals(data, make, rng):
    """Intervals have their ends in order, contain narrower ones, and standard deviations are positive."""
    model = fit(make(data), data)
    X = np.asarray(data.X, float)
    narrow, wide = (model.predict_interval(X, coverage) for coverage in (0.5, 0.9))
    slack = 1e-9 * (np.ptp(data.y) + np.abs(data.y).max())
    assert narrow.shape == (*np.shape(data.y), 2)
    assert np.all(np.isfinite(wide))
    assert np.all(wide[..., 0] <= narrow[..., 0] + slack)
    assert np.all(narrow[..., 0] <= narrow[..., 1] + slack)
    assert np.all(narrow[..., 1] <= wide[..., 1] + slack)
    values, deviations = model.predict(X, return_std=True)
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
