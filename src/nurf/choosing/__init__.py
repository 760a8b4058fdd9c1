"""How to choose, for all engines at once: folds, evidence, a policy, a race and one rule."""

from nurf.choosing._choice import Choice, NothingFittedError, decide, simplest
from nurf.choosing._clock import NO_LIMIT, Clock, TimeUpError
from nurf.choosing._engine import ALL_DATA, VALUES_ALONE, Attempt, Effort, Engine, Judged
from nurf.choosing._evidence import Evidence, advantage
from nurf.choosing._folds import assign_folds, fold_masks
from nurf.choosing._policy import POLICY, Policy
from nurf.choosing._race import Outcome, race

__all__ = [
    "ALL_DATA",
    "NO_LIMIT",
    "POLICY",
    "VALUES_ALONE",
    "Attempt",
    "Choice",
    "Clock",
    "Effort",
    "Engine",
    "Evidence",
    "Judged",
    "NothingFittedError",
    "Outcome",
    "Policy",
    "TimeUpError",
    "advantage",
    "assign_folds",
    "decide",
    "fold_masks",
    "race",
    "simplest",
]
