"""Goals as texts and numbers, for files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nurf.studies.goals._calibration import Calibration
from nurf.studies.goals._error import Error
from nurf.studies.goals._failure import Failure
from nurf.studies.goals._level import Level
from nurf.studies.goals._minimum import Minimum
from nurf.studies.goals._sensitivities import Sensitivities

GOALS: dict[str, Any] = {  # by their names in files and commands
    "error": Error,
    "minimum": Minimum,
    "failure": Failure,
    "sensitivities": Sensitivities,
    "level": Level,
    "calibration": Calibration,
}
NAMES = {kind: name for name, kind in GOALS.items()}


def spec_of_goal(goal: Any) -> dict[str, Any]:
    """Return the name and the parameters of a goal."""
    if type(goal) not in NAMES:
        raise TypeError(f"`goal` must be one of nurf.goals: {', '.join(kind.__name__ for kind in NAMES)}, got {goal!r}")
    parameters = {
        name: list(value.items()) if isinstance(value, dict) else value for name, value in asdict(goal).items()
    }
    return {"name": NAMES[type(goal)], **parameters}


def goal_of_spec(spec: dict[str, Any]) -> Any:
    """Return the goal with a specification from ``spec_of_goal``."""
    parameters = {name: value for name, value in spec.items() if name != "name"}
    kind = GOALS[spec["name"]]
    dicts = {name for name, hint in kind.__annotations__.items() if str(hint).startswith("dict")}
    return kind(**{name: dict(value) if name in dicts else value for name, value in parameters.items()})
