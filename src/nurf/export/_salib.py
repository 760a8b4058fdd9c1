"""Problems of SALib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# The name of a distribution in SALib, and its bounds there from the parameters of SciPy.
KNOWN: dict[str, tuple[str, Callable[..., list[float]]]] = {
    "uniform": ("unif", lambda loc, scale: [loc, loc + scale]),
    "norm": ("norm", lambda loc, scale: [loc, scale]),
    "lognorm": ("lognorm", lambda s, loc, scale: [np.log(scale), s]),
    "loguniform": ("logunif", lambda a, b, loc, scale: [a * scale, b * scale]),
    "truncnorm": ("truncnorm", lambda a, b, loc, scale: [loc + a * scale, loc + b * scale, loc, scale]),
    "triang": ("triang", lambda c, loc, scale: [loc, loc + scale, c]),
    "weibull_min": ("weibull", lambda c, loc, scale: [c, scale, loc]),
}
KNOWN["reciprocal"] = KNOWN["loguniform"]
CENTRED = ("lognorm", "loguniform", "reciprocal")  # SALib has no `loc` for these


def to_salib(inputs: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return random inputs as a problem of SALib, for its samplers, its analyses and its ``ProblemSpec``.

    A fitted model is the function of such a problem: ``ProblemSpec(to_salib(inputs)).sample_sobol(1024)
    .evaluate(model.function()).analyze_sobol()``.

    Parameters
    ----------
    inputs : dict or sequence of distributions
        Distributions of ``scipy.stats`` by name, or in the order of the inputs, which then are ``x0``, ``x1``, ...
        SALib knows uniform, normal, truncated normal, lognormal, log-uniform, triangular and Weibull distributions.

    Returns
    -------
    dict
        ``num_vars``, ``names``, ``bounds`` and ``dists``.

    Examples
    --------
    >>> from scipy.stats import norm, uniform
    >>> to_salib({"load": norm(2, 0.1), "width": uniform(1, 2)})["dists"]
    ['norm', 'unif']
    """
    named = inputs if isinstance(inputs, Mapping) else {f"x{j}": marginal for j, marginal in enumerate(inputs)}
    if not named:
        raise ValueError("`inputs` must be at least one distribution, got none")
    entries = [_entry(str(name), marginal) for name, marginal in named.items()]
    return {
        "num_vars": len(named),
        "names": [str(name) for name in named],
        "bounds": [bounds for _, bounds in entries],
        "dists": [kind for kind, _ in entries],
    }


def _entry(name: str, marginal: Any) -> tuple[str, list[float]]:
    """Return the name of a distribution in SALib, and its bounds there."""
    family: Any = getattr(marginal, "dist", None)
    kind = str(getattr(family, "name", type(marginal).__name__))
    if kind not in KNOWN:
        raise ValueError(
            f"`inputs` must be distributions that SALib knows, of {', '.join(KNOWN)}, got {kind} for {name}. "
            "`nurf.decisions.sensitivity` takes any continuous distribution, and fixed inputs"
        )
    shapes = family.shapes.split(", ") if family.shapes else []
    given = dict(zip([*shapes, "loc", "scale"], marginal.args, strict=False)) | marginal.kwds
    parameters = {"loc": 0.0, "scale": 1.0} | {key: float(value) for key, value in given.items()}
    if kind in CENTRED and parameters["loc"] != 0:
        raise ValueError(f"SALib has no `loc` for {kind}, got {parameters['loc']} for {name}")
    salib, bounds = KNOWN[kind]
    return salib, [float(bound) for bound in bounds(**parameters)]
