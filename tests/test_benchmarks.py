"""The benchmarks on a tiny case, without the libraries that they compare with."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyRegressor

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
OURS, GP, MISSING, LARGE = "nurf sampled", "GP", "KRG", "RBFKernelGrad"


@pytest.fixture
def few_samples(monkeypatch):
    pytest.importorskip("uqtestfuns")
    monkeypatch.syspath_prepend(BENCHMARKS)
    module = import_module("few_samples")
    monkeypatch.setitem(module.METHODS, MISSING, replace(module.METHODS[MISSING], needs="no_such_library"))
    monkeypatch.setitem(module.METHODS, GP, replace(module.METHODS[GP], make=lambda d: DummyRegressor()))
    monkeypatch.setitem(module.METHODS, LARGE, replace(module.METHODS[LARGE], needs="sklearn", most_rows=3))
    return module


def test_few_samples_are_measured_once_and_summed_up(few_samples, tmp_path, capsys):
    out, picture = tmp_path / "new" / "results.csv", tmp_path / "new" / "errors.png"
    case = ["--functions", "CurrinSine", "--per-input", "5", "--seeds", "0", "--out", str(out)]
    few_samples.main([*case, "--methods", GP])
    few_samples.main([*case, "--methods", OURS, GP, MISSING, LARGE])
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if "not installed" in line] == [f"not installed: {MISSING} (no_such_library)"]

    rows = {row["method"]: row for row in few_samples.read(out)}
    assert list(rows) == [GP, OURS, LARGE]  # each once
    assert rows[LARGE]["error"] == ""
    assert rows[LARGE]["note"] == "not run: 10 rows of 1 input"
    for method in (OURS, GP):
        assert float(rows[method]["seconds"]) >= 0
        assert 0 <= float(rows[method]["std"]) <= 1
    _, y, _, _, truth, _ = few_samples.make_data("CurrinSine", 5, 0)
    error = np.hypot(1, (np.mean(y) - np.mean(truth)) / np.std(truth))  # of the mean of the samples
    assert_allclose(float(rows[GP]["error"]), error, rtol=1e-3)
    assert 0 < float(rows[OURS]["error"]) < error
    assert all(0 <= float(rows[OURS][column]) <= 1 for column in ("interval", "gradient std"))
    assert float(rows[OURS]["estimate"]) > 0

    few_samples.main(["--summary", "--out", str(out), "--picture", str(picture)])
    lines = capsys.readouterr().out.splitlines()
    ratio = float(rows[OURS]["error"]) / float(rows[GP]["error"])
    assert f"| {OURS} | yes | {ratio:.2f} (1) | {ratio:.2f} (1) |" in lines
    assert f"| {LARGE} | yes |  |  |" in lines
    image = plt.imread(picture)
    assert 0.01 < np.mean(image[..., :3] < 0.9) < 0.5  # neither blank nor full


def test_a_failed_fit_is_last_and_one_that_was_not_run_is_nowhere(few_samples, tmp_path):
    out = tmp_path / "results.csv"
    common = "A,2,10,5,{},{},{},,,,,,\n"
    rows = [(0, GP, 0.5), (0, OURS, "nan"), (1, GP, 1e-12), (1, OURS, 1e-10), (1, LARGE, ""), (2, OURS, 0.1)]
    out.write_text(",".join(few_samples.COLUMNS) + "\n" + "".join(common.format(*row) for row in rows))
    results = few_samples.Results(out, [0, 1, 2])
    assert_allclose(results.relative(OURS, [GP], [5]), [np.inf, 1])  # both below rounding: equal
    assert_allclose(results.relative(GP, [GP, OURS], [5]), [1, 1])
    assert len(results.relative(LARGE, [GP], [5])) == 0
    assert len(results.relative(OURS, [GP], [10])) == 0
    assert_allclose(few_samples.Results(out, [1]).relative(OURS, [GP], [5]), [1])


def test_a_size_that_the_largest_number_of_samples_makes_equal_is_run_once(few_samples, monkeypatch):
    monkeypatch.setattr(few_samples, "MOST_SAMPLES", 9)
    tasks = few_samples.tasks(["CurrinSine", "Franke2"], [20, 5, 10], [0], [GP])
    assert [task[:2] for task in tasks] == [("CurrinSine", 5), ("Franke2", 5), ("CurrinSine", 10)]
