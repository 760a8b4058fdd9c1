"""Measure how often `check_derivatives` finds wrong gradients, names the mistake, and accuses right ones.

    python benchmarks/gradient_checks.py [--seeds 20] [--samples 10 30 100 300] [--dimensions 1 2 4 8] [--noise 0]

Seven kinds of functions with exact gradients, drawn anew for each seed, in inputs with units of their own. The tables are
Markdown. A mistake is found if the gradients are said to contradict the values, and named if the advice is right; advice
is wrong if it names another mistake. `--noise` adds Gaussian noise to the values, in units of their standard deviation.
"""

import argparse
import time

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


def sample(function, n, d, rng, units=True):
    """Return points, values that are positive, and gradients."""
    Z = rng.uniform(-1, 1, (n, d))
    y, G = function(Z, rng)
    y, G = (y - y.min()) / y.std() + 0.5, G / y.std()
    scale = 10.0 ** rng.uniform(-2, 2, d) if units else np.ones(d)
    return (Z + 1.2) * scale, y, G / scale


def one_column(G, factor, rng):
    out = G.copy()
    out[:, rng.integers(G.shape[1])] *= factor
    return out


def unscaled(X, y, G, rng):
    """Standardised inputs with the gradients of the unscaled ones."""
    return (X - X.mean(axis=0)) / X.std(axis=0), y, G


def rescaled(X, y, G, rng):
    """Standardised values with the gradients of the unscaled ones."""
    return X, (y - y.mean()) / y.std(), G * 7.3


MISTAKES = {  # name: data -> wrong data, words of the right advice
    "negated": (lambda X, y, G, rng: (X, y, -G), "wrong sign"),
    "one column negated": (lambda X, y, G, rng: (X, y, one_column(G, -1, rng)), ("by -", "wrong sign")),
    "times 1000": (lambda X, y, G, rng: (X, y, 1000 * G), "by 0.001"),
    "one column times 1000": (lambda X, y, G, rng: (X, y, one_column(G, 1000, rng)), "by 0.001"),
    "`x dy/dx`": (lambda X, y, G, rng: (X, y, G * X), "multiplied by the inputs"),
    "`dlog y / dlog x`": (lambda X, y, G, rng: (X, y, G * X / y[:, None]), "logarithmic derivatives"),
    "of `log y`": (lambda X, y, G, rng: (X, y, G / y[:, None]), "log y"),
    "`y` is a logarithm": (lambda X, y, G, rng: (X, np.log(y), G), "logarithms"),
    "`X` standardised": (unscaled, "scaler.scale_"),
    "`y` standardised": (rescaled, "scaler.scale_"),
    "columns rolled": (lambda X, y, G, rng: (X, y, np.roll(G, 1, axis=1)), "in another order"),
    "rows shuffled": (lambda X, y, G, rng: (X, y, rng.permutation(G)), "rows of the gradients"),
}


def jacobian(n, d, rng):
    """Return data of `d` outputs whose Jacobians are transposed."""
    X = rng.uniform(1, 2, (n, d))
    A, phase = rng.normal(size=(d, d)), rng.uniform(0, 6, d)
    T = X @ A.T + phase
    G = np.cos(T)[:, :, None] * A
    return X, np.sin(T), np.swapaxes(G, 1, 2)


def right(n, d, rng, function, noise):
    X, y, G = sample(function, n, d, rng)
    return X, y + noise * y.std() * rng.normal(size=n), G


def gradient_noise(level):
    def noisy(X, y, G, rng):
        return X, y, G + level * np.sqrt(np.mean(G**2, axis=0)) * rng.normal(size=G.shape)

    return noisy


def rates(samples, dimensions, seeds, noise):
    """Return, for each mistake and number of samples, the shares that are found, named, and named wrongly."""
    table = {}
    for name, (spoil, words) in MISTAKES.items():
        words = (words,) if isinstance(words, str) else words
        for n in samples:
            counts = []
            for d in dimensions:
                if name == "columns rolled" and d == 1:
                    continue
                for function in FUNCTIONS:
                    for seed in range(seeds):
                        rng = np.random.default_rng([seed, n, d])
                        X, y, G = spoil(*right(n, d, rng, function, noise), rng)
                        found = check_derivatives(X, y, G)
                        named = any(word in found.message for word in words)
                        counts.append(
                            (
                                found.consistent is False,
                                found.consistent is False and named,
                                found.consistent is False and not named and "more than one" not in found.message,
                                found.consistent is True,
                            )
                        )
            table[name, n] = np.mean(counts, axis=0)
    for n in samples:
        counts = []
        for d in [d for d in dimensions if d > 1]:
            for seed in range(seeds):
                found = check_derivatives(*jacobian(n, d, np.random.default_rng([seed, n, d])))
                named = "transposed" in found.message
                counts.append(
                    (
                        found.consistent is False,
                        named,
                        found.consistent is False and not named,
                        found.consistent is True,
                    )
                )
        table["transposed Jacobian", n] = np.mean(counts, axis=0)
    return table


def false_alarms(samples, dimensions, seeds):
    table, seconds, calls = {}, 0.0, 0
    spoils = {"none": lambda X, y, G, rng: (X, y, G)} | {
        f"{100 * level:g}% in the gradients": gradient_noise(level) for level in (0.1, 0.5, 1, 2)
    }

    def hide(X, y, G, rng):
        G = G.copy()
        if G.shape[1] > 1:
            G[:, 0] = np.nan
        return X, y, G

    spoils["one input unknown"] = hide
    cases = [("exact", 0.0, "none"), ("20% in the values", 0.2, "none")] + [
        (name, 0.0, name) for name in list(spoils)[1:]
    ]
    for name, noise, spoil in cases:
        for n in samples:
            alarms, confirmed, total = 0, 0, 0
            for d in dimensions:
                for function in FUNCTIONS:
                    for seed in range(seeds):
                        rng = np.random.default_rng([seed, n, d, 1])
                        data = spoils[spoil](*right(n, d, rng, function, noise), rng)
                        start = time.perf_counter()
                        found = check_derivatives(*data)
                        seconds += time.perf_counter() - start
                        calls += 1
                        alarms += found.consistent is False
                        confirmed += found.consistent is True
                        total += 1
                        if found.consistent is False and VERBOSE:
                            print("ALARM", name, n, d, function.__name__, seed, found.misfit, found.message)
            table[name, n] = (alarms, total, confirmed)
    print("seconds per call", seconds / calls)
    return table


VERBOSE = False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, nargs="+", default=[10, 30, 100, 300])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--part", default="all")
    options = parser.parse_args()
    global VERBOSE
    VERBOSE = options.verbose
    if options.part != "wrong":
        table = false_alarms(options.samples, options.dimensions, options.seeds)
        for name in dict.fromkeys(name for name, _ in table):
            print(
                f"| {name} | "
                + " | ".join(
                    "{} of {} ({:.0%} conf)".format(*table[name, n][:2], table[name, n][2] / table[name, n][1])
                    for n in options.samples
                )
                + " |"
            )
    if options.part == "right":
        return
    found = rates(options.samples, options.dimensions, options.seeds, options.noise)
    for name in dict.fromkeys(name for name, _ in found):
        cells = ["{:.0%} {:.0%} {:.1%} conf{:.0%}".format(*found[name, n]) for n in options.samples]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
