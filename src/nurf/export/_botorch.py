"""Models of BoTorch."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


def to_botorch(model: Any) -> Any:
    """Return a fitted regressor as a ``botorch.models.model.Model``, for Bayesian optimisation.

    Its ``posterior(X)`` is normal at each point, with the mean and the standard deviation of
    ``model.predict(X, return_std=True)`` for a new measurement, noise included. It is differentiable with respect to
    ``X``: the gradient of the mean is ``model.predict_gradient(X)``, the gradient of the variance is computed by
    central differences. Acquisition functions of one point at a time (``q = 1``) work. Joint samples at several points
    raise an error, because the covariance between points is unknown. A model cannot be conditioned on further samples:
    fit it again.

    Parameters
    ----------
    model : regressor
        A fitted regressor. ``KernelFeatureRegressor`` estimates its local uncertainty best.
    """
    try:
        from nurf.export._botorch_model import NurfModel
    except ModuleNotFoundError as error:
        raise ImportError('to_botorch needs botorch: pip install "nurf[botorch]"') from error

    check_is_fitted(model)
    if not hasattr(model, "scaling_") or not hasattr(model, "predict_gradient"):
        raise ValueError(f"a regressor of nurf can be exported, got {model!r}")
    return NurfModel(model)
