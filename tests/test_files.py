"""Saved models are what they were, bit by bit, and what cannot be saved is named."""

import copy
import json
import os
import pickle
import stat
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import nurf
from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    polish,
)
from nurf.activations import Erf, ReLUPower
from nurf.densities import ActiveSubspace, Cauchy, Density, Local, Metropolis, Nonlocal, Representation, Uniform
from nurf.estimators._files import SAVED
from nurf.files import read, write
from nurf.files._container import PREAMBLE, unpack
from nurf.files._hints import hints_of
from nurf.kernels import MaternKernel
from nurf.networks import Ball, Box
from nurf.solvers.sparse import L1

D = 3


def data(n, n_outputs=0, seed=0):
    """Values, gradients and Hessians of ``sin(a.x)``, for one output or several."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, D))
    a = np.linspace(0.5, 2, D * max(n_outputs, 1)).reshape(-1, D)
    phase = X @ a.T
    gradients = np.cos(phase)[..., None] * a
    hessians = -np.sin(phase)[..., None, None] * a[:, :, None] * a[:, None, :]
    if not n_outputs:
        return X, np.sin(phase)[:, 0], gradients[:, 0], hessians[:, 0]
    return X, np.sin(phase), gradients, hessians


def sampled(n=60, n_outputs=0, kinds=("gradients",), **parameters):
    X, y, gradients, hessians = data(n, n_outputs)
    known = {kind: part for kind, part in (("gradients", gradients), ("hessians", hessians)) if kind in kinds}
    return RandomFeatureRegressor(20, **{"width": 0.4, "random_state": 0, **parameters}).fit(X, y, **known)


def along_directions():
    X, y, gradients, _ = data(200)
    v = np.random.default_rng(1).normal(size=(200, 2, D))
    slopes = np.einsum("nqd,nd->nq", v, gradients)
    return RandomFeatureRegressor(20, random_state=0).fit(X, y, gradients=slopes, directions=v)


def frame():
    X, y, *_ = data(60)
    return RandomFeatureRegressor(10, random_state=0).fit(pd.DataFrame(X, columns=["Länge", "b", "c"]), y)


def quietly(model, X, y):
    """Fit, whether or not training converges in so few rounds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def sparse(n_outputs=0, **parameters):
    X, y, *_ = data(60, n_outputs)
    parameters = {"alpha": 0.01, "max_neurons": 4, "max_iter": 3, "tol": 0.5, "random_state": 0, **parameters}
    return quietly(SparseFeatureRegressor(**parameters), X, y)


def wide(n_outputs=0, kinds=(), n=20, **parameters):
    X, y, gradients, hessians = data(n, n_outputs)
    known = {kind: part for kind, part in (("gradients", gradients), ("hessians", hessians)) if kind in kinds}
    return KernelFeatureRegressor(**{"kernel": "gaussian", **parameters}).fit(X, y, **known)


def deep(n_outputs=0, n=60, **parameters):
    X, y, gradients, _ = data(n, n_outputs)
    parameters = {"hidden": (6, 5), "steps": 40, "random_state": 0, **parameters}
    return DeepFeatureRegressor(**parameters).fit(X, y, gradients=gradients)


def polished():
    X, y, gradients, _ = data(60)
    return polish(sampled(), nurf.Jet(X, y, gradients), 2)


def partly():
    X, y, gradients, _ = data(120)
    model = RandomFeatureRegressor(10, width=0.4, density="local", random_state=0)
    for rows in (slice(60), slice(60, 120)):
        model.partial_fit(X[rows], y[rows], gradients=gradients[rows])
    return model


def surrogate():
    X, y, gradients, _ = data(60)
    kernel = KernelFeatureRegressor("gaussian", metric="scales", max_rows=120)
    engines = [kernel, RandomFeatureRegressor(10, width=0.4, random_state=0)]
    return Surrogate(engines=engines, random_state=0).fit(X, y, gradients=gradients)


def noisy(model, n_outputs=0, kinds=()):
    """Fit what no kernel predicts: none is far better than the others, so that several are averaged."""
    rng = np.random.default_rng(1)
    X, *parts = data(15, n_outputs)
    y, gradients, _ = (part + 0.3 * rng.normal(size=part.shape) for part in parts)
    return model.set_params(check_gradients=False).fit(X, y, **({"gradients": gradients} if kinds else {}))


MODELS = {
    "surrogate": surrogate,
    "partial fit": partly,
    "surrogate wide": lambda: noisy(Surrogate(engines=["wide"], random_state=0)),
    "few samples": lambda: sampled(width="auto"),
    "many samples": lambda: sampled(200, width="auto"),
    "values only": lambda: sampled(200, kinds=()),
    "hessians": lambda: sampled(200, kinds=("gradients", "hessians"), hessian_weight=0.1),
    "outputs": lambda: sampled(200, 3),
    "one output in a column": lambda: sampled(60, 1),
    "huber": lambda: sampled(200, loss="huber"),
    "stages": lambda: sampled(200, growth=2.0),
    "relu": lambda: sampled(200, activation=ReLUPower(2), density="uniform", width=None),
    "erf": lambda: sampled(200, activation=Erf(0.3), width=None, tail="affine"),
    "exact density": lambda: sampled(
        200, density=Representation(width=0.3, mollifier=Cauchy(), sampler=Metropolis()), width=0.3
    ),
    "box": lambda: sampled(60, density=ActiveSubspace(1, domain=Box(np.full(D, -1.0), np.full(D, 1.0)))),
    "ball": lambda: sampled(60, density=Uniform(Ball(1.5))),
    "jitter": lambda: sampled(60, density=Local(1, jitter=0.2), width=np.float64(0.3)),
    "two samples": lambda: sampled(2, kinds=(), density="uniform"),
    "generator": lambda: sampled(60, random_state=np.random.default_rng(5)),
    "random state": lambda: sampled(60, random_state=np.random.RandomState(5)),
    "directions": along_directions,
    "frame": frame,
    "polished": polished,
    "sparse": sparse,
    "sparse path": lambda: sparse(alpha="path", tol=0.1, max_iter=30, penalty=L1()),
    "sparse widths": lambda: sparse(2, width="learned", alpha=0.3),
    "wide": wide,
    "wide gradients": lambda: wide(kinds=("gradients",), kernel=MaternKernel(), metric="map", rank=2),
    "wide hessians": lambda: wide(2, kinds=("gradients", "hessians"), n=8, mean="affine", kernel="erf"),
    "wide average": lambda: noisy(KernelFeatureRegressor(), 2, kinds=("gradients",)),
    "deep": deep,
    "deep outputs": lambda: deep(2, 200, activation="silu", hidden=[5]),
    "map": lambda: RandomFeatureMap(10, random_state=0, density=Nonlocal(1)).fit(data(60)[0], gradients=data(60)[2]),
}


@cache
def fitted(name):
    return MODELS[name]()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nurf"


def saved_and_loaded(model, path):
    model.save(path)
    return nurf.load(path)


def assert_same(a, b, path="model"):
    """Compare all that two objects hold: types, bits, and the order of arrays in memory."""
    assert type(a) is type(b), path
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), path
        lengths = [i for i, n in enumerate(a.shape) if n > 1]
        assert [a.strides[i] for i in lengths] == [b.strides[i] for i in lengths], path
        assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes(), path
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), path
        for place, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{path}[{place}]")
    elif isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            assert_same(a[key], b[key], f"{path}[{key!r}]")
    elif is_dataclass(a):
        for field in fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{path}.{field.name}")
    elif isinstance(a, BaseEstimator):
        kept = [{k: v for k, v in vars(each).items() if not hasattr(type(each), k)} for each in (a, b)]
        assert set(kept[0]) == set(kept[1]), path
        for name in kept[0]:
            assert_same(kept[0][name], kept[1][name], f"{path}.{name}")
    elif isinstance(a, np.random.Generator):
        assert a.bit_generator.state == b.bit_generator.state, path
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(legacy=False), b.get_state(legacy=False), path)
    else:
        assert a == b or (a != a and b != b), path


def answers(model, X):
    """Return all that a model says at points."""
    if hasattr(model, "transform"):
        return [model.transform(X)]
    points, network, function = np.asarray(X), model.network_, model.function()
    found = [model.predict(X), network.value(points), function(points), model.estimated_error_]
    if network.n_derivatives > 0:
        found += [model.predict_gradient(X), network.gradient(points), function.gradient(points)]
    if network.n_derivatives > 1:
        found += [model.predict_hessian(X)]
    if not np.any(np.isnan(model.estimated_error_)):
        found += [*model.predict(X, return_std=True), model.predict_interval(X), model.predict_interval(X, 0.5)]
        if network.n_derivatives > 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # deviations that are a guess
                found += model.predict_gradient(X, return_std=True)
    return [np.asarray(part) for part in found]


class TestRoundTrip:
    @pytest.mark.parametrize("name", MODELS)
    def test_all_answers_are_the_same_bit_by_bit(self, name, path):
        model = fitted(name)
        loaded = saved_and_loaded(model, path)
        X = data(30, seed=7)[0]
        X = pd.DataFrame(X, columns=model.feature_names_in_) if hasattr(model, "feature_names_in_") else X
        for before, after in zip(answers(model, X), answers(loaded, X), strict=True):
            assert (before.dtype, before.shape) == (after.dtype, after.shape)
            assert before.tobytes() == after.tobytes()
        if hasattr(model, "report"):
            assert str(model.report()) == str(loaded.report())

    @pytest.mark.parametrize("name", MODELS)
    def test_all_that_a_model_holds_is_the_same(self, name, path):
        model = fitted(name)
        loaded = saved_and_loaded(model, path)
        assert_same(model, loaded)
        assert_same(model.get_params(), loaded.get_params())
        assert loaded.n_features_in_ == D

    @pytest.mark.parametrize("name", MODELS)
    def test_equal_models_are_equal_files(self, name, path):
        loaded = saved_and_loaded(fitted(name), path)
        first = path.read_bytes()
        loaded.save(path)
        assert path.read_bytes() == first

    def test_names_of_inputs(self, path):
        loaded = saved_and_loaded(fitted("frame"), path)
        assert loaded.feature_names_in_.tolist() == ["Länge", "b", "c"]
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(pd.DataFrame(np.zeros((1, D)), columns=list("xyz")))

    def test_another_process_says_the_same(self, path, request):
        if request.config.getoption("rounding"):
            pytest.skip("the other process rounds as the machine does")
        model, X = fitted("many samples"), data(30, seed=7)[0]
        model.save(path)
        np.save(path.with_suffix(".npy"), X)
        code = (
            f"import sys, numpy as np, nurf; m = nurf.load({str(path)!r}); X = np.load({str(path)[:-5]!r} + '.npy')\n"
        )
        code += "sys.stdout.write(m.predict(X).tobytes().hex() + ' ' + m.predict_interval(X).tobytes().hex())"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        expected = [model.predict(X).tobytes().hex(), model.predict_interval(X).tobytes().hex()]
        assert said.stdout.split() == expected

    def test_a_copy_of_the_parameters_and_pickle_work(self, path):
        loaded = saved_and_loaded(fitted("many samples"), path)
        assert_same(clone(loaded).get_params(), loaded.get_params())
        assert not hasattr(clone(loaded), "fit_")
        assert_same(pickle.loads(pickle.dumps(loaded)), loaded)
        assert_same(copy.deepcopy(loaded), loaded)

    @pytest.mark.parametrize("name", ["few samples", "sparse", "wide", "deep"])
    def test_a_loaded_model_can_be_fitted_again(self, name, path):
        model = fitted(name)
        loaded = saved_and_loaded(model, path)
        X, y, *_ = data(40, seed=3)
        points = data(10, seed=4)[0]
        again, once_more = quietly(clone(model), X, y), quietly(loaded, X, y)
        for before, after in zip(answers(again, points), answers(once_more, points), strict=True):
            assert before.tobytes() == after.tobytes()

    @pytest.mark.parametrize("name", ["wide average", "surrogate wide"])
    def test_averages_have_several_members(self, name, path):
        loaded = saved_and_loaded(fitted(name), path)
        assert len(loaded.network_.members) == len(loaded.uncertainty_.processes) > 1
        assert loaded.uncertainty_.network is loaded.fit_.network

    def test_a_surrogate_that_chose_an_infinitely_wide_network(self, path):
        loaded = saved_and_loaded(fitted("surrogate wide"), path)
        assert (loaded.engine_, type(loaded.model_)) == ("wide", KernelFeatureRegressor)
        assert loaded.model_.fit_ is loaded.fit_

    def test_the_chosen_step_of_a_path_stays_the_chosen_one(self, path):
        loaded = saved_and_loaded(fitted("sparse path"), path)
        assert loaded.fit_.step.network is loaded.fit_.network
        assert len(loaded.path_["alpha"]) > 1


class TestGoingOn:
    @pytest.mark.parametrize("random_state", [0, "generator", "state"])
    def test_training_goes_on_as_if_nothing_had_happened(self, random_state, path):
        makers = {"generator": np.random.default_rng, "state": np.random.RandomState, 0: int}
        model = deep(random_state=makers[random_state](3))
        loaded = saved_and_loaded(model, path)
        X, y, gradients, _ = data(60)
        for each in (model, loaded):
            each.partial_fit(X, y, gradients=gradients)
        for before, after in zip(answers(model, X), answers(loaded, X), strict=True):
            assert before.tobytes() == after.tobytes()
        assert model.n_iter_ == loaded.n_iter_ > 40

    def test_a_warm_start_goes_on(self, path):
        model = deep(warm_start=True)
        loaded = saved_and_loaded(model, path)
        X, y, gradients, _ = data(60)
        assert np.array_equal(
            model.fit(X, y, gradients=gradients).predict(X), loaded.fit(X, y, gradients=gradients).predict(X)
        )
        assert loaded.n_iter_ > 40


class Choice(BaseEstimator):
    """An estimator that holds another one, and a table of what it tried."""

    def __init__(self, candidates=("a", "b")):
        self.candidates = candidates

    def fit(self):
        self.model_ = fitted("few samples")
        self.leaderboard_ = [{"name": "a", "error": float("inf"), "model": self.model_}, {"name": "b", "error": -0.0}]
        self.table_ = (Row("a", 0.1), Row("b", float("nan")))
        return self


@dataclass(frozen=True)
class Row:
    name: str
    error: float


class TestNested:
    REGISTRY = SAVED.extended(dataclasses={"Row": Row}, estimators=[Choice])

    def test_an_estimator_in_an_estimator(self, path):
        model = Choice([1, 2.5, None, "c"]).fit()
        write(path, model, self.REGISTRY)
        loaded = read(path, self.REGISTRY)
        assert_same(model, loaded)
        assert loaded.leaderboard_[0]["model"] is loaded.model_

    def test_the_registry_is_closed(self, path):
        with pytest.raises(TypeError, match=r"cannot save `Choice`: .* of type test_files.Choice"):
            write(path, Choice().fit(), SAVED)
        assert not path.exists()
        write(path, Choice().fit(), self.REGISTRY)
        with pytest.raises(nurf.FileFormatError, match="Row: the class must be one that nurf saves, got 'Row'"):
            nurf.load(path)


@dataclass(frozen=True)
class Line:
    """What ``Row`` is called after it was renamed."""

    name: str
    error: float


class TestNames:
    """Names of classes belong to the format, not to Python."""

    def test_a_class_that_was_renamed_and_moved(self, path):
        write(path, Choice().fit(), SAVED.extended(dataclasses={"Row": Row}, estimators=[Choice]))
        renamed = SAVED.extended(dataclasses={"Row": Line}, estimators=[Choice])
        loaded = read(path, renamed)
        assert loaded.table_[0] == Line("a", 0.1)
        write(path, loaded, renamed)
        assert self.names(path) & {"Row", "Line"} == {"Row"}

    def test_a_class_with_another_name_in_newer_files(self, path):
        write(path, Choice().fit(), SAVED.extended(dataclasses={"Row": Row}, estimators=[Choice]))
        renamed = SAVED.extended(dataclasses={"Line": Line, "Row": Line}, estimators={"Choice": Choice})
        loaded = read(path, renamed)
        assert loaded.table_[0] == Line("a", 0.1)
        write(path, loaded, renamed)
        assert self.names(path) & {"Row", "Line"} == {"Line"}
        assert_same(loaded, read(path, renamed))

    def test_the_name_of_a_class_is_not_enough(self, path):
        """Another class of the same name is not the one in the table."""
        same = dataclass(frozen=True)(type("Row", (), {"__annotations__": {"name": str, "error": float}}))
        model = Choice().fit()
        model.table_ = (same("a", 0.1),)
        with pytest.raises(TypeError, match=r"cannot save `Choice.table_\[0\]`: it is Row"):
            write(path, model, TestNested.REGISTRY)

    def names(self, path):
        return {entry["object"] for entry in unpack(path)[0]["objects"] if "object" in entry}


@dataclass(frozen=True)
class Tilted(Uniform):
    """A density of one's own."""


class Own(RandomFeatureRegressor):
    pass


class TestWhatCannotBeSaved:
    def assert_named(self, model, path, match):
        path.write_bytes(b"what was there")
        with pytest.raises(TypeError, match=match):
            model.save(path)
        assert path.read_bytes() == b"what was there"
        assert [child.name for child in path.parent.iterdir()] == [path.name]

    def test_a_density_of_ones_own(self, path):
        assert issubclass(Tilted, Density)
        model = sampled(density=Tilted())
        self.assert_named(model, path, r"cannot save `\w+.density`: it is Tilted\(.*\) of type test_files.Tilted")

    def test_a_function(self, path):
        model = sampled(density=Local(1, rho=flat))
        self.assert_named(model, path, r"cannot save `\w+.density.rho`: it is <function flat at")

    def test_a_subclass(self, path):
        model = Own(10, random_state=0).fit(*data(60)[:2])
        self.assert_named(model, path, "cannot save `Own`: it is Own")

    @pytest.mark.parametrize(
        ("value", "match"),
        [
            (1j, "cannot save `RandomFeatureRegressor.verbose`: it is 1j of type builtins.complex"),
            (
                np.array([1j]),
                "`RandomFeatureRegressor.verbose`: arrays must hold numbers of the types .* got complex128",
            ),
            (np.random.Generator(np.random.Philox(0)), "random generators must be PCG64 or MT19937, got Philox"),
            ([[object()]], r"cannot save `RandomFeatureRegressor.verbose\[0\]\[0\]`"),
            ({"a": {1, 2}}, r"cannot save `RandomFeatureRegressor.verbose\['a'\]\[1\]`: it is {1, 2}"),
        ],
    )
    def test_other_parameters(self, value, match, path):
        self.assert_named(copy.copy(fitted("few samples")).set_params(verbose=value), path, match)

    def test_what_contains_itself(self, path):
        loop = []
        loop.append(loop)
        self.assert_named(copy.copy(fitted("few samples")).set_params(verbose=loop), path, "it contains itself")

    def test_what_is_nested_too_deep(self, path):
        nested = []
        for _ in range(10**5):
            nested = [nested]
        model = copy.copy(fitted("few samples"))
        model.verbose = nested
        self.assert_named(model, path, "nested too deeply")
        while nested:  # without recursion
            nested = nested.pop()

    @pytest.mark.parametrize(
        "kind",
        [
            RandomFeatureRegressor,
            SparseFeatureRegressor,
            KernelFeatureRegressor,
            DeepFeatureRegressor,
            RandomFeatureMap,
        ],
    )
    def test_an_unfitted_model(self, kind, path):
        with pytest.raises(NotFittedError):
            kind().save(path)
        assert not path.exists()


def flat(X):
    return np.ones(len(X))


class TestFile:
    def test_size(self, path):
        """2000 neurons, 8 inputs: 16000 + 2000 + 2000 numbers, and at most six times as many for the uncertainty."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (8000, 8))
        y, gradients = np.sin(X.sum(axis=1)), np.repeat(np.cos(X.sum(axis=1))[:, None], 8, axis=1)
        parameters = {"density": "uniform", "width": 0.5, "alpha": 1e-6, "growth": None, "gradient_weight": 0.0}
        RandomFeatureRegressor(2000, random_state=0, **parameters).fit(X, y, gradients=gradients).save(path)
        assert path.stat().st_size < 1.25e6
        with_ = path.stat().st_size
        RandomFeatureRegressor(2000, random_state=0, **parameters).fit(X[:1000], y[:1000]).save(path)
        assert path.stat().st_size < min(0.3e6, with_)

    def test_shared_arrays_are_written_once(self, path):
        model = fitted("wide gradients")
        header, data = unpack_path(model, path)
        arrays = [entry for entry in header["objects"] if "array" in entry]
        points = [entry for entry in arrays if entry["shape"] == [20, D]]
        assert len({str(entry) for entry in points}) == 1
        assert len(points) <= 5  # points, directions of merged derivatives, gradients, errors: not those of each part
        assert len(data) >= sum(8 * int(np.prod(entry["shape"])) for entry in arrays)

    def test_the_header_is_json_without_secrets_of_the_machine(self, path):
        header, _ = unpack_path(fitted("few samples"), path)
        assert set(header) == {"nurf", "objects"}
        assert header["nurf"] == nurf.__version__
        text = json.dumps(header)
        assert str(path.parent) not in text
        assert header["objects"][-1]["estimator"] == "RandomFeatureRegressor"
        length = PREAMBLE.unpack(path.read_bytes()[: PREAMBLE.size])[4]
        assert json.loads(path.read_bytes()[PREAMBLE.size : PREAMBLE.size + length]) == header

    def test_a_model_that_was_used_is_written_as_one_that_was_not(self, path):
        fresh, used = deep(), deep()
        answers(used, data(10)[0])
        seconds = [cycle.seconds for cycle in used.fit_.history]
        assert len(seconds) > 0
        sizes = [len(unpack_path(model, path)[1]) for model in (fresh, used)]
        assert sizes[0] == sizes[1]

    def test_links_and_permissions_stay(self, tmp_path):
        target, link = tmp_path / "target.nurf", tmp_path / "link.nurf"
        target.write_bytes(b"")
        target.chmod(0o640)
        link.symlink_to(target)
        fitted("map").save(link)
        assert link.is_symlink()
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        nurf.load(str(link))
        before = os.umask(0o022)
        try:
            fitted("map").save(tmp_path / "new.nurf")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "new.nurf").stat().st_mode) == 0o644

    def test_a_write_that_fails_leaves_what_was_there(self, path, monkeypatch):
        path.write_bytes(b"what was there")

        def no_space(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            fitted("map").save(path)
        assert path.read_bytes() == b"what was there"
        assert [child.name for child in path.parent.iterdir()] == [path.name]

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    def test_a_pipe_gets_the_bytes_and_stays_a_pipe(self, path, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        fitted("map").save(path)
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(pipe.read_bytes)
            fitted("map").save(pipe)
        assert found.result() == path.read_bytes()
        assert pipe.is_fifo()
        assert sorted(child.name for child in tmp_path.iterdir()) == ["model.nurf", "pipe"]

    def test_a_folder_is_refused(self, tmp_path):
        with pytest.raises(IsADirectoryError):
            fitted("map").save(tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_what_a_killed_process_leaves_is_seen_beside_the_file(self, path):
        fitted("map").save(path)
        program = (
            "import os, sys; from nurf.files._container import write_atomically; os.fsync = lambda _: os._exit(9); "
            "write_atomically(sys.argv[1], [b'new'])"
        )
        before = path.read_bytes()
        assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 9
        (left,) = (child.name for child in path.parent.iterdir() if child != path)
        assert left.startswith(path.name)
        assert left.endswith(".tmp")
        assert path.read_bytes() == before

    def test_a_folder_that_is_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            fitted("map").save(tmp_path / "none" / "model.nurf")
        with pytest.raises(FileNotFoundError):
            nurf.load(tmp_path / "model.nurf")


def unpack_path(model, path):
    model.save(path)
    return unpack(path)


def test_annotations_of_all_classes_can_be_read():
    for kind in (*SAVED.dataclasses.values(), *SAVED.estimators.values()):
        assert isinstance(hints_of(kind), dict)
        if is_dataclass(kind):
            assert {field.name for field in fields(kind)} <= set(hints_of(kind))
