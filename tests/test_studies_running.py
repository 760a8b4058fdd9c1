"""Studies that run a simulator: failures, time limits, executors, and processes that are killed."""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import nurf
from nurf.studies import Command, Study, goals

SQUARE = {"x": (0, 1), "y": (-1, 1)}
PLAIN = {"n_initial": 1000, "random_state": 0}  # points of the design only: no model is asked where to run


def simulate(point):
    x, y = point["x"], point["y"]
    return np.sin(3 * x) + x * y**2, [3 * np.cos(3 * x) + y**2, 2 * x * y]


def difficult(point):
    """A fifth of the inputs fails, in four ways."""
    part = int(point["x"] * 20)
    if part == 0:
        raise RuntimeError("no mesh")
    if part == 1:
        return np.nan
    if part == 2:
        return {"gradients": [0, 0]}
    if part == 3:
        return "wrong"
    return {"y": point["y"], "gradients": {"x": 0}["x"] * np.ones(2), "cost": 2.5}


def dying(point):
    if point["x"] < 0.1:
        os._exit(1)
    return point["x"]


def sleeping(point):
    time.sleep(3600 if point["x"] < 0.1 else 0.0)
    return point["x"]


class TestRun:
    def test_until_the_target(self):
        study = Study(SQUARE, goals.Error(0.01), random_state=0)
        verdict = study.run(simulate)
        assert (verdict.reason, study.verdict.reason) == ("target", "target")
        assert (study.runs.state == "done").all()
        assert study.model.fit_.posterior.rows.orders.max() == 1  # gradients were used

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_simulator_that_never_gives_a_value(self, jobs):
        study = Study(SQUARE, random_state=0)
        verdict = study.run(lambda point: point["zzz"], n_jobs=jobs)
        assert (verdict.done, verdict.reason) == (True, "failing")
        n = len(study.runs)
        assert f"all {n} runs failed, {n} of them with the message: KeyError: 'zzz'" in verdict.text
        assert n in (12, 13)  # another worker may have a run under way

    def test_until_the_budget_of_the_call(self):
        study = Study(SQUARE, goals.Error(1e-9), max_runs=9, random_state=0)
        verdict = study.run(simulate, max_runs=7)
        assert (verdict.done, verdict.reason) == (True, "budget")
        assert len(study.runs) == 7
        assert study.verdict.reason == "open"
        assert study.run(simulate, max_runs=20).reason == "budget"
        assert len(study.runs) == 9

    def test_failures_are_written(self):
        study = Study(SQUARE, goals.Error(None), **PLAIN)
        study.run(difficult, max_runs=60)
        runs = study.runs
        failed = runs.x < 0.2
        assert ((runs.state == "failed") == failed).all()
        assert (runs.cost[~failed] == 2.5).all()
        messages = set(runs.message[failed])
        assert "RuntimeError: no mesh" in messages
        assert any("no value" in text for text in messages)
        assert any("dict with 'y'" in text for text in messages)
        assert any("could not convert" in text for text in messages)

    def test_several_threads_and_any_order(self):
        def late(point):
            time.sleep(0.02 * point["x"])
            return point["x"] * point["y"]

        study = Study(SQUARE, goals.Error(None), **PLAIN)
        with ThreadPoolExecutor(4) as executor:
            study.run(late, max_runs=24, n_jobs=4, executor=executor)
        runs = study.runs
        assert len(runs) == 24
        np.testing.assert_allclose(runs.y_, runs.x * runs.y)

    def test_processes_that_die_are_failures(self):
        study = Study(SQUARE, goals.Error(None), **PLAIN)
        study.run(dying, max_runs=16, n_jobs=2)
        runs = study.runs
        assert ((runs.state == "failed") == (runs.x < 0.1)).all()
        assert (runs.state == "failed").sum() >= 1
        assert runs.message[runs.x < 0.1].str.contains("worker died").all()

    def test_time_limits(self):
        study = Study(SQUARE, goals.Error(None), **PLAIN)
        study.run(sleeping, max_runs=12, n_jobs=2, timeout=10.0)
        runs = study.runs
        assert ((runs.state == "failed") == (runs.x < 0.1)).all()
        assert runs.message[runs.x < 0.1].str.contains("timeout after 10 s").all()

    def test_an_interrupted_run_is_made_again(self):
        calls = []

        def interrupted(point):
            calls.append(point["x"])
            if len(calls) == 3:
                raise KeyboardInterrupt
            return point["x"]

        study = Study(SQUARE, goals.Error(None), **PLAIN)
        with pytest.raises(KeyboardInterrupt):
            study.run(interrupted, max_runs=6)
        assert list(study.runs.state) == ["done", "done", "asked"]
        study.run(interrupted, max_runs=6)
        assert list(study.runs.state) == ["done"] * 6
        assert calls[2] == calls[3]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"simulator": 3}, TypeError, "must be callable"),
            ({"simulator": simulate, "n_jobs": 0}, ValueError, "`n_jobs` must be"),
            ({"simulator": simulate, "max_runs": -1}, ValueError, "`max_runs` must be"),
            ({"simulator": simulate, "timeout": 0}, ValueError, "`timeout` must be"),
        ],
    )
    def test_errors(self, arguments, error, message):
        with pytest.raises(error, match=message):
            Study(SQUARE).run(**arguments)


class TestCommands:
    @pytest.mark.parametrize(
        ("code", "parse", "expected"),
        [
            ("print({a}); print(3, '4;', 5e-1)", None, [3.0, 4.0, 0.5]),
            ("print('[1, 2]')", None, [1, 2]),
            ("print('{{}}'.replace('{{}}', '[{a}]'))", None, [0.5]),
            ("print('drag = 1.5\\ndrag = 2.5 lift = -1')", r"drag = (\S+) lift = (\S+)", [2.5, -1.0]),
        ],
    )
    def test_output(self, code, parse, expected):
        assert Command(f'{sys.executable} -c "{code}"', parse)({"a": 0.5}) == expected

    def test_gradients(self):
        code = "print('y', {b} * {a}, 'slope', {b})"
        command = Command(f'{sys.executable} -c "{code}"', r"y (\S+) slope (?P<d_a>\S+)")
        values, gradients = command({"a": 0.5, "b": 3.0})
        assert values == [1.5]
        np.testing.assert_array_equal(gradients, [3.0, np.nan])

    @pytest.mark.parametrize(
        ("code", "error", "message"),
        [
            ("import sys; sys.exit('no licence')", RuntimeError, "exit code 1: no licence"),
            ("print('hello')", ValueError, "must be JSON or numbers, got 'hello'"),
            ("pass", ValueError, "wrote nothing"),
            ("import time; time.sleep(30)", TimeoutError, "timeout after 1 s"),
        ],
    )
    def test_failures(self, code, error, message):
        with pytest.raises(error, match=message):
            Command(f'{sys.executable} -c "{code}"', timeout=1.0)({"a": 0.5})

    def test_places_that_are_no_inputs(self):
        with pytest.raises(ValueError, match=r"inputs \['x', 'y'\], got \{z\}"):
            Study(SQUARE).run(Command("simulate {x} {z}"))

    def test_nothing_is_interpreted_by_a_shell(self, tmp_path):
        Command(f"{sys.executable} -c 'print(1)' ; touch {tmp_path}/made")({})
        assert not (tmp_path / "made").exists()


def counted(point, count):
    """Write to a file that a run was made, and fail for a fifth of the inputs."""
    time.sleep(0.01)
    with open(count, "a") as file:
        file.write(f"{point['x']!r}\n")
    if point["x"] < 0.2:
        raise RuntimeError("no mesh")
    return point["x"] + point["y"]


def work(path, most, count):
    nurf.load(path).run(partial(counted, count=count), max_runs=most)


@pytest.mark.skipif(os.name != "posix", reason="kills processes by a signal")
def test_nothing_is_lost_when_processes_are_killed(tmp_path):
    """Four processes share a study and are killed at random times; the runs are those of a study without kills."""
    path, count, most = tmp_path / "a.study", tmp_path / "count", 40
    Study(SQUARE, goals.Error(None), path=path, **PLAIN)
    context = multiprocessing.get_context("forkserver")  # a fork of this process may find threads of other tests
    context.set_forkserver_preload(["nurf.studies"])
    rng, kills, workers = np.random.default_rng(0), 0, []
    while True:
        workers = [worker for worker in workers if worker.is_alive()]
        states = nurf.load(path).runs.state
        if len(states) == most and not (states == "asked").any():
            break
        while len(workers) < 4:
            workers.append(context.Process(target=work, args=(path, most, count)))
            workers[-1].start()
        time.sleep(rng.uniform(0.02, 0.3))
        if kills < 8:
            with contextlib.suppress(ProcessLookupError):  # it is at its end
                os.kill(workers[rng.integers(4)].pid, signal.SIGKILL)
                kills += 1
    for worker in workers:
        worker.join()
    undisturbed = Study(SQUARE, goals.Error(None), **PLAIN)
    undisturbed.run(partial(counted, count=count), max_runs=most)
    columns = ["x", "y", "y_", "state", "message"]
    left, right = (study.runs[columns].sort_values("x", ignore_index=True) for study in (nurf.load(path), undisturbed))
    assert left.equals(right)
    made = count.read_text().split()
    assert len(made) - most <= most + kills  # the study without kills, and a run again for each kill
    assert not list(Path(tmp_path).glob("*.tmp"))
