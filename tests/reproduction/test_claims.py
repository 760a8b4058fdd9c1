"""Claims hold on the paper's numbers and fail on contrary ones; the docs agree with the tables."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from scipy.stats import ttest_rel
from tiny import TABLES, committed, rows

from nurf.networks import Hyperplanes
from reproduction import page, plan
from reproduction.authors import reference
from reproduction.cases import CASES
from reproduction.checks import Check, Claim, Limits
from reproduction.claims import CLAIMS, SMALL, WAVE
from reproduction.comparison import compare, listed
from reproduction.criteria import better
from reproduction.evidence import Evidence, MissingError
from reproduction.figures import FIGURES
from reproduction.results import Neurons, Table


def evidence(sampled, *, trained, seconds, convex, harm, networks=()):
    """Return made-up evidence; the error of a method and of the trained network is a function of N.

    The convex penalty multiplies the neurons of trained networks by a factor; a width or penalty that is too small
    multiplies the errors of sampled ones.
    """
    found = []
    few = np.array([2, 5, 11, 14])
    for key, methods in sampled.items():
        counts = np.array(CASES[key].stages)
        for method, error in methods.items():
            found += rows(key, method, error(counts), counts, seconds=1.0)
        found += rows(key, "sparse", trained(few), few, seconds=seconds)
        if key in SMALL:
            found += rows(key, "convex", trained(few), convex * few)
        for name in (plan.narrow_name(key), plan.unpenalised_name(key)) if CASES[key].order == 1 else ():
            for method in plan.RESIDUAL:
                found += rows(name, method, harm * methods[method](counts), counts)
    return Evidence(Table(tuple(found)), dict(networks))


def planes(angles):
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    return Neurons(normals, np.full(len(angles), 0.1), np.ones(len(angles)))


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


@cache
def paper():
    """Numbers as the paper has them."""
    curves = {key: {} for key in CASES}
    for key, case in CASES.items():
        methods = {1: plan.METHODS_1D, 2: plan.METHODS_2D}.get(case.dimension, plan.METHODS_ND)
        curves[key] = {method: lambda n: 1.8 * n**-1.0 for method in methods} | {"uniform": lambda n: 2.0 * n**-0.5}
    for key in ("gaussian_bump", "gaussian_bump_s2"):
        curves[key] = {method: lambda n: np.maximum(0.0475, 1.37 * n**-1.0) for method in plan.METHODS_1D}
        curves[key]["uniform"] = lambda n: 1.37 * n**-0.7
    curves["planar_wave"]["representation"] = lambda n: 2.0 * n**-0.6
    curves["checkmark_2d"]["active_subspace"] = lambda n: 2.0 * n**-0.5
    for key in ("checkmark_3d", "checkmark_4d"):
        curves[key]["active_subspace"] = lambda n: 2.0 * n**-0.5
        curves[key]["local"] = lambda n: np.maximum(1.8 * n**-1.0, 0.3 * n**-0.6)
    curves["corner"] |= {method: lambda n: 2.0 * n**-0.5 for method in ("active_subspace", "nonlocal")}
    curves["corner"] |= {method: lambda n: 1.8 * n**-0.5 for method in ("representation", "local_residual")}
    curves["corner"]["local"] = lambda n: 0.5 * n**-0.05
    curves["separable"] = {method: lambda n: 2.0 * n**-0.5 for method in plan.METHODS_2D} | {
        "representation": lambda n: 1.8 * n**-0.5
    }
    for key in ("corner_peak_3d", "corner_peak_4d", "robot_arm_6d"):
        curves[key]["active_subspace"] = lambda n: 1.0 * n**-0.7
        curves[key] |= {method: lambda n: 0.9 * n**-0.8 for method in ("local", "nonlocal", "local_residual")}
    curves["borehole_8d"]["active_subspace"] = lambda n: np.where(n < 300, 2.0 * n**-0.5, 1.0 * n**-0.5)
    networks = {
        ("gaussian_bump", "uniform"): on_a_line(np.linspace(-1, 1, 30)),
        ("gaussian_bump", "local"): on_a_line(np.linspace(-0.25, 0.25, 30)),
        ("gaussian_bump", "sparse"): on_a_line(np.linspace(-0.25, 0.25, 11)),
        ("planar_wave", "local"): planes([WAVE_ANGLE] * 9),
        ("planar_wave", "sparse"): planes([WAVE_ANGLE + np.pi] * 9),
        ("planar_wave", "representation"): planes(SPREAD),
        ("checkmark_2d", "uniform"): planes(SPREAD),
        ("checkmark_2d", "local"): checkmark_planes(),
        ("checkmark_2d", "sparse"): checkmark_planes(),
        ("separable", "sparse"): planes([0, np.pi / 2, np.pi]),
        ("separable", "local"): planes([STEEP, np.pi - STEEP] * 5),
        ("separable", "representation"): planes([*[0.02, np.pi / 2] * 4, *SPREAD]),
    }
    return evidence(curves, trained=trained, seconds=1000.0, convex=2, harm=2.0, networks=networks)


def trained(n):
    return np.maximum(0.0475, 0.95 * n**-1.2)


@cache
def consistent():
    """Numbers on which adaptive methods are always better: the paper's own are not, on the corner."""
    curves = {}
    for key, case in CASES.items():
        methods = {1: plan.METHODS_1D, 2: plan.METHODS_2D}.get(case.dimension, plan.METHODS_ND)
        curves[key] = {method: lambda n: 1.8 * n**-1.0 for method in methods}
        curves[key] |= {method: lambda n: 2.0 * n**-0.5 for method in ("uniform", "active_subspace")}
    return evidence(curves, trained=trained, seconds=1000.0, convex=2, harm=2.0)


@cache
def contrary():
    """Numbers that speak against every claim."""
    order = ["uniform", "active_subspace", "local", "nonlocal", "local_residual", "nonlocal_residual", "representation"]
    curves = {}
    for key, case in CASES.items():
        methods = {1: plan.METHODS_1D, 2: plan.METHODS_2D}.get(case.dimension, plan.METHODS_ND)
        factors = {method: 0.2 * 2.0 ** order.index(method) for method in methods}
        curves[key] = {method: lambda n, f=factor: f * n**-0.5 for method, factor in factors.items()}
    curves["planar_wave"] |= {"representation": lambda n: 0.1 * n**-0.5}
    curves["corner"]["local"] = lambda n: 0.1 * n**-0.5
    for key in ("corner_peak_3d", "corner_peak_4d", "robot_arm_6d", "borehole_8d"):
        curves[key] |= {"active_subspace": lambda n: 0.15 * n**-0.5}
    curves["robot_arm_6d"]["active_subspace"] = lambda n: 0.2 * n**-0.5
    networks = {
        ("gaussian_bump", "uniform"): on_a_line(np.linspace(-0.2, 0.2, 30)),
        ("gaussian_bump", "local"): on_a_line(np.linspace(-1, 1, 30)),
        ("gaussian_bump", "sparse"): on_a_line(np.linspace(-1, 1, 11)),
        ("planar_wave", "local"): planes(SPREAD),
        ("planar_wave", "sparse"): planes(SPREAD),
        ("planar_wave", "representation"): planes([WAVE_ANGLE] * 9),
        ("checkmark_2d", "uniform"): checkmark_planes(),
        ("checkmark_2d", "local"): planes(SPREAD),
        ("checkmark_2d", "sparse"): planes(SPREAD),
        ("separable", "sparse"): planes(SPREAD),
        ("separable", "local"): planes([0.0, np.pi / 2]),
        ("separable", "representation"): planes([np.pi / 4] * 3),
    }
    return evidence(curves, trained=lambda n: 3.0 * n**0.0, seconds=0.1, convex=1, harm=1.0, networks=networks)


EVERY_CLAIM = [(name, i) for name, claims in CLAIMS.items() for i in range(len(claims))]


def test_every_figure_has_claims():
    assert set(CLAIMS) == set(FIGURES)
    assert all(CLAIMS.values())


@pytest.mark.parametrize(("name", "i"), EVERY_CLAIM)
def test_claims_hold_on_the_papers_numbers_fail_on_contrary_ones_and_need_some(name, i):
    claim = dataclasses.replace(CLAIMS[name][i], obstacle="")
    agreeing = consistent() if name == "sec5" else paper()
    assert claim.finding(agreeing).holds is True, claim.finding(agreeing)
    assert claim.finding(contrary()).holds is False, claim.finding(contrary())
    missing = claim.finding(Evidence(Table(())))
    assert missing.holds is None
    assert missing.numbers.startswith("not decided: ")


def test_claims_about_another_function_are_not_testable():
    untestable = [claim for claims in CLAIMS.values() for claim in claims if claim.obstacle]
    assert [claim.text.partition(",")[0] for claim in untestable] == ["On the borehole function"] * 2
    for claim in untestable:
        for numbers in (paper(), contrary()):
            finding = claim.beside(numbers, numbers)
            assert (finding.holds, finding.clear, finding.testable, finding.theirs) == (None, None, False, "")
            assert finding.numbers.startswith(claim.obstacle)
            assert "on borehole_8d" in finding.numbers
    others = [claim for claims in CLAIMS.values() for claim in claims if not claim.obstacle]
    assert not any("borehole" in claim.finding(paper()).numbers for claim in others)


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


def test_times_are_those_of_all_stages_up_to_a_size():
    trials = rows("corner", "sparse", [1.0, 1.0, 0.4, 0.2], [0, 0, 2, 5], seconds=2.0)
    trials += rows("corner", "sparse", [1.0, 1.0, 0.4, 0.1], [0, 0, 3, 5], seconds=8.0, trial=1)
    e = Evidence(Table(tuple(trials)))
    assert e.seconds("corner", "sparse") == pytest.approx(np.sqrt(8.0 * 32.0))
    assert e.seconds("corner", "sparse", 3.0) == pytest.approx(np.sqrt(8.0 * 24.0))
    with pytest.raises(MissingError, match="no times of 'local'"):
        e.seconds("corner", "local")


def test_a_trained_curve_averages_sizes_and_leaves_out_empty_networks():
    trials = rows("corner", "sparse", [1.0, 0.4], [0, 2]) + rows("corner", "sparse", [1.0, 0.1], [1, 8], trial=1)
    neurons, errors = Table(tuple(trials)).curve("corner", "sparse")
    np.testing.assert_allclose(neurons, [4.0])
    np.testing.assert_allclose(errors, [[0.4], [0.1]])


def noisy(seed, trials=6, **methods):
    """Return evidence on the corner with errors that vary from trial to trial, and their logarithms."""
    rng = np.random.default_rng(seed)
    counts = CASES["corner"].stages
    logs = {method: np.log(level) + 0.3 * rng.standard_normal((trials, 8)) for method, level in methods.items()}
    found = [
        row
        for method, errors in logs.items()
        for trial, line in enumerate(errors)
        for row in rows("corner", method, np.exp(line), counts, trial=trial)
    ]
    return Evidence(Table(tuple(found))), logs


def test_the_interval_of_a_ratio_is_that_of_the_paired_t_test():
    e, logs = noisy(1, local=0.1, uniform=0.2)
    found = better("corner", "local", "uniform", 1.5)(e)
    expected = ttest_rel(*(logs[method][:, 2:].mean(axis=1) for method in ("local", "uniform"))).confidence_interval()
    np.testing.assert_allclose(np.log(found.ends), expected)
    assert found.value == pytest.approx(np.exp((logs["local"] - logs["uniform"])[:, 2:].mean()))


def test_there_is_no_interval_without_pairs_of_trials():
    test = better("corner", "local", "uniform", 1.5)
    e, _ = noisy(2, local=0.1, uniform=0.2)
    assert test(e).ends is not None
    assert test(dataclasses.replace(e, paired=False)).ends is None
    assert test(noisy(2, trials=1, local=0.1, uniform=0.2)[0]).ends is None
    one = [row for row in e.table.rows if row.method == "uniform" or row.trial == 0]
    assert test(Evidence(Table(tuple(one)))).ends is None


LIMITS = Limits(high=1.0)
CHECKS = {
    "yes": Check("a", 0.5, LIMITS, (0.4, 0.6)),
    "yes, perhaps": Check("b", 0.9, LIMITS, (0.8, 1.1)),
    "yes, once": Check("c", 0.5, LIMITS),
    "no": Check("d", 2.0, LIMITS, (1.5, 2.5)),
    "no, perhaps": Check("e", 1.1, LIMITS, (0.9, 1.4)),
}


@pytest.mark.parametrize(
    ("names", "holds", "clear"),
    [
        (["yes", "yes, once"], True, True),
        (["yes", "yes, perhaps"], True, False),
        (["yes, once"], True, None),
        (["yes", "no", "no, perhaps"], False, True),  # one clear failure is enough
        (["yes", "no, perhaps"], False, False),
    ],
)
def test_a_verdict_is_clear_if_no_interval_contains_a_limit(names, holds, clear):
    claim = Claim("text", "where", tuple(lambda _, name=name: CHECKS[name] for name in names))
    finding = claim.finding(Evidence(Table(())))
    assert (finding.holds, finding.clear) == (holds, clear)


def test_an_interval_may_lie_between_two_limits_or_outside():
    limits = Limits(0.8, 1.25)
    assert limits.clear_of((0.9, 1.1))
    assert limits.clear_of((1.3, 1.4))
    assert not limits.clear_of((0.7, 0.9))
    assert not limits.clear_of((0.7, 1.4))


def test_the_authors_numbers_stand_beside_ours_as_far_as_they_are_known():
    ours, theirs = noisy(3, local=0.1, uniform=0.2)[0], noisy(4, local=0.2, uniform=0.1)[0]
    theirs = dataclasses.replace(theirs, paired=False)
    known, unknown = (better("corner", "local", other, 1.5) for other in ("uniform", "nonlocal"))
    beside = [Claim("a", "b", tests).beside(ours, theirs).theirs for tests in ((known,), (known, unknown), (unknown,))]
    number = f"local / uniform on corner, N from 13: {theirs.ratio('corner', 'local', 'uniform', 13):.3g}"
    assert beside == [f"no: {number}", f"no, as far as it is known: {number}", ""]


@cache
def table_of(name):
    """Return the committed table of a figure; statements about all cases have those of all figures beside theirs."""
    names = [name, *(other for other, figure in FIGURES.items() if figure.keys)] if name == "sec5" else [name]
    return Table(tuple(row for other in names for row in committed(other)))


@pytest.mark.skipif(not TABLES.exists(), reason="the tables are in the repository only")
@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if figure.keys or name == "sec5"])
def test_the_docs_say_what_the_committed_tables_say(name):
    docs = (TABLES.parent / "reproduction.md").read_text(encoding="utf-8")
    table = table_of(name)
    for claim in CLAIMS[name]:
        finding = claim.beside(Evidence(table), Evidence(reference(), paired=False))
        assert f"| {claim.text} ({claim.where}) | {page.holds(finding)} |" in docs
        assert finding.theirs in docs
    assert FIGURES[name].note(plan.Scope()) in " ".join(docs.split())
    for difference in compare(table, FIGURES[name].keys):
        row = f"| {difference.case} | {difference.method} | {difference.neurons} |"
        assert (row in docs) == listed(difference)
        assert difference.reason in docs
