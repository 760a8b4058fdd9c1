"""What must be refused, with a message that names the argument, and must leave a fitted estimator as it was."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from hostile.models import fit

# What is no value of any parameter, by name; a value that a parameter does take is left out below.
JUNK = {
    "None": None,
    "a word": "junk",
    "bytes": b"junk",
    "minus one": -1,
    "NaN": float("nan"),
    "infinity": np.inf,
    "True": True,
    "an array": np.array([0.5, 2.0]),
    "a list": [0.5],
    "a dictionary": {"a": 1},
    "a function": np.sin,
    "a class": dict,
    "a complex number": 1j,
    "an object": object(),
}
TAKEN = {
    "growth": {"None"},
    "scaling": {"None"},
    "width": {"None"},
    "max_neurons": {"None"},
    "rank": {"None"},
    "time_budget": {"None"},
    "random_state": {"None", "True"},
    "check_gradients": {"True"},
}
PARAMETERS = {
    "fixed": (
        "n_neurons",
        "density",
        "activation",
        "width",
        "alpha",
        "selection",
        "gradient_weight",
        "hessian_weight",
        "derivatives",
        "growth",
        "tail",
        "scaling",
        "check_gradients",
        "random_state",
    ),
    "sparse": (
        "alpha",
        "max_neurons",
        "penalty",
        "gamma",
        "activation",
        "width",
        "gradient_weight",
        "hessian_weight",
        "n_initial",
        "density",
        "tail",
        "scaling",
        "tol",
        "max_iter",
        "random_state",
    ),
    "gaussian": ("kernel", "metric", "rank", "mean", "selection", "max_rows", "check_gradients"),
    "deep": (
        "hidden",
        "steps",
        "time_budget",
        "gradient_weight",
        "activation",
        "density",
        "scaling",
        "check_gradients",
        "warm_start",
        "random_state",
    ),
    "transformer": ("n_neurons", "density", "activation", "width", "scaling", "random_state"),
}
NO_ARRAYS = {
    "a dictionary": lambda array: {"a": array},
    "a set": lambda array: {1.0, 2.0},
    "a word": lambda array: "junk",
    "a function": lambda array: np.sin,
    "an object": lambda array: object(),
    "a sparse matrix": lambda array: scipy.sparse.csr_matrix(array.reshape(len(array), -1)),
    "rows of different lengths": lambda array: [[1.0] * (i % 3 + 1) for i in range(len(array))],
    "complex numbers": lambda array: array + 1j,
    "objects": lambda array: np.full(array.shape, object()),
    "missing values": lambda array: np.full(array.shape, pd.NA),
    "words": lambda array: np.full(array.shape, "junk"),
    "infinity": lambda array: np.full(array.shape, np.inf),
    "a number that overflows": lambda array: np.where(np.arange(array.size).reshape(array.shape), array, 1e300),
    "a number": lambda array: np.array(1.0),
    "a row too few": lambda array: array[:-1],
    "an axis too many": lambda array: np.stack([array] * 3, axis=-1),
    "no rows": lambda array: array[:0],
}
MESSAGES = {  # X and y are checked by scikit-learn
    "X": "`X`|X has|for X|Input X|Found (array|input)|Expected 2D|Complex data",
    "y": "`y`|Input y|y should be|Input should have|Found (array|input)|Complex data|Sparse|`gradients` must",
    "random_state": "`random_state`|RandomState",
}


def refused(model, data, words):
    """Fit must raise an error that says what is wrong, and change nothing."""
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises((ValueError, TypeError)) as caught:
        fit(model, data)
    message = str(caught.value)
    assert re.search(words, message), f"the message does not match {words!r}: {message}"
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)


def refuses_parameter(name, junk):
    """The claim that junk in a parameter is refused, by name, and that the model can be fitted again afterwards."""

    def claim(data, make, rng):
        model = fit(make(data), data)
        good = model.get_params()[name]
        evaluate = model.predict if hasattr(model, "predict") else model.transform
        expected = evaluate(data.X)
        refused(model.set_params(**{name: JUNK[junk]}), data, MESSAGES.get(name, f"`{name}`"))
        assert_array_equal(evaluate(data.X), expected)
        fit(model.set_params(**{name: good}), data)
        assert_array_equal(evaluate(data.X), expected)

    return claim


def refuses_argument(name, kind):
    """The claim that an argument of ``fit`` that is no array of numbers of the right shape is refused, by name."""

    def claim(data, make, rng):
        n, d = data.X.shape
        examples = {
            "hessians": np.ones((n, d, d)),
            "gradients": np.ones((n, d)),
            "directions": np.ones((n, d)),
            "sample_weight": np.ones(n),
            "derivative_weight": np.ones(n),
        }
        example = data.arguments.get(name, examples.get(name))
        arguments = {name: NO_ARRAYS[kind](example)}
        if name in ("directions", "derivative_weight"):
            arguments["gradients"] = np.ones((n,) if name == "directions" else (n, d))
        words = MESSAGES.get(name, f"`{name}`")
        for model in (make(data), fit(make(data), data)):
            refused(model, data.using(**arguments), words)

    return claim


VALIDATIONS = {
    "no rows": lambda X, y: (X[:0], y[:0]),
    "only NaN": lambda X, y: (X, np.nan * y),
    "other inputs": lambda X, y: (np.column_stack([X, X]), y),
    "several outputs": lambda X, y: (X, np.column_stack([y, y])),
    "NaN in X": lambda X, y: (np.nan * X, y),
    "a row too few": lambda X, y: (X, y[:-1]),
    "three arrays": lambda X, y: (X, y, y),
    "a list": lambda X, y: [X, y],
    "a word": lambda X, y: "0.2",
    "True": lambda X, y: True,
    "zero": lambda X, y: 0.0,
    "one": lambda X, y: 1.0,
    "NaN": lambda X, y: float("nan"),
    "complex numbers": lambda X, y: (X, y + 1j),
    "a masked array": lambda X, y: (np.ma.array(X, mask=True), y),
}


def refuses_validation(kind):
    """The claim that validation samples that cannot be used are refused."""

    def claim(data, make, rng):
        wrong = VALIDATIONS[kind](data.X, data.y)
        refused(fit(make(data), data), data.using(validation=wrong), "`validation`|`y` must have shape")

    return claim


def refuses_absurd_sizes(data, make, rng):
    model = make(data)
    name = next(name for name in ("n_initial", "n_neurons", "hidden") if name in model.get_params())
    refused(model.set_params(**{name: 10 ** int(rng.integers(9, 40))}), data, f"`{name}` must be at most")
