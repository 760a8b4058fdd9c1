"""Speed as ratios in one run: ours against the bare NumPy and LAPACK calls that it cannot avoid.

    make bench [BENCH="--quick"]
    OMP_NUM_THREADS=1 python benchmarks/bench.py [--quick] [--only Fits Predictions] [--out benchmarks/results]

Ours and the bare calls are called in turn, so that other work on the machine slows down both; seconds are the least of
each, ratios the median. The table is printed, and saved as `bench.md` and `bench.json` with the machine, the versions
and the threads. It takes about ten minutes on one quiet core, and less than one with ``--quick``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bench_cases import QUICK, SECTIONS, Sizes
from measuring import Row, machine, save


def run(names: list[str], sizes: Sizes) -> dict[str, list[Row]]:
    """Return the rows of all sections, and print them as they come."""
    found = {}
    for name in names:
        start = time.perf_counter()
        found[name] = SECTIONS[name](sizes)
        print(f"{name} ({time.perf_counter() - start:.0f} s)", flush=True)
        for row in found[name]:
            what, ours, bare, ratio, aim = row.cells
            print(f"  {what:<75} {ours:>10} {bare:>10} {ratio:>7}  {aim}", flush=True)
    return found


def main(arguments: list[str] | None = None, sizes: Sizes | None = None) -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    found = run(options.only, sizes or (QUICK if options.quick else Sizes()))
    save(options.out, "bench", found, machine())


if __name__ == "__main__":
    main()
