"""Equations solved by rows of functionals, against exact solutions and finite differences.

    python benchmarks/functionals.py            # the tables of docs/functionals.md, about five minutes
    python benchmarks/functionals.py --quick    # one seed and few rows

Errors are root mean squares at 2000 new points of the region over the standard deviation of the solution there, as
geometric means over the seeds. Seconds are of one core. Rows of the equation are at points of a scrambled
Sobol sequence, 40 values at the boundary. Finite differences (central, of second order; upwind for transport) have the
grid that takes at least as long as the sampled network.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.sparse import diags_array, eye_array, kron
from scipy.sparse.linalg import spsolve
from scipy.stats import qmc

from nurf import KernelFeatureRegressor, RandomFeatureRegressor
from nurf.functionals import Operator, along, laplacian, partial, value

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Case:
    """``-diffusion Laplace u + wind.grad u + decay u = f`` in the unit square, with a known solution."""

    name: str
    diffusion: float
    wind: Function
    decay: float
    solution: Function
    gradient: Function
    of_laplace: Function

    @property
    def operator(self) -> Operator:
        """The left side."""
        return -self.diffusion * laplacian() + along(self.wind) + self.decay * value()

    def source(self, X: np.ndarray) -> np.ndarray:
        """Return the right side."""
        carried = np.sum(self.wind(X) * self.gradient(X), axis=1)
        return -self.diffusion * self.of_laplace(X) + carried + self.decay * self.solution(X)


def still(X: np.ndarray) -> np.ndarray:
    """Return no wind."""
    return np.zeros_like(X)


def whirl(X: np.ndarray) -> np.ndarray:
    """Return a wind around the middle of the square."""
    return np.stack([0.5 - X[:, 1], X[:, 0] - 0.5], axis=1) * 2


def layer_parts(x: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``x - (exp((x - 1) / w) - exp(-1 / w)) / (1 - exp(-1 / w))`` and two derivatives."""
    steep = np.exp((x - 1) / width) / (1 - np.exp(-1 / width))
    return x - steep + np.exp(-1 / width) / (1 - np.exp(-1 / width)), 1 - steep / width, -steep / width**2


def layer(width: float) -> tuple[Function, Function, Function]:
    """Return a function with a layer at the right side, its gradient and its Laplacian."""

    def solution(X: np.ndarray) -> np.ndarray:
        return 4 * X[:, 1] * (1 - X[:, 1]) * layer_parts(X[:, 0], width)[0]

    def gradient(X: np.ndarray) -> np.ndarray:
        a, slope, _ = layer_parts(X[:, 0], width)
        y = X[:, 1]
        return np.stack([4 * y * (1 - y) * slope, 4 * (1 - 2 * y) * a], axis=1)

    def of_laplace(X: np.ndarray) -> np.ndarray:
        a, _, bend = layer_parts(X[:, 0], width)
        y = X[:, 1]
        return 4 * y * (1 - y) * bend - 8 * a

    return solution, gradient, of_laplace


def waves(a: float, b: float) -> tuple[Function, Function, Function]:
    """Return ``sin(a x) exp(b y)``, its gradient and its Laplacian."""

    def solution(X: np.ndarray) -> np.ndarray:
        return np.sin(a * X[:, 0]) * np.exp(b * X[:, 1])

    def gradient(X: np.ndarray) -> np.ndarray:
        return np.stack([a * np.cos(a * X[:, 0]) * np.exp(b * X[:, 1]), b * solution(X)], axis=1)

    return solution, gradient, lambda X: (b**2 - a**2) * solution(X)


def bump(sharpness: float) -> tuple[Function, Function, Function]:
    """Return ``exp(-s |x - m|^2)``, its gradient and its Laplacian."""
    middle = np.array([0.4, 0.6])

    def solution(X: np.ndarray) -> np.ndarray:
        return np.exp(-sharpness * np.sum((X - middle) ** 2, axis=1))

    def gradient(X: np.ndarray) -> np.ndarray:
        return -2 * sharpness * (X - middle) * solution(X)[:, None]

    def of_laplace(X: np.ndarray) -> np.ndarray:
        return (4 * sharpness**2 * np.sum((X - middle) ** 2, axis=1) - 4 * sharpness) * solution(X)

    return solution, gradient, of_laplace


def sines() -> tuple[Function, Function, Function]:
    """Return ``sin(2 pi x) sin(3 pi y)``, which is zero at the boundary, its gradient and its Laplacian."""
    a, b = 2 * np.pi, 3 * np.pi

    def solution(X: np.ndarray) -> np.ndarray:
        return np.sin(a * X[:, 0]) * np.sin(b * X[:, 1])

    def gradient(X: np.ndarray) -> np.ndarray:
        x, y = a * X[:, 0], b * X[:, 1]
        return np.stack([a * np.cos(x) * np.sin(y), b * np.sin(x) * np.cos(y)], axis=1)

    return solution, gradient, lambda X: -(a**2 + b**2) * solution(X)


CASES = [
    Case("Poisson, smooth", 1.0, still, 0.0, *waves(3.0, 1.0)),
    Case("Poisson, zero at the boundary", 1.0, still, 0.0, *sines()),
    Case("Poisson, a bump", 1.0, still, 0.0, *bump(60.0)),
    Case("whirl and decay, smooth", 0.1, whirl, 2.0, *waves(3.0, 1.0)),
    Case("wind, a layer of 0.1", 0.1, lambda X: np.tile([1.0, 0.0], (len(X), 1)), 0.0, *layer(0.1)),
]


def boundary(n: int) -> np.ndarray:
    """Return ``n`` points on the sides of the unit square."""
    t = np.arange(n // 4) / (n // 4)
    zero, one = np.zeros_like(t), np.ones_like(t)
    return np.concatenate([np.c_[t, zero], np.c_[one, t], np.c_[1 - t, one], np.c_[zero, 1 - t]])


def finite_differences(case: Case, n: int) -> tuple[Function, float]:
    """Return the solution on a grid of ``n`` by ``n`` inner points, interpolated by cubic splines, and the seconds."""
    start = time.process_time()
    t = np.linspace(0, 1, n + 2)
    h, grid = t[1], np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1)
    inner = grid[1:-1, 1:-1].reshape(-1, 2)
    u = case.solution(grid.reshape(-1, 2)).reshape(n + 2, n + 2)
    u[1:-1, 1:-1] = 0.0
    second = diags_array([np.ones(n - 1), -2 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]) / h**2
    first = diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]) / (2 * h)
    unit, (by_x, by_y) = eye_array(n), case.wind(inner).T
    matrix = -case.diffusion * (kron(second, unit) + kron(unit, second)) + case.decay * eye_array(n * n)
    matrix = matrix + diags_array(by_x) @ kron(first, unit) + diags_array(by_y) @ kron(unit, first)
    b_x, b_y = by_x.reshape(n, n), by_y.reshape(n, n)
    right = case.source(inner).reshape(n, n)
    ends = case.diffusion / h**2
    right[0] += (ends + b_x[0] / (2 * h)) * u[0, 1:-1]
    right[-1] += (ends - b_x[-1] / (2 * h)) * u[-1, 1:-1]
    right[:, 0] += (ends + b_y[:, 0] / (2 * h)) * u[1:-1, 0]
    right[:, -1] += (ends - b_y[:, -1] / (2 * h)) * u[1:-1, -1]
    u[1:-1, 1:-1] = spsolve(matrix.tocsc(), right.ravel()).reshape(n, n)
    return RegularGridInterpolator((t, t), u, method="cubic"), time.process_time() - start


def error(predicted: np.ndarray, true: np.ndarray) -> float:
    """Return the root mean square error over the standard deviation of the truth."""
    return float(np.sqrt(np.mean((predicted - true) ** 2)) / true.std())


MODELS: dict[str, Callable[[int], Any]] = {
    "sampled": lambda seed: RandomFeatureRegressor(random_state=seed),
    "wide": lambda seed: KernelFeatureRegressor(),
}


def fitted(make: Callable[[int], Any], seed: int, X: np.ndarray, y: np.ndarray, rows: list[Any]) -> tuple[Any, float]:
    """Return a fitted model and the seconds that it took."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(seed).fit(X, y, functionals=rows)
    return model, time.process_time() - start


def mean(numbers: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(numbers))))


def equations(sizes: list[int], seeds: range) -> None:
    """Print errors of equations of second order."""
    each = "estimated | s | in 90%"
    print(f"| problem | rows | sampled | {each} | wide | {each} | differences, same number of points | as long |")
    print("|---" * 12 + "|")
    for case in CASES:
        for n in sizes:
            found: dict[str, list[list[float]]] = {name: [] for name in MODELS}
            coarse: list[float] = []
            for seed in seeds:
                new = np.random.default_rng(1000 + seed).uniform(0, 1, (2000, 2))
                points, X, true = qmc.Sobol(2, rng=seed).random(n), boundary(40), case.solution(new)
                rows = [case.operator.equals(case.source, at=points)]
                for name, make in MODELS.items():
                    model, seconds = fitted(make, seed, X, case.solution(X), rows)
                    ends = model.predict_interval(new)
                    inside = np.mean((ends[:, 0] <= true) & (true <= ends[:, 1]))
                    estimated = model.estimated_error_ / true.std()
                    found[name].append([error(model.predict(new), true), estimated, seconds, max(inside, 1e-3)])
                coarse.append(error(finite_differences(case, round(np.sqrt(n)))[0](new), true))
            side, spent, fine = 20, 0.0, np.inf
            while spent < mean([each[2] for each in found["sampled"]]) and side < 1000:
                side = round(1.5 * side)
                solution, spent = finite_differences(case, side)
                fine = error(solution(new), true)
            cells = [f"{mean(column):.1e}" for name in MODELS for column in map(list, zip(*found[name], strict=True))]
            cells = [f"{float(cell):.2g}" if i % 4 > 1 else cell for i, cell in enumerate(cells)]
            print(
                f"| {case.name} | {n} | {' | '.join(cells)} | {mean(coarse):.1e} | {fine:.1e} ({side}²) |", flush=True
            )


def transported(X: np.ndarray) -> np.ndarray:
    """Return the solution of ``u_t + x u_x = 0`` with ``u = sin(4 x)`` at ``t = 0``; the inputs are ``(x, t)``."""
    return np.sin(4 * X[:, 0] * np.exp(-X[:, 1]))


def upwind(n: int) -> tuple[Function, float]:
    """Return the solution of the same equation for x from -1 to 1 by upwind differences, with ``n`` points."""
    start = time.process_time()
    x = np.linspace(-1, 1, n)
    h, n_steps = x[1] - x[0], n
    history, u = [np.sin(4 * x)], np.sin(4 * x)
    for _ in range(n_steps):
        slopes = np.diff(u) / h
        left, right = np.append(0.0, slopes), np.append(slopes, 0.0)
        u = u - x * np.where(x > 0, left, right) / n_steps
        history.append(u)
    grid = RegularGridInterpolator((x, np.linspace(0, 1, n_steps + 1)), np.array(history).T)
    return grid, time.process_time() - start


def transport(n: int, seeds: range) -> None:
    """Print errors of a transport equation."""
    x = np.linspace(-1, 1, 20)
    operator = partial(1) + (lambda X: X[:, 0]) * partial(0)
    start = np.stack([x, 0 * x], axis=1)
    for name, make in MODELS.items():
        errors, estimates, seconds = [], [], []
        for seed in seeds:
            new = np.random.default_rng(1000 + seed).uniform([-1, 0], [1, 1], (2000, 2))
            points = qmc.scale(qmc.Sobol(2, rng=seed).random(n), [-1, 0], [1, 1])
            model, spent = fitted(make, seed, start, transported(start), [operator.equals(0.0, at=points)])
            errors.append(error(model.predict(new), transported(new)))
            estimates.append(model.estimated_error_ / transported(new).std())
            seconds.append(spent)
        print(
            f"transport, {n} rows, {name}: {mean(errors):.1e}, estimated {mean(estimates):.1e}, {mean(seconds):.1f} s"
        )
    for side in (round(np.sqrt(n)), 1000):
        grid, spent = upwind(side)
        print(f"upwind differences, {side}^2 points: {error(grid(new), transported(new)):.1e}, {spent:.1f} s")


def measured_mean(seeds: range) -> None:
    """Print errors with and without the mean over a region in which no value is known."""
    for name, make in MODELS.items():
        errors: list[list[float]] = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            X = rng.uniform(0, 1, (30, 2))
            X = X[~np.all((X > 0.3) & (X < 0.8), axis=1)]
            solution, hole = bump(10.0)[0], rng.uniform(0.3, 0.8, (2000, 2))
            fine = np.stack(np.meshgrid(*[0.3 + 0.5 * (np.arange(400) + 0.5) / 400] * 2), axis=-1).reshape(-1, 2)
            row = value().mean([0.3, 0.3], [0.8, 0.8]).equals(float(solution(fine).mean()))
            models = [fitted(make, seed, X, solution(X), rows)[0] for rows in ([], [row])]
            errors.append([error(model.predict(hole), solution(hole)) for model in models])
        without, with_mean = (mean(list(column)) for column in zip(*errors, strict=True))
        print(f"a hole in the data, {name}: {without:.2f} of values alone, {with_mean:.2f} with the mean over the hole")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed and few rows")
    quick = parser.parse_args().quick
    seeds = range(1 if quick else 3)
    equations([64] if quick else [64, 256], seeds)
    transport(64 if quick else 128, seeds)
    measured_mean(seeds if quick else range(10))


if __name__ == "__main__":
    main()
