"""The errors of the authors' own code, with which ours are compared."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np

from reproduction.results import Row, Table

FILE = Path(__file__).parent / "reference" / "authors_code.csv"


@cache
def reference() -> Table:
    """Return the errors of the authors' code; see ``reference/README.md``.

    The file numbers the steps of a path of ``sparse`` as trials; here they are the stages of one trial, as in our
    results. Alphas and seeds are unknown, and so are the seconds of a stage, except for the steps of training.
    """
    rows = []
    before = 0.0
    with FILE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            method, trial, seconds = line["method"], int(line["trial"]), np.nan
            if method == "sparse":  # the file has the sum over the path
                total = float(line["seconds_of_run"])
                seconds, before = (total - before if trial > 1 else total), total
            rows.append(
                Row(
                    case=line["case"],
                    order=int(line["order"]),
                    method=method,
                    trial=0 if method == "sparse" else trial - 1,
                    neurons=int(line["neurons"]),
                    error=float(line["relative_error"]),
                    alpha=np.nan,
                    seconds=seconds,
                    seed=-1,
                )
            )
    return Table(tuple(rows))
