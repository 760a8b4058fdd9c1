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
    results. Alphas and seeds are unknown. Of sampled networks the file has the seconds of all stages together, which
    stand at the first stage here.
    """
    rows: list[Row] = []
    before = 0.0
    with FILE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            method, trial, total = line["method"], int(line["trial"]), float(line["seconds_of_run"])
            if method == "sparse":  # the file has the sum over the path
                seconds, before = (total - before if trial > 1 else total), total
            else:
                run = (line["case"], int(line["order"]), method, trial - 1)
                seen = bool(rows) and run == (rows[-1].case, rows[-1].order, rows[-1].method, rows[-1].trial)
                seconds = 0.0 if seen else total
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
