"""Measure how often `check_derivatives` finds wrong gradients, names the mistake, and accuses right ones.

    python benchmarks/gradient_checks.py [--part wrong] [--seeds 3] [--samples 10 30 100 300] [--dimensions 1 2 4 8]
    python benchmarks/gradient_checks.py --part right [--seeds 5] ...

Seven kinds of functions with exact gradients, drawn anew for each seed, in inputs with units of their own. The tables
are Markdown, with a column for each number of samples. Part "wrong": the share of wrong gradients that are said to
contradict the values, and those whose advice is another than the right one. Part "right": the number of right or noisy
gradients that are said to contradict the values, and the share of those that are confirmed.
"""

import argparse
import re

import numpy as np

from nurf import check_derivatives


def polynomial(Z, rng):
    """A cubic polynomial of two directions."""
    W, c = rng.normal(size=(2, Z.shape[1])) / np.sqrt(Z.shape[1]), rng.normal(size=(3, 2))
    T = Z @ W.T
    return (c[0] * T + c[1] * T**2 + c[2] * T**3).sum(axis=1), (c[0] + 2 * c[1] * T + 3 * c[2] * T**2) @ W


def wave(Z, rng):
    """A plane wave, from a tenth of a period to five periods over the data."""
    w = rng.normal(size=Z.shape[1])
    w *= np.exp(rng.uniform(np.log(0.3), np.log(15))) / np.linalg.norm(w)
    phase = rng.uniform(0, 2 * np.pi)
    return np.sin(Z @ w + phase), np.cos(Z @ w + phase)[:, None] * w


def ridge(Z, rng):
    """A smooth ridge function that saturates."""
    w = rng.normal(size=Z.shape[1])
    w *= 2 / np.linalg.norm(w)
    t = np.tanh((Z - rng.uniform(-0.5, 0.5, Z.shape[1])) @ w)
    return t, (1 - t**2)[:, None] * w


def step(Z, rng):
    """A step that is much narrower than the distance of the samples, on a slope."""
    w, v = rng.normal(size=(2, Z.shape[1])) / np.sqrt(Z.shape[1])
    t = np.tanh(100 * Z @ w)
    return t + 0.3 * Z @ v, 100 * (1 - t**2)[:, None] * w + 0.3 * v


def additive(Z, rng):
    """A sum of functions of single inputs."""
    a, phase = rng.uniform(0.5, 3, Z.shape[1]), rng.uniform(0, 2 * np.pi, Z.shape[1])
    return np.sin(a * Z + phase).sum(axis=1), a * np.cos(a * Z + phase)


def bumps(Z, rng):
    """Six Gaussian bumps."""
    centers, sizes = rng.uniform(-1, 1, (6, Z.shape[1])), rng.normal(size=6)
    width = rng.uniform(0.3, 1) * np.sqrt(Z.shape[1])
    E = sizes * np.exp(-((Z[:, None] - centers) ** 2).sum(axis=2) / (2 * width**2))
    return E.sum(axis=1), -(E[:, :, None] * (Z[:, None] - centers)).sum(axis=1) / width**2


def kinks(Z, rng):
    """A sum of absolute values: the gradient jumps."""
    W, b = rng.normal(size=(3, Z.shape[1])) / np.sqrt(Z.shape[1]), rng.uniform(-0.3, 0.3, 3)
    T = Z @ W.T + b
    return np.abs(T).sum(axis=1), np.sign(T) @ W


FUNCTIONS = (polynomial, wave, ridge, step, additive, bumps, kinks)


def sample(function, n, d, rng):
    """Return points, positive values, and gradients."""
    Z = rng.uniform(-1, 1, (n, d))
    y, G = function(Z, rng)
    units = 10.0 ** rng.uniform(-2, 2, d)
    return (Z + 1.2) * units, (y - y.min()) / y.std() + 0.5, G / y.std() / units


def one_column(factor):
    def spoil(X, y, G, rng):
        return X, y, G * np.where(np.arange(G.shape[1]) == rng.integers(G.shape[1]), factor, 1.0)

    return spoil


def noisy_gradients(level):
    def spoil(X, y, G, rng):
        return X, y, G + level * np.sqrt(np.mean(G**2, axis=0)) * rng.normal(size=G.shape)

    return spoil


def noisy_values(X, y, G, rng):
    return X, y + 0.2 * y.std() * rng.normal(size=len(y)), G


def without_one_input(X, y, G, rng):
    hidden = np.arange(G.shape[1]) == rng.integers(G.shape[1])
    return X, y, np.where(hidden & (G.shape[1] > 1), np.nan, G)


def rotated_inputs(X, y, G, rng):
    rotation, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    return (X - X.mean(axis=0)) / X.std(axis=0) @ rotation, y, G * X.std(axis=0)


WRONG = {  # name: data -> wrong data, words of right advice
    "negated": (lambda X, y, G, rng: (X, y, -G), "wrong sign"),
    "one column negated": (one_column(-1), "wrong sign|by -"),
    "times 1000": (lambda X, y, G, rng: (X, y, 1000 * G), "by 0.001"),
    "one column times 1000": (one_column(1000), "by 0.001"),
    "`x dy/dx`": (lambda X, y, G, rng: (X, y, G * X), "multiplied by the inputs"),
    "`dlog y / dlog x`": (lambda X, y, G, rng: (X, y, G * X / y[:, None]), "logarithmic derivatives"),
    "of `log y`": (lambda X, y, G, rng: (X, y, G / y[:, None]), "those of log y"),
    "`y` is a logarithm": (lambda X, y, G, rng: (X, np.log(y), G), "`y` seems to be logarithms"),
    "`X` standardised": (lambda X, y, G, rng: ((X - X.mean(axis=0)) / X.std(axis=0), y, G), "scaler.scale_"),
    "`X` rotated": (rotated_inputs, "linear combinations|wrong sign"),
    "`y` standardised": (lambda X, y, G, rng: (X, (y - y.mean()) / y.std(), 7.3 * G), "scaler.scale_"),
    "columns rolled": (lambda X, y, G, rng: (X, y, np.roll(G, 1, axis=1)), "in another order: column"),
    "rows shuffled": (lambda X, y, G, rng: (X, y, rng.permutation(G)), "rows of the gradients"),
}
RIGHT = {
    "exact": lambda X, y, G, rng: (X, y, G),
    "noise of 20% in the values": noisy_values,
    **{f"noise of {level}% in the gradients": noisy_gradients(level / 100) for level in (10, 50, 100, 200)},
    "derivatives by one input unknown": without_one_input,
}


def transposed(n, d, rng):
    """Return data of `d` outputs whose Jacobians are transposed."""
    X, A = rng.uniform(1, 2, (n, d)), rng.normal(size=(d, d))
    T = X @ A.T + rng.uniform(0, 6, d)
    return X, np.sin(T), np.swapaxes(np.cos(T)[:, :, None] * A, 1, 2)


def findings(spoil, n, dimensions, seeds):
    """Yield the results for all functions, dimensions and seeds."""
    for d in dimensions:
        for function in FUNCTIONS:
            for seed in range(seeds):
                rng = np.random.default_rng([seed, n, d])
                yield check_derivatives(*spoil(*sample(function, n, d, rng), rng))


def wrong_cell(found, words):
    """Return the share of wrong gradients that are found, and of those with wrong advice."""
    accused = [finding for finding in found if finding.consistent is False]
    misled = [f for f in accused if not re.search(words, f.message) and "more than one mistake" not in f.message]
    return f"{len(accused) / len(found):.0%} ({len(misled) / len(found):.0%})"


def right_cell(found):
    """Return how many right gradients are accused, and the share of those that are confirmed."""
    verdicts = [finding.consistent for finding in found]
    return f"{verdicts.count(False)} of {len(found)} ({verdicts.count(True) / len(found):.0%})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["wrong", "right"], default="wrong")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, nargs="+", default=[10, 30, 100, 300])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[1, 2, 4, 8])
    options = parser.parse_args()
    print(f"| {options.part} | " + " | ".join(map(str, options.samples)) + " |")
    print("|---" * (1 + len(options.samples)) + "|")
    if options.part == "right":
        for name, spoil in RIGHT.items():
            cells = [right_cell(list(findings(spoil, n, options.dimensions, options.seeds))) for n in options.samples]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        return
    several = [d for d in options.dimensions if d > 1]
    for name, (spoil, words) in WRONG.items():
        dimensions = several if name == "columns rolled" else options.dimensions
        cells = [wrong_cell(list(findings(spoil, n, dimensions, options.seeds)), words) for n in options.samples]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    cells = []
    for n in options.samples:
        runs = [(d, seed) for d in several for seed in range(len(FUNCTIONS) * options.seeds)]
        found = [check_derivatives(*transposed(n, d, np.random.default_rng([seed, n, d]))) for d, seed in runs]
        cells.append(wrong_cell(found, "transposed"))
    print("| Jacobians transposed | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
