"""Data frames, masked arrays and what is no array of numbers: read as it is meant, or refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from nurf import Jet, RandomFeatureRegressor
from nurf.estimators._frames import partials_by_name

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-1, 1, (160, 3))
VALUES = np.sin(2 * POINTS[:, 0]) + POINTS[:, 1] * POINTS[:, 2]
GRADIENTS = np.column_stack([2 * np.cos(2 * POINTS[:, 0]), POINTS[:, 2], POINTS[:, 1]])
NAMES = ["speed", "x1", "x11"]
X = pd.DataFrame(POINTS, columns=NAMES)


def predictions(X=X, y=VALUES, **data):
    """The fitted values of a small model that uses gradients in both ways, if there are any."""
    choice = {"density": "local", "gradient_weight": 0.1} if "gradients" in data else {"density": "uniform"}
    return RandomFeatureRegressor(20, width=0.4, growth=None, random_state=0, **choice).fit(X, y, **data).predict(X)


def frame(names=NAMES, order=(0, 1, 2), **parameters):
    return pd.DataFrame(GRADIENTS[:, list(order)], columns=[names[i] for i in order], **parameters)


@pytest.mark.parametrize(
    "names",
    [
        NAMES,
        ["d_speed", "d_x1", "d_x11"],
        ["dy_speed", "dy_x1", "dy_x11"],
        ["dy/dspeed", "dy/dx1", "dy/dx11"],
        ["dspeed", "dx1", "dx11"],
        ["grad_speed", "grad_x1", "grad_x11"],
    ],
    ids=lambda names: names[1],
)
def test_partial_derivatives_are_matched_by_name(names):
    expected = predictions(gradients=GRADIENTS)
    assert_array_equal(predictions(gradients=frame(names, (2, 0, 1))), expected)


@pytest.mark.parametrize("names", [["a", "b", "c"], ["speed", "x1", "x1"], ["dy_speed", "dy_x1", "dy_x2"]], ids=str)
def test_columns_that_belong_to_no_input_are_refused(names):
    with pytest.raises(ValueError, match=r"one column for each input: \['speed', 'x1', 'x11'\].*got \["):
        predictions(gradients=pd.DataFrame(GRADIENTS, columns=names))


def test_a_column_too_few_is_refused():
    with pytest.raises(ValueError, match="one column for each input"):
        predictions(gradients=frame()[["speed", "x1"]])


def test_without_names_columns_are_taken_by_position():
    assert_array_equal(predictions(gradients=pd.DataFrame(GRADIENTS)), predictions(gradients=GRADIENTS))
    assert_array_equal(predictions(X=POINTS, gradients=frame()), predictions(X=POINTS, gradients=GRADIENTS))
    assert partials_by_name(GRADIENTS, NAMES) is GRADIENTS


def test_rows_are_matched_by_index():
    labels = [f"run {i}" for i in range(160)]
    order = RNG.permutation(160)
    labelled, shuffled = X.set_axis(labels), frame().set_axis(labels).iloc[order]
    assert_array_equal(predictions(X=labelled, gradients=shuffled), predictions(gradients=GRADIENTS))
    with pytest.raises(ValueError, match="`gradients` must have the index of the points"):
        predictions(X=labelled, gradients=frame())


def test_gradients_elsewhere_follow_their_own_points():
    elsewhere, slopes = X.iloc[:40].set_axis(range(7, 47)), frame().iloc[:40].set_axis(range(7, 47))
    expected = predictions(gradients=GRADIENTS[:40], gradients_at=POINTS[:40])
    found = predictions(gradients=slopes.iloc[::-1], gradients_at=elsewhere[["x11", "speed", "x1"]])
    assert_array_equal(found, expected)
    with pytest.raises(ValueError, match=r"`gradients_at` must have the columns \['speed', 'x1', 'x11'\]"):
        predictions(gradients=GRADIENTS[:40], gradients_at=pd.DataFrame(POINTS[:40], columns=["a", "b", "c"]))


def test_validation_is_matched_by_name():
    expected = predictions(X=X.iloc[40:], y=VALUES[40:], validation=(POINTS[:40], VALUES[:40]))
    shuffled = X.iloc[:40][["x11", "speed", "x1"]]
    assert_array_equal(predictions(X=X.iloc[40:], y=VALUES[40:], validation=(shuffled, VALUES[:40])), expected)
    with pytest.raises(ValueError, match=r"`validation` must have the columns"):
        predictions(validation=(shuffled[["x1"]], VALUES[:40]))


def test_missing_values_of_pandas_are_unknown():
    gaps = frame().astype("Float64")
    gaps.iloc[::3, 1] = pd.NA
    known = GRADIENTS.copy()
    known[::3, 1] = np.nan
    assert_array_equal(predictions(gradients=gaps), predictions(gradients=known))


def test_masks_count():
    hidden = np.zeros((160, 3), bool)
    hidden[::3, 1] = True
    spoilt = np.where(hidden, 1e9, GRADIENTS)
    expected = predictions(gradients=np.where(hidden, np.nan, GRADIENTS))
    assert_array_equal(predictions(gradients=np.ma.array(spoilt, mask=hidden)), expected)
    with pytest.raises(ValueError, match="`X` must be complete, got an array with 54 masked"):
        predictions(X=np.ma.array(POINTS, mask=hidden))
    with pytest.raises(ValueError, match="`y` must be complete, got an array with 54 masked"):
        predictions(y=np.ma.array(VALUES, mask=hidden[:, 1]))
    assert_array_equal(predictions(X=np.ma.array(POINTS)), predictions(X=POINTS))


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        (GRADIENTS.astype(complex), "array of real numbers, got complex"),
        (scipy.sparse.csr_matrix(GRADIENTS), "array of numbers, got csr_matrix"),
        ({"a": GRADIENTS}, "array of numbers, got dict"),
        (np.sin, "array of numbers, got ufunc"),
        (np.array([[pd.NA] * 3] * 160, dtype=object), "array of numbers, got ndarray"),
    ],
    ids=["complex", "sparse", "dict", "callable", "missing"],
)
def test_what_is_no_array_of_numbers_is_refused(gradients, message):
    with pytest.raises(ValueError, match=f"`gradients` must be an array of {message.removeprefix('array of ')}"):
        predictions(gradients=gradients)
    with pytest.raises(ValueError, match="`gradients` must be an array of"):
        Jet(POINTS, VALUES, gradients)
