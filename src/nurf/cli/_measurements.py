"""Tables of measurements: which inputs of a model are known, and which outputs were measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nurf._tables import Table, columns_of
from nurf._types import Array


def measurements(table: Table, inputs: Sequence[str], targets: Sequence[str]) -> tuple[Any, Array]:
    """Return a frame of known inputs, or None, and measured outputs (m, k), with NaN where nothing was measured."""
    columns = list(table.frame.columns)
    known = [name for name in inputs if name in columns]
    measured = [name for name in columns if name not in known]
    alone = len(measured) == len(targets) == 1  # then it can have any name
    unknown = [] if alone else [name for name in measured if name not in targets]
    if unknown or not measured:
        found = f"unknown {unknown}" if unknown else f"{columns}: no output is measured"
        raise ValueError(
            f"{table.name}: expected columns of measured outputs, of {list(targets)}, and of known inputs, of "
            f"{list(inputs)}, got {found}"
        )
    values = np.full((len(table.frame), len(targets)), np.nan)
    values[:, [0] if alone else [targets.index(name) for name in measured]] = columns_of(table, measured, unknown=True)
    return columns_of(table, known) if known else None, values
