"""The experiments: names of configurations, resumed runs, claims, comparisons, pictures."""

import dataclasses
import json
import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from nurf import experiments
from nurf.densities import Uniform
from nurf.networks import Hyperplanes
from reproduction import authors, comparison, plan, runner
from reproduction.cases import CASES, Case
from reproduction.claims import CLAIMS, WAVE
from reproduction.evidence import Evidence, MissingError
from reproduction.figures import FIGURES
from reproduction.files import write_text, write_with
from reproduction.findings import Comparison
from reproduction.fits import Draws, Sampling, Training
from reproduction.plan import Scope
from reproduction.reasons import REASONS, Reason
from reproduction.results import Neurons, Row, Table, read_table
from reproduction.runner import run_units
from reproduction.seeds import generator, seed
from reproduction.store import CorruptError, Store, Unit

TINY = Case("tiny", "gaussian_bump", 1, 60, 12, 1 / 20, 1, grid=True, noise=0.02, unit=2.0)
FLAT = Case("flat", "checkmark", 2, 49, 12, 1 / 10, 1, grid=True, noise=0.02)
SAMPLING = Sampling(TINY, (4, 8, 12))
TRAINING = Training(TINY, (0.05, 0.01), 10.0, 0.25, 6)
DRAWS = Draws(FLAT, 20)
UNITS = [
    *(Unit(SAMPLING, law, trial) for law in ("uniform", "local", "local_residual") for trial in (0, 1)),
    Unit(TRAINING, "sparse", 0),
    Unit(DRAWS, "representation", 0),
]


def silent(_):
    pass


def numbers(results):
    """Return all that must not depend on how a run went: everything but the seconds."""
    return {
        unit: (
            [dataclasses.replace(row, seconds=0.0) for row in result.rows],
            [[n.normals.tolist(), n.offsets.tolist(), n.weights.tolist()] for n in result.networks],
        )
        for unit, result in results.items()
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A store with all units, and their results."""
    store = Store(tmp_path_factory.mktemp("store"))
    return store, run_units(UNITS, store, say=silent)


# --- configurations ---

CHANGES = {
    "name": "other",
    "problem": "planar_wave",
    "dimension": 2,
    "n_samples": 61,
    "n_neurons": 13,
    "width": 0.06,
    "order": 2,
    "grid": False,
    "noise": 0.03,
    "unit": 1.0,
    "stages": (4, 8),
    "keep": True,
    "gamma": 5.0,
    "theta": 0.5,
    "max_neurons": 7,
    "n_draws": 21,
    "alphas": (1.0, 0.1),
}


@pytest.mark.parametrize("experiment", [SAMPLING, TRAINING, DRAWS], ids=lambda e: type(e).__name__)
def test_the_digest_changes_with_each_field(experiment):
    digests = {experiment.digest}
    for field in dataclasses.fields(experiment):
        if field.name != "case":
            digests.add(dataclasses.replace(experiment, **{field.name: CHANGES[field.name]}).digest)
    for field in dataclasses.fields(Case):
        case = dataclasses.replace(experiment.case, **{field.name: CHANGES[field.name]})
        if case != experiment.case:
            digests.add(dataclasses.replace(experiment, case=case).digest)
    same = sum(getattr(experiment.case, f.name) == CHANGES[f.name] for f in dataclasses.fields(Case))
    assert len(digests) == len(dataclasses.fields(experiment)) + len(dataclasses.fields(Case)) - same


def test_kinds_of_experiments_with_the_same_fields_differ():
    assert Draws(TINY, 20).digest != Sampling(TINY, 20).digest


def test_the_digest_is_the_same_in_another_process():
    program = f"from reproduction.fits import *; print({SAMPLING!r}.digest, {TRAINING!r}.digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "123"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert found.stdout.split() == [SAMPLING.digest, TRAINING.digest]


def test_seeds_differ_between_laws_trials_and_configurations(done):
    _, results = done
    seeds = {unit: {row.seed for row in result.rows} for unit, result in results.items() if result.rows}
    assert all(len(own) == 1 for own in seeds.values())
    assert len(set().union(*seeds.values())) == len(seeds)


def test_laws_of_a_trial_share_their_data_and_trials_do_not():
    first, again, second = (TINY.trial_data(trial)[0] for trial in (0, 0, 1))
    np.testing.assert_array_equal(first.y, again.y)
    assert np.abs(first.y - second.y).max() > 1e-3


def test_the_stages_are_the_authors():
    counts = {}
    for row in authors.reference().rows:
        if row.law == "uniform":
            counts.setdefault(row.key, set()).add(row.neurons)
    for key, found in counts.items():
        assert CASES[key].stages == tuple(sorted(found))


# --- numbers ---


@pytest.mark.parametrize("case", [TINY, dataclasses.replace(TINY, order=2), dataclasses.replace(FLAT, noise=0.1)])
def test_errors_agree_with_textbook_ridge_regression(case):
    """Normal equations with the constant not penalised, the authors' 16 penalties d alpha / N, and their rule."""
    experiment = Sampling(case, (6, 12))
    rows = experiment.run("uniform", 3).rows
    train, held = case.trial_data(3)
    rng = generator(seed(experiment.digest, "uniform", 3))
    d = case.dimension
    planes = Uniform().prepare(train).sample(12, rng)
    for row, n in zip(rows, (6, 12), strict=True):

        def features(X, n=n):
            t = (X @ planes.normals[:n].T + planes.offsets[:n]) / case.width
            neurons = 1 / (1 + np.exp(-t)) if case.order == 1 else case.width * np.log1p(np.exp(t))
            return np.column_stack([neurons, np.ones(len(X)), *(X.T if case.order == 2 else ())])

        A, B = features(train.X), features(held.X)
        errors = []
        for alpha in np.logspace(1, -4, 16):
            penalty = np.zeros(A.shape[1])
            penalty[:n] = d * alpha / n
            c = np.linalg.solve(A.T @ A / len(A) + np.diag(penalty), A.T @ train.y / len(A))
            squares = np.sum((A @ c - train.y) ** 2) + np.sum((B @ c - held.y) ** 2)
            errors.append(np.sqrt(squares / (np.sum(train.y**2) + np.sum(held.y**2))))
        chosen = np.flatnonzero(np.array(errors) <= 1.05 * min(errors))[0]
        assert row.neurons == n
        assert row.error == pytest.approx(errors[chosen], rel=1e-6)


def test_trained_errors_are_those_of_the_kept_networks(done):
    _, results = done
    result = results[Unit(TRAINING, "sparse", 0)]
    train, held = TINY.trial_data(0)
    assert [len(network) for network in result.networks] == [row.neurons for row in result.rows]
    for row, network in zip(result.rows, result.networks, strict=True):
        squares = 0.0
        for jet in (train, held):
            t = (jet.X @ network.normals.T + network.offsets) / TINY.width
            values = (1 / (1 + np.exp(-t))) @ network.coef + network.coefficients[-1]
            squares += np.sum((values - jet.y) ** 2)
        assert row.error == pytest.approx(np.sqrt(squares / (np.sum(train.y**2) + np.sum(held.y**2))), rel=1e-6)


# --- runs ---


def test_results_depend_neither_on_the_number_of_processes_nor_on_the_order(done, tmp_path):
    _, results = done
    other = run_units(UNITS[::-1], Store(tmp_path), jobs=2, say=silent)
    assert numbers(other) == numbers(results)


def test_a_run_that_was_ended_goes_on_where_it_stopped(done, tmp_path, monkeypatch):
    _, results = done
    computed = []
    work = runner._work

    def counted(unit, store):
        if len(computed) == 3 and not messages:
            raise KeyboardInterrupt
        computed.append(unit)
        return work(unit, store)

    monkeypatch.setattr(runner, "_work", counted)
    store, messages = Store(tmp_path), []
    with pytest.raises(KeyboardInterrupt):
        run_units(UNITS, store, say=silent)
    first = list(computed)
    assert len(first) == 3
    store.path(first[0]).unlink()
    text = store.path(first[1]).read_text()
    store.path(first[1]).write_text(text[: len(text) // 2])
    resumed = run_units(UNITS, store, say=messages.append)
    assert set(computed[3:]) == set(UNITS) - {first[2]}
    assert len(computed[3:]) == len(UNITS) - 1
    assert any("damaged" in message and str(store.path(first[1])) in message for message in messages)
    assert numbers(resumed) == numbers(results)


def test_a_finished_run_computes_nothing(done, monkeypatch):
    store, results = done
    monkeypatch.setattr(runner, "_work", lambda *_: pytest.fail("computed again"))
    assert numbers(run_units(UNITS, store, say=silent)) == numbers(results)


def test_a_changed_number_is_found_out(done, tmp_path):
    _, results = done
    store, unit = Store(tmp_path), UNITS[0]
    store.save(unit, results[unit])
    record = json.loads(store.path(unit).read_text())
    record["result"]["rows"][0]["error"] *= 2
    store.path(unit).write_text(json.dumps(record))
    with pytest.raises(CorruptError, match="damaged"):
        store.load(unit)


@pytest.mark.parametrize(
    "other",
    [
        Unit(dataclasses.replace(SAMPLING, stages=(4, 8)), "uniform", 0),
        Unit(SAMPLING, "local", 0),
        Unit(SAMPLING, "uniform", 1),
    ],
    ids=["configuration", "law", "trial"],
)
def test_results_never_mix(done, tmp_path, other):
    _, results = done
    store, unit = Store(tmp_path), UNITS[0]
    store.save(unit, results[unit])
    assert store.load(other) is None
    store.path(other).parent.mkdir(exist_ok=True)
    store.path(unit).replace(store.path(other))
    with pytest.raises(CorruptError):
        store.load(other)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def fail(temporary):
        temporary.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_with(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_units_go_first(done, tmp_path, monkeypatch):
    _, results = done
    order = []
    monkeypatch.setattr(runner, "_work", lambda unit, _: (order.append(unit), (unit, results[unit]))[1])
    run_units(UNITS, Store(tmp_path), say=silent)
    efforts = [unit.effort for unit in order]
    assert efforts == sorted(efforts, reverse=True)
    assert efforts[0] > efforts[-1]


def test_progress_is_a_bar_or_a_few_lines(done, tmp_path, monkeypatch, capsys):
    _, results = done
    monkeypatch.setattr(runner, "_work", lambda unit, _: (unit, results[unit]))
    messages = []
    run_units(UNITS, Store(tmp_path), say=messages.append)
    assert messages[0] == f"{len(UNITS)} to compute in 1 process"
    assert 1 <= len(messages) <= 4
    assert capsys.readouterr().err == ""
    run_units(UNITS, Store(tmp_path), say=silent, progress=True)
    assert "left:" in capsys.readouterr().err


def test_a_table_survives_its_file(done):
    _, results = done
    table = Table(tuple(row for result in results.values() for row in result.rows))
    header, *_ = table.to_csv().splitlines()
    assert header == "case,order,law,trial,neurons,error,alpha,seconds,seed"
    again = read_table(table.to_csv())
    assert [(r.case, r.law, r.trial, r.neurons, r.seed) for r in again.rows] == [
        (r.case, r.law, r.trial, r.neurons, r.seed) for r in table.rows
    ]
    np.testing.assert_allclose([r.error for r in again.rows], [r.error for r in table.rows], rtol=1e-5)


# --- the authors' errors ---


def rows(key, law, errors, counts, *, seconds=1.0, trial=0):
    case, _, order = key.partition("_s2")
    order = 2 if key.endswith("_s2") else 1
    return [
        Row(case, order, law, trial, int(n), float(e), 1.0, seconds, 0) for n, e in zip(counts, errors, strict=True)
    ]


def test_the_reference_is_what_the_file_says():
    table = authors.reference()
    assert len(table.rows) == 3069
    first = table.rows[0]
    assert (first.case, first.order, first.law, first.trial, first.neurons) == ("gaussian_bump", 1, "uniform", 0, 4)
    assert first.error == 0.8454265
    neurons, errors = table.curve("planar_wave", "sparse")
    np.testing.assert_allclose(neurons, [3, 6, 8, 10, 18, 54])
    assert errors.shape == (1, 6)


def test_every_law_of_the_reference_is_in_a_figure():
    planned = set()
    for figure in FIGURES.values():
        for part in figure.parts(Scope()):
            planned |= {(part.experiment.case.key, law) for law in part.laws if figure.keys}
    known = {(row.key, row.law) for row in authors.reference().rows}
    assert known <= planned
    assert ("robot_arm_6d", "sparse") in planned - known


def test_comparisons_go_stage_by_stage_with_both_spreads():
    theirs = authors.reference()
    counts, errors = theirs.curve("checkmark_3d", "local")
    assert round(counts[0]) == 5  # four neurons and the constant
    own = [2 * errors[0], errors[1]]
    table = Table(
        tuple(
            row for t in (0, 1) for row in rows("checkmark_3d", "local", own[t], CASES["checkmark_3d"].stages, trial=t)
        )
    )
    found = comparison.compare(table, ("checkmark_3d",))
    assert [c.neurons for c in found] == list(CASES["checkmark_3d"].stages)
    assert [(c.our_trials, c.their_trials) for c in found] == [(2, 4)] * 8
    logs = np.log(own)
    np.testing.assert_allclose([c.ours for c in found], np.exp(logs.mean(axis=0)))
    np.testing.assert_allclose([c.our_spread for c in found], np.abs(logs[0] - logs[1]) / np.sqrt(2))
    np.testing.assert_allclose([c.theirs for c in found], np.exp(np.log(errors).mean(axis=0)))


def test_trained_networks_are_compared_at_the_authors_sizes():
    table = Table(tuple(rows("planar_wave", "sparse", [1.0, 0.1], [2, 20])))
    found = comparison.compare(table, ("planar_wave",))
    assert [c.neurons for c in found] == [3, 6, 8, 10, 18]  # they have 54 too, we have not
    np.testing.assert_allclose([c.ours for c in found], 2 / np.array([3, 6, 8, 10, 18]))


@pytest.mark.parametrize(
    ("ratio", "spreads", "trials", "expected"),
    [
        (1.04, (0.001, 0.001), (10, 10), False),
        (1.10, (0.001, 0.001), (10, 10), True),
        (1 / 1.10, (0.001, 0.001), (10, 10), True),
        (1.30, (0.3, 0.3), (4, 4), False),  # standard error 0.21
        (1.30, (0.3, 0.3), (100, 100), True),
        (1.30, (0.3, np.nan), (100, 1), False),  # a single trial is given our spread
        (2.00, (0.3, np.nan), (100, 1), True),
        (1.30, (0.3, 0.01), (100, 2), False),  # so are two that happen to agree
        (1.30, (0.3, 0.01), (100, 4), True),  # four are believed
        (1.10, (np.nan, np.nan), (1, 1), True),
    ],
)
def test_a_deviation_is_more_than_five_percent_and_two_standard_errors(ratio, spreads, trials, expected):
    assert (
        comparison.deviates(Comparison("c", "l", 4, ratio, spreads[0], trials[0], 1.0, spreads[1], trials[1]))
        is expected
    )


def test_reasons_go_by_case_law_size_and_sign(monkeypatch):
    reasons = (
        Reason("few", ("corner",), ("local",), largest=10),
        Reason("below", ("corner",), higher=False),
    )
    monkeypatch.setattr(comparison, "REASONS", reasons)
    assert comparison.explanation("corner", "local", 10, 1.0) == "few"
    assert comparison.explanation("corner", "local", 11, 1.0) == comparison.UNEXPLAINED
    assert comparison.explanation("corner", "local", 11, -1.0) == "below"
    assert comparison.explanation("separable", "local", 4, -1.0) == comparison.UNEXPLAINED


def test_every_reason_names_cases_and_laws_that_exist():
    for reason in REASONS:
        assert set(reason.cases) <= set(CASES)
        assert set(reason.laws) <= {*plan.LAWS_1D, *plan.LAWS_2D, *plan.LAWS_ND, *plan.SPARSE}


# --- claims ---


def evidence(sampled, *, trained, seconds, networks=None):
    """Return made-up evidence: for each case the error of each law as a function of N, and of the trained network."""
    found = []
    for key, laws in sampled.items():
        counts = np.array(CASES[key].stages)
        for law, error in laws.items():
            found += rows(key, law, error(counts), counts, seconds=1.0)
        few = np.array([2, 5, 11])
        found += rows(key, "sparse", trained(few), few, seconds=seconds)
    return Evidence(Table(tuple(found)), networks or {})


def planes(angles, offsets, weights=None):
    angles = np.asarray(angles, float)
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    return Neurons(
        normals,
        np.broadcast_to(offsets, len(angles)).astype(float),
        np.ones(len(angles)) if weights is None else weights,
    )


SPREAD = np.linspace(0, np.pi, 40, endpoint=False)
WAVE_ANGLE = np.arctan2(*WAVE[0][::-1])
STEEP = np.arctan2(7.0, 10.0)


def checkmark_planes():
    """Hyperplanes through the steepest points, orthogonal to the gradient."""
    function = CASES["checkmark_2d"].function
    X = function.grid(41)
    g = function.gradient(X)
    top = np.argsort(-np.linalg.norm(g, axis=1))[:40]
    found = Hyperplanes.through(X[top], g[top])
    return Neurons(found.normals, found.offsets, np.ones(40))


def on_a_line(points):
    return Neurons(np.ones((len(points), 1)), -np.asarray(points), np.ones(len(points)))


def paper():
    """Numbers as the paper has them."""
    curves = {key: {} for key in CASES}
    for key, case in CASES.items():
        laws = {1: plan.LAWS_1D, 2: plan.LAWS_2D}.get(case.dimension, plan.LAWS_ND)
        curves[key] = {law: lambda n: 1.8 * n**-1.0 for law in laws} | {"uniform": lambda n: 2.0 * n**-0.5}
    for key in ("gaussian_bump", "gaussian_bump_s2"):
        curves[key] = {law: lambda n: np.maximum(0.0475, 1.37 * n**-1.0) for law in plan.LAWS_1D}
        curves[key]["uniform"] = lambda n: 1.37 * n**-0.7
    curves["planar_wave"]["representation"] = lambda n: 2.0 * n**-0.6
    curves["checkmark_2d"]["active_subspace"] = lambda n: 2.0 * n**-0.5
    for key in ("checkmark_3d", "checkmark_4d"):
        curves[key]["active_subspace"] = lambda n: 2.0 * n**-0.5
        curves[key]["local"] = lambda n: np.maximum(1.8 * n**-1.0, 0.3 * n**-0.6)
    curves["corner"] |= {law: lambda n: 2.0 * n**-0.5 for law in ("active_subspace", "nonlocal")}
    curves["corner"] |= {law: lambda n: 1.8 * n**-0.5 for law in ("representation", "local_residual")}
    curves["corner"]["local"] = lambda n: 0.5 * n**-0.05
    curves["separable"] = {law: lambda n: 2.0 * n**-0.5 for law in plan.LAWS_2D} | {
        "representation": lambda n: 1.8 * n**-0.5
    }
    for key in ("corner_peak_3d", "corner_peak_4d", "robot_arm_6d"):
        curves[key]["active_subspace"] = lambda n: 1.0 * n**-0.7
        curves[key] |= {law: lambda n: 0.9 * n**-0.8 for law in ("local", "nonlocal", "local_residual")}
    curves["borehole_8d"]["active_subspace"] = lambda n: np.where(n < 300, 2.0 * n**-0.5, 1.0 * n**-0.5)
    networks = {
        ("gaussian_bump", "uniform"): on_a_line(np.linspace(-1, 1, 30)),
        ("gaussian_bump", "local"): on_a_line(np.linspace(-0.25, 0.25, 30)),
        ("gaussian_bump", "sparse"): on_a_line(np.linspace(-0.25, 0.25, 11)),
        ("planar_wave", "local"): planes([WAVE_ANGLE] * 9, 0.1),
        ("planar_wave", "sparse"): planes([WAVE_ANGLE + np.pi] * 9, 0.1),
        ("planar_wave", "representation"): planes(SPREAD, 0.1),
        ("checkmark_2d", "uniform"): planes(SPREAD, 0.1),
        ("checkmark_2d", "local"): checkmark_planes(),
        ("checkmark_2d", "sparse"): checkmark_planes(),
        ("separable", "sparse"): planes([0, np.pi / 2, np.pi], 0.1),
        ("separable", "local"): planes([STEEP, np.pi - STEEP] * 5, 0.1),
        ("separable", "representation"): planes([*[0.02, np.pi / 2] * 4, *SPREAD], 0.1),
    }
    return evidence(curves, trained=lambda n: np.maximum(0.0475, 0.95 * n**-1.2), seconds=1000.0, networks=networks)


def contrary():
    """Numbers that speak against every claim."""
    order = ["uniform", "active_subspace", "local", "nonlocal", "local_residual", "nonlocal_residual", "representation"]
    curves = {}
    for key, case in CASES.items():
        laws = {1: plan.LAWS_1D, 2: plan.LAWS_2D}.get(case.dimension, plan.LAWS_ND)
        factors = {law: 0.2 * 2.0 ** order.index(law) for law in laws}
        curves[key] = {law: lambda n, f=factor: f * n**-0.5 for law, factor in factors.items()}
    curves["planar_wave"] |= {"representation": lambda n: 0.1 * n**-0.5}
    curves["corner"]["local"] = lambda n: 0.1 * n**-0.5
    for key in ("corner_peak_3d", "corner_peak_4d", "robot_arm_6d", "borehole_8d"):
        curves[key] |= {"active_subspace": lambda n: 0.15 * n**-0.5}
    curves["robot_arm_6d"]["active_subspace"] = lambda n: 0.2 * n**-0.5
    networks = {
        ("gaussian_bump", "uniform"): on_a_line(np.linspace(-0.2, 0.2, 30)),
        ("gaussian_bump", "local"): on_a_line(np.linspace(-1, 1, 30)),
        ("gaussian_bump", "sparse"): on_a_line(np.linspace(-1, 1, 11)),
        ("planar_wave", "local"): planes(SPREAD, 0.1),
        ("planar_wave", "sparse"): planes(SPREAD, 0.1),
        ("planar_wave", "representation"): planes([WAVE_ANGLE] * 9, 0.1),
        ("checkmark_2d", "uniform"): checkmark_planes(),
        ("checkmark_2d", "local"): planes(SPREAD, 0.1),
        ("checkmark_2d", "sparse"): planes(SPREAD, 0.1),
        ("separable", "sparse"): planes(SPREAD, 0.1),
        ("separable", "local"): planes([0.0, np.pi / 2], 0.1),
        ("separable", "representation"): planes([np.pi / 4] * 3, 0.1),
    }
    return evidence(curves, trained=lambda n: 3.0 * n**0.0, seconds=0.1, networks=networks)


EVERY_CLAIM = [(name, i) for name, claims in CLAIMS.items() for i in range(len(claims))]


def test_every_figure_has_claims():
    assert set(CLAIMS) == set(FIGURES)
    assert all(CLAIMS.values())


@pytest.mark.parametrize(("name", "i"), EVERY_CLAIM)
def test_claims_hold_on_the_papers_numbers_fail_on_contrary_ones_and_need_some(name, i):
    claim = CLAIMS[name][i]
    assert claim.finding(paper()).holds is True, claim.finding(paper())
    assert claim.finding(contrary()).holds is False, claim.finding(contrary())
    missing = claim.finding(Evidence(Table(())))
    assert missing.holds is None
    assert missing.numbers.startswith("not decided: ")


def test_evidence_interpolates_in_logarithms():
    e = Evidence(
        Table(
            tuple(rows("corner", "uniform", [1.0, 0.1], [10, 1000]) + rows("corner", "local", [0.5, 0.2], [10, 1000]))
        )
    )
    assert e.error("corner", "uniform", 100) == pytest.approx(np.sqrt(0.1))
    assert e.ratio("corner", "local", "uniform") == pytest.approx(1.0)
    assert e.ratio("corner", "local", "uniform", 500) == pytest.approx(2.0)
    assert e.slope("corner", "uniform", 10) == pytest.approx(-0.5)
    assert e.reach("corner", "uniform", np.sqrt(0.1)) == pytest.approx(100)
    assert e.reach("corner", "uniform", 0.01) == np.inf
    with pytest.raises(MissingError):
        e.error("corner", "uniform", 2000)
    with pytest.raises(MissingError):
        e.ratio("corner", "local", "uniform", 2000)


def test_a_trained_curve_averages_sizes_and_leaves_out_empty_networks():
    trials = rows("corner", "sparse", [1.0, 0.4], [0, 2]) + rows("corner", "sparse", [1.0, 0.1], [1, 8], trial=1)
    neurons, errors = Table(tuple(trials)).curve("corner", "sparse")
    np.testing.assert_allclose(neurons, [4.0])
    np.testing.assert_allclose(errors, [[0.4], [0.1]])


# --- pictures, end to end ---


@pytest.fixture
def small(monkeypatch):
    """The paper's cases, made small."""
    for key, case in CASES.items():
        samples = {1: 80, 2: 7**2}.get(case.dimension, 60)
        monkeypatch.setitem(CASES, key, dataclasses.replace(case, n_samples=samples, n_neurons=14, width=0.1))
        monkeypatch.setitem(plan.PATHS, key, (plan.PATHS[key][0], 3, 5))
    monkeypatch.setattr(plan, "N_DRAWS", 50)


def test_figures_of_all_kinds_are_drawn_written_and_reported(small, tmp_path):
    messages = []
    sections = experiments.reproduce(["fig11", "fig2", "fig6"], out=tmp_path / "new", trials=2, say=messages.append)
    assert [section.name for section in sections] == ["fig2", "fig6", "fig11"]  # the paper's order
    assert plt.get_fignums() == []
    for section in sections:
        for suffix in (".svg", ".pdf", ".png"):
            assert section.picture.with_suffix(suffix).stat().st_size > 5000
        image = plt.imread(section.picture.with_suffix(".png"))[..., :3]
        assert 0.01 < np.mean(image < 0.9) < 0.9
        assert section.seconds > 0
        assert section.findings
        assert section.note
        assert (tmp_path / "new" / "tables" / f"{section.name}.csv").exists()
    assert {c.case for c in sections[2].comparisons} == {"robot_arm_6d", "borehole_8d"}
    assert {c.law for c in sections[2].comparisons} >= {"uniform", "local", "local_residual"}
    table = read_table((tmp_path / "new" / "tables" / "fig11.csv").read_text())
    assert {row.trial for row in table.rows} == {0, 1}
    assert set(table.laws("borehole_8d")) == {*plan.LAWS_ND, "sparse"}
    assert "fig11" in (tmp_path / "new" / "report.html").read_text()

    picture = sections[1].picture.read_bytes()
    again = experiments.reproduce(["fig6"], out=tmp_path / "new", trials=2, say=messages.append)
    assert any("are there already" in message for message in messages)
    assert again[0].picture.read_bytes() == picture


def test_quick_runs_less():
    quick, full, own = Scope(quick=True), Scope(), Scope(trials=3)
    for key, case in CASES.items():
        high = case.dimension > 2
        assert [s.n_trials(case) for s in (quick, full, own)] == [2, 4 if high else 10, 3]
        assert [plan.trained(key, s).n_trials for s in (quick, full, own)] == [1 if high else 2, 4 if high else 10, 3]
        steps = [len(plan.trained(key, s).experiment.alphas) for s in (quick, full)]
        assert steps[0] == steps[1] - high


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"figures": ["fig4", "fig12"]}, "no figure is called 'fig12': expected fig1, "),
        ({"trials": 0}, "`trials` must be at least 1, got 0"),
        ({"jobs": 0}, "`jobs` must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        experiments.reproduce(**{"out": tmp_path, **arguments})


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="`out` must be a folder to write to"):
        experiments.reproduce(["fig1"], out=tmp_path / "file")
