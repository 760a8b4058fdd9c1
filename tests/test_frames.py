"""Data frames, masked arrays and what is no array of numbers: read as it is meant, or refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from nurf import Jet, KernelFeatureRegressor, RandomFeatureMap, RandomFeatureRegressor
from nurf.data._frames import partials_by_name

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
        ["∂y/∂speed", "∂y/∂x1", "∂y/∂x11"],
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


@pytest.mark.parametrize(
    ("inputs", "columns", "order"),
    [
        (["d", "x"], ["dx", "d"], ["d", "dx"]),
        (["d", "x"], ["d_x", "d_d"], ["d_d", "d_x"]),
        (["x", "dx"], ["dx", "x"], ["x", "dx"]),
        (["x", "y"], ["dy/dy", "dy/dx"], ["dy/dx", "dy/dy"]),
        (["a", "ba"], ["dba", "da"], ["da", "dba"]),
        ([10, 20], [20, 10], [10, 20]),
        ([0, 1], [1, 0], [0, 1]),
        ([0, 1], ["b", "a"], ["b", "a"]),
    ],
    ids=str,
)
def test_the_longest_name_decides(inputs, columns, order):
    """Exact names come first. Numbers that pandas gives are no names, unless both have them."""
    assert list(partials_by_name(pd.DataFrame([[1.0, 2.0]], columns=columns), inputs).columns) == order


@pytest.mark.parametrize(
    ("inputs", "columns"),
    [
        (["x", "dx"], ["dx", "ddx"]),
        (["x", "d_x"], ["d_x", "d_d_x"]),
        (["x1", "x2"], ["dy_x1", "dz_x1"]),
        (["x1", "x2"], [("y", "x1"), ("y", "x2")]),
        (["x1", "x2"], [1, 2]),
        ([10, 20], [1, 2]),
    ],
    ids=str,
)
def test_names_that_may_mean_two_inputs_or_none_are_refused(inputs, columns):
    with pytest.raises(ValueError, match="`gradients` must have one column for each input"):
        partials_by_name(pd.DataFrame([[1.0, 2.0]], columns=columns), inputs)


def test_names_of_inputs_must_differ():
    with pytest.raises(ValueError, match=r"`X` must have columns with different names, got \['a', 'b', 'a'\]"):
        predictions(X=X.set_axis(["a", "b", "a"], axis=1))


def test_directions_are_matched_by_name():
    V = RNG.normal(size=(160, 3))
    data = {"gradients": np.sum(V * GRADIENTS, axis=1), "directions": pd.DataFrame(V, columns=NAMES)[NAMES[::-1]]}
    assert_array_equal(predictions(**data), predictions(**data | {"directions": V}))
    with pytest.raises(ValueError, match=r"`directions` must have the columns \['speed', 'x1', 'x11'\]"):
        predictions(**data | {"directions": pd.DataFrame(V, columns=["a", "b", "c"])})


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


@pytest.mark.parametrize("name", ["y", "sample_weight", "derivative_weight", "directions", "gradients", "validation"])
def test_rows_of_all_that_has_an_index_are_matched(name):
    """What is shuffled gives the fit of what is not; another index is refused."""
    labels, order = [f"run {i}" for i in range(160)], RNG.permutation(160)
    V = RNG.normal(size=(160, 3))
    data = {"y": VALUES, "sample_weight": RNG.uniform(1, 2, 160), "derivative_weight": RNG.uniform(1, 2, 160)}
    data |= {"gradients": np.sum(V * GRADIENTS, axis=1), "directions": V}
    labelled = X.set_axis(labels)
    frames = {key: (pd.DataFrame if value.ndim == 2 else pd.Series)(value, index=labels) for key, value in data.items()}
    if name == "validation":
        data["validation"] = (POINTS, VALUES)
        shuffled, other = (labelled, frames["y"].iloc[order]), (labelled, pd.Series(VALUES))
    else:
        shuffled, other = frames[name].iloc[order], frames[name].reset_index(drop=True)
    expected = predictions(X=labelled, **data)
    assert_array_equal(predictions(X=labelled, **data | {name: shuffled}), expected)
    with pytest.raises(ValueError, match=f"`{name}` must have the index of the points"):
        predictions(X=labelled, **data | {name: other})
    if name == "y":
        assert_array_equal(predictions(X=POINTS, **data | {name: other}), expected)


def test_a_transformer_matches_names_and_index():
    labels, order = [f"run {i}" for i in range(160)], RNG.permutation(160)
    shuffled = frame(order=(2, 0, 1)).set_axis(labels).iloc[order]
    one = RandomFeatureMap(20, density="local", random_state=0).fit(X.set_axis(labels), gradients=shuffled)
    other = RandomFeatureMap(20, density="local", random_state=0).fit(X, gradients=GRADIENTS)
    assert_array_equal(one.transform(X), other.transform(X))


def test_a_kernel_model_matches_names_and_index():
    labels, order = [f"run {i}" for i in range(20)], RNG.permutation(20)
    shuffled = frame(order=(2, 0, 1)).iloc[:20].set_axis(labels).iloc[order]
    one = KernelFeatureRegressor("gaussian").fit(X.iloc[:20].set_axis(labels), VALUES[:20], gradients=shuffled)
    other = KernelFeatureRegressor("gaussian").fit(X.iloc[:20], VALUES[:20], gradients=GRADIENTS[:20])
    assert_array_equal(one.predict(X), other.predict(X))
    assert list(one.feature_names_in_) == NAMES
    assert all(name in dict(one.report().lines)["relevance of inputs"] for name in NAMES)


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
    masked = np.ma.array(POINTS, mask=hidden)
    with pytest.raises(ValueError, match="`X` of `validation` must be finite, got nan"):
        predictions(validation=(masked, VALUES))
    with pytest.raises(ValueError, match="`sample_weight` must be finite, got nan"):
        predictions(sample_weight=np.ma.array(np.ones(160), mask=hidden[:, 1]))
    with pytest.raises(ValueError, match="`X` must be complete, got an array with 54 masked"):
        RandomFeatureRegressor(5, width=0.4, density="uniform").fit(POINTS, VALUES).predict(masked)
    with pytest.raises(ValueError, match="`X` must be complete, got an array with 54 masked"):
        RandomFeatureMap(5).fit(masked)
    with pytest.raises(ValueError, match="`X` must be complete, got an array with 54 masked"):
        RandomFeatureMap(5).fit(POINTS).transform(masked)
    known = ~hidden[:40, 1]
    expected = predictions(validation=(POINTS[:40][known], VALUES[:40][known]))
    assert_array_equal(predictions(validation=(POINTS[:40], np.ma.array(VALUES[:40], mask=~known))), expected)


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        (GRADIENTS.astype(complex), "array of real numbers, got complex"),
        (scipy.sparse.csr_matrix(GRADIENTS), "array of numbers, got csr_matrix"),
        ({"a": GRADIENTS}, "array of numbers, got dict"),
        (np.sin, "array of numbers, got ufunc"),
        (np.array([[pd.NA] * 3] * 160, dtype=object), "array of numbers, got ndarray"),
        (np.zeros((160, 3), "datetime64[s]"), "array of numbers, got ndarray"),
        ([[1.0], [1.0, 2.0]] * 80, "array of numbers, got list"),
    ],
    ids=["complex", "sparse", "dict", "callable", "missing", "dates", "ragged"],
)
def test_what_is_no_array_of_numbers_is_refused(gradients, message):
    with pytest.raises(ValueError, match=f"`gradients` must be an array of {message.removeprefix('array of ')}"):
        predictions(gradients=gradients)
    with pytest.raises(ValueError, match="`gradients` must be an array of"):
        Jet(POINTS, VALUES, gradients)
