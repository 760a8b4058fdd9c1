"""What a fit says while it runs: nothing by default, and lines if asked."""

import re

import numpy as np
import pytest

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)

TIME = r"[\d.e+-]+ (?:s|min|h)"
LINE = re.compile(rf"nurf: {TIME}, candidate (\d+): (.*), error (\S+)")
LAST = re.compile(rf"nurf: {TIME}: estimated error (\S+) of the standard deviation of the values")


def data(n=60, d=2):
    X = np.random.default_rng(0).uniform(-1, 1, (n, d))
    return X, np.sin(2 * X.sum(axis=1)), 2 * np.cos(2 * X.sum(axis=1))[:, None] * np.ones(d)


def fitted(n_neurons=30, **parameters):
    X, y, gradients = data()
    return RandomFeatureRegressor(n_neurons, width=0.4, random_state=0, **parameters).fit(X, y, gradients=gradients)


def test_nothing_is_said_by_default(capsys, caplog):
    fitted()
    SparseFeatureRegressor(0.01, random_state=0).fit(*data()[:2])
    DeepFeatureRegressor((8,), steps=20, random_state=0).fit(*data()[:2])
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


def test_each_candidate_that_is_the_best_so_far_has_a_line(capsys):
    model = fitted(120, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    *lines, last = err.splitlines()
    expected, best = [], np.inf
    for number, attempt in enumerate(model.fit_.attempts, start=1):
        if attempt.error < best:
            best = attempt.error
            expected.append((str(number), f"sampled, {attempt.label} ({attempt.data})", f"{best:.2g}"))
    assert [LINE.fullmatch(line).groups() for line in lines] == expected
    assert LAST.fullmatch(last).groups() == (f"{model.fit_.error:.2g}",)


def test_a_terminal_shows_every_candidate(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    model = fitted(verbose=1)
    shown = [part for part in re.split(r"\r\x1b\[K", capsys.readouterr().err) if "candidate" in part]
    assert [int(re.search(r"candidate (\d+)", part)[1]) for part in shown] == [
        number for number, _ in enumerate(model.fit_.attempts, start=1)
    ]
    counted = [part for part in shown if "\n" not in part]
    assert counted
    best = np.minimum.accumulate([attempt.error for attempt in model.fit_.attempts])
    for part in counted:
        number = int(re.search(r"candidate (\d+)", part)[1])
        assert part.endswith(f"best error {best[number - 1]:.2g}")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (KernelFeatureRegressor("gaussian", verbose=1), "wide"),
        (DeepFeatureRegressor((8,), steps=20, random_state=0, verbose=1), "trained"),
    ],
)
def test_other_engines_say_what_they_try(capsys, model, name):
    model.fit(*data()[:2])
    *lines, last = capsys.readouterr().err.splitlines()
    assert LINE.fullmatch(lines[0])[2].startswith(f"{name}, ")
    assert LAST.fullmatch(last)


def test_a_budget_has_a_time_that_is_left(capsys):
    X, y, _ = data()
    Surrogate(50.0, engines=[KernelFeatureRegressor("gaussian")], verbose=1).fit(X, y)
    line = capsys.readouterr().err.splitlines()[0]
    left = re.match(rf"nurf: {TIME}, ([\d.]+) s left, candidate 1: wide, ", line)
    assert 0 < float(left[1]) <= 50


def test_the_fit_is_the_same(capsys):
    X = data()[0]
    assert np.array_equal(fitted().predict(X), fitted(verbose=1).predict(X))


def test_the_path_of_sparse_training_has_a_line_for_each_step(capsys):
    model = SparseFeatureRegressor(random_state=0, verbose=1).fit(*data()[:2])
    *lines, candidate, last = capsys.readouterr().err.splitlines()
    path = model.path_
    assert LINE.fullmatch(candidate)[2].startswith("sparse, ")
    assert LAST.fullmatch(last)
    for line, alpha, neurons in zip(lines, path["alpha"], path["neurons"], strict=True):
        assert line.startswith(f"nurf: alpha {alpha:.2g}: {neurons} neurons, error ")
