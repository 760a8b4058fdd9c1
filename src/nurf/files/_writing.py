"""From a fitted model to a file: a list of entries, each of which refers only to earlier entries."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from nurf.files._arrays import describe
from nurf.files._container import pack, write_atomically
from nurf.files._generators import state_of
from nurf.files._registry import Registry, names_of, parameters_of, require_key


def write(path: str | os.PathLike[str], model: Any, registry: Registry) -> None:
    """Write a model to a file atomically.

    Raises
    ------
    TypeError
        If the model contains an object whose class is not in the registry. No file is written in this case.
    """
    writer = _Writer(registry)
    try:
        writer.value(model, type(model).__name__)
    except RecursionError as error:
        raise TypeError(f"cannot save a {type(model).__name__} with lists that are nested too deeply") from error
    write_atomically(path, pack({"nurf": version("nurf"), "objects": writer.entries}, writer.arrays))


class _Writer:
    def __init__(self, registry: Registry) -> None:
        self.entries: list[dict[str, Any]] = []
        self.arrays: list[memoryview] = []
        self._registry = registry
        self._objects, self._estimators = names_of(registry.dataclasses), names_of(registry.estimators)
        self._places: dict[Any, int | None] = {}  # of objects by identity, of arrays by contents
        self._alive: list[Any] = []  # keeps objects alive, so that no identity is used twice
        self._plain: dict[type, Callable[[Any, str], dict[str, Any]]] = {
            tuple: lambda value, path: {"tuple": self._values(value, path)},
            list: lambda value, path: {"list": self._values(value, path)},
            dict: lambda value, path: {"dict": [self._pair(pair, path) for pair in value.items()]},
            np.random.Generator: self._generator,
            np.random.RandomState: self._generator,
        }

    def value(self, value: Any, path: str) -> Any:
        """Return a value for the header: the value if JSON can represent it, or a reference to an entry."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, path)
        if id(value) not in self._places:
            self._places[id(value)] = None
            self._alive.append(value)
            self._places[id(value)] = self._append(self._entry(value, path))
        if self._places[id(value)] is None:
            raise TypeError(f"cannot save `{path}`: it contains itself")
        return {"at": self._places[id(value)]}

    def _append(self, entry: dict[str, Any]) -> int:
        self.entries.append(entry)
        return len(self.entries) - 1

    def _entry(self, value: Any, path: str) -> dict[str, Any]:
        kind = type(value)
        if kind in self._plain:
            return self._plain[kind](value, path)
        if kind in self._objects:
            fields = {field: getattr(value, field) for field in parameters_of(kind)}
            entry = {"object": self._objects[kind], "fields": self._named(fields, path)}
            self._check(kind, fields, path)
            return entry
        if kind in self._estimators:
            parameters = value.get_params(deep=False)
            attributes = {
                name: part for name, part in vars(value).items() if name not in parameters and not hasattr(kind, name)
            }
            parts = {"parameters": self._named(parameters, path), "attributes": self._named(attributes, path)}
            if attributes:  # estimators that are parameters are not fitted
                self._check(kind, attributes, path)
            return {"estimator": self._estimators[kind], **parts}
        raise TypeError(
            f"cannot save `{path}`: it is {_shown(value)} of type {kind.__module__}.{kind.__qualname__}, and a file "
            "contains only numbers, texts, arrays and the classes of nurf, so that no code runs when it is loaded"
        )

    def _check(self, kind: type, values: dict[str, Any], path: str) -> None:
        """Raise an error now if loading the file would raise one."""
        try:
            self._registry.check(kind, values, set())
        except ValueError as error:
            raise TypeError(f"cannot save `{path}`: {error}") from error

    def _named(self, values: Mapping[str, Any], path: str) -> dict[str, Any]:
        return {name: self.value(value, f"{path}.{name}") for name, value in values.items()}

    def _values(self, values: Any, path: str) -> list[Any]:
        return [self.value(value, f"{path}[{place}]") for place, value in enumerate(values)]

    def _pair(self, pair: tuple[Any, Any], path: str) -> list[Any]:
        try:
            require_key(pair[0])
        except ValueError as error:
            raise TypeError(f"cannot save `{path}`: {error}") from error
        return self._values(pair, f"{path}[{pair[0]!r}]")

    def _generator(self, value: Any, path: str) -> dict[str, Any]:
        try:
            return {"generator": self._named(state_of(value), path)}
        except TypeError as error:
            raise TypeError(f"cannot save `{path}`: {error}") from error

    def _array(self, value: Any, path: str) -> Any:
        """Return a reference to an array; arrays with equal bytes are written once."""
        array, scalar = np.asarray(value), isinstance(value, np.generic)
        if array.dtype.kind in "OU" and all(isinstance(text, str) for text in array.flat):
            texts = [str(text) for text in array.flat]
            return texts[0] if scalar else {"at": self._append({"strings": texts, "shape": list(array.shape)})}
        try:
            entry, data = describe(array, scalar=scalar)
        except TypeError as error:
            raise TypeError(f"cannot save `{path}`: {error}") from error
        key = (str(entry), hashlib.sha256(data).digest())
        if key not in self._places:
            self._places[key] = self._append(entry)
            self.arrays.append(data)
        return {"at": self._places[key]}


def _shown(value: Any, length: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= length else f"{text[: length - 3]}..."
