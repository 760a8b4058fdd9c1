"""Array types that annotations share."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Floats = npt.NDArray[Any]  # of any precision
Mask = npt.NDArray[np.bool_]
Precision = type[np.float32] | type[np.float64]
