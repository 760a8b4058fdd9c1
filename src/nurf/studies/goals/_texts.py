"""Goals as texts, for commands."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

from nurf.studies.goals._specs import GOALS

COMMA = re.compile(r",(?![^\[{]*[\]}])")  # outside lists and dicts


def read_goal(text: str) -> Any:
    """Return the goal in a text: its name, a colon, its first parameter, and further parameters by name.

    Examples
    --------
    >>> read_goal("error:0.02")
    Error(target=0.02)
    >>> read_goal("failure:below=0,target=0.05")
    Failure(above=None, below=0, target=0.05, combine='any')
    >>> read_goal('calibration:[1.7, 0.5],noise=0.1,at={"t": [0, 2]}')
    Calibration(observations=[1.7, 0.5], noise=0.1, target=0.2, at={'t': [0.0, 2.0]})
    """
    name, _, rest = text.partition(":")
    if name.lower() not in GOALS:
        raise ValueError(f"a goal must be one of {', '.join(GOALS)}, got {name!r}")
    kind, parameters = GOALS[name.lower()], {}
    names = [item.name for item in fields(kind)]
    for place, part in enumerate(part for part in COMMA.split(rest) if part.strip()):
        key, equals, value = part.partition("=")
        if not equals:
            key, value = names[place], part
        if key.strip() not in names:
            raise ValueError(f"the goal {name} has the parameters {', '.join(names)}, got {key.strip()!r}")
        parameters[key.strip()] = _value(value.strip())
    try:
        return kind(**parameters)
    except TypeError as error:
        raise ValueError(f"the goal {name} has the parameters {', '.join(names)}, got {rest!r}") from error


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
