"""The cases of `bench.py`: functions of the sizes, each of which returns rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from measuring import Row, compare, peak_above, seconds, slope
from nurf import DeepFeatureRegressor, Jet, RandomFeatureRegressor, SparseFeatureRegressor, problems
from nurf.activations import Sigmoid
from nurf.densities import ActiveSubspace, Local, Nonlocal, Representation, Uniform
from nurf.engines import ALPHAS, fit_outer, fit_random
from nurf.networks import Features
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Loss
from nurf.solvers.ridge import NormalEquations

DENSITIES = (Uniform(), ActiveSubspace(), Local(jitter=0.05), Nonlocal(bandwidth=0.05), Representation())
PRECISIONS = (np.float32, np.float64)
FACTORED = 6000  # neurons up to which fits find eigenvectors
BATCH, HIDDEN = 250, (64,) * 5  # of trained networks: the defaults of `DeepFeatureRegressor`


@dataclass(frozen=True)
class Sizes:
    """How large the cases are, and how often each is repeated."""

    n: int = 5000
    neurons: int = 1000
    rows: tuple[int, ...] = (1000, 10_000, 100_000, 1_000_000)
    widths: tuple[int, ...] = (100, 300, 1000, 3000, 8000)
    inputs: tuple[int, ...] = (1, 10, 100, 1000)
    outputs: tuple[int, ...] = (1, 10, 100)
    slopes: tuple[int, ...] = (2, 8, 32, 100, 300, 1000)
    steps: int = 400
    sparse: int = 30
    crowd: int = 100_000
    repeats: int = 5


QUICK = Sizes(
    2000, 300, (1000, 10_000, 100_000), (100, 300, 1000), (1, 10, 100), (1, 10, 100), (2, 8, 32), 100, 10, 20_000, 3
)


@dataclass
class Bare:
    """The calls of NumPy that a fit of ``N`` neurons to points (n, d) cannot avoid."""

    X: np.ndarray
    N: int
    k: int = 1

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        self.A, self.b = rng.standard_normal((self.X.shape[1], self.N)) * 5, rng.standard_normal(self.N)
        self.u = np.empty((min(len(self.X), max(1024, 2**22 // self.N)), self.N))
        self.y, self.coef = rng.standard_normal((len(self.X), self.k)), rng.standard_normal((self.N, self.k))

    def fill(self, rows: slice, u: np.ndarray) -> np.ndarray:
        """Return the features of some rows in ``u``: affine map and sigmoid, in the cache."""
        for start in range(0, len(u), step := max(1, 2**16 // self.N)):
            some = np.matmul(self.X[rows][start : start + step], self.A, out=u[start : start + step])
            some += self.b
            np.exp(np.negative(some, out=some), out=some)
            some += 1
            np.reciprocal(some, out=some)
        return u

    def blocks(self, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the features in blocks of rows."""
        for start in range(0, len(self.X), size):
            rows = slice(start, min(start + size, len(self.X)))
            yield rows, self.fill(rows, self.u[: rows.stop - start])

    def predict(self) -> None:
        """Compute features and values."""
        for _, u in self.blocks(max(1, min(len(self.u), 2**19 // self.N))):
            u @ self.coef

    def gram(self) -> np.ndarray:
        """Return the Gram matrix, and compute the moments."""
        total, moments = np.zeros((self.N, self.N)), np.zeros((self.N, self.k))
        for rows, u in self.blocks(len(self.u)):
            total += u.T @ u
            moments += u.T @ self.y[rows]
        return total

    def path(self) -> None:
        """Compute the Gram matrix and its eigenvectors, for all alphas."""
        vectors = np.linalg.eigh(self.gram())[1]
        vectors @ (vectors.T @ self.coef)

    def one(self) -> None:
        """Compute the Gram matrix and a Cholesky factorisation, for one alpha."""
        gram = self.gram()
        gram[np.diag_indices(self.N)] += 1e-3 * np.trace(gram)
        np.linalg.cholesky(gram)


def borehole(n: int) -> Jet:
    """Return samples of the borehole function, scaled into the unit ball."""
    problem, rng = problems.get("borehole"), np.random.default_rng(0)
    return problem.jet(problem.sample(n, rng))


def wave(n: int, d: int = 8, k: int = 1) -> Jet:
    """Return samples of ``k`` waves in ``d`` inputs with gradients."""
    rng = np.random.default_rng(0)
    X, a = rng.uniform(-1, 1, (n, d)) / np.sqrt(d), rng.standard_normal((d, k))
    y, gradients = np.sin(3 * X @ a), 3 * np.cos(3 * X @ a)[:, :, None] * a.T
    return Jet(X, y if k > 1 else y[:, 0], gradients if k > 1 else gradients[:, 0])


def features(N: int, d: int, degree: int = 0) -> Features:
    """Return uniform features in ``d`` inputs."""
    points = Jet(np.zeros((1, d)), np.zeros(1))
    return Features(Uniform().prepare(points).sample(N, np.random.default_rng(0)), Sigmoid(0.3), degree)


def fits(sizes: Sizes) -> list[Row]:
    """Fits of one network, by what chooses alpha and by density."""
    jet, n = borehole(sizes.n), sizes.n
    bare, rows = Bare(jet.X, sizes.neurons), []

    def fit(rule: object, density: object = DENSITIES[0], alphas: object = ALPHAS, **options: object) -> object:
        rng = np.random.default_rng(0)
        return fit_random(jet, density, Sigmoid(0.1), sizes.neurons, rng, alphas=alphas, rule=rule, **options)

    gcv, loo = GeneralizedCrossValidation(), LeaveOneOut()
    of = f"K = {n}, N = {sizes.neurons}"
    rows.append(compare(f"fit, one alpha, {of}", lambda: fit(gcv, alphas=ALPHAS[:1]), bare.one, sizes.repeats, 1.3))
    rows.append(compare(f"fit, 16 alphas, GCV, {of}", lambda: fit(gcv), bare.path, sizes.repeats, 1.3))
    rows.append(
        compare("the same with leave-one-out, over that", lambda: fit(loo), lambda: fit(gcv), sizes.repeats, 2.2)
    )
    some = features(sizes.neurons, jet.n_features)
    single, double = (partial(fit_outer, some, jet, alphas=ALPHAS[:7], rule=gcv, dtype=d) for d in PRECISIONS)
    rows.append(compare("fit, 7 alphas, GCV, dtype float32, over float64", single, double, sizes.repeats))
    loss = Loss(gradients=0.01)
    single, double = (partial(NormalEquations.from_some, some, jet, loss, d) for d in PRECISIONS)
    name = "normal equations with gradients, dtype float32, over float64"
    rows.append(compare(name, single, double, sizes.repeats))
    for density in DENSITIES[1:]:
        name = f"fit, 16 alphas, GCV, with {type(density).__name__}, over that with Uniform"
        rows.append(compare(name, lambda d=density: fit(gcv, d), lambda: fit(gcv), max(2, sizes.repeats // 2)))
    return rows


def densities(sizes: Sizes) -> list[Row]:
    """Sampling of hyperplanes by density, over that of local sampling; and nonlocal sampling of many points."""
    jet, rows = borehole(sizes.n), []

    def sample(density: object, jet: Jet = jet) -> object:
        return density.at_width(0.1).prepare(jet).sample(sizes.neurons, np.random.default_rng(0))

    for density in DENSITIES:
        aim = 1.2 if type(density) is Nonlocal else None
        name = f"sampling, {type(density).__name__}, over Local"
        rows.append(compare(name, partial(sample, density), partial(sample, Local(jitter=0.05)), 3, aim))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (sizes.crowd, 8)) / np.sqrt(8)
    crowd = Jet(X, X.sum(axis=1), rng.standard_normal(X.shape))
    name = f"Nonlocal sampling of {sizes.crowd} points, over 2 s"
    taken = seconds(lambda: sample(Nonlocal(bandwidth=0.05), crowd))
    return [*rows, Row(name, taken, 2.0, taken / 2.0, 1.0)]


def predictions(sizes: Sizes) -> list[Row]:
    """Predictions at many points and at one."""
    jet = borehole(sizes.n)
    model = RandomFeatureRegressor(sizes.neurons, width=0.2, density="uniform", alpha=1e-6, random_state=0)
    model.fit(jet.X, jet.y)
    bare, f, x = Bare(jet.X, sizes.neurons), model.function(), jet.X[0]

    def value() -> object:
        return expit((x - f.center) @ f.directions + f.offsets) @ f.coef

    def both() -> object:
        s = expit((x - f.center) @ f.directions + f.offsets)
        return s @ f.coef, (s * (1 - s) * f.slope_coef) @ f.normals

    many = 3 * sizes.repeats
    return [
        compare(f"predict {sizes.n} points", lambda: model.predict(jet.X), bare.predict, sizes.repeats, 1.2),
        compare(
            "predict_gradient, over predict",
            lambda: model.predict_gradient(jet.X),
            lambda: model.predict(jet.X),
            sizes.repeats,
            2.0,
        ),
        compare("one point, value", lambda: f(x), value, many),
        compare("one point, value and gradient", lambda: f.value_and_gradient(x), both, many),
        compare("one point, predict, over that", lambda: model.predict(x[None]), lambda: f(x), many),
    ]


def gradients(sizes: Sizes) -> list[Row]:
    """Gradients in the loss, over the fit without them."""
    rows = []
    for d in sizes.slopes:
        jet = wave(sizes.n, d)

        def fit(loss: Loss, rule: object, jet: Jet = jet, d: int = d) -> object:
            return fit_outer(features(sizes.neurons, d), jet, alphas=ALPHAS, rule=rule, loss=loss)

        for rule in (GeneralizedCrossValidation(), LeaveOneOut()):
            with_, without = (partial(fit, loss, rule) for loss in (Loss(gradients=0.01), Loss()))
            name = f"gradients in the loss, d = {d}, {type(rule).__name__}"
            rows.append(compare(name, with_, without, max(2, sizes.repeats // 2), 2.2))
    return rows


def scaling(sizes: Sizes) -> list[Row]:
    """How seconds and memory grow with samples, neurons, inputs and outputs, over bare calls of the same sizes."""
    base = {"n": sizes.n, "N": min(100, sizes.neurons), "d": 8, "k": 1}
    rows = []
    for letter, values in {"n": sizes.rows, "N": sizes.widths, "d": sizes.inputs, "k": sizes.outputs}.items():
        found = []
        for value in values:
            at = base | {letter: value} | ({"n": 2 * value} if letter == "N" else {})
            repeats = {values[-1]: 1, values[-2]: 2}.get(value, sizes.repeats)
            found.append(_fit_of_size(at, letter, value, repeats))
        used = peak_above(f"from bench_cases import memory_of_fit\nmemory_of_fit({at!r}, before)")
        rows += found
        ours, bare = (slope(values, [getattr(row, name) for row in found]) for name in ("ours", "bare"))
        rows.append(Row(f"power of {letter} by which seconds grow", ours, bare, ours / bare, unit=""))
        name = f"memory above the data, {letter} = {values[-1]}, over a Gram matrix and a block"
        rows.append(Row(name, *_memory(at, used)))
    return rows


def _fit_of_size(at: dict[str, int], letter: str, value: int, repeats: int) -> Row:
    jet, some = wave(at["n"], at["d"], at["k"]).only(()), features(at["N"], at["d"])
    rule, bare = GeneralizedCrossValidation(), Bare(jet.X, at["N"], at["k"])
    return compare(
        f"fit, {letter} = {value}", lambda: fit_outer(some, jet, alphas=ALPHAS, rule=rule), bare.path, repeats
    )


def _alphas(at: dict[str, int]) -> np.ndarray | None:
    """Return the path of alphas; of many neurons, None for those that are within reach."""
    return ALPHAS if at["N"] <= FACTORED else None


def _memory(at: dict[str, int], used: float) -> tuple[float, float, float, None, str]:
    """Return the memory of a fit, that of a Gram matrix and a block of features, and their ratio."""
    least = 8 * (at["N"] ** 2 + 1024 * at["N"]) / 2**20
    return used, least, used / least, None, "MB"


def memory_of_fit(at: dict[str, int], before: Callable[[], None]) -> None:
    """Make data, call ``before``, and fit."""
    jet, some = wave(at["n"], at["d"], at["k"]).only(()), features(at["N"], at["d"])
    before()
    fit_outer(some, jet, alphas=_alphas(at), rule=GeneralizedCrossValidation())


def trained(sizes: Sizes) -> list[Row]:
    """A step of trained networks, over the products of the same sizes: two for each layer and direction."""
    jet, rows = wave(sizes.n), []
    shapes = [(8, HIDDEN[0]), *pairwise(HIDDEN)]
    rng = np.random.default_rng(0)
    left = [rng.standard_normal((BATCH, a)).astype(np.float32) for a, _ in shapes]
    right = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    for name, weight, products in (("values", 0.0, 3), ("values and gradients", 1.0, 6)):
        model = DeepFeatureRegressor(HIDDEN, steps=sizes.steps, gradient_weight=weight, random_state=0)
        model.fit(jet.X, jet.y, gradients=jet.gradients if weight else None)
        cycle = max(model.fit_.history, key=lambda one: one.n_steps)
        ours = cycle.seconds / max(1, sizes.steps)
        bare = products * seconds(lambda: [a @ b for a, b in zip(left, right, strict=True)])
        rows.append(Row(f"a step of training, {name}", ours, bare, ours / bare))
    return rows


def sparse(sizes: Sizes) -> list[Row]:
    """The path of sparse training, over that of a sampled network with all defaults on the same data."""
    jet = wave(max(200, sizes.n // 10), 4)
    model = SparseFeatureRegressor(max_neurons=sizes.sparse, random_state=0)
    ours = seconds(lambda: model.fit(jet.X, jet.y))
    bare = seconds(lambda: RandomFeatureRegressor(sizes.neurons, random_state=0).fit(jet.X, jet.y))
    return [Row(f"sparse path up to {sizes.sparse} neurons, over a sampled network", ours, bare, ours / bare)]


def threads(sizes: Sizes) -> list[Row]:
    """The same fit and its bare calls with one thread and with two."""
    jet, rows = wave(sizes.n).only(()), []
    some, bare = features(sizes.neurons, 8), Bare(jet.X, sizes.neurons)
    fit = partial(fit_outer, some, jet, alphas=ALPHAS, rule=GeneralizedCrossValidation())
    for count in (1, 2):
        with threadpool_limits(count):
            rows.append(compare(f"fit, {count} thread{'s' * (count > 1)}", fit, bare.path, sizes.repeats))
    return rows


SECTIONS: dict[str, Callable[[Sizes], list[Row]]] = {
    "Fits": fits,
    "Sampling": densities,
    "Predictions": predictions,
    "Gradients in the loss": gradients,
    "Samples, neurons, inputs, outputs": scaling,
    "Trained networks": trained,
    "Sparse networks": sparse,
    "Threads": threads,
}
