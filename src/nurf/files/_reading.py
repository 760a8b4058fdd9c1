"""From a file to a fitted model: entry by entry, through constructors that check their arguments."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from nurf.files._arrays import ArrayReader, strings
from nurf.files._container import FileFormatError, unpack
from nurf.files._generators import generator_of
from nurf.files._hints import hints_of
from nurf.files._registry import Fields, Registry, parameters_of, require_key

FLOATS = ("nan", "inf", "-inf")


def read(path: str | os.PathLike[str], registry: Registry, kind: type | None = None) -> Any:
    """Return the last entry of a file, which must be a fitted estimator, or an object of the class ``kind``.

    Raises
    ------
    FileFormatError
        If the file contains no model, is damaged, or contains classes that the registry does not know.
    """
    header, data = unpack(path)
    entries = header.get("objects")
    if type(entries) is not list or not entries:
        raise FileFormatError("the header must have a list `objects` with at least one entry")
    reader = _Reader(registry, data, str(header.get("nurf"))[:20])
    with np.errstate(all="ignore"):
        found = reader.read(entries)
    if kind is None:
        _require_fitted(found, entries[-1], registry)
    elif type(found) is not kind:
        raise FileFormatError(f"the last entry must be a {kind.__name__}, got a {type(found).__name__}")
    return found


def _require_fitted(found: Any, entry: dict[str, Any], registry: Registry) -> None:
    if type(found) not in registry.estimators.values():
        raise FileFormatError(f"the last entry must be an estimator, got a {type(found).__name__}")
    if not entry["attributes"]:
        raise FileFormatError("the last entry must be a fitted estimator, got one without fitted attributes")


class _Reader:
    def __init__(self, registry: Registry, data: memoryview, writer: str) -> None:
        self._registry, self._writer = registry, writer
        self._arrays = ArrayReader(data)
        self._made: list[Any] = []
        self._matched: set[tuple[int, int]] = set()
        self._kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "array": self._arrays.read,
            "strings": strings,
            "tuple": lambda entry: tuple(self._values(entry["tuple"])),
            "list": lambda entry: self._values(entry["list"]),
            "dict": lambda entry: dict(self._pair(pair) for pair in entry["dict"]),
            "generator": lambda entry: generator_of(self._named(entry["generator"])),
            "object": self._object,
            "estimator": self._estimator,
        }

    def read(self, entries: list[Any]) -> Any:
        """Return the object of the last entry, after the objects of all others were made."""
        for number, entry in enumerate(entries):
            kind = next(iter(entry), None) if type(entry) is dict else None
            if kind not in self._kinds:
                raise FileFormatError(f"entry {number} must be one of {', '.join(self._kinds)}, got {kind!r:.80}")
            name = entry[kind] if kind in ("object", "estimator") and type(entry[kind]) is str else kind
            try:
                self._made.append(self._kinds[kind](entry))
            except Exception as error:  # a hostile file can make constructors raise any error
                raise FileFormatError(f"entry {number}, {name:.80}: {_message(error)}") from error
        try:
            self._arrays.finish()
        except ValueError as error:
            raise FileFormatError(str(error)) from error
        return self._made[-1]

    def _value(self, value: Any) -> Any:
        """Return a value of the header, or the object that it refers to."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is dict and len(value) == 1:
            if value.get("float") in FLOATS:
                return float(value["float"])
            place = value.get("at")
            if type(place) is int and 0 <= place < len(self._made):
                return self._made[place]
        raise ValueError(f"a value must be a number, a text or a reference to an entry before, got {value!r:.80}")

    def _values(self, values: Any) -> list[Any]:
        if type(values) is not list:
            raise ValueError(f"expected a list, got {values!r:.80}")
        return [self._value(value) for value in values]

    def _pair(self, values: Any) -> tuple[Any, Any]:
        key, value = self._values(values)
        require_key(key)
        return key, value

    def _named(self, values: Any) -> Fields:
        if type(values) is not dict:
            raise ValueError(f"expected values by name, got {values!r:.80}")
        return {name: self._value(value) for name, value in values.items()}

    def _object(self, entry: dict[str, Any]) -> Any:
        kind = self._known(self._registry.dataclasses, entry["object"])
        fields = self._named(entry["fields"])
        self._require(fields, parameters_of(kind), "field")
        self._registry.check(kind, fields, self._matched)
        return kind(**fields)

    def _estimator(self, entry: dict[str, Any]) -> Any:
        kind: Any = self._known(self._registry.estimators, entry["estimator"])
        parameters, attributes = self._named(entry["parameters"]), self._named(entry["attributes"])
        self._require(parameters, tuple(kind._get_param_names()), "parameter")
        if not attributes:  # a parameter of another estimator
            return kind(**parameters)
        for name in attributes:
            if not name.isidentifier() or name.startswith("__") or hasattr(kind, name) or name in parameters:
                raise ValueError(f"{name!r:.80} is no fitted attribute")
        missing = [name for name in hints_of(kind) if name.endswith("_") and not hasattr(kind, name)]
        missing = [name for name in missing if name not in attributes]
        if missing:
            raise ValueError(f"the fitted attributes {', '.join(missing)} are missing")
        self._registry.check(kind, attributes, self._matched)
        model = kind(**parameters)
        vars(model).update(attributes)
        return model

    def _known(self, kinds: Any, name: Any) -> type:
        if not (type(name) is str and name in kinds):
            raise ValueError(f"the class must be one that nurf saves, got {name!r:.80} {self._origin}")
        kind: type = kinds[name]
        return kind

    def _require(self, values: Fields, names: tuple[str, ...], what: str) -> None:
        """Raise an error for unknown names, which a newer version may have added."""
        for name in values:
            if name not in names:
                raise ValueError(f"it has no {what} {name!r:.80} here {self._origin}")

    @property
    def _origin(self) -> str:
        return f"(the file was written by nurf {self._writer}: a newer version may read it)"


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:500]}" if not isinstance(error, ValueError) else str(error)[:500]
