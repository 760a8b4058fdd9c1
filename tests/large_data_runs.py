"""Runs of their own processes for tests/test_large_data.py: killed, with little memory, on a cluster."""

import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np

from nurf import RandomFeatureRegressor
from nurf.blockwise import SampledBlocks, _checkpoint
from nurf.engines import _parts
from nurf.estimators import _blockwise, _choices
from nurf.files import read

SETTING = {"density": "local", "width": 0.4, "gradient_weight": 0.01, "growth": None, "tail": "constant", "alpha": 1e-6}


def take_blocks_beyond(n_rows, change=setattr):
    """Fit more than ``n_rows`` rows in blocks."""
    for module in (_parts, _blockwise, _choices):
        change(module, "MAX_ROWS", n_rows)


def data(n, d, seed, terms=1, noise=0.0):
    """Values and gradients of a sum of ``sin(s.x)`` with different ``s``, and noise of the values."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    slopes = np.linspace(1, 2, d) * 2 / np.sqrt(d) * np.random.default_rng(7).choice([-1, 1], (terms, d))
    phases = X @ slopes.T
    return X, np.sin(phases).sum(axis=1) + noise * rng.normal(size=n), np.cos(phases) @ slopes


def interrupted(folder, what):
    """Fit to ten blocks; kill the process in the seventh of the second pass, or go on from there and do all at once."""
    take_blocks_beyond(300)
    _checkpoint.INTERVAL = 0.0
    arrays, passes = data(1000, 3, 0), []

    def source():
        passes.append(0)
        for number in range(10):
            if what == "kill" and len(passes) == 2 and number == 6:
                os.kill(os.getpid(), signal.SIGKILL)
            yield tuple(array[100 * number : 100 * (number + 1)] for array in arrays)

    state = folder / "state"
    if what == "resume":
        registry = _checkpoint.Checkpoint(state, "", SampledBlocks.parts).registry
        print(f"resumed after {read(state, registry, _checkpoint.Kept).state.n_blocks} blocks")
    for name, checkpoint in (("resumed", state), ("whole", None)):
        model = RandomFeatureRegressor(30, random_state=0, **SETTING)
        model.fit_blocks(source, checkpoint=checkpoint)
        np.save(folder / f"{name}.npy", model.predict(arrays[0]))


def mapped(folder, name, shape, mode):
    """Return a memory-mapped array."""
    return np.memmap(folder / name, float, mode, shape=shape)


def capped(folder, n, d, n_neurons, megabytes):
    """Fit to arrays on disk, with a limit of the memory above that of the interpreter."""
    shapes = {"X": (n, d), "y": (n,), "gradients": (n, d)}
    search = n_neurons >= 1000  # the default search, and a function for which it takes so many
    terms, noise = (10, 0.01) if search else (1, 0.0)
    stored = [mapped(folder, name, shape, "w+") for name, shape in shapes.items()]
    for first in range(0, n, 50_000):
        for array, part in zip(stored, data(min(50_000, n - first), d, first, terms, noise), strict=True):
            array[first : first + len(part)] = part
    del stored, array, part
    X, y, gradients = (mapped(folder, name, shape, "r") for name, shape in shapes.items())
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    used = int(status["VmData"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + megabytes * 10**6, resource.RLIM_INFINITY))
    start, clock = time.process_time(), time.perf_counter()
    model = RandomFeatureRegressor(n_neurons, random_state=0, **({} if search else SETTING)).fit(
        X, y, gradients=gradients
    )
    seconds = time.process_time() - start
    fresh, values, _ = data(2000, d, 10**9, terms)
    error = np.sqrt(np.mean((model.predict(fresh) - values) ** 2))
    print(f"{n} rows: {seconds:.1f} s of processors, {time.perf_counter() - clock:.1f} s; error {error:.2g}")
    print(model.report())
    assert error < 0.5 * values.std()
    try:
        np.ones(megabytes * 10**6 // 8)
    except MemoryError:
        return
    raise AssertionError("the limit does not hold")


def killed_once(block, flag, victim):
    """Return the block; the first process that sees that of the victim dies."""
    if np.any(block == victim) and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def cluster(folder, n, rows):
    """Fit on a cluster of processes, one of which is killed, and compare with the fit in memory."""
    import dask
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    take_blocks_beyond(min(_parts.MAX_ROWS, n // 2))
    X, y, gradients = data(n, 3, 0)
    fresh, flag = data(500, 3, 1)[0], folder / "flag"
    model = RandomFeatureRegressor(30, random_state=0, **SETTING)
    expected = model.fit(X, y, gradients=gradients, block_rows=rows).predict(fresh)
    dask.config.set({"distributed.comm.timeouts.connect": "60s"})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as workers,
        Client(workers),
    ):
        parts = [da.from_array(array, chunks=(rows, *array.shape[1:])) for array in (X, y, gradients)]
        parts[0] = parts[0].map_blocks(killed_once, flag, X[n // 2, 0], dtype=float, meta=np.empty((0, 0)))
        model.fit(parts[0], parts[1], gradients=parts[2], checkpoint=folder / "state")
        lazy = model.predict(da.from_array(fresh, chunks=(100, 3))).compute()
    np.testing.assert_allclose(model.predict(fresh), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(lazy, expected, rtol=1e-8, atol=1e-8)
    print("killed once" if flag.exists() else "nothing was killed")


if __name__ == "__main__":
    task, folder, *arguments = sys.argv[1:]
    tasks = {"interrupted": interrupted, "capped": capped, "cluster": cluster}
    tasks[task](Path(folder), *(int(word) if word.isdigit() else word for word in arguments))
