"""Checks of values against the annotations of their fields."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

NUMBERS: dict[Any, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
}


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the annotations of a class and its bases."""
    return get_type_hints(kind)


def matches(value: Any, hint: Any, protocols: dict[Any, tuple[type, ...]]) -> bool:
    """Return whether a value matches an annotation.

    ``protocols`` are the classes that implement each protocol. Elements of tuples and sequences are compared
    recursively, as far as the annotation specifies them.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin in (Union, types.UnionType):
        return any(matches(value, argument, protocols) for argument in arguments)
    if origin is Literal:
        return any(type(value) is type(argument) and value == argument for argument in arguments)
    if origin is np.ndarray:
        (scalar,) = get_args(arguments[1])
        return isinstance(value, np.ndarray | np.generic) and scalar in (Any, value.dtype.type)
    if origin is tuple:
        return type(value) is tuple and _elements_match(value, arguments, protocols)
    if origin is Sequence:
        return type(value) in (tuple, list) and _elements_match(value, (*arguments, ...), protocols)
    if origin is Callable or hint is Callable:
        return False
    if hint in NUMBERS:
        return isinstance(value, NUMBERS[hint]) and (hint is bool or not isinstance(value, bool))
    if hint in protocols:
        return isinstance(value, protocols[hint])
    return isinstance(value, hint if origin is None else origin)


def _elements_match(values: Sequence[Any], hints: tuple[Any, ...], protocols: dict[Any, tuple[type, ...]]) -> bool:
    if hints[-1:] == (...,):
        hints = hints[:1] * len(values)
    return len(values) == len(hints) and all(
        matches(value, hint, protocols) for value, hint in zip(values, hints, strict=True)
    )
