"""Errors of ``Surrogate`` with more and more rows: ``python benchmarks/more_rows.py Ishigami --rows 20000 200000``.

Functions, samples and gradients are those of ``collection.py``, with noise of the values. Rows are memory-mapped. The
time budget counts seconds of one core, so that other work on the machine does not change the model. The error is the
root mean square error at fresh points without noise, in units of the standard deviation of the values there.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from zlib import crc32

time.perf_counter = time.process_time

import numpy as np  # noqa: E402

from collection import Function, draw  # noqa: E402
from nurf import Surrogate  # noqa: E402


def mapped(folder, name, array):
    """Return an array as a memory map."""
    np.save(folder / f"{name}.npy", array)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def run(name, n_rows, noise, with_gradients, budget, folder):
    """Fit a function and print a row of the table."""
    rng = np.random.default_rng(crc32(name.encode()))
    X, y, gradients, fresh, truth = draw(Function(name), n_rows, rng)
    noisy = y + noise * y.std() * rng.normal(size=n_rows)
    X, noisy, gradients = (
        mapped(folder, kind, array) for kind, array in (("X", X), ("y", noisy), ("gradients", gradients))
    )
    start = time.process_time()
    model = Surrogate(budget, random_state=0).fit(X, noisy, gradients=gradients if with_gradients else None)
    seconds = time.process_time() - start
    error = np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) / truth.std()
    reported = model.fit_.error
    kind = "gradients" if with_gradients else "values"
    print(
        f"| {name} | {X.shape[1]} | {kind} | {noise:g} | {n_rows} | {error:.2g} | {reported:.2g} | {seconds:.0f} "
        f"| {model.engine_} |",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="+")
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--noise", type=float, default=0.05, help="in units of the standard deviation of the values")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--budget", type=float, default=20.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.functions:
        for n_rows in options.rows:
            with tempfile.TemporaryDirectory() as folder:
                run(name, n_rows, options.noise, options.gradients, options.budget, Path(folder))
