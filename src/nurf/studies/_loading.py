"""Files of models and of studies."""

from __future__ import annotations

import os
from typing import Any

from nurf.estimators import load as load_model
from nurf.studies._store import MAGIC
from nurf.studies._study import Study


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted model in a file that ``model.save(path)`` wrote, or the study in a file.

    Nothing in the file is run: it holds numbers, and names of classes out of a fixed list. A study stays in its
    file: all further runs are written there.

    Raises
    ------
    FileFormatError
        If the file is not one of a model or a study, is damaged, or was written by a newer version in a way that is not
        known.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import nurf
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> model = nurf.RandomFeatureRegressor(20, width=0.3, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.nurf")
    ...     loaded = nurf.load(f"{folder}/model.nurf")
    >>> bool(np.all(loaded.predict(X) == model.predict(X)))
    True
    """
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
    return Study.load(path) if start == MAGIC else load_model(path)
