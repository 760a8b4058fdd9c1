"""Models of BoTorch."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


def to_botorch(model: Any) -> Any:
    """Return a fitted regressor as a ``botorch.models.model.Model``, for Bayesian optimisation.

    Its ``posterior(X)`` is normal at each point, with the mean and the standard deviation of
    ``model.predict(X, return_std=True)``: those of a new measurement, noise included. Gradients by ``X`` go through
    it: those of the mean are ``model.predict_gradient(X)``, and those of the variance central differences. Acquisition
    functions of one point at a time (``q = 1``) work. Several points cannot be drawn together, because the covariance
    between them is not known, and an error says so; nor can a model be conditioned on further samples: fit it again.

    Parameters
    ----------
    model : regressor
        Fitted. That of ``KernelFeatureRegressor`` knows best where it is uncertain.
    """
    try:
        from nurf.export._botorch_model import NurfModel
    except ModuleNotFoundError as error:
        raise ImportError('to_botorch needs botorch: pip install "nurf[botorch]"') from error

    check_is_fitted(model)
    if not hasattr(model, "scaling_") or not hasattr(model, "predict_gradient"):
        raise ValueError(f"a regressor of nurf can be exported, got {model!r}")
    return NurfModel(model)
