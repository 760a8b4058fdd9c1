"""Answers from a fitted model, with intervals from its draws."""

from nurf.decisions._calibrate import Calibration, calibrate
from nurf.decisions._estimate import Estimate
from nurf.decisions._failure import Failure, answer, failure
from nurf.decisions._inputs import REPLICATES, Inputs, data_box, normal_points
from nurf.decisions._limits import Limits
from nurf.decisions._minimize import Minimum
from nurf.decisions._minimize import minimize as _minimize
from nurf.decisions._models import of_any_model as _of_any_model
from nurf.decisions._observed import Known, Observed
from nurf.decisions._propagate import Propagation, propagate
from nurf.decisions._rare_events import RareEvent
from nurf.decisions._rare_points import Mixture
from nurf.decisions._sensitivity import Sensitivity, sensitivity

minimize = _of_any_model(_minimize)

__all__ = [
    "Calibration",
    "Estimate",
    "Failure",
    "Minimum",
    "Propagation",
    "Sensitivity",
    "calibrate",
    "data_box",
    "failure",
    "minimize",
    "propagate",
    "sensitivity",
]
