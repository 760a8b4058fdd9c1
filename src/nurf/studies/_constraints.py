"""Linear inequalities between inputs."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array, Mask

ROOM = 1e-9  # of the size of the terms: rounding
EXAMPLE = "such as 'r + 2 * L <= 5'"


@dataclass(frozen=True, eq=False)
class Constraints:
    """Inequalities ``A x <= b``.

    Parameters
    ----------
    texts : tuple of str
        As they were given.
    matrix : array of shape (c, d)
    bounds : array of shape (c,)
    """

    texts: tuple[str, ...]
    matrix: Array
    bounds: Array

    @classmethod
    def of(cls, texts: Any, free: Sequence[str], fixed: Mapping[str, float]) -> Constraints:
        """Return the inequalities in texts, over varying and fixed inputs."""
        if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(t, str) for t in texts):
            raise ValueError(f"`constraints` must be a list of texts {EXAMPLE}, got {texts!r}")
        rows = [row for text in texts for row in _rows(text, {**dict.fromkeys(free), **fixed})]
        matrix = np.array([[row.get(name, 0.0) for name in free] for row in rows]).reshape(len(rows), len(free))
        constants = [
            row.get("", 0.0) + sum(row.get(name, 0.0) * value for name, value in fixed.items()) for row in rows
        ]
        return cls(tuple(texts), matrix, -np.array(constants, float))

    def met(self, X: Array) -> Mask:
        """Return a mask (m,) of the inputs (m, d) that meet all constraints."""
        room = ROOM * (np.abs(X) @ np.abs(self.matrix).T + np.abs(self.bounds))
        return np.asarray(np.all(self.bounds + room >= X @ self.matrix.T, axis=1))


def _rows(text: str, names: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return the coefficients of ``left - right <= 0`` by name, and of the constant by "", for each comparison."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"`constraints` must be inequalities {EXAMPLE}, got {text!r}") from error
    if not isinstance(tree, ast.Compare):
        raise ValueError(f"`constraints` must compare two sides {EXAMPLE}, got {text!r}")
    sides = [_terms(side, text, names) for side in (tree.left, *tree.comparators)]
    rows = []
    for i, operator in enumerate(tree.ops):
        if not isinstance(operator, ast.LtE | ast.Lt | ast.GtE | ast.Gt):
            raise ValueError(f"`constraints` must use <= or >=, got {text!r}")
        low, high = (sides[i], sides[i + 1])[:: 1 if isinstance(operator, ast.LtE | ast.Lt) else -1]
        rows.append(_sum(low, high, -1.0))
    return rows


def _terms(node: Any, text: str, names: Mapping[str, Any]) -> dict[str, float]:
    """Return the coefficients of a linear expression."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return {"": float(value)}
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"`constraints` must have the inputs {list(names)}, got {name!r} in {text!r}")
            return {name: 1.0}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _times(_terms(operand, text, names), -1.0)
        case ast.BinOp(op=ast.Add() | ast.Sub() as operator, left=left, right=right):
            sign = 1.0 if isinstance(operator, ast.Add) else -1.0
            return _sum(_terms(left, text, names), _terms(right, text, names), sign)
        case ast.BinOp(op=ast.Mult() | ast.Div() as operator, left=left, right=right):
            first, second = _terms(left, text, names), _terms(right, text, names)
            if isinstance(operator, ast.Div) and set(second) <= {""} and second.get("", 0.0) != 0:
                return _times(first, 1 / second[""])
            if isinstance(operator, ast.Mult) and (set(first) <= {""} or set(second) <= {""}):
                factor, rest = (first, second) if set(first) <= {""} else (second, first)
                return _times(rest, factor.get("", 0.0))
    raise ValueError(f"`constraints` must be linear {EXAMPLE}, got {text!r}")


def _times(terms: dict[str, float], factor: float) -> dict[str, float]:
    return {name: factor * value for name, value in terms.items()}


def _sum(first: dict[str, float], second: dict[str, float], factor: float) -> dict[str, float]:
    names = dict.fromkeys([*first, *second])
    return {name: first.get(name, 0.0) + factor * second.get(name, 0.0) for name in names}
