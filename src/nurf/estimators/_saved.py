"""Estimators that can be saved to files, and that a failed fit leaves unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nurf.files import write


class SavedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that can be saved to a file, which contains no code."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, from which ``nurf.load`` returns it with the same predictions, bit by bit.

        The file contains numbers and names, and no code. The write is atomic: other processes see either the old
        file or the new one.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If a parameter is a user-defined object or function. The message names it, and nothing is written.
        """
        from nurf.estimators._files import SAVED  # imports all estimators

        check_is_fitted(self)
        write(path, self, SAVED)


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the attributes of the estimator if the block fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
