"""The commands of studies, from a file of inputs to an answer."""

import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import nurf
from nurf.cli._app import app
from nurf.studies import goals
from nurf.studies.goals import read_goal

INPUTS = """
constraints = ["r + L <= 2.5"]
[inputs]
r = { bounds = [0, 1] }
L = { distribution = "norm", mean = 1.0, std = 0.2 }
n = { levels = [1, 2] }
c = 3.0
"""


def call(*arguments):
    result = CliRunner().invoke(app, ["study", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs.toml").write_text(INPUTS)
    return tmp_path


def test_a_study_from_its_inputs_to_its_answer(folder):
    assert "study.nurf" in call("new", "inputs.toml", "--goal", "error:0.05", "--max-runs", "40")
    call("ask", "-n", "4", "--out", "points.csv")
    points = pd.read_csv("points.csv")
    assert list(points.columns) == ["run", "r", "L", "n", "c"]
    assert points.n.isin([1, 2]).all()
    assert (points.c == 3).all()
    results = points.assign(y=np.sin(3 * points.r) * points.L, dy_r=3 * np.cos(3 * points.r) * points.L)
    results = results.assign(dy_L=np.sin(3 * points.r), dy_n=0.0)
    results.loc[3, "y"] = np.nan
    results[::-1].to_csv("results.csv", index=False)
    assert "4 runs told" in call("tell", "results.csv", "--gradients", "dy_*")
    runs = nurf.load("study.nurf").runs
    assert list(runs.state) == ["done"] * 3 + ["failed"]
    np.testing.assert_allclose(runs.y[:3], results.y[:3])
    (folder / "simulate.py").write_text(
        "import sys, math; r, L = map(float, sys.argv[1:])\n"
        "print(math.sin(3 * r) * L, 'g', 3 * math.cos(3 * r) * L, math.sin(3 * r), 0)"
    )
    text = r"(\S+) g (?P<d_r>\S+) (?P<d_L>\S+) (?P<d_n>\S+)"
    output = call("run", "--command", f"{sys.executable} simulate.py {{r}} {{L}}", "--parse", text, "--max-runs", "24")
    assert "done: relative error is at most 0.05" in output
    output = call("status", "--plot", "status.png", "--out", "runs.csv")
    assert "1 failed" in output
    assert (folder / "status.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv("runs.csv")) == len(nurf.load("study.nurf").runs)


def test_errors(folder):
    (folder / "wrong.toml").write_text("[inputs]\nr = 'a'")
    with pytest.raises(ValueError, match=r"wrong\.toml: expected a number"):
        call("new", "wrong.toml")
    (folder / "none.toml").write_text("a = ")
    with pytest.raises(ValueError, match=r"none\.toml: not a TOML file"):
        call("new", "none.toml")
    call("new", "inputs.toml")
    with pytest.raises(FileExistsError):
        call("new", "inputs.toml")
    pd.DataFrame({"r": [0.5], "L": [1.0], "n": [1]}).to_csv("results.csv", index=False)
    with pytest.raises(ValueError, match="a target beside the inputs"):
        call("tell", "results.csv")


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("error", goals.Error()),
        ("Error:0.02", goals.Error(0.02)),
        ("minimum:0.05,output=mass,maximize=true", goals.Minimum(0.05, "mass", maximize=True)),
        ("failure:above=3", goals.Failure(3)),
        ("failure:above=[3,null],target=0.2", goals.Failure([3, None], target=0.2)),
        ('calibration:[1.7,0.5],0.1,at={"t":[0,2]}', goals.Calibration([1.7, 0.5], 0.1, at={"t": [0, 2]})),
        ("level:0.5,target=null", goals.Level(0.5, None)),
    ],
)
def test_goals(text, goal):
    assert read_goal(text) == goal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("best", "one of error, minimum, failure, sensitivities, level, calibration, got 'best'"),
        ("error:size=2", "has the parameters target, got 'size'"),
        ("level", "has the parameters level, target, output"),
        ("error:-1", "`target` must be"),
    ],
)
def test_goals_that_do_not_exist(text, message):
    with pytest.raises(ValueError, match=message):
        read_goal(text)
