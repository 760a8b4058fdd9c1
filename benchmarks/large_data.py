"""Time and memory of fits to memory-mapped arrays: ``python benchmarks/large_data.py 100000 1000000``.

Each number of rows is fitted in a process of its own: values and gradients of the borehole function in 8 dimensions,
1000 neurons, the default search. Memory is the peak above that of the interpreter with the package loaded: private
memory in use (`RssAnon` of Linux), without the pages of the files.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from nurf import RandomFeatureRegressor, problems

CHUNK = 100_000


def stored(folder, n):
    problem = problems.get("borehole")
    d = problem.dimension
    shapes = {"X": (n, d), "y": (n,), "gradients": (n, d)}
    arrays = {name: np.memmap(folder / name, float, "w+", shape=shape) for name, shape in shapes.items()}
    for first in range(0, n, CHUNK):
        jet = problem.jet(problem.sample(min(CHUNK, n - first), np.random.default_rng(first)))
        for name, array in arrays.items():
            array[first : first + len(jet)] = getattr(jet, name)
    for array in arrays.values():
        array.flush()
    return shapes


def private_memory():
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) * 1024


def run(folder, n, n_neurons, noise, weight):
    shapes = stored(folder, n)
    X, y, gradients = (np.memmap(folder / name, float, "r", shape=shape) for name, shape in shapes.items())
    if noise:
        y = np.asarray(y) + noise * np.std(y) * np.random.default_rng(1).normal(size=n)
    peak, done, before = [0], threading.Event(), private_memory()

    def watch():
        while not done.wait(0.02):
            peak[0] = max(peak[0], private_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    cpu, clock = time.process_time(), time.perf_counter()
    model = RandomFeatureRegressor(n_neurons, gradient_weight=weight, random_state=0).fit(X, y, gradients=gradients)
    cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    done.set()
    watcher.join()
    problem = problems.get("borehole")
    fresh = problem.sample(10_000, np.random.default_rng(10**9))
    error = np.sqrt(np.mean((model.predict(fresh) - problem.value(fresh)) ** 2))
    print(
        f"{n:>9} rows: {cpu:6.1f} s of processors, {clock:6.1f} s in all, {(peak[0] - before) / 1e9:.2f} GB; "
        f"error {error:.3g}, estimated {model.estimated_error_:.3g}, alpha {model.alpha_:g}, "
        f"gradients {model.gradient_weight_:g}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="+")
    parser.add_argument("--neurons", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.0, help="of the values, in units of their standard deviation")
    parser.add_argument("--gradient-weight", default="auto", help="a number, instead of one that is chosen")
    options = parser.parse_args()
    if len(options.rows) > 1:
        same = ["--neurons", options.neurons, "--noise", options.noise, "--gradient-weight", options.gradient_weight]
        for n in options.rows:
            subprocess.run([sys.executable, __file__, *map(str, (n, *same))], check=True)
    else:
        weight = options.gradient_weight if options.gradient_weight == "auto" else float(options.gradient_weight)
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder), options.rows[0], options.neurons, options.noise, weight)
