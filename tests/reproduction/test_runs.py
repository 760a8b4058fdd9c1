"""Runs that are interrupted, repeated, parallel or damaged."""

import dataclasses
import json
import re
import sys

import numpy as np
import pytest
from tiny import SAMPLED, SAMPLING, UNITS, read, silent, without_seconds

from reproduction import runner
from reproduction.files import write_text, write_with
from reproduction.results import Table
from reproduction.runner import run_units
from reproduction.store import CorruptError, Store, Unit


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A store with all units, and their results."""
    store = Store(tmp_path_factory.mktemp("store"))
    return store, run_units(UNITS, store, say=silent)


def test_seeds_differ_between_methods_trials_and_configurations(done):
    _, results = done
    seeds = {unit: {row.seed for row in result.rows} for unit, result in results.items() if result.rows}
    assert all(len(own) == 1 for own in seeds.values())
    assert len(set().union(*seeds.values())) == len(seeds)


def test_two_processes_give_the_same_results_as_one(done, tmp_path):
    store, results = Store(tmp_path), done[1]
    other = run_units(SAMPLED[::-1], store, jobs=2, say=silent)
    for unit in SAMPLED:
        assert store.path(unit).exists()
        errors, expected = ([row.error for row in found[unit].rows] for found in (other, results))
        np.testing.assert_allclose(errors, expected, rtol=1e-6)  # a process may have another rounding


def test_an_interrupted_run_continues_in_any_order(done, tmp_path, monkeypatch):
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
        run_units(UNITS[::-1], store, say=silent)
    first = list(computed)
    assert len(first) == 3
    store.path(first[0]).unlink()
    text = store.path(first[1]).read_text()
    store.path(first[1]).write_text(text[: len(text) // 2])
    resumed = run_units(UNITS, store, say=messages.append)
    assert set(computed[3:]) == set(UNITS) - {first[2]}
    assert len(computed[3:]) == len(UNITS) - 1
    assert any("damaged" in message and str(store.path(first[1])) in message for message in messages)
    assert without_seconds(resumed) == without_seconds(results)


def test_a_finished_run_computes_nothing(done, monkeypatch):
    store, results = done
    monkeypatch.setattr(runner, "_work", lambda *_: pytest.fail("computed again"))
    assert without_seconds(run_units(UNITS, store, say=silent)) == without_seconds(results)


def test_a_changed_number_is_detected(done, tmp_path):
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
    ids=["configuration", "method", "trial"],
)
def test_results_are_never_confused(done, tmp_path, other):
    _, results = done
    store, unit = Store(tmp_path), UNITS[0]
    store.save(unit, results[unit])
    assert store.load(other) is None
    store.path(other).parent.mkdir(exist_ok=True)
    store.path(unit).replace(store.path(other))
    with pytest.raises(CorruptError):
        store.load(other)


def test_broken_bytes_are_computed_again(done, tmp_path):
    _, results = done
    store, unit, messages = Store(tmp_path), UNITS[0], []
    store.save(unit, results[unit])
    store.path(unit).write_bytes(b"\xff\xfe" + store.path(unit).read_bytes()[::-1])
    found = run_units([unit], store, say=messages.append)
    assert f"{store.path(unit)} is damaged: computing it again" in messages
    assert without_seconds(found) == without_seconds({unit: results[unit]})
    assert store.load(unit) is not None


def test_a_folder_in_the_place_of_a_result_is_named(tmp_path):
    store, unit = Store(tmp_path), UNITS[0]
    store.path(unit).mkdir(parents=True)
    with pytest.raises(ValueError, match=re.escape(f"{store.path(unit)} must be a file of results")):
        run_units([unit], store, say=silent)


@pytest.mark.parametrize("fails", [RuntimeError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, fails):
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def fail(temporary):
        temporary.write_text("half")
        raise fails

    with pytest.raises(fails):
        write_with(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_units_are_run_first(done, tmp_path, monkeypatch):
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
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run_units(UNITS, Store(tmp_path), say=silent)
    assert "left:" in capsys.readouterr().err


def test_a_table_can_be_read_again(done):
    _, results = done
    table = Table.of(results.values())
    header, *_ = table.to_csv().splitlines()
    assert header == "case,order,method,trial,neurons,error,alpha,seconds,seed"
    for found, row in zip(read(table.to_csv()), table.rows, strict=True):
        assert found == dataclasses.replace(row, error=found.error, alpha=found.alpha, seconds=found.seconds)
        assert found.error == pytest.approx(row.error, rel=5.1e-5)  # five digits
