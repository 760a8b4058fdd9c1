"""Export of fitted models: ONNX graphs, torch modules, JAX functions, and files of plain Python, C and JavaScript.

>>> import numpy as np
>>> from nurf import RandomFeatureRegressor, export
>>> X = np.random.default_rng(0).uniform(size=(100, 2))
>>> model = RandomFeatureRegressor(20, width=0.3, random_state=0).fit(X, X[:, 0] * X[:, 1])
>>> names = {}
>>> exec(export.to_python(model), names)
>>> bool(abs(names["value"]([0.5, 0.5]) - model.predict([[0.5, 0.5]])[0]) < 1e-12)
True
"""

from nurf.export._botorch import to_botorch
from nurf.export._c import to_c
from nurf.export._jax import to_jax
from nurf.export._js import to_js
from nurf.export._onnx import to_onnx
from nurf.export._openmdao import to_openmdao
from nurf.export._openturns import to_openturns
from nurf.export._python import to_python
from nurf.export._salib import to_salib
from nurf.export._torch import to_torch

__all__ = [
    "to_botorch",
    "to_c",
    "to_jax",
    "to_js",
    "to_onnx",
    "to_openmdao",
    "to_openturns",
    "to_python",
    "to_salib",
    "to_torch",
]
