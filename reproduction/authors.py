"""The errors that the authors' own code gives: the reference beside which ours are put."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

import numpy as np

from reproduction.results import Row, Table


@cache
def reference() -> Table:
    """Return the errors of the authors' code; see ``reference/README.md``.

    The steps of the path of ``sparse``, which they number as trials, are the stages of one trial here, as they are for
    ours. Alphas, seeds and the seconds of single stages are not known; those of single steps of training are.
    """
    text = files("reproduction").joinpath("reference", "authors_code.csv").read_text(encoding="utf-8")
    rows = []
    before = 0.0
    for row in csv.DictReader(text.splitlines()):
        law, trial, seconds = row["law"], int(row["trial"]), np.nan
        if law == "sparse":  # theirs are cumulated over the path
            total = float(row["seconds_of_run"])
            seconds, before = (total - before if trial > 1 else total), total
        rows.append(
            Row(
                row["case"],
                int(row["order"]),
                law,
                0 if law == "sparse" else trial - 1,
                int(row["neurons"]),
                float(row["relative_error"]),
                np.nan,
                seconds,
                -1,
            )
        )
    return Table(tuple(rows))
