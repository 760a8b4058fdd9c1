"""Measure studies: how many runs they need, against other libraries, and whether they survive kills.

    python benchmarks/studies.py error [--functions Ishigami Wing] [--seeds 0 1 2] [--out results.csv]
    python benchmarks/studies.py minimum [--methods nurf "nurf gradients" scipy smt botorch]
    python benchmarks/studies.py failure
    python benchmarks/studies.py faults [--functions 200]
    python benchmarks/studies.py speed
    python benchmarks/studies.py table [--out results.csv]
    python benchmarks/studies.py picture [--out results.csv] [--to pictures]

Each part prints its rows and adds them to the file, as `part,function,method,seed,runs,result,course,seconds`; rows
that are there are kept, so that a run can be stopped and taken up again, and `--jobs 2` takes two processes. `runs` is
empty where the target was not reached within the largest number of runs. `course` has the error after some numbers of
runs, as `6:0.31 8:0.12`. Seconds of one core count all steps. Methods of libraries that are not installed are left
out. The table has medians over the seeds that are there, as Markdown; the pictures `studies_error.png` and
`studies_minimum.png` have the median error against runs.

error: runs until the root mean square error on 2000 fresh points is 1% of the standard deviation, on every second
function of uqtestfuns with at most 10 inputs, at most 20 runs for each input and 120. "nurf" chooses runs, "sobol"
fits the same model to a Sobol design, both without and with gradients (differences, which count as part of the run);
"sklearn" takes the points with the largest variance of scikit-learn's process. All start with the same Sobol points
and take one run for each input at a time.

minimum: calls until a value is within 1% of the range of the function from the smallest value, one at a time, at most
60. "scipy" is L-BFGS-B with gradients from Sobol starts, "smt" EGO with expected improvement, "botorch"
qLogExpectedImprovement with SingleTaskGP. All begin with 2 d + 2 Sobol points, except scipy. With constraints,
"scipy" is SLSQP, and smt and botorch take part with a penalty.

failure: runs, with gradients, until nine of ten draws are within 10% of the answer, at most 120, and the answer
beside the published value, for five functions of uqtestfuns.

faults: four processes share a study of 400 runs, a fifth of which fails; processes are killed at random. The runs are
compared with the runs of a study without kills. Each call of the simulator writes a line to a file: the result has the
number of calls, and of calls that repeat a run whose result was written before. Times of kills come from the clock, so
that no two measurements are the same.

speed: seconds of one core of the fit after `tell`, of the answer and of `ask(8)`, for each goal and 300 runs of 10
inputs, values alone and with gradients.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import sqlite3
import tempfile
import time
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import minimize as descend
from scipy.stats import qmc

import nurf
from collection import FUNCTIONS, Function, sample
from decisions import PUBLISHED, Native
from measuring import measure, print_table, read

KEY = ["part", "function", "method", "seed"]
COLUMNS = [*KEY, "runs", "result", "course", "seconds"]
MOST_CALLS = 60
STEP = 1e-6


class Problem:
    """A function on a box with gradients by central differences, and its smallest value.

    Parameters
    ----------
    value : callable
        Maps points (m, d) to values (m,), or with constraints (m, k), of which the others must be at most 0.
    low, high : sequence of float
    smallest : float
    """

    def __init__(self, value, low, high, smallest, constraints=0):
        self.value, self.low, self.high = value, np.array(low, float), np.array(high, float)
        self.smallest, self.constraints = smallest, constraints
        self.calls, self.best, self.course = 0, np.inf, {}
        X = self.low + (self.high - self.low) * qmc.Sobol(len(self.low), seed=0).random_base2(14)
        y = self.outputs(X)
        feasible = np.all(y[:, 1:] <= 0, axis=1)
        self.tolerance = 0.01 * (y[feasible, 0].max() - smallest)

    @property
    def dimension(self):
        """The number of inputs."""
        return len(self.low)

    def outputs(self, X):
        """Return all outputs (m, k)."""
        return np.asarray(self.value(np.atleast_2d(X)), float).reshape(len(np.atleast_2d(X)), -1)

    def gradients(self, X):
        """Return gradients (m, k, d)."""
        steps = np.diag(STEP * (self.high - self.low))
        return np.stack([(self.outputs(X + s) - self.outputs(X - s)) / (2 * s.sum()) for s in steps], axis=-1)

    def call(self, X):
        """Return all outputs and count the calls."""
        y = self.outputs(X)
        for row in y:
            self.calls += 1
            if np.all(row[1:] <= 1e-6) and row[0] < self.best:
                self.best = row[0]
                self.course[self.calls] = (self.best - self.smallest) / (100 * self.tolerance)
            if self.reached or self.calls >= MOST_CALLS:
                raise StopIteration
        return y

    @property
    def reached(self):
        """Whether a call came near the smallest value."""
        return self.best <= self.smallest + self.tolerance


def branin(X):
    x, y = X.T
    return (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


def hartmann(A, P):
    return lambda X: -np.exp(-np.sum(A * (X[:, None] - P) ** 2, axis=-1)) @ np.array([1.0, 1.2, 3.0, 3.2])


H3 = (
    np.array([[3, 10, 30], [0.1, 10, 35]] * 2, float),
    1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
)
H6 = (
    np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    ),
    1e-4
    * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    ),
)


def rosenbrock(X):
    return np.sum(100 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1 - X[:, :-1]) ** 2, axis=1)


def ackley(X):
    waves = np.exp(np.mean(np.cos(2 * np.pi * X), axis=1))
    return 20 + np.e - 20 * np.exp(-0.2 * np.sqrt(np.mean(X**2, axis=1) + 1e-12)) - waves


def goldstein_price(X):
    x, y = X.T
    first = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
    return first * (30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2))


def camel(X):
    x, y = X.T
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2


def levy(X):
    w = 1 + (X - 1) / 4
    middle = np.sum((w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2), axis=1)
    last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
    return np.sin(np.pi * w[:, 0]) ** 2 + middle + last


def beam(X):
    """The weight of a cantilever of width, height and load, whose stress and bend must not be too large."""
    width, height = X.T
    load, length, modulus = 5e4, 2.0, 2e11
    stress = 6 * load * length / (width * height**2) / 1e8 - 1
    bend = 4 * load * length**3 / (modulus * width * height**3) / 4e-3 - 1
    return np.column_stack([7850 * width * height * length, stress, bend])


PROBLEMS = {
    "Branin": lambda: Problem(branin, [-5, 0], [10, 15], 0.397887),
    "Hartmann 3": lambda: Problem(hartmann(*H3), [0] * 3, [1] * 3, -3.86278),
    "Hartmann 6": lambda: Problem(hartmann(*H6), [0] * 6, [1] * 6, -3.32237),
    "Rosenbrock 2": lambda: Problem(rosenbrock, [-5] * 2, [10] * 2, 0.0),
    "Rosenbrock 5": lambda: Problem(rosenbrock, [-5] * 5, [10] * 5, 0.0),
    "Ackley 5": lambda: Problem(ackley, [-32.768] * 5, [32.768] * 5, 0.0),
    "Goldstein-Price": lambda: Problem(goldstein_price, [-2] * 2, [2] * 2, 3.0),
    "six-hump camel": lambda: Problem(camel, [-3, -2], [3, 2], -1.0316),
    "Levy 4": lambda: Problem(levy, [-10] * 4, [10] * 4, 0.0),
    "beam": lambda: Problem(beam, [0.02, 0.1], [0.2, 0.4], BEAM, 2),
}
BEAM = 91.2  # kg; replaced below by a fine grid


def _smallest_beam():
    grid = np.stack(np.meshgrid(np.linspace(0.02, 0.2, 1501), np.linspace(0.1, 0.4, 1501)), axis=-1).reshape(-1, 2)
    y = beam(grid)
    return float(y[np.all(y[:, 1:] <= 0, axis=1), 0].min())


def with_nurf(problem, seed, gradients):
    inputs = {f"x{j}": (a, b) for j, (a, b) in enumerate(zip(problem.low, problem.high, strict=True))}
    goal = nurf.goals.Minimum(None, constraints={1 + i: (None, 0.0) for i in range(problem.constraints)})
    study = nurf.Study(inputs, goal, random_state=seed)
    while True:
        X = study.ask(1)
        points = X.to_numpy()
        y = problem.call(points)
        study.tell(X, y, gradients=problem.gradients(points) if gradients else None)


def starts(problem, seed, n):
    return problem.low + (problem.high - problem.low) * qmc.Sobol(problem.dimension, seed=seed).random(n)


def penalised(y):
    """Return values (m,) with penalties for constraints, in units of the values."""
    return y[:, 0] * (1 + 10 * np.sum(np.maximum(y[:, 1:], 0), axis=1))


def with_scipy(problem, seed, _):
    bounds = list(zip(problem.low, problem.high, strict=True))
    for start in starts(problem, seed, 64):
        cache = {}

        def at(x, cache=cache):
            key = x.tobytes()
            if key not in cache:
                cache[key] = problem.call(x)[0], problem.gradients(x)[0]
            return cache[key]

        options = {"jac": lambda x, at=at: at(x)[1][0], "bounds": bounds}
        if problem.constraints:
            limits = [
                {"type": "ineq", "fun": lambda x, at=at, i=i: -at(x)[0][i], "jac": lambda x, at=at, i=i: -at(x)[1][i]}
                for i in range(1, problem.constraints + 1)
            ]
            descend(lambda x, at=at: at(x)[0][0], start, method="SLSQP", constraints=limits, **options)
        else:
            descend(lambda x, at=at: at(x)[0][0], start, method="L-BFGS-B", **options)


def with_smt(problem, seed, _):
    from smt.applications import EGO
    from smt.design_space import DesignSpace
    from smt.surrogate_models import KRG

    space = DesignSpace(np.column_stack([problem.low, problem.high]))
    model = KRG(design_space=space, print_global=False)
    first = starts(problem, seed, 2 * problem.dimension + 2)
    ego = EGO(n_iter=MOST_CALLS, criterion="EI", xdoe=first, surrogate=model, seed=seed)
    ego.optimize(fun=lambda X: penalised(problem.call(X))[:, None])


def with_botorch(problem, seed, _):
    import torch
    from botorch.acquisition import qLogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    X = starts(problem, seed, 2 * problem.dimension + 2)
    y = penalised(problem.call(X))
    bounds = torch.tensor(np.stack([problem.low, problem.high]))
    while True:
        points, values = torch.tensor(X), -torch.tensor(y)[:, None]
        d = problem.dimension
        model = SingleTaskGP(points, values, input_transform=Normalize(d), outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        gain = qLogExpectedImprovement(model, best_f=values.max())
        found, _ = optimize_acqf(gain, bounds, q=1, num_restarts=10, raw_samples=512)
        X = np.concatenate([X, found.numpy()])
        y = np.append(y, penalised(problem.call(found.numpy())))


MINIMISERS = {
    "nurf": lambda p, seed: with_nurf(p, seed, False),
    "nurf gradients": lambda p, seed: with_nurf(p, seed, True),
    "scipy": lambda p, seed: with_scipy(p, seed, None),
    "smt": lambda p, seed: with_smt(p, seed, None),
    "botorch": lambda p, seed: with_botorch(p, seed, None),
}


def minimum(name, method, seed):
    """Return the calls until the smallest value is found, or None, the best value, and the course."""
    global BEAM
    if name == "beam":
        BEAM = _smallest_beam()
    problem = PROBLEMS[name]()
    try:
        MINIMISERS[method](problem, seed)
    except StopIteration:
        pass
    except RuntimeError as error:  # a generator or a library that wraps StopIteration
        if "StopIteration" not in repr(error):
            raise
    return (problem.calls if problem.reached else None), f"{problem.best:.4g}", problem.course


def relative_error(model, fresh, truth):
    return float(np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) / truth.std())


def error(name, method, seed):
    """Return the runs until the error is 1%, or None, the last error, and the course."""
    function, course = Function(name), {}
    d = function.dimension
    fresh = sample(2000, d, np.random.default_rng(1000 + seed))
    truth = function(fresh)
    if not np.isfinite(truth).all() or np.ptp(truth) == 0:
        raise ValueError("it is constant or not finite")
    most, with_gradients = min(20 * d, 120), "gradients" in method
    inside = lambda X: np.clip(X, 2e-5, 1 - 2e-5)  # noqa: E731

    def told(X):
        return function(inside(X)), function.gradients(inside(X)) if with_gradients else None

    n_initial = max(5, 2 * d + 2)
    if method.startswith("nurf"):
        inputs = {f"x{j}": (0, 1) for j in range(d)}
        study = nurf.Study(inputs, nurf.goals.Error(0.01), n_initial=n_initial, random_state=seed)
        n = n_initial
        while True:
            X = study.ask(n)
            y, slopes = told(X.to_numpy())
            study.tell(X, y, gradients=slopes)
            fresh_frame = study._space.named(fresh)
            wrong = relative_error(study.model, fresh_frame, truth)
            runs, n = len(study.runs), max(2, d)
            course[runs] = wrong
            if wrong <= 0.01 or runs >= most:
                break
        return (runs if wrong <= 0.01 else None), f"{wrong:.3g}", course
    sequence, n = qmc.Sobol(d, seed=seed).random(most + d), n_initial
    while True:
        if method.startswith("sobol"):
            X = sequence[:n]
            y, slopes = told(X)
            model = nurf.KernelFeatureRegressor(check_gradients=False, max_rows=2500).fit(X, y, gradients=slopes)
        else:
            X = sequence[:n] if n == n_initial else X
            y = function(inside(X))
            model = _process().fit(X, (y - y.mean()) / y.std())
        scale = (0.0, 1.0) if method.startswith("sobol") else (y.mean(), y.std())
        wrong = float(np.sqrt(np.mean((scale[0] + scale[1] * model.predict(fresh) - truth) ** 2)) / truth.std())
        course[n] = wrong
        if wrong <= 0.01 or n >= most:
            return (n if wrong <= 0.01 else None), f"{wrong:.3g}", course
        n += max(2, d)
        if method == "sklearn":
            X = _with_largest_variance(model, X, n, seed)


def _process():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    class Scaled(GaussianProcessRegressor):
        def fit(self, X, y):
            self.kernel = ConstantKernel(1.0, (1e-2, 1e4)) * RBF(np.ones(X.shape[1]), (1e-2, 1e2)) + WhiteKernel(
                1e-8, (1e-10, 1)
            )
            return super().fit(X, y)

    return Scaled()


def _with_largest_variance(model, X, n, seed):
    """Return points with the largest variances, each given the ones before."""
    candidates = qmc.Sobol(X.shape[1], seed=[seed, n][0] + 7 * n).random_base2(10)
    while len(X) < n:
        best = candidates[np.argmax(model.predict(candidates, return_std=True)[1])]
        X = np.concatenate([X, best[None]])
        known = type(model)()
        known.kernel = model.kernel_
        known.optimizer = None
        super(type(model), known).fit(X, np.zeros(len(X)))
        model = known
    return X


def reliability(name, method, seed):
    """Return the runs until the probability of failure is known, or None, the answer beside the published one."""
    limit, published = PUBLISHED[name]
    function = Native(name)
    inputs = {f"x{j}": marginal for j, marginal in enumerate(function.marginals)}
    study = nurf.Study(inputs, nurf.goals.Failure(below=limit), max_runs=120, random_state=seed)
    while not study.done:
        X = study.ask(4)
        points = X.to_numpy()
        study.tell(X, function(points), gradients=function.gradients(points) if "gradients" in method else None)
    met = study.verdict.reason == "target"
    course = {n: answer["loss"] for n, answer in study._store.answers().items()}
    return (len(study.runs) if met else None), f"{float(study.answer.estimate):.3g} ({published})", course


def speed(name, method, _):
    """Return nothing, and the seconds of a step with 300 runs of 10 inputs."""
    d, n = 10, 300
    inputs = {f"x{j}": (0, 1) for j in range(d)}
    weights = np.linspace(1, 0.1, d)
    study = nurf.Study(inputs, GOALS[name](), random_state=0)

    def told(X):
        phase = 3 * X @ weights
        return np.sin(phase), 3 * np.cos(phase)[:, None] * weights if "gradients" in method else None

    X = qmc.Sobol(d, seed=0).random(512)[: n - 8]
    study.tell(X, told(X)[0], gradients=told(X)[1])
    study.model  # noqa: B018
    X = study.ask(8)
    study.tell(X, told(X.to_numpy())[0], gradients=told(X.to_numpy())[1])
    start = time.process_time()
    study.model  # noqa: B018
    fitted = time.process_time()
    study.answer  # noqa: B018
    answered = time.process_time()
    study.ask(8)
    asked = time.process_time()
    return None, f"fit {fitted - start:.2f} s, answer {answered - fitted:.2f} s, ask {asked - answered:.2f} s", {}


GOALS = {
    "Error": lambda: nurf.goals.Error(1e-6),
    "Minimum": lambda: nurf.goals.Minimum(1e-6),
    "Failure": lambda: nurf.goals.Failure(above=0.999, target=1e-6),
    "Level": lambda: nurf.goals.Level(0.5, 1e-6),
    "Sensitivities": lambda: nurf.goals.Sensitivities(1e-6),
    "Calibration": lambda: nurf.goals.Calibration(0.5, 0.1, 1e-6),
}


def unreliable(point, log=None):
    """Return a value after some time, or fail for a fifth of the inputs; add inputs and time to a file."""
    if log is not None:
        with open(log, "a") as file:  # one line is written at once
            file.write(f"{point['x0']!r} {point['x1']!r} {time.time()!r}\n")
    time.sleep(0.02)
    if point["x0"] < 0.2:
        raise RuntimeError("no mesh")
    return point["x0"] + point["x1"]


def _work(path, most, log):
    nurf.load(path).run(partial(unreliable, log=log), max_runs=most)


def _repeated(path, log):
    """Return the number of calls, and of those that began after the result of their run was written."""
    with contextlib.closing(sqlite3.connect(path)) as base:
        told = {tuple(json.loads(x)): when for x, when in base.execute("SELECT x, told FROM runs")}
    calls = [tuple(map(float, line.split())) for line in Path(log).read_text().splitlines()]
    return len(calls), sum(when > told[x0, x1] for x0, x1, when in calls)


def faults(name, _, seed):
    """Return the runs that are the same as without kills, of all, after a number of kills."""
    kills, most, inputs = int(name), 2 * int(name), {"x0": (0, 1), "x1": (0, 1)}
    options = {"n_initial": most, "random_state": seed}
    rng, context, workers, done = np.random.default_rng(seed), multiprocessing.get_context("fork"), [], 0
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder) / "a.study", Path(folder) / "calls.txt"
        nurf.Study(inputs, nurf.goals.Error(None), path=path, **options)
        while True:
            workers = [worker for worker in workers if worker.is_alive()]
            states = nurf.load(path).runs.state
            if done >= kills and len(states) == most and not (states == "asked").any():
                break
            while len(workers) < 4 and not (len(states) == most and not (states == "asked").any()):
                workers.append(context.Process(target=_work, args=(path, most, log)))
                workers[-1].start()
            time.sleep(rng.uniform(0.0, 0.1))
            if not workers:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(workers[rng.integers(len(workers))].pid, signal.SIGKILL)
                done += 1
            if done >= kills:
                for worker in workers:
                    worker.join()
        killed, (calls, repeated) = nurf.load(path).runs, _repeated(path, log)
    whole = nurf.Study(inputs, nurf.goals.Error(None), **options)
    whole.run(unreliable, max_runs=most)
    columns = ["x0", "x1", "y", "state"]
    left, right = (runs[columns].sort_values("x0", ignore_index=True) for runs in (killed, whole.runs))
    same = "the same" if left.equals(right) else "other"
    return len(killed), f"{done} kills, {same} runs, {calls} calls, {repeated} of finished runs", {}


PARTS = {"error": error, "minimum": minimum, "failure": reliability, "speed": speed, "faults": faults}
LIBRARIES = {"smt": "smt", "botorch": "botorch"}
METHODS = {
    "error": ["nurf", "sobol", "nurf gradients", "sobol gradients", "sklearn"],
    "minimum": list(MINIMISERS),
    "failure": ["nurf", "nurf gradients"],
    "speed": ["nurf", "nurf gradients"],
    "faults": ["nurf"],
}


def names_of(part):
    """Return the functions of a part."""
    names = {"minimum": list(PROBLEMS), "failure": list(PUBLISHED), "speed": list(GOALS), "faults": ["200"]}
    if part in names:
        return names[part]
    return [name for name in FUNCTIONS if Function(name).dimension <= 10]


def run(part, name, method, seed):
    """Return the row of one measurement."""
    start, (runs, result, course) = time.process_time(), (None, "", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            runs, result, course = PARTS[part](name, method, seed)
        except (ValueError, np.linalg.LinAlgError) as problem:
            result = f"{type(problem).__name__}: {problem}"[:60]
    steps = " ".join(f"{n}:{error:.3g}" for n, error in course.items())
    found = {"runs": "" if runs is None else runs, "result": result, "course": steps}
    return dict(zip(KEY, (part, name, method, seed), strict=True)) | found | {"seconds": time.process_time() - start}


def medians(rows, column):
    """Return medians over seeds by function and method of a column; what is empty counts as infinitely many."""
    found = {}
    for row in rows:
        found.setdefault((row["function"], row["method"]), []).append(float(row[column] or "inf"))
    return {key: median(values) for key, values in found.items()}


def table(path):
    """Print medians of runs over seeds, and of seconds; texts of the first seed for parts without numbers of runs."""
    rows = read(path)
    for part in dict.fromkeys(row["part"] for row in rows):
        own = [row for row in rows if row["part"] == part]
        methods = list(dict.fromkeys(row["method"] for row in own))
        runs, seconds = medians(own, "runs"), medians(own, "seconds")
        texts = {(row["function"], row["method"]): row["result"] for row in reversed(own)}
        cells = []
        for name in dict.fromkeys(row["function"] for row in own):
            cell = []
            for key in [(name, method) for method in methods]:
                if key not in runs:
                    cell.append("-")
                elif part in ("speed", "faults"):
                    cell.append(texts[key])
                else:
                    cell.append(
                        (f"{runs[key]:g}" if np.isfinite(runs[key]) else "not reached") + f", {seconds[key]:.0f} s"
                    )
            seeds = len({row["seed"] for row in own if row["function"] == name})
            cells.append([name, str(seeds), *cell])
        print()
        print_table([part, "seeds", *methods], cells)


def course_of(row):
    """Return runs and errors of a row, as arrays."""
    steps = [step.split(":") for step in row["course"].split()]
    return np.array([int(n) for n, _ in steps]), np.array([float(error) for _, error in steps])


def picture(path, folder):
    """Draw the median error against runs, for each function of the parts "error" and "minimum"."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for part, what in ("error", "relative error"), ("minimum", "distance from the minimum / range"):
        rows = [row for row in read(path) if row["part"] == part and row["course"]]
        names = list(dict.fromkeys(row["function"] for row in rows))
        if not names:
            continue
        columns = min(4, len(names))
        size = {"figsize": (3.2 * columns, 2.6 * -(-len(names) // columns))}
        figure, axes = plt.subplots(-(-len(names) // columns), columns, squeeze=False, layout="constrained", **size)
        for ax in axes.flat[len(names) :]:
            ax.set_axis_off()
        for ax, name in zip(axes.flat, names, strict=False):
            for method in METHODS[part]:
                own = [course_of(row) for row in rows if (row["function"], row["method"]) == (name, method)]
                if not own:
                    continue
                at = np.arange(min(n[0] for n, _ in own), max(n[-1] for n, _ in own) + 1)
                last = [np.append(np.inf, error)[np.searchsorted(n, at, side="right")] for n, error in own]
                ax.plot(at, np.maximum(np.median(last, axis=0), 1e-6), label=method)
            ax.axhline(0.01, linestyle="--", color="black", linewidth=0.8)
            ax.set(title=name, yscale="log")
        axes.flat[0].legend(fontsize="x-small")
        figure.supxlabel("runs")
        figure.supylabel(f"{what}, median over seeds")
        figure.savefig(folder / f"studies_{part}.png", dpi=100)
        plt.close(figure)


def installed(method):
    """Return whether the library of a method is there."""
    return method not in LIBRARIES or find_spec(LIBRARIES[method]) is not None


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "table", "picture"])
    parser.add_argument("--functions", nargs="+")
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/studies.csv"))
    parser.add_argument("--to", type=Path, default=Path("docs/images"))
    arguments = parser.parse_args(given)
    part, out = arguments.part, arguments.out
    if part == "table":
        table(out)
    elif part == "picture":
        picture(out, arguments.to)
    else:
        names, methods = arguments.functions or names_of(part), arguments.methods or METHODS[part]
        methods = [method for method in methods if installed(method)]
        tasks = [(part, name, method, seed) for seed in arguments.seeds for name in names for method in methods]
        measure(out, COLUMNS, KEY, tasks, run, arguments.jobs)


if __name__ == "__main__":
    main()
