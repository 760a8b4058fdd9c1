"""Arguments that cannot be used: an error before anything is fitted, which says what was expected and what came."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf import (
    DeepFeatureRegressor,
    Jet,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    polish,
)
from nurf._validation import is_number, is_whole
from nurf.densities import Nonlocal
from nurf.kernels import FiniteRankKernel, rkhs_norm
from nurf.networks import Ball
from pairwise import pairwise

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
GRADIENTS = np.column_stack([2 * np.cos(2 * X[:, 0]), 2 * X[:, 1]])


def plain(**parameters):
    fixed = {"density": "uniform", "width": 0.4, "alpha": 1e-3, "growth": None, "random_state": 0}
    return RandomFeatureRegressor(20, **{**fixed, **parameters})


@pytest.mark.parametrize(
    ("value", "number", "whole"),
    [
        (1, True, True),
        (np.int8(1), True, True),
        (0.5, True, False),
        (np.float32(0.5), True, False),
        (Fraction(1, 2), True, False),
        (10**400, False, True),
        (True, False, False),
        (np.bool_(True), False, False),
        (float("nan"), False, False),
        (np.inf, False, False),
        (1j, False, False),
        (np.array(1.0), False, False),
        (np.array([1]), False, False),
        ("1", False, False),
        (None, False, False),
    ],
    ids=repr,
)
def test_what_a_number_is(value, number, whole):
    assert is_number(value) is number
    assert is_whole(value) is whole


PARAMETERS = [
    (RandomFeatureRegressor, {"width": np.array([0.1, 0.2])}, r"`width` must be a number > 0, got array\(\[0.1, 0.2"),
    (RandomFeatureRegressor, {"width": 1e-300}, "`width` must be between 1e-09 and 1e.09, got 1e-300"),
    (SparseFeatureRegressor, {"width": 1e-300}, "`width` must be between 1e-09 and 1e.09, got 1e-300"),
    (RandomFeatureMap, {"width": True}, "`width` must be a number > 0, got True"),
    (RandomFeatureRegressor, {"density": np.array([1, 2])}, r"`density` must be .*, got array\(\[1, 2\]\)"),
    (SparseFeatureRegressor, {"density": "none"}, "`density` must be .*, got 'none'"),
    (RandomFeatureRegressor, {"scaling": np.array(["box", "ball"])}, "`scaling` must be 'box', 'ball' or None, got"),
    (RandomFeatureRegressor, {"alpha": True}, "`alpha` must be 'auto' or a number > 0, got True"),
    (RandomFeatureRegressor, {"gradient_weight": np.ones(2)}, "`gradient_weight` must be 'auto' or a number >= 0, got"),
    (RandomFeatureRegressor, {"hessian_weight": -1}, "`hessian_weight` must be a number >= 0, got -1"),
    (SparseFeatureRegressor, {"gradient_weight": 1e20}, "`gradient_weight` must be at most 1e.09, got 1e.20"),
    (RandomFeatureRegressor, {"growth": True}, "`growth` must be 'auto', None or a number > 1, got True"),
    (
        RandomFeatureRegressor,
        {"check_gradients": "yes"},
        "`check_gradients` must be 'warn', 'raise' or False, got 'yes'",
    ),
    (RandomFeatureRegressor, {"random_state": -1}, "`random_state` must be a whole number >= 0, .*, got -1"),
    (RandomFeatureRegressor, {"n_neurons": True}, "`n_neurons` must be a whole number >= 1, got True"),
    (RandomFeatureRegressor, {"n_neurons": 10**9}, "`n_neurons` must be at most 33333333 for 2 inputs, got 1000000000"),
    (RandomFeatureMap, {"n_neurons": 10**30}, "`n_neurons` must be at most 33333333 for 2 inputs, got 10"),
    (SparseFeatureRegressor, {"n_initial": 10**9}, "`n_initial` must be at most 33333333 for 2 inputs, got 1000000000"),
    (SparseFeatureRegressor, {"n_initial": True}, "`n_initial` must be a whole number >= 0, got True"),
    (SparseFeatureRegressor, {"max_neurons": True}, "`max_neurons` must be a whole number >= 1, got True"),
    (SparseFeatureRegressor, {"max_iter": 1.5}, "`max_iter` must be a whole number >= 1, got 1.5"),
    (SparseFeatureRegressor, {"gamma": "a"}, "`gamma` must be a number > 0, got 'a'"),
    (SparseFeatureRegressor, {"gamma": np.ones(2)}, "`gamma` must be a number > 0, got array"),
    (
        KernelFeatureRegressor,
        {"kernel": "cubic"},
        "`kernel` must be a RadialKernel, 'auto' or one of gaussian, matern, erf, got 'cubic'",
    ),
    (KernelFeatureRegressor, {"kernel": np.array(["gaussian", "erf"])}, "`kernel` must be .*, got array"),
    (KernelFeatureRegressor, {"metric": None}, "`metric` must be one of 'auto', 'scales', 'map', got None"),
    (KernelFeatureRegressor, {"rank": 3}, "`rank` must be a whole number from 1 to 2, the number of inputs, got 3"),
    (KernelFeatureRegressor, {"rank": 0}, "`rank` must be a whole number from 1 to 2, the number of inputs, got 0"),
    (KernelFeatureRegressor, {"rank": True}, "`rank` must be a whole number from 1 to 2, .*, got True"),
    (
        KernelFeatureRegressor,
        {"rank": 1, "metric": "scales"},
        "`rank` needs a map: `metric` must be 'auto' or 'map', got 'scales'",
    ),
    (KernelFeatureRegressor, {"mean": "none"}, "`mean` must be one of 'constant', 'affine', got 'none'"),
    (KernelFeatureRegressor, {"selection": "gcv"}, "`selection` must be one of 'likelihood', 'loo', got 'gcv'"),
    (KernelFeatureRegressor, {"max_rows": 0}, "`max_rows` must be a whole number >= 1, got 0"),
    (KernelFeatureRegressor, {"check_gradients": None}, "`check_gradients` must be 'warn', 'raise' or False, got None"),
    (KernelFeatureRegressor, {"verbose": -1}, "`verbose` must be a whole number >= 0, got -1"),
    (DeepFeatureRegressor, {"hidden": ()}, r"`hidden` must be one or more whole numbers >= 1, got \(\)"),
    (DeepFeatureRegressor, {"hidden": (8, 0)}, r"`hidden` must be one or more whole numbers >= 1, got \(8, 0\)"),
    (DeepFeatureRegressor, {"hidden": (10**6, 10**6)}, "`hidden` must be at most 100000000 weights in all, got"),
    (DeepFeatureRegressor, {"steps": 0}, "`steps` must be 'auto' or a whole number >= 1, got 0"),
    (DeepFeatureRegressor, {"time_budget": -1.0}, "`time_budget` must be None or a number > 0, got -1.0"),
    (DeepFeatureRegressor, {"activation": "relu"}, "`activation` must be one of 'tanh', 'silu', got 'relu'"),
    (DeepFeatureRegressor, {"gradient_weight": 1e20}, "`gradient_weight` must be 'auto' or a number from 0 to 1e.09"),
    (DeepFeatureRegressor, {"warm_start": "no"}, "`warm_start` must be True or False, got 'no'"),
    (DeepFeatureRegressor, {"density": Nonlocal(2)}, "needs hessians, got gradients"),
    (Surrogate, {"time_budget": 0}, "`time_budget` must be None or a number > 0, got 0"),
    (Surrogate, {"time_budget": "long"}, "`time_budget` must be None or a number > 0, got 'long'"),
    (Surrogate, {"engines": []}, r"`engines` must be 'auto', or names or estimators, at least one, got \[\]"),
    (Surrogate, {"engines": "deep"}, "`engines` must be one of 'wide', 'sampled', 'trained', 'sparse', got 'deep'"),
    (Surrogate, {"engines": ["wide", 3]}, "`engines` must be one of 'wide', 'sampled', 'trained', 'sparse', got 3"),
    (Surrogate, {"random_state": -1}, "`random_state` must be a whole number >= 0, a generator or None, got -1"),
    (Surrogate, {"check_gradients": None}, "`check_gradients` must be 'warn', 'raise' or False, got None"),
    (Surrogate, {"verbose": -1}, "`verbose` must be a whole number >= 0, got -1"),
]


@pytest.mark.parametrize(("kind", "parameters", "message"), PARAMETERS, ids=lambda value: str(value)[:40])
def test_parameters(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit(X, Y, gradients=GRADIENTS)


ARGUMENTS = [
    ({"X": X[:0], "y": Y[:0]}, ValueError, "0 sample"),
    ({"X": {"a": X}}, TypeError, "`X` must be an array of numbers, got dict"),
    ({"y": "words"}, ValueError, "`y` must be an array of numbers, got str"),
    ({"sample_weight": "heavy"}, ValueError, "`sample_weight` must be an array of numbers, got str"),
    ({"sample_weight": np.zeros(40)}, ValueError, "`sample_weight` must be positive in at least one row, got only"),
    ({"sample_weight": np.ones(3)}, ValueError, r"`sample_weight` must be 40 numbers >= 0, got shape \(3,\)"),
    ({"derivative_weight": np.zeros(40)}, ValueError, "`derivative_weight` must be positive in at least one row"),
    (
        {"derivative_weight": np.full(40, 1e-300)},
        ValueError,
        r"`derivative_weight` must be 0 or from 1e-100 to 1e\+100, .* got 1e-300 to 1e-300",
    ),
    ({"directions": X, "gradients": Y[:3]}, ValueError, r"`gradients` must be .* of shape \(40,\), got \(3,\)"),
    ({"validation": (X[:0], Y[:0])}, ValueError, "`validation` must have values that are known, got none in 0 rows"),
    ({"validation": (X, np.nan * Y)}, ValueError, "`validation` must have values that are known, got none in 40"),
    ({"validation": [X, Y]}, ValueError, "`validation` must be .*X, y.*, got a list"),
    ({"validation": (X, Y + 1j)}, ValueError, "`y` of `validation` must be an array of real numbers, got complex"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), ARGUMENTS, ids=lambda value: str(value)[:30])
def test_arguments_of_fit(arguments, kind, message):
    with pytest.raises(kind, match=message):
        plain().fit(**{"X": X, "y": Y, "gradients": GRADIENTS} | arguments)


def test_a_share_for_validation_may_be_of_any_precision():
    one, other = (plain().fit(X, Y, validation=share) for share in (0.25, np.float32(0.25)))
    assert_array_equal(one.predict(X), other.predict(X))


def test_one_output_needs_no_axis():
    """The values or their derivatives may have one, in any combination."""
    hessians = np.zeros((40, 2, 2))
    hessians[:, 0, 0], hessians[:, 1, 1] = -4 * np.sin(2 * X[:, 0]), 2
    model = plain(gradient_weight=0.1, hessian_weight=0.1)
    expected = model.fit(X, Y, gradients=GRADIENTS, hessians=hessians).predict(X)
    for y in (Y, Y[:, None]):
        for G, H in ((GRADIENTS, hessians[:, None]), (GRADIENTS[:, None], hessians)):
            found = model.fit(X, y, gradients=G, hessians=H).predict(X)
            assert_allclose(found, expected.reshape(y.shape), atol=1e-9)
    V = np.tile([0.6, 0.8], (40, 1))
    slopes = GRADIENTS @ V[0]
    model = plain(gradient_weight=0.1)
    expected = model.fit(X, Y, gradients=slopes, directions=V).predict(X)
    for y, along, W in ((Y[:, None], slopes, V), (Y, slopes[:, None], V), (Y[:, None], slopes, V[:, None])):
        found = model.fit(X, y, gradients=along, directions=W).predict(X)
        assert_allclose(found, expected.reshape(y.shape), atol=1e-9)


def test_weights_of_derivatives_have_the_unit_of_sample_weights():
    """So the same weights for both are the default, and their common unit means nothing, even if it is extreme."""
    weights = RNG.uniform(1, 3, 40)
    expected = plain(gradient_weight=0.1).fit(X, Y, gradients=GRADIENTS, sample_weight=weights).predict(X)
    for unit in (1.0, 1e-300, 1e300):
        both = {"sample_weight": unit * weights, "derivative_weight": unit * weights}
        found = plain(gradient_weight=0.1).fit(X, Y, gradients=GRADIENTS, **both).predict(X)
        assert_allclose(found, expected, atol=1e-9)


@pairwise(
    n=[6, 40, 200],
    other=[np.nan, 0.0],
    parameters=[{}, {"density": "local", "width": 0.4, "gradient_weight": 0.1, "growth": None}],
)
def test_derivatives_of_one_sample_alone_are_used(n, other, parameters):
    """Folds and subsets of the data that do not have the sample keep its derivatives."""
    points = np.random.default_rng(1).uniform(-1, 1, (n, 2))
    gradients = np.full((n, 2), other)
    gradients[n // 2] = 1.0
    model = RandomFeatureRegressor(20, random_state=0, **parameters)
    assert np.all(np.isfinite(model.fit(points, points.sum(axis=1), gradients=gradients).predict(points)))


def test_polish_needs_a_shallow_network():
    X, y = np.random.default_rng(0).uniform(-1, 1, (10, 2)), np.arange(10.0)
    model = KernelFeatureRegressor("gaussian").fit(X, y)
    with pytest.raises(ValueError, match=r"needs a RandomFeatureRegressor, got KernelFeatureRegressor\("):
        polish(model, Jet(X, y))


def test_polish_needs_data_like_those_of_the_fit():
    model = plain().fit(X, Y)
    for jet, message in (
        (None, "got a NoneType"),
        (Jet(X[:, :1], Y), r"a Jet with 2 inputs and outputs of shape \(\), got 1 and \(\)"),
        (Jet(X, np.column_stack([Y, Y])), r"got 2 and \(2,\)"),
    ):
        with pytest.raises(ValueError, match=f"`jet` must be .*{message}"):
            polish(model, jet)
    with pytest.raises(ValueError, match="`n_steps` must be a whole number >= 0, got -1"):
        polish(model, Jet(X, Y), -1)


def test_kernels_need_networks():
    with pytest.raises(ValueError, match=r"`features` must be Features of nurf\.networks, got 'a'"):
        FiniteRankKernel("a")
    with pytest.raises(ValueError, match="`fitted` must be a ShallowNetwork or have one as `network`, got 'a'"):
        rkhs_norm("a")
    with pytest.raises(ValueError, match="`radius` must be a number > 0, got '1'"):
        Ball("1")


REGRESSORS = [RandomFeatureRegressor, KernelFeatureRegressor, DeepFeatureRegressor, SparseFeatureRegressor, Surrogate]


@pytest.mark.parametrize("regressor", REGRESSORS)
class TestNumbersThatCannotBeUsed:
    @pytest.mark.parametrize("name", ["X", "y", "gradients"])
    def test_complex_numbers_are_refused_in_one_line(self, regressor, name):
        data = {"X": X, "y": Y, "gradients": GRADIENTS}
        with pytest.raises(ValueError, match=rf"^`{name}` must be an array of real numbers, got complex ones[^\n]*$"):
            regressor().fit(**data | {name: data[name] + 1j})

    @pytest.mark.parametrize("factor", [1e100, 1e200, 1e300])
    def test_a_gradient_whose_powers_overflow_is_refused(self, regressor, factor):
        gradients = GRADIENTS.copy()
        gradients[0] *= factor
        with pytest.raises(ValueError, match=r"`gradients` must be at most 1e\+70 times .* got \d[.\d]*e\+[123]\d\d"):
            regressor().fit(X, Y, gradients=gradients)

    def test_units_do_not_matter_for_that(self, regressor):
        with pytest.raises(ValueError, match=r"`gradients` must be at most"):
            regressor().fit(X, 1e-200 * Y, gradients=GRADIENTS)


def test_hessians_whose_powers_overflow_are_refused():
    hessians = np.zeros((40, 2, 2))
    hessians[3, 0, 1] = hessians[3, 1, 0] = -1e150
    with pytest.raises(ValueError, match="`hessians` must be at most"):
        plain().fit(X, Y, hessians=hessians)
    assert plain().fit(1e100 * X, Y, gradients=GRADIENTS / 1e100).score(1e100 * X, Y) > 0.9
