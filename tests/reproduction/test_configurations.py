"""Configurations determine keys and seeds, on every machine in the same way."""

import dataclasses
import importlib
import sys

import numpy as np
import pytest
from tiny import DRAWS, SAMPLING, TABLES, TINY, TRAINING, committed

from reproduction import authors, plan
from reproduction.cases import CASES, Case
from reproduction.fits import ALPHAS, Draws, Sampling
from reproduction.seeds import seed

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
    changed = [
        dataclasses.replace(experiment, **{field.name: CHANGES[field.name]})
        for field in dataclasses.fields(experiment)
        if field.name != "case"
    ]
    for field in dataclasses.fields(Case):
        if getattr(experiment.case, field.name) != CHANGES[field.name]:
            case = dataclasses.replace(experiment.case, **{field.name: CHANGES[field.name]})
            changed.append(dataclasses.replace(experiment, case=case))
    assert len({experiment.digest, *(other.digest for other in changed)}) == 1 + len(changed)


def test_kinds_of_experiments_with_the_same_fields_differ():
    assert Draws(TINY, 20).digest != Sampling(TINY, 20).digest


def test_the_digest_changes_with_the_last_bit_of_a_float():
    moved = (np.nextafter(ALPHAS[1], 1.0), *ALPHAS[1:])
    assert dataclasses.replace(SAMPLING, alphas=moved).digest != SAMPLING.digest


def test_digests_and_seeds_are_what_they_have_always_been():
    """Stored results and committed tables go by them: whoever changes them must compute everything again."""
    assert SAMPLING.digest == "5fcb98a29e9190dc0540e4c73a703f036eadf5e843cccf49fc86b2238b69e240"
    assert TRAINING.digest == "57a837545711e172e86f07365b1dce63043a6ad984ab07dcceef4c4ed63157ac"
    assert DRAWS.digest == "6122295e55919ff45f1bfae66a620785a4a37012f2bd8df95fd178a49beae0a1"
    assert seed(SAMPLING.digest, "uniform", 0) == 533386457326455244
    assert seed("data", dataclasses.asdict(TINY), 0) == 69084954228199017


def planned():
    """Return the digest and the seed of each unit of the full run, with the modules as they are now."""
    figures, planning = (importlib.import_module(f"reproduction.{name}") for name in ("figures", "plan"))
    return {
        (name, unit.experiment.case.key, unit.method, unit.trial): (
            unit.experiment.digest,
            seed(unit.experiment.digest, unit.method, unit.trial),
        )
        for name, figure in figures.FIGURES.items()
        for unit in figure.units(planning.Scope())
    }


def test_digests_and_seeds_do_not_depend_on_how_numpy_rounds(monkeypatch):
    before = planned()
    for name, function in (("logspace", np.logspace), ("geomspace", np.geomspace)):
        monkeypatch.setattr(np, name, lambda *a, f=function, **k: np.nextafter(f(*a, **k), np.inf))
    for name in [name for name in sys.modules if name.partition(".")[0] == "reproduction"]:
        monkeypatch.delitem(sys.modules, name)  # imported again, everything is computed again
    assert planned() == before


def test_no_stage_is_near_a_tie_of_rounding():
    for n in {case.n_neurons for case in CASES.values()}:
        assert np.abs(np.geomspace(4, n, 8) % 1 - 0.5).min() > 0.01  # an error of rounding is 1e-13


@pytest.mark.skipif(not TABLES.exists(), reason="the tables are in the repository only")
def test_the_committed_tables_have_the_seeds_of_the_plan():
    units = planned()
    for name in {name for name, *_ in units}:
        for row in committed(name):
            assert units[name, row.key, row.method, row.trial][1] == row.seed


def test_the_paths_of_training_are_the_authors():
    theirs = authors.reference()
    for key, case in CASES.items():
        first, steps, _ = plan.PATHS[key]
        assert first == {1: 0.1, 2: 0.04}.get(case.dimension, 0.01) / 10 ** (case.order - 1)
        assert steps == (5 if case.dimension == 1 or key == "robot_arm_6d" else 6)  # the arm's is one shorter
        assert all(len(path) == steps for path in theirs.trials(key, "sparse"))
        training = plan.trained(key, plan.Scope()).experiment
        assert training.alphas == tuple(case.dimension * first / 4**n for n in range(steps))
        assert training.gamma == (10.0 if case.dimension == 1 else 5.0)
        assert training.theta == (0.5 if case.dimension <= 2 else 0.25)


def test_methods_of_a_trial_share_their_data_and_trials_do_not():
    first, again, second = (TINY.trial_data(trial)[0] for trial in (0, 0, 1))
    np.testing.assert_array_equal(first.y, again.y)
    assert np.abs(first.y - second.y).max() > 1e-3


def test_the_stages_are_the_authors():
    counts = {}
    for row in authors.reference().rows:
        if row.method == "uniform":
            counts.setdefault(row.key, set()).add(row.neurons)
    for key, found in counts.items():
        assert CASES[key].stages == tuple(sorted(found))
