"""The Huber function of the paper (section 5) and its derivatives."""

from __future__ import annotations

import numpy as np

from nurf._types import Array


def huber(t: Array) -> tuple[Array, Array, Array]:
    """Return the Huber function and its first two derivatives.

    ``h(t) = t^2`` for ``|t| < 1/2`` and ``|t| - 1/4`` otherwise (section 5.1.4). ``h'`` is continuous; ``h''``
    jumps from 2 to 0 at ``|t| = 1/2``, where it is set to 0.

    >>> huber(np.array([0.0, 0.25, -1.0]))
    (array([0.    , 0.0625, 0.75  ]), array([ 0. ,  0.5, -1. ]), array([2., 2., 0.]))
    """
    size = np.abs(t)
    inner = size < 0.5
    value = np.where(inner, t**2, size - 0.25)
    return value, np.clip(2 * t, -1.0, 1.0), np.where(inner, 2.0, 0.0)
