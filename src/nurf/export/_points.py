"""Points for models that were fitted to data frames."""

from __future__ import annotations

from typing import Any

from nurf._types import Array


def as_fitted(model: Any, points: Array) -> Any:
    """Return the points as a data frame if the model was fitted to one, and unchanged otherwise."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return points
    import pandas as pd  # installed, because a data frame was fitted

    return pd.DataFrame(points, columns=names)
