"""Distributions and models as texts and numbers, for files."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import scipy.stats
from scipy.stats import rv_continuous, rv_discrete

from nurf import estimators
from nurf.studies._space import Space


def spec_of_space(space: Space) -> dict[str, Any]:
    """Return the inputs of a space by name; raise a ``TypeError`` if a distribution is not one of scipy.stats."""
    marginals = dict(zip(space.free.names, space.free.marginals, strict=True))
    inputs = {name: space.fixed[name] if name in space.fixed else _spec(name, marginals[name]) for name in space.names}
    correlation = (space.free.factor @ space.free.factor.T).tolist() if space.is_correlated else None
    return {"inputs": inputs, "constraints": list(space.constraints.texts), "correlation": correlation}


def space_of_spec(spec: dict[str, Any]) -> Space:
    """Return the space with a specification from ``spec_of_space``."""
    inputs = {
        name: given if isinstance(given, float | int) else _marginal(given) for name, given in spec["inputs"].items()
    }
    return Space.of(inputs, spec["constraints"], spec["correlation"])


def _spec(name: str, marginal: Any) -> dict[str, Any]:
    family: Any = getattr(marginal, "dist", None)
    if hasattr(family, "xk"):
        return {"levels": np.asarray(family.xk, float).tolist(), "probabilities": np.asarray(family.pk, float).tolist()}
    title = getattr(family, "name", "")
    known = getattr(scipy.stats, title, None)
    if known is None or type(known) is not type(family):
        raise TypeError(f"a file holds distributions of scipy.stats, got {marginal!r} for {name}")
    keywords = {key: float(value) for key, value in marginal.kwds.items()}
    return {"distribution": title, "args": [float(value) for value in marginal.args], "kwds": keywords}


def _marginal(spec: dict[str, Any]) -> Any:
    if "levels" in spec:
        return rv_discrete(name="levels", values=(spec["levels"], spec["probabilities"]))()
    family = getattr(scipy.stats, spec["distribution"], None)
    if not isinstance(family, rv_continuous | rv_discrete):
        raise ValueError(f"distributions must be those of scipy.stats, got {spec['distribution']!r}")
    return family(*spec["args"], **spec["kwds"])


def spec_of_model(model: Any) -> dict[str, Any] | None:
    """Return the class and the parameters of a regressor that is not fitted, or None for none."""
    if model is None:
        return None
    name = type(model).__name__
    if getattr(estimators, name, None) is not type(model) or not hasattr(model, "draws"):
        raise TypeError(f"`model` must be a regressor of nurf, which has `draws`, got {model!r}")
    parameters = model.get_params(deep=False)
    try:
        return {"estimator": name, "parameters": json.loads(json.dumps(parameters, allow_nan=False))}
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`model` must have parameters that are numbers, texts and lists of these, got {model}"
        ) from error


def model_of_spec(spec: dict[str, Any] | None) -> Any:
    """Return the regressor with a specification from ``spec_of_model``."""
    return None if spec is None else getattr(estimators, spec["estimator"])(**spec["parameters"])
