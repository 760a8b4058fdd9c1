"""Measure how often `check_derivatives` finds wrong gradients, names the mistake, and accuses right ones.

    python benchmarks/gradient_checks.py [--part wrong] [--seeds 3] [--samples 10 30 100 300] [--dimensions 1 2 4 8]
    python benchmarks/gradient_checks.py --part right [--seeds 5] ...

Seven kinds of functions with exact gradients, drawn anew for each seed, in inputs with units of their own, and two of
five and six inputs: the deflection of a beam, and a concentration after a dose, whose inputs and values extend over
decades, as they are and as logarithms. The tables are Markdown, with a column for each number of samples. Part "wrong":
for each mistake and for each function, the share of wrong gradients whose mistake is named, and in brackets those
with wrong advice. Part "right": the number of right or noisy gradients that are said to contradict the values, and the
share of those that are confirmed.
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


def by_differences(f, X):
    """Return gradients of a function of positive inputs."""
    steps = 1e-5 * X[:, :, None] * np.eye(X.shape[1])
    return np.column_stack(
        [(f(X + steps[:, k]) - f(X - steps[:, k])) / (2 * steps[:, k, k]) for k in range(X.shape[1])]
    )


def beam(n, rng):
    """The deflection of a cantilever: Young's modulus, width, height, length and load."""
    X = rng.uniform([10e9, 0.05, 0.1, 1, 500], [200e9, 0.2, 0.4, 5, 5000], (n, 5))

    def deflection(X):
        modulus, width, height, length, load = X.T
        return 4 * load * length**3 / (modulus * width * height**3)

    return X, deflection(X), by_differences(deflection, X)


def kinetics(n, rng):
    """The concentration six hours after a dose, with absorption, elimination and saturated metabolism."""
    low, high = np.array([[10, 0.1, 0.01, 1, 0.1, 0.1], [1000, 10, 1, 100, 10, 10]])
    X = low * (high / low) ** rng.uniform(size=(n, 6))

    def concentration(X):
        dose, absorption, elimination, volume, fastest, half = X.T
        rate = elimination + 0.2 * fastest / (half + dose / volume)
        decays = np.exp(-6 * rate) - np.exp(-6 * absorption)
        return dose / volume * absorption * decays / (absorption - rate)

    return X, concentration(X), by_differences(concentration, X)


def kinetics_in_logarithms(n, rng):
    """The logarithm of the concentration, by the logarithms of the inputs."""
    X, y, G = kinetics(n, rng)
    return np.log(X) + 8, np.log(y) + 50, G * X / y[:, None]


FORMULAS = (beam, kinetics, kinetics_in_logarithms)


def sample(function, n, d, rng):
    """Return points, positive values, and gradients."""
    if function in FORMULAS:
        return function(n, rng)
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
    return X.copy(), y, np.where(hidden & (G.shape[1] > 1), np.nan, G)


def rotated_inputs(X, y, G, rng):
    rotation, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    return (X - X.mean(axis=0)) / X.std(axis=0) @ rotation, y, G * X.std(axis=0)


def one_row(X, y, G, rng):
    return X, y, G * np.where(np.arange(len(G)) == 0, 1e6, 1.0)[:, None]


SCALES = "scaled inputs|standardised inputs|multiplied by"
WRONG = {  # name: data -> wrong data, words of right advice
    "negated": (lambda X, y, G, rng: (X, y, -G), "wrong sign|by -1$"),
    "one column negated": (one_column(-1), "wrong sign|by -"),
    "times 1000": (lambda X, y, G, rng: (X, y, 1000 * G), "by 0.001"),
    "one column times 1000": (one_column(1000), "by 0.001"),
    "`x dy/dx`": (lambda X, y, G, rng: (X, y, G * X), "multiplied by the inputs"),
    "`dlog y / dlog x`": (lambda X, y, G, rng: (X, y, G * X / y[:, None]), "logarithmic derivatives"),
    "times the standard deviations": (
        lambda X, y, G, rng: (X, y, G * X.std(axis=0)),
        SCALES,
    ),
    "times the ranges": (
        lambda X, y, G, rng: (X, y, G * np.ptp(X, axis=0)),
        SCALES,
    ),
    "rows shuffled": (lambda X, y, G, rng: (X, y, rng.permutation(G)), "rows of the gradients"),
    "rows shifted": (lambda X, y, G, rng: (X, y, np.roll(G, 1, axis=0)), "rows of the gradients"),
    "columns rolled": (lambda X, y, G, rng: (X, y, np.roll(G, 1, axis=1)), "in another order: column"),
    "one row times 1e6": (one_row, "of row 0"),
    "of `log y`": (lambda X, y, G, rng: (X, y, G / y[:, None]), "gradients of log y"),
    "`y` is a logarithm": (lambda X, y, G, rng: (X, np.log(y), G), "`y` seems to be log-transformed"),
    "`X` standardised": (lambda X, y, G, rng: ((X - X.mean(axis=0)) / X.std(axis=0), y, G), "scaler.scale_"),
    "`X` rotated": (rotated_inputs, "linear combinations|wrong sign"),
    "`y` standardised": (lambda X, y, G, rng: (X, (y - y.mean()) / y.std(), 7.3 * G), "scaler.scale_"),
}
ELEVEN = list(WRONG)[:11]  # which count in the table of functions
RIGHT = {
    "exact": lambda X, y, G, rng: (X.copy(), y, G),
    "noise of 20% in the values": noisy_values,
    **{f"noise of {level}% in the gradients": noisy_gradients(level / 100) for level in (10, 50, 100, 200)},
    "derivatives by one input unknown": without_one_input,
}


def transposed(n, d, rng):
    """Return data of `d` outputs whose Jacobians are transposed."""
    X, A = rng.uniform(1, 2, (n, d)), rng.normal(size=(d, d))
    T = X @ A.T + rng.uniform(0, 6, d)
    return X, np.sin(T), np.swapaxes(np.cos(T)[:, :, None] * A, 1, 2)


def findings(spoil, function, n, dimensions, seeds):
    """Yield the results for all dimensions and seeds, and whether the mistake changed anything."""
    for d in [6] if function in FORMULAS else dimensions:
        for seed in range(seeds):
            rng = np.random.default_rng([seed, n, d])
            X, y, G = sample(function, n, d, rng)
            found = spoil(X, y, G, rng)
            if found[0] is not X or found[1] is not y or not np.allclose(found[2], G, equal_nan=True, atol=0):
                yield check_derivatives(*found)


def named(found, words):
    """Return pairs for each finding: whether the right advice was given, and whether wrong advice was."""
    accused = [(f.consistent is False and "more than one mistake" not in f.message, f.message) for f in found]
    return [(said and bool(re.search(words, text)), said and not re.search(words, text)) for said, text in accused]


def wrong_cell(pairs):
    """Return the share of wrong gradients whose mistake is named, and of those with wrong advice."""
    if not pairs:
        return ""
    right, wrong = np.mean(pairs, axis=0)
    return f"{right:.0%} ({wrong:.0%})"


def right_cell(found):
    """Return how many right gradients are accused, and the share of those that are confirmed."""
    verdicts = [finding.consistent for finding in found]
    return f"{verdicts.count(False)} of {len(found)} ({verdicts.count(True) / len(found):.0%})"


def print_table(title, samples, rows):
    print(f"\n| {title} | " + " | ".join(map(str, samples)) + " |")
    print("|---" * (1 + len(samples)) + "|")
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["wrong", "right"], default="wrong")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, nargs="+", default=[10, 30, 100, 300])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[1, 2, 4, 8])
    options = parser.parse_args()
    samples, given = options.samples, (options.dimensions, options.seeds)
    functions = (*FUNCTIONS, *FORMULAS)
    if options.part == "right":
        rows = {
            name: [
                right_cell([f for function in functions for f in findings(right, function, n, *given)]) for n in samples
            ]
            for name, right in RIGHT.items()
        }
        print_table("right gradients", samples, rows)
        return
    pairs = {
        (name, function, n): named(list(findings(spoil, function, n, *given)), words)
        for name, (spoil, words) in WRONG.items()
        for function in functions
        for n in samples
    }
    rows = {
        name: [wrong_cell([pair for function in functions for pair in pairs[name, function, n]]) for n in samples]
        for name in WRONG
    }
    jacobians = []
    for n in samples:
        runs = [(d, seed) for d in options.dimensions if d > 1 for seed in range(len(FUNCTIONS) * options.seeds)]
        found = [check_derivatives(*transposed(n, d, np.random.default_rng([seed, n, d]))) for d, seed in runs]
        jacobians.append(wrong_cell(named(found, "transposed")))
    print_table("mistake", samples, rows | {"Jacobians transposed": jacobians})
    rows = {
        function.__name__.replace("_", " "): [
            wrong_cell([pair for name in ELEVEN for pair in pairs[name, function, n]]) for n in samples
        ]
        for function in functions
    }
    print_table("function", samples, rows)


if __name__ == "__main__":
    main()
