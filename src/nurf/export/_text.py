"""Formulas as text for programs in Python and C, from the functions that are used for arrays."""

from __future__ import annotations

from typing import Any


class Text:
    """A formula that is valid in Python and in C."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: Any) -> Text:
        return Text(f"({self} + {other})")

    def __radd__(self, other: Any) -> Text:
        return Text(f"({other} + {self})")

    def __sub__(self, other: Any) -> Text:
        return Text(f"({self} - {other})")

    def __rsub__(self, other: Any) -> Text:
        return Text(f"({other} - {self})")

    def __mul__(self, other: Any) -> Text:
        return Text(f"{self} * {_factor(other)}")

    def __rmul__(self, other: Any) -> Text:
        return Text(f"{_factor(other)} * {self}")

    def __truediv__(self, other: Any) -> Text:
        return Text(f"({self} / ({other}))")

    def __rtruediv__(self, other: Any) -> Text:
        return Text(f"({other} / ({self}))")

    def __neg__(self) -> Text:
        return Text(f"(-{self})")


def _factor(value: Any) -> str:
    return str(value) if isinstance(value, Text) or value >= 0 else f"({value!r})"


class TextFunctions:
    """Names of functions that Python's ``math`` and C's ``math.h`` share, and of a few that programs define."""

    def __getattr__(self, name: str) -> Any:
        """Return a function that returns a call as text."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments: Text(f"{name}({', '.join(map(str, arguments))})")


FORMULAS: Any = TextFunctions()


def formula(function: Any, variable: str) -> str:
    """Return a function of one variable as text."""
    return str(function(FORMULAS, Text(variable)))
