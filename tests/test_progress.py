"""What a fit says while it runs: nothing by default, lines if asked, and a word beforehand if it takes long."""

import re

import numpy as np
import pytest

from nurf import DeepFeatureRegressor, RandomFeatureRegressor, SparseFeatureRegressor
from nurf.engines import _progress

LINE = re.compile(r"nurf: (\d+) neurons, arm (\d+), [\d.e+-]+ (?:s|min|h): error (\S+), (.*)")


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


def test_each_best_arm_has_a_line(capsys):
    model = fitted(120, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    first, *lines, last = err.splitlines()
    assert "60 samples in 2 dimensions, up to 120 neurons, about" in first
    assert f"{len(model.hyperplanes_)} neurons after" in last
    expected, best, count, size = [], np.inf, 0, None
    for trial in model.fit_.attempts:
        if trial.size != size:
            best, count, size = np.inf, 0, trial.size
        count += 1
        if trial.error < best:
            best = trial.error
            expected.append((str(size), str(count), f"{best:.2g}", f"{trial.label} ({trial.data})"))
    assert [LINE.fullmatch(line).groups() for line in lines] == expected


def test_a_terminal_shows_every_arm(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    model = fitted(verbose=1)
    shown = [part for part in re.split(r"\r\x1b\[K", capsys.readouterr().err) if "arm" in part]
    assert len(shown) == len(model.fit_.attempts)
    assert any("\n" not in part for part in shown)


def test_the_fit_is_the_same(capsys):
    X = data()[0]
    assert np.array_equal(fitted().predict(X), fitted(verbose=1).predict(X))


def test_the_path_of_sparse_training_has_a_line_for_each_step(capsys):
    model = SparseFeatureRegressor(random_state=0, verbose=1).fit(*data()[:2])
    lines = capsys.readouterr().err.splitlines()
    path = model.path_
    for line, alpha, neurons in zip(lines, path["alpha"], path["neurons"], strict=True):
        assert line.startswith(f"nurf: alpha {alpha:.2g}: {neurons} neurons, error ")


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_long_fit_says_so_beforehand(caplog, monkeypatch, verbose, capsys):
    monkeypatch.setattr(_progress, "race_seconds", lambda lanes: 75.0)
    fitted(verbose=verbose)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("nurf", "WARNING")
    assert record.getMessage() == "this fit may take about 1.2 min: 60 samples in 2 dimensions, up to 30 neurons"


def expected(monkeypatch, n_neurons, n, d, **parameters):
    """The expected seconds of a fit on a machine with 1e10 operations per second; nothing is fitted."""
    seconds = []

    class StopError(Exception):
        pass

    def stop(lanes, watch):
        raise StopError

    original = _progress.race_seconds
    with monkeypatch.context() as patch:
        patch.setattr(_progress, "_operations_per_second", lambda: 1e10)
        patch.setattr(_progress, "race_seconds", lambda *args: seconds.append(original(*args)) or seconds[0])
        patch.setattr("nurf.estimators._regressor.fit_searched", stop)
        with pytest.raises(StopError):
            RandomFeatureRegressor(n_neurons, random_state=0, **parameters).fit(*data(n, d)[:2])
    return seconds[0]


def test_what_is_expected_grows_as_the_work_does(monkeypatch):
    one = {"width": 0.2, "density": "uniform", "growth": None, "tail": "constant", "derivatives": "given"}
    # one fit of many neurons: for the eigenvectors, between the operations of a tridiagonal form and of the way back,
    # which are 4/3 and 2 times their cube, and a hundred times that cube
    assert 10 / 3 * 2000**3 / 1e10 < expected(monkeypatch, 2000, 200, 2, **one) < 100 * 2000**3 / 1e10
    # one fit of many samples: between one symmetric product and ten
    assert 20_000 * 300**2 / 1e10 < expected(monkeypatch, 300, 20_000, 2, **one) < 10 * 20_000 * 300**2 / 1e10
    raced = [expected(monkeypatch, size, 500, 2) for size in (100, 300, 900)]
    assert raced[0] < raced[1] < raced[2]
    assert expected(monkeypatch, 300, 500, 2, **one) < raced[1] / 3
