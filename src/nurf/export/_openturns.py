"""Functions of OpenTURNS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf.export._points import as_fitted


def to_openturns(model: Any, outputs: Sequence[str] | None = None) -> Any:
    """Return a fitted regressor as an ``openturns.Function`` with exact gradient and Hessian.

    All algorithms of OpenTURNS take it: design points by FORM and SORM, subset simulation, optimisation, metamodels of
    its own. Samples are predicted at once. OpenTURNS sees the prediction without its error, which is in the answers of
    ``nurf.decisions``.

    Parameters
    ----------
    model : regressor or GradientPipeline
        A fitted model.
    outputs : sequence of str, optional
        The names of the outputs. Default is "y", or "y0", "y1", ...

    Examples
    --------
    >>> import openturns as ot  # doctest: +SKIP
    >>> from nurf import KernelFeatureRegressor, export
    >>> X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    >>> model = KernelFeatureRegressor().fit(X, X[:, 0] * X[:, 1])
    >>> function = export.to_openturns(model)  # doctest: +SKIP
    >>> function.gradient([0.5, 0.2])  # doctest: +SKIP
    """
    try:
        import openturns as ot
    except ModuleNotFoundError as error:
        raise ImportError('to_openturns needs openturns: pip install "nurf[openturns]"') from error

    check_is_fitted(model)
    if not hasattr(model, "predict_hessian"):
        raise ValueError(f"a regressor of nurf can be exported, got {model!r}")
    d = model.n_features_in_
    k = int(np.size(model.predict(as_fitted(model, np.ones((1, d))))))
    names = list(outputs) if outputs is not None else ["y"] if k == 1 else [f"y{q}" for q in range(k)]
    if len(set(names)) != k or not all(isinstance(name, str) for name in names):
        raise ValueError(f"`outputs` must be {k} different names, got {names}")

    def at(points: Any) -> Any:
        return as_fitted(model, np.asarray(points, float).reshape(-1, d))

    def values(points: Any) -> Any:
        return np.reshape(model.predict(at(points)), (-1, k))

    function = ot.PythonFunction(
        d,
        k,
        func=lambda x: values(x)[0].tolist(),
        func_sample=values,
        gradient=lambda x: np.reshape(model.predict_gradient(at(x)), (k, d)).T.tolist(),
        hessian=lambda x: np.moveaxis(np.reshape(model.predict_hessian(at(x)), (k, d, d)), 0, -1).tolist(),
    )
    function.setInputDescription([str(n) for n in getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)])])
    function.setOutputDescription(names)
    return function
