"""Models of BoTorch."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from nurf._validation import is_whole


def to_botorch(model: Any, *, n_draws: int = 256, random_state: Any = 0) -> Any:
    """Return a fitted regressor as a ``botorch.models.model.Model``, for Bayesian optimisation.

    The posterior is normal. At each point it has the mean and the standard deviation of
    ``model.predict(X, return_std=True)``, without the noise of values if the regressor estimates it
    (``KernelFeatureRegressor``) and ``observation_noise`` is False. The correlations between points and between outputs
    are the correlations of ``model.draws(n_draws)``, so that joint samples (``q > 1``), fantasies, knowledge gradients
    and conditioning on further observations work. The correlation of independent values has a standard error of
    ``n_draws^-0.5``.

    The model has two further methods: ``gradient_posterior(X)`` is the joint posterior of values and gradients, and
    ``path(seed)`` is a sample of the posterior as a deterministic function, for Thompson sampling.

    All results are differentiable with respect to ``X``, except ``gradient_posterior``. The gradient of the mean is
    ``model.predict_gradient(X)``, the gradient of the standard deviation is computed by central differences.

    Parameters
    ----------
    model : regressor
        A fitted regressor. ``KernelFeatureRegressor`` estimates its local uncertainty best.
    n_draws : int, default 256
        The number of draws from which correlations are computed.
    random_state : int, RandomState, Generator or None, default 0
        Seed of the draws.
    """
    try:
        from nurf.export._botorch_model import NurfModel
    except ModuleNotFoundError as error:
        raise ImportError('to_botorch needs botorch: pip install "nurf[botorch]"') from error

    check_is_fitted(model)
    if not hasattr(model, "scaling_") or not hasattr(model, "predict_gradient"):
        raise ValueError(f"a regressor of nurf can be exported, got {model!r}")
    if not (is_whole(n_draws) and n_draws > 1):
        raise ValueError(f"`n_draws` must be a whole number >= 2, got {n_draws!r}")
    return NurfModel(model, model.draws(n_draws, random_state))
