"""The classes that files may contain: a closed table of names, and checks before an object is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nurf._linear import LinearRows, Terms
from nurf._scaling import Scaling
from nurf._warping import CURVES, Warp, Warping
from nurf.activations import Erf, Heaviside, ReLU, ReLUPower, Sigmoid, Softplus
from nurf.choosing import Attempt
from nurf.data import DerivativeCheck
from nurf.densities import (
    ActiveSubspace,
    AxisAligned,
    Cauchy,
    Gaussian,
    Local,
    Logistic,
    Metropolis,
    Nonlocal,
    Rejection,
    Representation,
    Sampler,
    Uniform,
)
from nurf.engines import (
    CrossFit,
    DeepCycle,
    DeepFit,
    DeepSetting,
    Diagonal,
    Folds,
    FromData,
    FromNetwork,
    FromResidual,
    Full,
    Isotropic,
    Learned,
    Origin,
    Setting,
    ShallowFit,
    Shape,
    SparseFit,
    SparseStep,
    Stage,
    WideFit,
)
from nurf.files._hints import hints_of, matches
from nurf.jets import Jet
from nurf.kernels import Centers, ErfKernel, Functionals, GaussianKernel, KernelAverage, KernelNetwork, MaternKernel
from nurf.networks import (
    Ball,
    Box,
    DeepNetwork,
    Domain,
    Features,
    Hyperplanes,
    ShallowNetwork,
    SiLU,
    Tanh,
)
from nurf.solvers import Loss, Uncertainty
from nurf.solvers.process import HeldOutErrors, ProcessPosterior
from nurf.solvers.ridge import Convergence, Posterior
from nurf.solvers.sparse import L1, LogPenalty, Squared

MAX_DEGREE = 32  # of a polynomial tail: the number of its monomials is computed
Fields = dict[str, Any]


@dataclass(frozen=True)
class Registry:
    """The classes that files may contain.

    Parameters
    ----------
    dataclasses : dict
        Frozen dataclasses by their names in files, which do not depend on their Python names and modules. Objects are
        made by the constructors from fields that match their annotations. If a class has several names, the first is
        written, and all are read.
    estimators : dict
        Estimators by name, which are made from their parameters before their fitted attributes are set.
    limits : dict
        Functions by class that check the fields before an object is made, and raise a ``ValueError``.
    protocols : dict
        The classes that implement each protocol in annotations.
    """

    dataclasses: Mapping[str, type]
    estimators: Mapping[str, type] = field(default_factory=dict)
    limits: Mapping[type, Callable[[Fields], None]] = field(default_factory=dict)
    protocols: dict[Any, tuple[type, ...]] = field(default_factory=dict)

    def extended(
        self,
        *,
        dataclasses: Mapping[str, type] | Iterable[type] = (),
        estimators: Mapping[str, type] | Iterable[type] = (),
        limits: Mapping[type, Callable[[Fields], None]] | None = None,
    ) -> Registry:
        """Return the registry with further classes, by their names in files or, if not given, by their Python names."""
        return replace(
            self,
            dataclasses={**self.dataclasses, **_by_name(dataclasses)},
            estimators={**self.estimators, **_by_name(estimators)},
            limits={**self.limits, **(limits or {})},
        )

    def check(self, kind: type, values: Fields, matched: set[tuple[int, int]]) -> None:
        """Raise a ``ValueError`` if fields do not match the annotations of a class, or exceed its limits.

        ``matched`` contains the identities of tuples, which the caller keeps alive, and of annotations that they match;
        further matches are added. Without it, a file that refers to a long tuple many times would take hours.
        """
        hints = hints_of(kind)
        for name in (name for name in values if name in hints):
            value, hint = values[name], hints[name]
            if (id(value), id(hint)) in matched:
                continue
            if not matches(value, hint, self.protocols):
                expected = getattr(hint, "__name__", str(hint))
                raise ValueError(f"`{name}` must be of type {expected}, got {type(value).__name__}")
            if type(value) is tuple:
                matched.add((id(value), id(hint)))
        if kind in self.limits:
            self.limits[kind](values)


def _by_name(kinds: Mapping[str, type] | Iterable[type]) -> Mapping[str, type]:
    return kinds if isinstance(kinds, Mapping) else {kind.__name__: kind for kind in kinds}


def names_of(kinds: Mapping[str, type]) -> dict[type, str]:
    """Return the names of classes in new files: the first name of each class."""
    return {kind: name for name, kind in reversed(list(kinds.items()))}


def parameters_of(kind: type) -> tuple[str, ...]:
    """Return the names of the fields with which a dataclass is made."""
    return tuple(item.name for item in dataclasses.fields(kind) if item.init)


def require_key(value: Any) -> None:
    """Raise a ``ValueError`` if a value may not be a key of a dictionary.

    Tuples that refer repeatedly to the same tuple can take hours to hash.
    """
    if not (value is None or isinstance(value, bool | int | float | str | np.generic)):
        raise ValueError(f"a key of a dictionary must be a number or a text, got a {type(value).__name__}")


def _limit_frames(values: Fields) -> None:
    """Raise a ``ValueError`` if there are more frames than inputs, because checks compute (n, r, r) numbers."""
    frames = values.get("frames")
    if frames is not None and (frames.ndim != 3 or frames.shape[1] > frames.shape[2]):
        raise ValueError(f"`frames` must have shape (n, r, d) with r <= d, got {frames.shape}")


def _limit_terms(values: Fields) -> None:
    """Raise a ``ValueError`` unless all arrays have one entry for each term, in rows that do not decrease from 0."""
    rows, points, coef = (values[name] for name in ("rows", "points", "coef"))
    shapes = {rows.shape, coef.shape, points.shape[:1]}
    if len(shapes) > 1 or rows.ndim != 1 or points.ndim != 2 or len(values["directions"]) > 2:
        raise ValueError(f"`rows`, `coef` and `points` must have one entry for each term, got shapes {shapes}")
    if any(v.shape != points.shape for v in values["directions"]) or np.any(np.diff(rows, prepend=0) < 0):
        raise ValueError("`directions` must have the shape of `points`, and `rows` must not decrease")


def _limit_linear_rows(values: Fields) -> None:
    terms, n = values["terms"], len(values["items"])
    orders = [len(part.directions) for part in terms]
    if orders != [0, 1, 2] or values["targets"].shape[:1] != (n,) or any(np.any(part.rows >= n) for part in terms):
        raise ValueError(f"`terms` must be of the orders 0, 1 and 2 and belong to {n} rows, got orders {orders}")


def _limit_degree(values: Fields) -> None:
    if not -1 <= values.get("degree", 0) <= MAX_DEGREE:
        raise ValueError(f"`degree` must be from -1 to {MAX_DEGREE}, got {values['degree']}")


def _limit_scaling(values: Fields) -> None:
    for center, scale in (("x_center", "x_scale"), ("y_center", "y_scale")):
        if center in values and scale in values and values[center].shape != values[scale].shape:
            raise ValueError(
                f"`{center}` and `{scale}` must have the same shape, got {values[center].shape} and "
                f"{values[scale].shape}"
            )
    d = values["x_scale"].shape if "x_scale" in values else None
    for name, axes in (("x_basis", 2), ("x_rest", 1)):
        array = values.get(name)
        if array is not None and (array.ndim != axes or (d is not None and array.shape[:1] != d)):
            raise ValueError(f"`{name}` must have {axes} axes, the first of length {d}, got shape {array.shape}")


def _limit_warp(values: Fields) -> None:
    kinds, scales = values.get("kinds", ()), values.get("scales")
    if unknown := [kind for kind in kinds if not (kind is None or kind in CURVES)]:
        raise ValueError(f"`kinds` must be None or one of {', '.join(CURVES)}, got {unknown[0]!r}")
    if scales is not None and scales.shape != (len(kinds),):
        raise ValueError(f"`scales` must be a number for each of {len(kinds)} columns, got shape {scales.shape}")


def _limit_average(values: Fields) -> None:
    members, weights = values.get("members", ()), values.get("weights")
    if not members or (weights is not None and weights.shape != (len(members),)):
        shape = None if weights is None else weights.shape
        raise ValueError(f"`members` must not be empty, with a weight each, got {len(members)}, and weights {shape}")


# All classes of fits, by their names in files. The names belong to the format: a class that is renamed or moved keeps
# its name here, and a class that replaces another gets the name of the replaced class as a further row.
RESULTS = Registry(
    {
        # activations
        "Erf": Erf,
        "Heaviside": Heaviside,
        "ReLU": ReLU,
        "ReLUPower": ReLUPower,
        "Sigmoid": Sigmoid,
        "SiLU": SiLU,
        "Softplus": Softplus,
        "Tanh": Tanh,
        # densities and their parts
        "ActiveSubspace": ActiveSubspace,
        "AxisAligned": AxisAligned,
        "Ball": Ball,
        "Box": Box,
        "Cauchy": Cauchy,
        "Gaussian": Gaussian,
        "Local": Local,
        "Logistic": Logistic,
        "Metropolis": Metropolis,
        "Nonlocal": Nonlocal,
        "Rejection": Rejection,
        "Representation": Representation,
        "Uniform": Uniform,
        # kernels
        "ErfKernel": ErfKernel,
        "GaussianKernel": GaussianKernel,
        "MaternKernel": MaternKernel,
        # networks
        "Centers": Centers,
        "DeepNetwork": DeepNetwork,
        "Features": Features,
        "Functionals": Functionals,
        "Hyperplanes": Hyperplanes,
        "KernelAverage": KernelAverage,
        "KernelNetwork": KernelNetwork,
        "ShallowNetwork": ShallowNetwork,
        # data
        "DerivativeCheck": DerivativeCheck,
        "Jet": Jet,
        "LinearRows": LinearRows,
        "Scaling": Scaling,
        "Terms": Terms,
        "Warp": Warp,
        "Warping": Warping,
        # settings
        "DeepSetting": DeepSetting,
        "Diagonal": Diagonal,
        "FromData": FromData,
        "FromNetwork": FromNetwork,
        "FromResidual": FromResidual,
        "Full": Full,
        "Isotropic": Isotropic,
        "L1": L1,
        "Learned": Learned,
        "LogPenalty": LogPenalty,
        "Loss": Loss,
        "Setting": Setting,
        "Squared": Squared,
        # steps of fits
        "Attempt": Attempt,
        "Convergence": Convergence,
        "DeepCycle": DeepCycle,
        "SparseStep": SparseStep,
        "Stage": Stage,
        # fits and their errors
        "CrossFit": CrossFit,
        "DeepFit": DeepFit,
        "Folds": Folds,
        "Origin": Origin,
        "HeldOutErrors": HeldOutErrors,
        "Posterior": Posterior,
        "ProcessPosterior": ProcessPosterior,
        "ShallowFit": ShallowFit,
        "Shape": Shape,
        "SparseFit": SparseFit,
        "WideFit": WideFit,
    },
    limits={
        Jet: _limit_frames,
        Features: _limit_degree,
        KernelAverage: _limit_average,
        LinearRows: _limit_linear_rows,
        Scaling: _limit_scaling,
        Terms: _limit_terms,
        Warp: _limit_warp,
    },
    protocols={
        Domain: (Ball, Box),
        Sampler: (Metropolis, Rejection),
        Uncertainty: (CrossFit, Posterior, ProcessPosterior),
    },
)
