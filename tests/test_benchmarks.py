"""The benchmarks on a tiny case, without the libraries that they compare with."""

import json
import sys
from dataclasses import replace
from functools import partial
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


def test_speed_is_a_table_of_ratios(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(BENCHMARKS)
    bench, cases = import_module("bench"), import_module("bench_cases")
    monkeypatch.setattr(cases, "peak_above", lambda code: 1.0)
    tiny = cases.Sizes(150, 20, (100, 200), (10, 20), (1, 2), (1, 2), (2, 8), 5, 2, 150, 2)
    names = [name for name in cases.SECTIONS if name not in ("Sparse networks", "Trained networks")]
    bench.main(["--out", str(tmp_path), "--only", *names], tiny)
    saved = json.loads((tmp_path / "bench.json").read_text())
    assert list(saved["tables"]) == names
    rows = [row for table in saved["tables"].values() for row in table]
    assert all(np.isfinite(row["ratio"]) for row in rows)
    assert all(row["ours"] > 0 and row["bare"] > 0 for row in rows if row["unit"] == "s")
    assert saved["machine"]["versions"]["numpy"] == np.__version__
    text, printed = (tmp_path / "bench.md").read_text(), capsys.readouterr().out
    assert all(row["name"] in text and row["name"] in printed for row in rows)


def test_ratios_cancel_what_slows_down_both(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    measuring = import_module("measuring")
    clock = iter(np.cumsum([0, 3, 0, 1, 0, 30, 0, 10, 0, 6, 0, 2]).tolist())
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: next(clock))
    row = measuring.compare("three times", lambda: None, lambda: None, 3, aim=2.0)
    assert (row.ours, row.bare, row.ratio) == (3, 1, 3)
    assert row.cells == ["three times", "3 s", "1 s", "3.00", "2, missed"]
    assert_allclose(measuring.slope([1, 10, 1000], [1, 5, 5e4]), 2)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux only")
def test_the_peak_of_memory_is_measured_from_where_the_program_says(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    code = "large = bytearray(80 << 20)\ndel large\nbefore()\nsmall = bytearray(b'1') * (20 << 20)"
    peak = import_module("measuring").peak_above(code)
    assert 19 < peak < 40


def test_the_table_of_peers_says_who_is_ahead(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    fits = [
        ("nurf sampled", "2e-3", "0.5"),
        ("jenn", "1e-3", "0.9"),
        ("nurf trained", "1e-4", "8"),
        ("xRFM", "nan", ""),
    ]
    rows = [dict(zip(("case", "method", "error", "seconds"), ("arm", *fit), strict=True)) for fit in fits]
    lines = import_module("bench_peers").table(rows).splitlines()[3:]  # the first is that of 0.1 s, with no fit
    assert lines[0] == "| arm | 1 s | 2.0e-03 (nurf sampled, 0.5 s) | 1.0e-03 (jenn, 0.9 s) | others, 2.0 times |"
    assert lines[1] == "| arm | 10 s | 1.0e-04 (nurf trained, 8 s) | 1.0e-03 (jenn, 0.9 s) | nurf, 10.0 times |"


def test_peers_are_drawn_with_what_is_installed(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(BENCHMARKS)
    peers = import_module("bench_peers")
    monkeypatch.setitem(peers.CASES, "small", ("planar_wave", {}, 60, 0.0))
    monkeypatch.setitem(peers.METHODS, MISSING, peers.Method("no_such_library", (DummyRegressor,)))
    monkeypatch.setitem(peers.METHODS, "mean", peers.Method("sklearn", (DummyRegressor,) * 2, False, (10, 0)))
    monkeypatch.setitem(peers.METHODS, "broken", peers.Method("sklearn", (DummyRegressor,)))  # has no gradients
    case = [
        "--cases",
        "small",
        "--out",
        str(tmp_path),
        "--methods",
        "mean",
        "broken",
        MISSING,
        "GaussianProcessRegressor",
    ]
    peers.main(case)
    assert f"not installed: {MISSING} (no_such_library)" in capsys.readouterr().out
    rows = {(row["method"], row["place"]): row for row in peers.read(tmp_path / "bench_peers.csv")}
    assert rows["mean", "0"]["samples"] == "10"
    assert rows["mean", "1"]["samples"] == "60"
    assert rows["broken", "0"]["note"].startswith("failed")
    assert float(rows["GaussianProcessRegressor", "0"]["error"]) < float(rows["mean", "1"]["error"])
    image = plt.imread(tmp_path / "bench_peers_small.png")
    assert 0.01 < np.mean(image[..., :3] < 0.9) < 0.5
    peers.main(case)
    assert len(peers.read(tmp_path / "bench_peers.csv")) == len(rows)


@pytest.fixture
def trust(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("trust")


def test_trust_is_measured_once_for_each_model(trust, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(trust, "NOISES", (0,))
    monkeypatch.setitem(trust.HARD, "beam", [(20, "exact")])
    monkeypatch.setitem(trust.MODELS, "trained", partial(DummyRegressor, strategy="none"))  # which fails
    out = tmp_path / "trust.csv"
    case = ["--functions", "ridge", "beam", "--samples", "8", "20", "--seeds", "1", "--out", str(out)]
    trust.main([*case, "--parts", "few", "--models", "wide"])
    trust.main([*case, "--parts", "few", "hard", "--models", "wide", "trained"])
    rows = {tuple(row[name] for name in trust.KEY): row for row in trust.read(out)}
    assert len(rows) == len(trust.read(out)) == 2 * (2 * 2 + 1)
    for key, row in rows.items():
        if key[0] == "trained":
            assert row["error"] == "nan"
        else:
            assert 0 <= float(row["interval"]) <= 1
            assert float(row["error"]) > 0 < float(row["reported"])
    capsys.readouterr()
    trust.main(["--table", str(out)])
    printed = capsys.readouterr().out.splitlines()
    assert "| trained | **0%**, **nan** | **0%**, **nan** |" in printed
    assert [line for line in printed if line.startswith("**")] == [
        "**wide, few**: 4 fits",
        "**wide, hard**: 1 fits",
        "**trained, few**: 4 fits",
        "**trained, hard**: 1 fits",
    ]


def test_trust_says_which_models_miss_what_they_promise(trust, tmp_path, capsys):
    out = tmp_path / "old.csv"  # without a model: those of sampled networks
    rows = [(30, ratio, coverage) for ratio, coverage in [(1, 0.8), (0.4, 0.9), (2.9, 0.9), (0.3, 0.9)]]
    rows += [(8, 1, 0.9)] * 4 + [(8, 3.1, 0.9)]
    lines = [
        f"few,ridge,{n},0,none,{seed},0.1,{ratio / 10},1,{held},1,1,1" for seed, (n, ratio, held) in enumerate(rows)
    ]
    lines += [f"wrong,ridge,60,0,{kind},0,{error},1,,,,,1" for kind, error in (("none", 0.1), ("negated", 0.12))]
    lines.append("hard,beam,300,0,exact,0,0.1,0.02,,0.9,0.9,,1")
    out.write_text("\n".join([",".join(trust.COLUMNS[1:]), *lines]) + "\n")
    trust.main(["--table", str(out)])
    printed = capsys.readouterr().out.splitlines()
    assert "| sampled | 80%, 0.90 | **75%**, 0.88 |" in printed
    assert "| negated | 1.20, worst 1.20, 100% above 1.1 |" in printed
    assert "| beam | 300 | 0.1 | 0.02 | **0.2** | 0.90 | 1 |" in printed
    with pytest.raises(ValueError, match="must have the columns"):
        trust.main(["--out", str(out)])


def test_little_time_is_measured_beside_peers(monkeypatch, tmp_path, capsys):
    pytest.importorskip("uqtestfuns")
    monkeypatch.syspath_prepend(BENCHMARKS)
    anytime, out = import_module("anytime"), tmp_path / "anytime.csv"
    case = ["--functions", "CurrinSine", "--data", "values", "--budgets", "0.05", "--out", str(out)]
    case += ["--peers", "GP", "kernel ridge"]
    anytime.main(case)
    anytime.main(case)  # what is there is not measured again
    found = [(row["method"], row["budget"]) for row in anytime.read(out)]
    assert found == [("GP", ""), ("kernel ridge", ""), ("Surrogate", "0.05")]
    assert "| values | GP |  | 1.00 | 0 of 1 |" in capsys.readouterr().out
    assert out.with_suffix(".png").stat().st_size > 10_000
    rows = [("a", "GP", "", 0.1, 1.0), ("b", "GP", "", 0.4, 2.0)]
    rows += [("a", "Surrogate", 1, 0.05, 1.0), ("b", "Surrogate", 1, 0.05, 1.2)]
    keys = ("function", "method", "budget", "error", "seconds")
    anytime.print_summary([dict(zip(keys, map(str, row), strict=True)) | {"data": "values"} for row in rows])
    assert "| values | Surrogate | 1 | 0.25 | 2 of 2 | 1.1 | 1.2 | 1 of 2 |" in capsys.readouterr().out


def test_trust_has_rows_of_all_samples_that_are_documented(trust):
    rows = trust.read(BENCHMARKS / "results" / "trust.csv")
    kept = {(row["samples"], row["gradients"]) for row in rows if (row["model"], row["part"]) == ("sampled", "few")}
    assert kept == {(str(n), kind) for n in trust.SAMPLES for kind in ("none", "exact")}


@pytest.fixture
def choosing(monkeypatch):
    pytest.importorskip("uqtestfuns")
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("choosing")


def test_the_choice_is_measured_once_beside_each_engine(choosing, tmp_path, monkeypatch, capsys):
    out = tmp_path / "choosing.csv"
    case = ["--functions", "CurrinSine", "--sizes", "10 d", "--data", "values", "--out", str(out)]
    choosing.main([*case, "--engines", "wide"])
    choosing.main([*case, "--engines", "wide", "sampled"])
    rows = choosing.read(out)
    assert [(row["engines"], row["chosen"], row["samples"]) for row in rows] == [
        ("wide", "wide", "10"),
        ("sampled", "sampled", "10"),
    ]
    X, y, _, fresh, truth = choosing.part_of_collection("CurrinSine", "10 d")
    assert len(X) == len(y) == 10
    mean = np.sqrt(np.mean((np.mean(y) - truth) ** 2)) / np.std(truth)
    assert all(0 < float(row["error"]) < mean < 1.5 for row in rows)
    assert all(float(row["reported"]) > 0 < float(row["seconds"]) for row in rows)
    _, _, _, same, _ = choosing.part_of_collection("CurrinSine", "50 d")
    assert np.array_equal(fresh, same)

    small = choosing.Case(partial(choosing.in_box, choosing.smooth, 5), 12, 5.0, ("gradients",))
    monkeypatch.setattr(choosing, "CASES", {"5 inputs": small})
    choosing.main(["--part", "table", "--cases", "5 inputs", "--engines", "wide", "--out", str(out)])
    capsys.readouterr()
    choosing.main(["--table", str(out)])
    printed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| 5 inputs | 5 | 12 | gradients | 5 s |  | ") for line in printed)


def test_the_choice_costs_its_error_over_the_least_one(choosing, tmp_path, capsys):
    out = tmp_path / "choosing.csv"
    errors = {
        "A": {"all": 0.4, "wide": 0.1, "sampled": 0.4, "trained": "nan"},
        "B": {"all": 1e-9, "wide": 1e-9, "sampled": 1e-12, "trained": 1},  # below rounding
        "C": {"all": 0.1, "wide": 0.1, "sampled": 0.2, "trained": 0.2},
        "D": {"all": 0.1, "wide": 0.2},  # not complete
    }
    lines = [",".join(choosing.COLUMNS)]
    for name, found in errors.items():
        for engines, error in found.items():
            measured = ["", "", "", "failed: why"] if error == "nan" else [str(2 * error), "3", "wide", ""]
            lines.append(",".join(["collection", name, "50 d", "values", engines, "2", "100", str(error), *measured]))
    out.write_text("\n".join(lines) + "\n")
    choosing.main(["--table", str(out)])
    printed = capsys.readouterr().out.splitlines()
    mean = 4 ** (1 / 3)
    assert f"| 50 d | values | 3 | {mean:.2f} | 1.00 | 1 | 4 (A) | 9 | 3 |" in printed
    assert "| 50 d | values | 2, 100%, 9 s | 3, 100%, 9 s | 1, 100%, 9 s | 0, 67%, 6 s |" in printed
    assert (
        "| A | 2 | 100 | 4.0e-01 (8.0e-01) | 1.0e-01 (2.0e-01) | 4.0e-01 (8.0e-01) | failed | wide | 4.00 |" in printed
    )


def test_budgets_that_are_not_kept_are_marked(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(BENCHMARKS)
    budgets = import_module("budgets")
    out = tmp_path / "budgets.csv"
    case = ["--samples", "12", "--dimensions", "2", "--data", "values", "--out", str(out)]
    for _ in range(2):
        budgets.main([*case, "--budgets", "2"])
    (row,) = budgets.read(out)
    assert 0 < float(row["seconds of a core"]) < 60 > float(row["seconds"])
    assert 0 < float(row["error"]) < 1
    with out.open("a") as file:
        file.write("1,12,2,values,1.19,1,0.1,0.1,wide\n0.3,12,2,values,0.44,0.22,0.01,0.1,sampled\n")
    capsys.readouterr()
    budgets.main(["--table", str(out)])
    printed = capsys.readouterr().out.splitlines()
    (line,) = [line for line in printed if line.startswith("| 12 | 2 | values |")]
    assert line.startswith("| 12 | 2 | values | **0.44** (1.0e-02, sampled) | 1.2 (1.0e-01, wide) | ")
    assert any(line.startswith("| budget exceeded | 1 of 1 | 0 of 1 | ") for line in printed)
    assert any(line.startswith("| seconds of a core / of the clock | 0.50 | 0.84 |") for line in printed)


def test_intervals_of_answers_are_compared_with_the_truth(monkeypatch, capsys, tmp_path):
    pytest.importorskip("uqtestfuns")
    monkeypatch.syspath_prepend(BENCHMARKS)
    decisions = import_module("decisions")
    given = ["--out", str(tmp_path / "rows.csv"), "--models", "wide", "--samples", "12", "--functions", "CurrinSine"]
    decisions.main(given)
    capsys.readouterr()
    decisions.main([*given, "--table", str(tmp_path / "rows.csv")])  # rows that are there are not measured again
    shares, errors = capsys.readouterr().out.strip().split("\n\n")
    head, _, *rows = shares.splitlines()
    assert head.split(" | ")[-1].startswith("minimum")
    assert [row.split(" | ")[1:4] for row in rows] == [["12", "no", "1"], ["12", "yes", "1"], ["all", "both", "2"]]
    head, _, row = errors.splitlines()
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert cells["fits, values / gradients"] == "1 / 1"
    assert 0 < float(cells["failure"].split(" / ")[1]) < 1
    assert float(cells["mean"].split(" / ")[1]) < 0.5
    decisions.published({"GaytonHat": (0.0, "2.85e-5")})
    line = capsys.readouterr().out.splitlines()[-1].split(" | ")
    assert_allclose(float(line[2]), 2.85e-5, rtol=0.05)


def test_studies_count_calls(monkeypatch, tmp_path, capsys):
    """Minima of the problems are those of the literature, calls are counted, and rows that are there are kept."""
    pytest.importorskip("uqtestfuns")
    monkeypatch.syspath_prepend(BENCHMARKS)
    studies = import_module("studies")
    minima = {
        "Branin": [np.pi, 2.275],
        "Hartmann 3": [0.114614, 0.555649, 0.852547],
        "Hartmann 6": [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573],
        "Rosenbrock 5": [1.0] * 5,
        "Ackley 5": [0.0] * 5,
        "Goldstein-Price": [0.0, -1.0],
        "six-hump camel": [0.0898, -0.7126],
        "Levy 4": [1.0] * 4,
    }
    for name, x in minima.items():
        problem = studies.PROBLEMS[name]()
        assert_allclose(problem.outputs(np.array(x))[0, 0], problem.smallest, atol=1e-3)
    path = tmp_path / "rows.csv"
    for _ in range(2):
        studies.main(["minimum", "--functions", "Branin", "--methods", "scipy", "--seeds", "0", "--out", str(path)])
    (row,) = studies.read(path)
    assert 1 < int(row["runs"]) < 60
    runs, errors = studies.course_of(row)
    assert runs[-1] == int(row["runs"])
    assert errors[-1] <= 0.01 < errors[0]
    capsys.readouterr()
    studies.main(["table", "--out", str(path)])
    assert f"| Branin | 1 | {row['runs']}, 0 s |" in capsys.readouterr().out
    studies.main(["picture", "--out", str(path), "--to", str(tmp_path)])
    assert (tmp_path / "studies_minimum.png").stat().st_size > 1000
