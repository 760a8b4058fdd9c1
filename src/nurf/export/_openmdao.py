"""Components of OpenMDAO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf._types import Index
from nurf._validation import is_whole
from nurf.export._points import as_fitted


def to_openmdao(
    model: Any,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] = "y",
    n_points: int = 1,
) -> Any:
    """Return a fitted regressor as an ``openmdao.api.ExplicitComponent`` with exact partial derivatives.

    Parameters
    ----------
    model : regressor or GradientPipeline
        A fitted model.
    inputs : str or sequence of str, optional
        The name of one variable with all ``d`` inputs, or ``d`` names of one variable each. Default is the column names
        of the fitted data frame, or "x".
    outputs : str or sequence of str, default "y"
        The name of one variable with all ``k`` outputs, or ``k`` names.
    n_points : int, default 1
        The number of points that are evaluated at once. If it is more than one, variables have a first axis of that
        length, and partial derivatives are sparse.
    """
    try:
        from openmdao.api import ExplicitComponent
    except ModuleNotFoundError as error:
        raise ImportError('to_openmdao needs openmdao: pip install "nurf[openmdao]"') from error

    check_is_fitted(model)
    if not hasattr(model, "predict_gradient"):
        raise ValueError(f"a regressor of nurf can be exported, got {model!r}")
    if not is_whole(n_points):
        raise ValueError(f"`n_points` must be a whole number >= 1, got {n_points!r}")
    d = model.n_features_in_
    k = np.size(model.predict(as_fitted(model, np.ones((1, d)))))
    default = getattr(model, "feature_names_in_", "x")
    columns = _variables("inputs", default if inputs is None else inputs, d)
    results = _variables("outputs", outputs, k)

    class NurfComponent(ExplicitComponent):  # type: ignore[misc]
        """A fitted regressor of nurf."""

        def setup(self) -> None:
            """Declare the variables."""
            for name, places in columns.items():
                self.add_input(name, shape=_shape(n_points, len(places)))
            for name, places in results.items():
                self.add_output(name, shape=_shape(n_points, len(places)))

        def setup_partials(self) -> None:
            """Declare the partial derivatives, between variables of the same point."""
            for of, out in results.items():
                for wrt, into in columns.items():
                    rows, cols = _places(n_points, len(out), len(into))
                    self.declare_partials(of, wrt, rows=rows, cols=cols)

        def compute(self, inputs: Any, outputs: Any) -> None:
            """Predict values."""
            values = np.reshape(model.predict(self._points(inputs)), (n_points, k))
            for name, places in results.items():
                outputs[name] = values[:, places].reshape(_shape(n_points, len(places)))

        def compute_partials(self, inputs: Any, partials: Any) -> None:
            """Predict gradients."""
            slopes = np.reshape(model.predict_gradient(self._points(inputs)), (n_points, k, d))
            for of, out in results.items():
                for wrt, into in columns.items():
                    partials[of, wrt] = slopes[:, out][:, :, into].ravel()

        def _points(self, inputs: Any) -> Any:
            parts = [np.reshape(inputs[name], (n_points, -1)) for name in columns]
            return as_fitted(model, np.concatenate(parts, axis=1))

    return NurfComponent()


def _variables(name: str, names: str | Sequence[str], size: int) -> dict[str, Index]:
    """Return the indices of each variable among the inputs or outputs."""
    if isinstance(names, str):
        return {names: np.arange(size)}
    found = {str(each): np.array([place]) for place, each in enumerate(names)}
    if len(names) != size or len(found) != size:
        raise ValueError(f"`{name}` must be one name, or {size} different names, got {list(names)}")
    return found


def _shape(n_points: int, size: int) -> tuple[int, ...]:
    if n_points == 1:
        return (size,)
    return (n_points,) if size == 1 else (n_points, size)


def _places(n_points: int, n_out: int, n_in: int) -> tuple[Index, Index]:
    """Return rows and columns of partial derivatives of flat arrays, point by point."""
    point, out, into = np.indices((n_points, n_out, n_in), dtype=np.int64).reshape(3, -1)
    return point * n_out + out, point * n_in + into
