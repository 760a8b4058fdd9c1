"""A thousand inputs, a hundred outputs and their Jacobians: seconds, memory and error of a fit in few directions.

    python benchmarks/many_outputs.py [--samples 1000] [--inputs 1000] [--outputs 100] [--neurons 1000] [--products 20]

The function has 10 active directions and outputs of rank 15. ``--products`` gives the products ``J V`` with so many
directions, the same for all samples, instead of whole Jacobians.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from nurf import RandomFeatureRegressor


def make(n: int, d: int, k: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return points (n, d), values (n, k) and Jacobians (n, k, d), and the same of 500 fresh points."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((d, 10)))[0]
    inner = directions @ rng.standard_normal((10, 30)) * 0.8
    outer = rng.standard_normal((30, 15)) @ rng.standard_normal((15, k))
    X, fresh = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (500, d))
    jacobians = np.empty((n, k, d))
    for row, x in enumerate(X):
        jacobians[row] = (outer.T * (1 - np.tanh(x @ inner) ** 2)) @ inner.T
    return X, np.tanh(X @ inner) @ outer, jacobians, fresh, np.tanh(fresh @ inner) @ outer


def main() -> None:
    """Fit once and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, size in {"samples": 1000, "inputs": 1000, "outputs": 100, "neurons": 1000, "products": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    options = parser.parse_args()
    X, y, jacobians, fresh, expected = make(options.samples, options.inputs, options.outputs)
    data = {"gradients": jacobians}
    if options.products:
        rows = jacobians[::10].reshape(-1, options.inputs)
        V = np.linalg.eigh(rows.T @ rows)[1][:, -options.products :]
        data = {"gradients": jacobians @ V, "directions": np.broadcast_to(V.T, (len(X), *V.T.shape))}
        del jacobians
    before = peak_gigabytes()
    start, cpu = time.perf_counter(), time.process_time()
    model = RandomFeatureRegressor(options.neurons, random_state=0).fit(X, y, **data)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    error = np.sqrt(np.mean((model.predict(fresh) - expected) ** 2 / np.var(expected, axis=0)))
    estimated = np.sqrt(np.mean(model.estimated_error_**2 / np.var(y, axis=0)))
    print(model.report())
    print(f"{seconds:.1f} s, {cpu:.1f} s of processor time")
    print(f"{peak_gigabytes():.2f} GB at the peak, {before:.2f} GB before the fit")
    print(f"error {error:.3f} of the standard deviation at new points, estimated {estimated:.3f}")


def peak_gigabytes() -> float:
    """Return the largest amount of memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
