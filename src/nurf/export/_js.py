"""Modules of plain JavaScript."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erfcx

from nurf._scaling import Scaling
from nurf.export._cores import KernelSums, Layers, Total
from nurf.export._forms import Form, form_of
from nurf.export._functions import Profile
from nurf.export._spread import (
    CoefficientSpread,
    Deviation,
    FoldSpread,
    MixtureSpread,
    ProcessSpread,
    deviation_of,
)
from nurf.export._text import formula

RUNTIME = Path(__file__).parent / "templates" / "runtime.js"
ERFCX_TERMS = 32  # of a Chebyshev series, which is exact to rounding errors

START = """/* A fitted model of nurf: {inputs} input{ins}, {outputs} output{outs}. An ES module without dependencies.

   value(x) takes {inputs} number{ins} and returns {returns}; gradient(x) returns its partial derivatives, std(x) the
   standard deviation of a new measurement, interval(x) the values 1.645 standard deviations below and above.
   {std}
   Numbers are exact. */

/** The number of inputs, the number of outputs, and whether std and interval are here. */
export const inputs = {inputs}, outputs = {outputs}, hasStd = {has_std};

"""


class _Code(str):
    """JavaScript source that is inserted without quotes."""


def to_js(model: Any, *, std: bool | None = None) -> str:
    """Return the text of an ES module of JavaScript that computes a fitted regressor without dependencies.

    The module exports ``value(x)``, ``gradient(x)`` and ``valueAndGradient(x)`` for one point, an array of numbers;
    ``std(x)`` and ``interval(x, deviations=1.645)``; and ``inputs``, ``outputs`` and ``hasStd``. It runs in browsers
    and in Node.

    Parameters
    ----------
    model : regressor
        A fitted regressor.
    std : bool, optional
        Whether to write the standard deviation, which takes about ``N^2`` numbers for ``N`` values and derivatives
        in a fit of an infinitely wide network, or for ``N`` neurons. Without it, ``hasStd`` is false, and ``std`` and
        ``interval`` throw an error. By default it is written if that takes at most 300,000 numbers.

    Raises
    ------
    ValueError
        If the standard deviation is asked for and the model has none.
    """
    form = form_of(model)
    inner = getattr(model, "model_", model)
    found: Deviation | str = "it was not asked for" if std is False else deviation_of(inner, bool(std))
    if std and isinstance(found, str):
        raise ValueError(f"`std` must be False for this model: {found}")
    d, k = form.dimension, form.n_outputs
    several = bool(form.output_shape)
    has_std = not isinstance(found, str)
    start = START.format(
        inputs=d,
        ins="s" * (d > 1),
        outputs=k,
        outs="s" * (k > 1),
        returns="an array of numbers" if several else "a number",
        std="" if has_std else f"std and interval are not here, and throw an error: {found}.",
        has_std=_literal(has_std),
    )
    numbers: dict[str, Any] = {
        "several": several,
        "ERFCX": _erfcx_series(),
        "CENTER": form.center,
        "CONSTANT": form.constant,
        "LOGGED": [kind == "log" for kind in form.input_curves],
        "TARGETS": [kind or "none" for kind in form.output_curves],
        "T_SCALE": form.output_scales,
        "MODEL": _network(form, np.zeros_like(form.constant)),
        "NO_STD": "" if has_std else f"the standard deviation is not in this module: {found}",
    }
    numbers |= _deviation(found, inner.scaling_) if isinstance(found, Deviation) else _NO_DEVIATION
    data = "\n".join(f"const {name} = {_literal(each)};" for name, each in numbers.items())
    return f"{start}{RUNTIME.read_text(encoding='utf-8')}\n{data}\n"


def _erfcx_series() -> Any:
    """Return the Chebyshev coefficients of ``(1 + 2 z) exp(z^2) erfc(z)`` in ``t = (z - 3.75) / (z + 3.75)``."""

    def scaled(t: Any) -> Any:
        z = 3.75 * (1 + t) / (1 - t)
        return (1 + 2 * z) * erfcx(z)

    return np.polynomial.chebyshev.chebinterpolate(scaled, ERFCX_TERMS)


def _deviation(found: Deviation, scaling: Scaling) -> dict[str, Any]:
    """Return the constants of the standard deviation."""
    d, reach = len(scaling.x_scale), found.reach
    basis = np.eye(d) if scaling.x_basis is None else scaling.x_basis
    points = {"points": reach.points * reach.metric, "metric": reach.metric, "radius4": reach.radius**4}
    return {
        "TO_SCALED": basis.T / scaling.x_scale,
        "Y_SCALE": np.ravel(scaling.y_scale),
        "RATES": reach.rates,
        "REACH": _call("reachVariance", points),
        "SPREAD": _SPREADS[type(found.variance)](found.variance),
    }


_NO_DEVIATION = dict.fromkeys(("TO_SCALED", "Y_SCALE", "RATES", "REACH", "SPREAD"), _Code("null"))


def _folds(spread: Any) -> _Code:
    folds = [_network(fold) for fold in spread.folds]
    data = {"folds": folds, "multiple": spread.multiple, "least": spread.least, "floor": spread.floor}
    return _call("foldVariances", data)


def _coefficients(spread: Any) -> _Code:
    data = {"factor": _network(spread.factor), "unit": spread.unit, "noise": spread.noise}
    return _call("coefficientVariances", data)


def _mixture(spread: Any) -> _Code:
    members = [
        {"mean": _network(member.mean), "variance": _process(member), "scale": member.scale}
        for member in spread.members
    ]
    names = ("weights", "factors", "power", "unit", "smallest", "largest")
    return _call("processVariances", {"members": members, **{name: getattr(spread, name) for name in names}})


def _process(spread: ProcessSpread) -> _Code:
    data = _sums_data(spread.rows) | {"V": spread.V, "T": spread.T, "R": spread.R, "first": spread.first}
    if spread.sums is not None:
        ends = spread.sums.indptr[1:].tolist()
        data["sums"] = {"ends": ends, "places": spread.sums.indices.tolist(), "coef": spread.sums.data}
    data["L"] = spread.factor[np.tril_indices(len(spread.factor))]
    return _call("processVariance", data | {"prior": spread.prior, "least": spread.least, "noise": spread.noise})


def _network(form: Form, constant: Any = None) -> _Code:
    """Return a network as a function of ``z``, with another constant by choice."""
    data = {
        "core": _CORES[type(form.core)](form.core),
        "constant": form.constant if constant is None else constant,
        "slopes": form.slopes,
        "factors": form.factors.tolist(),
        "products": form.products,
    }
    return _call("network", data)


def _layers(core: Any) -> _Code:
    *inner, outer = core.weights
    data = {
        "weights": [weight.T for weight in inner],
        "biases": list(core.biases),
        "outer": outer.T,
        "unit": _function(core.unit.value, "u"),
        "slope": _function(core.unit.slope, "u"),
    }
    return _call("layers", data)


def _sums(core: Any) -> _Code:
    return _call("sums", _sums_data(core))


def _sums_data(core: KernelSums) -> dict[str, Any]:
    terms = [{"points": term.points, "directions": list(term.directions), "coef": term.coef} for term in core.terms]
    return {"matrix": core.matrix.T, "phi": [_function(profile, "t") for profile in core.profiles], "terms": terms}


def _total(core: Any) -> _Code:
    return _Code(f"total({_literal([_sums(part) for part in core.parts])})")


def _function(function: Profile, variable: str) -> _Code:
    return _Code(f"({variable}) => {formula(function, variable)}")


def _call(name: str, data: Mapping[str, Any]) -> _Code:
    return _Code(f"{name}({_literal(data)})")


def _literal(value: Any) -> str:
    """Return a value as an expression of JavaScript; arrays are the base64 of their bytes, flat."""
    if isinstance(value, _Code):
        return str(value)
    if isinstance(value, np.ndarray):
        return f'numbers("{base64.b64encode(value.astype("<f8").tobytes()).decode()}")'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name}: {_literal(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if np.isfinite(value) else "Infinity"


_CORES: dict[type, Callable[[Any], _Code]] = {Layers: _layers, KernelSums: _sums, Total: _total}
_SPREADS: dict[type, Callable[[Any], _Code]] = {
    FoldSpread: _folds,
    CoefficientSpread: _coefficients,
    MixtureSpread: _mixture,
}
