"""Samples of functions whose values, gradients and Hessians are known in closed form."""

from dataclasses import dataclass, replace

import numpy as np

DIMENSIONS = (1, 2, 5, 20, 200)
SIZES = (1, 2, 3, 8, 30, 150, 300)
KNOWLEDGE = ("values", "gradients", "some partials", "directions", "elsewhere", "hessians")


def ridge(outer, slope, curvature):
    """A function ``outer(a.x)`` of one direction, with its first two derivatives."""

    def jet(X):
        a = np.linspace(1, 2, X.shape[1]) / np.sqrt(X.shape[1])
        z = X @ a
        return outer(z), slope(z)[:, None] * a, curvature(z)[:, None, None] * np.outer(a, a)

    return jet


def bowl(X):
    """``|x|^2 / 2 + x_1``."""
    n, d = X.shape
    return np.sum(X**2, axis=1) / 2 + X[:, 0], X + np.eye(d)[0], np.tile(np.eye(d), (n, 1, 1))


FUNCTIONS = {
    "linear": ridge(lambda z: z, np.ones_like, np.zeros_like),
    "wave": ridge(lambda z: np.sin(2 * z), lambda z: 2 * np.cos(2 * z), lambda z: -4 * np.sin(2 * z)),
    "peak": ridge(
        lambda z: np.exp(-2 * z**2),
        lambda z: -4 * z * np.exp(-2 * z**2),
        lambda z: (16 * z**2 - 4) * np.exp(-2 * z**2),
    ),
    "kink": ridge(np.abs, np.sign, np.zeros_like),
    "bowl": bowl,
}


@dataclass(frozen=True, eq=False)
class Data:
    """The arguments of ``fit``, and the function behind them."""

    function: str
    knows: str
    arguments: dict

    @property
    def X(self):
        return self.arguments["X"]

    @property
    def y(self):
        return self.arguments["y"]

    def using(self, **arguments):
        return replace(self, arguments=self.arguments | arguments)

    def fresh(self, n, rng):
        """Points that are distributed like the samples, and their values."""
        X = rng.uniform(-1, 1, (n, self.X.shape[1]))
        return X, FUNCTIONS[self.function](X)[0]


@dataclass(frozen=True)
class Spec:
    """What data are to be made: of which function, how many samples, in how many dimensions, and what is known."""

    function: str
    n: int
    d: int
    knows: str

    def __str__(self):
        return f"{self.function}, {self.n} x {self.d}, {self.knows}"

    def data(self, rng):
        X = rng.uniform(-1, 1, (self.n, self.d))
        y, gradients, hessians = FUNCTIONS[self.function](X)
        if self.knows == "some partials":
            gradients[rng.random(gradients.shape) < rng.choice([0.1, 0.5, 0.95])] = np.nan
        arguments = {"X": X, "y": y}
        if self.knows in ("gradients", "some partials", "hessians"):
            arguments["gradients"] = gradients
        if self.knows == "hessians":
            arguments["hessians"] = hessians
        if self.knows == "directions":
            arguments["directions"] = rng.normal(size=(self.n, self.d))
            arguments["gradients"] = np.sum(arguments["directions"] * gradients, axis=1)
        if self.knows == "elsewhere":
            arguments["gradients_at"] = rng.uniform(-1, 1, (max(1, self.n // 2), self.d))
            arguments["gradients"] = FUNCTIONS[self.function](arguments["gradients_at"])[1]
        return Data(self.function, self.knows, arguments)


def choose(rng, n=SIZES, d=DIMENSIONS, knows=KNOWLEDGE):
    """A spec; each argument is a value or several, of which one is chosen."""
    n, d, knows = (rng.choice(np.atleast_1d(values)).item() for values in (n, d, knows))
    if knows == "hessians" and n * d**2 > 1e5:
        knows = "gradients"  # larger Hessians are slow, and no more hostile
    return Spec(rng.choice(list(FUNCTIONS)).item(), n, d, knows)
