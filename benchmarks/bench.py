"""Speed as ratios in one run: ours against the bare NumPy and LAPACK calls that it cannot avoid.

make bench
"""

import subprocess
import sys
import time
import timeit

import numpy as np
from scipy.special import expit

from nurf import RandomFeatureRegressor, problems
from nurf.activations import Sigmoid
from nurf.densities import Local, Nonlocal, Uniform
from nurf.jets import Jet
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Loss, Validation
from nurf.training import ALPHAS, fit_adaptive, fit_random, stage_counts

K, N = 5000, 1000
GROWTH = 3.0
REPEATS = 7

NONLOCAL = """
import resource, time
import numpy as np
from nurf import Jet
from nurf.densities import Nonlocal
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (100_000, 8)) / np.sqrt(8)
jet = Jet(X, X.sum(axis=1), gradients=rng.standard_normal(X.shape))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
law = Nonlocal(bandwidth=0.05).prepare(jet)
middle = time.perf_counter()
law.sample(1000, rng)
end = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"prepare {middle - start:.1f} s, sample 1000 {end - middle:.1f} s, "
      f"peak {peak / 2**20:.2f} GB in all, {(peak - before) / 2**20:.2f} GB above the data")
"""


def median_time(function):
    """Return the median time of a call, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def sigmoid_by_tanh(u):
    u *= 0.5
    np.tanh(u, out=u)
    u *= 0.5
    u += 0.5


def sigmoid_by_expit(u):
    expit(u, out=u)


def gradients_in_the_loss():
    """Print what gradients in the loss cost, in several dimensions: the fit with them over that without."""
    for d in (2, 8, 32):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (K, d)) / np.sqrt(d)
        jet = Jet(X, np.sin(3 * X.sum(axis=1)), np.tile(3 * np.cos(3 * X.sum(axis=1))[:, None], d))
        for rule in (GeneralizedCrossValidation(), LeaveOneOut()):
            without, with_ = (
                median_time(
                    lambda loss=loss, jet=jet, rule=rule: fit_random(
                        jet, Uniform(), Sigmoid(0.1), N, np.random.default_rng(0), alphas=ALPHAS, rule=rule, loss=loss
                    )
                )
                for loss in (Loss(), Loss(gradients=0.01))
            )
            print(
                f"gradients in the loss, d = {d:2d}, {type(rule).__name__}: {with_:.3f} s = {with_ / without:.2f} x "
                "the fit without"
            )


def interleaved_times(*functions, number=50):
    """Return the smallest time of a call of each of the functions, in seconds, measured in turn."""
    best = np.full(len(functions), np.inf)
    for _ in range(10 * REPEATS):
        for position, function in enumerate(functions):
            best[position] = min(best[position], timeit.timeit(function, number=number) / number)
    return best


def one_point_at_a_time(model, point):
    """Print what calls at one point cost: of ``predict``, of ``function()``, and of bare NumPy on the same arrays."""
    f = model.function()

    def value():
        return expit((point - f.center) @ f.directions + f.offsets) @ f.coef

    def both():
        s = expit((point - f.center) @ f.directions + f.offsets)
        return s @ f.coef, (s * (1 - s) * f.slope_coef) @ f.normals

    for name, checked, plain, bare in (
        ("value", lambda: model.predict(point[None]), lambda: f(point), value),
        ("gradient", lambda: model.predict_gradient(point[None]), lambda: f.gradient(point), lambda: both()[1]),
        ("both", None, lambda: f.value_and_gradient(point), both),
    ):
        plain_s, bare_s = interleaved_times(plain, bare)
        text = f"one point, {name:8s} function {1e6 * plain_s:.1f} us = {plain_s / bare_s:.2f} x bare"
        print(text + (f", predict {1e6 * interleaved_times(checked)[0]:.0f} us" if checked else ""))


def many_inputs():
    """Print the seconds of fits with default parameters to gradients in many dimensions."""
    for d in (50, 200):
        rng = np.random.default_rng(0)
        X, a = rng.uniform(-1, 1, (300, d)), rng.standard_normal((d, 2)) / np.sqrt(d)
        y = np.sin(2 * X @ a).sum(axis=1) + (X**2).mean(axis=1)
        gradients = 2 * np.cos(2 * X @ a) @ a.T + 2 * X / d
        start = time.perf_counter()
        RandomFeatureRegressor(random_state=0).fit(X, y, gradients=gradients)
        print(f"default fit, 300 samples with gradients, d = {d}: {time.perf_counter() - start:.1f} s")


def main():
    rng = np.random.default_rng(0)
    borehole = problems.get("borehole")
    train, held = (borehole.jet(borehole.sample(K, rng)) for _ in range(2))
    A = np.ascontiguousarray(rng.standard_normal((8, N)) * 10)
    b = rng.standard_normal(N)
    u = np.empty((K, N))

    def affine():
        np.matmul(train.X, A, out=u)
        np.add(u, b, out=u)

    def fill(sigmoid):
        affine()
        sigmoid(u)

    affine_s = median_time(affine)
    steps = {f.__name__: median_time(lambda f=f: fill(f)) - affine_s for f in (sigmoid_by_tanh, sigmoid_by_expit)}
    fastest, sigmoid_s = min(steps.items(), key=lambda item: item[1])
    fill(sigmoid_by_expit)
    syrk_s = median_time(lambda: u.T @ u)
    centred = u - u.mean(axis=0)
    gram = centred.T @ centred / K
    factor_s = median_time(lambda: np.linalg.eigh(gram))
    path = rng.standard_normal((N, 16))
    product_s = median_time(lambda: u @ path)
    print(f"bare calls, K = {K}, d = 8, N = {N} (median of {REPEATS}):")
    print(
        f"  affine map {affine_s:.3f} s, sigmoid {sigmoid_s:.3f} s ({fastest}; the other: {max(steps.values()):.3f} s),"
    )
    print(f"  symmetric product {syrk_s:.3f} s, eigendecomposition {factor_s:.3f} s, path on one set {product_s:.3f} s")
    bare = affine_s + sigmoid_s + syrk_s + factor_s
    validated = bare + affine_s + sigmoid_s + product_s

    rule = Validation(held)
    for density in (Uniform(), Local(jitter=0.05), Nonlocal(bandwidth=0.05)):
        name = type(density).__name__
        fit_s = median_time(
            lambda d=density: fit_random(train, d, Sigmoid(0.1), N, np.random.default_rng(0), alphas=ALPHAS, rule=rule)
        )
        print(
            f"fit, 16 alphas, validated, {name:9s} {fit_s:.3f} s = {fit_s / bare:.2f} x bare"
            f" = {fit_s / validated:.2f} x bare with the validation features"
        )
        stages_s = median_time(
            lambda d=density: fit_adaptive(
                train,
                d,
                Sigmoid(0.1),
                stage_counts(N, GROWTH),
                np.random.default_rng(0),
                alphas=ALPHAS,
                rule=rule,
                patience=9,
            )
        )
        print(f"  in stages {stage_counts(N, GROWTH)} {stages_s:.3f} s = {stages_s / fit_s:.2f} x the fit at once")
    for rule in (GeneralizedCrossValidation(), LeaveOneOut()):
        fit_s = median_time(
            lambda r=rule: fit_random(
                train, Uniform(), Sigmoid(0.1), N, np.random.default_rng(0), alphas=ALPHAS, rule=r
            )
        )
        print(f"fit, 16 alphas, {type(rule).__name__}, Uniform {fit_s:.3f} s = {fit_s / bare:.2f} x bare")
    gradients_in_the_loss()

    model = RandomFeatureRegressor(N, random_state=0).fit(train.X, train.y)
    predict_s = median_time(lambda: model.predict(held.X))
    vector = rng.standard_normal(N)

    def bare_predict():
        fill(sigmoid_by_tanh if fastest == "sigmoid_by_tanh" else sigmoid_by_expit)
        return u @ vector

    bare_s = median_time(bare_predict)
    print(f"predict {K} rows: {predict_s:.4f} s = {predict_s / bare_s:.2f} x bare (affine map, sigmoid, product)")
    one_point_at_a_time(model, held.X[0])
    many_inputs()
    print("nonlocal sampling, K = 100,000, d = 8, N = 1000:", end=" ", flush=True)
    print(subprocess.run([sys.executable, "-c", NONLOCAL], capture_output=True, text=True, check=True).stdout.strip())


if __name__ == "__main__":
    main()
