"""Answers that a model is fitted for, with their errors: whatever is asked of the model is asked of its draws, too."""

from nurf.decisions._estimate import Estimate
from nurf.decisions._failure import Failure, failure
from nurf.decisions._minimize import Minimum, minimize
from nurf.decisions._propagate import Propagation, propagate
from nurf.decisions._sensitivity import Sensitivity, sensitivity

__all__ = [
    "Estimate",
    "Failure",
    "Minimum",
    "Propagation",
    "Sensitivity",
    "failure",
    "minimize",
    "propagate",
    "sensitivity",
]
