"""The same data in other containers, and data that are odd without being wrong."""

from dataclasses import replace

import numpy as np
import pandas as pd


def every(change):
    """A form that changes each array."""
    return lambda data, rng: data.using(**{name: change(value) for name, value in data.arguments.items()})


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    """A view of every other row and column of a larger array, backwards."""
    step = (slice(None, None, -2),) * array.ndim
    larger = np.full([2 * length for length in array.shape], 7.0)
    larger[step] = array
    return larger[step]


def shuffled_frames(data, rng):
    """Frames whose rows and columns come in an order of their own, with an index and names to match them."""
    n, d = data.X.shape
    names, labels = [f"x{i}" for i in range(d)], [f"run {i}" for i in range(n)]
    arguments = {"X": pd.DataFrame(data.X, columns=names, index=labels)}
    for name, value in data.arguments.items():
        columns = rng.permutation(d)
        if name in ("gradients", "directions", "gradients_at") and value.ndim == 2:
            prefix = "dy_" if name == "gradients" else ""
            frame = pd.DataFrame(value[:, columns], columns=[f"{prefix}x{i}" for i in columns])
            here = name != "gradients_at" and "gradients_at" not in data.arguments
            arguments[name] = frame.set_axis(labels).iloc[rng.permutation(n)] if here else frame
        elif name in ("y", "gradients") and value.ndim == 1:
            arguments[name] = pd.Series(value, index=labels).iloc[rng.permutation(n)]
        elif name != "X":
            arguments[name] = value
    return data.using(**arguments)


# The same numbers: the fit must be the same.
CONTAINERS = {
    "Fortran order": every(np.asfortranarray),
    "read-only": every(read_only),
    "strided": every(strided),
    "lists": every(np.ndarray.tolist),
    "objects": every(lambda array: array.astype(object)),
    "big-endian": every(lambda array: array.astype(">f8")),
    "float32": every(lambda array: array.astype(np.float32)),
    "longdouble": every(lambda array: array.astype(np.longdouble)),
    "masked, without a mask": every(np.ma.array),
    "subclass": every(lambda array: array.view(type("Array", (np.ndarray,), {}))),
    "shuffled frames": shuffled_frames,
    "values as a column": lambda data, rng: data.using(y=data.y[:, None]),
}


def rounded(data):
    """The data as single precision holds them."""
    return data.using(**{name: value.astype(np.float32).astype(float) for name, value in data.arguments.items()})


def repeated_rows(data, rng):
    return data.using(**{name: np.repeat(value, 2, axis=0) for name, value in data.arguments.items()})


def with_partials(data, change):
    """Change inputs by ``change(points, fill)``; gradients along inputs get zeros where these are new."""
    arguments = dict(data.arguments)
    for name in ("X", "gradients_at", "directions"):
        if name in arguments:
            arguments[name] = change(arguments[name], name == "directions")
    if "gradients" in arguments and arguments["gradients"].ndim == 2:
        arguments["gradients"] = change(arguments["gradients"], True)
    arguments.pop("hessians", None)
    return replace(data, arguments=arguments)


def constant_columns(data, rng):
    value = rng.choice([0.0, 1.0, -1e9, 1e-9])
    return with_partials(data, lambda A, slopes: np.column_stack([np.full(len(A), 0.0 if slopes else value), A]))


def collinear_columns(data, rng):
    """A copy of the first input, along which the function does not vary."""
    return with_partials(data, lambda A, slopes: np.column_stack([A, 0 * A[:, 0] if slopes else A[:, 0]]))


def constant_values(data, rng):
    value = rng.choice([0.0, 1.0, -1e100])
    zeros = {name: 0 * data.arguments[name] for name in ("gradients", "hessians") if name in data.arguments}
    return data.using(y=np.full_like(data.y, value), **zeros)


def all_points_equal(data, rng):
    return data.using(X=np.tile(data.X[:1], (len(data.X), 1)))


def outlier(data, rng):
    y = data.y.copy()
    y[rng.integers(len(y))] = 1e6
    return data.using(y=y)


def unknown_slopes(data, rng):
    """Only NaN where derivatives were."""
    return data.using(**{k: np.nan * data.arguments[k] for k in ("gradients", "hessians") if k in data.arguments})


def one_slope(data, rng):
    """Derivatives in one row only; others are unknown, or zero."""
    other, row = rng.choice([np.nan, 0.0]), rng.integers(len(data.arguments.get("gradients", data.y)))
    slopes = {k: np.full_like(data.arguments[k], other) for k in ("gradients", "hessians") if k in data.arguments}
    for name, array in slopes.items():
        array[row] = data.arguments[name][row]
    return data.using(**slopes)


def tiny_weights(data, rng):
    weights = rng.choice([1e-300, 1.0, 0.0], len(data.y))
    weights[0] = 1.0
    return data.using(sample_weight=weights)


def tiny_slope_weights(data, rng):
    if "gradients" not in data.arguments:
        return tiny_weights(data, rng)
    weights = rng.choice([1e-90, 1e3, 0.0], len(data.arguments["gradients"]))
    weights[0] = 1.0
    return data.using(derivative_weight=weights)


def several_outputs(data, rng):
    """Three outputs: the values, minus the values, and a constant."""
    factors = np.array([1.0, -1.0, 0.0])
    outputs = {
        name: np.multiply.outer(data.arguments[name], factors)
        for name in ("y", "gradients", "hessians")
        if name in data.arguments
    }
    return data.using(**{name: np.moveaxis(array, -1, 1) for name, array in outputs.items()})


def integers(data, rng):
    whole = {name: np.round(3 * value).astype(int) for name, value in data.arguments.items() if name in ("X", "y")}
    return data.using(**whole)


def huge_slope(data, rng):
    """Derivatives of one row that are wrong by a factor of 1e60."""
    if "gradients" not in data.arguments:
        return data
    gradients = data.arguments["gradients"].copy()
    gradients[rng.integers(len(gradients))] *= 1e60
    return data.using(gradients=gradients)


def wrong_slopes(data, rng):
    """Gradients that contradict the values."""
    if "gradients" not in data.arguments:
        return data
    return data.using(gradients=-100 * data.arguments["gradients"] + rng.normal(size=data.arguments["gradients"].shape))


def zero_directions(data, rng):
    if "directions" not in data.arguments:
        return unknown_slopes(data, rng)
    return data.using(directions=np.zeros_like(data.arguments["directions"]))


# Odd, but meaningful: a fit must be possible, and finite.
ODDITIES = {
    "repeated rows": repeated_rows,
    "constant columns": constant_columns,
    "collinear columns": collinear_columns,
    "constant values": constant_values,
    "all points equal": all_points_equal,
    "an outlier": outlier,
    "unknown slopes": unknown_slopes,
    "one slope": one_slope,
    "tiny weights": tiny_weights,
    "tiny weights of slopes": tiny_slope_weights,
    "several outputs": several_outputs,
    "integers": integers,
    "wrong slopes": wrong_slopes,
    "a huge slope": huge_slope,
    "zero directions": zero_directions,
}
