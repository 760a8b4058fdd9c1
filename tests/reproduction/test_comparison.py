"""Our errors and those of the authors' code."""

import numpy as np
import pytest
from tiny import rows

from reproduction import authors, comparison, plan
from reproduction.cases import CASES
from reproduction.figures import FIGURES
from reproduction.findings import Comparison
from reproduction.plan import Scope
from reproduction.reasons import REASONS, Reason
from reproduction.results import Table


def test_the_reference_is_what_the_file_says():
    table = authors.reference()
    assert len(table.rows) == 3069
    first = table.rows[0]
    assert (first.case, first.order, first.method, first.trial, first.neurons) == ("gaussian_bump", 1, "uniform", 0, 4)
    assert first.error == 0.8454265
    assert [row.seconds for row in table.trials("gaussian_bump", "uniform")[1]] == [0.292, *[0.0] * 7]
    neurons, errors = table.curve("planar_wave", "sparse")
    np.testing.assert_allclose(neurons, [3, 6, 8, 10, 18, 54])
    assert errors.shape == (1, 6)


def test_every_method_of_the_reference_is_in_a_figure():
    planned = set()
    for figure in FIGURES.values():
        for part in figure.parts(Scope()):
            planned |= {(part.experiment.case.key, method) for method in part.methods if figure.keys}
    known = {(row.key, row.method) for row in authors.reference().rows}
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


def test_a_path_is_compared_at_both_its_ends():
    table = Table(tuple(rows("planar_wave", "sparse", [1.0, 0.1], [3, 54])))
    found = comparison.compare(table, ("planar_wave",))
    assert [c.neurons for c in found] == [3, 6, 8, 10, 18, 54]
    np.testing.assert_allclose([found[0].ours, found[-1].ours], [1.0, 0.1])


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


def test_reasons_go_by_case_method_size_and_sign(monkeypatch):
    reasons = (
        Reason("few", ("corner",), ("local",), largest=10),
        Reason("below", ("corner",), higher=False),
    )
    monkeypatch.setattr(comparison, "REASONS", reasons)
    assert comparison.explanation("corner", "local", 10, 1.0) == "few"
    assert comparison.explanation("corner", "local", 11, 1.0) == comparison.UNEXPLAINED
    assert comparison.explanation("corner", "local", 11, -1.0) == "below"
    assert comparison.explanation("separable", "local", 4, -1.0) == comparison.UNEXPLAINED


def test_every_reason_names_cases_and_methods_that_exist():
    for reason in REASONS:
        assert set(reason.cases) <= set(CASES)
        assert set(reason.methods) <= {*plan.METHODS_1D, *plan.METHODS_2D, *plan.METHODS_ND, *plan.SPARSE}
