"""The commands that ask a model: the same answers as in Python, files of inputs, and errors in one line."""

import io
import re
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
from numpy.testing import assert_allclose
from scipy import stats

import nurf
from nurf import decisions
from nurf.cli._input_files import InputFile, template

INPUTS = """
[inputs]
load = { distribution = "norm", mean = 2.0, std = 0.2 }
"young's modulus" = { distribution = "lognorm", mean = 2.0, std = 0.1, bounds = [1.5, 2.5] }
width = 2

[[correlation]]
inputs = ["load", "young's modulus"]
value = 0.5
"""
NAMES = ["load", "young's modulus", "width"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with models of one and of two targets, and a file of inputs."""
    path = tmp_path_factory.mktemp("answers")
    X = pd.DataFrame(np.random.default_rng(0).uniform(1, 3, (40, 3)), columns=NAMES)
    y = X["load"] ** 2 / X["young's modulus"] + X["width"]
    model = nurf.RandomFeatureRegressor(30, random_state=0)
    model.fit(X, y).save(path / "one.nurf")
    model.fit(X, np.stack([y, X["width"] * X["load"]], axis=1)).save(path / "two.nurf")
    (path / "inputs.toml").write_text(INPUTS)
    return path


def read(folder):
    return InputFile.read(folder / "inputs.toml", NAMES)


class TestAnswers:
    @pytest.mark.parametrize("question", ["sensitivity", "propagate", "failure"])
    def test_they_are_those_of_the_library(self, question, folder, command, tmp_path):
        limit = ("--above", "5") if question == "failure" else ()
        out, picture = tmp_path / "table.csv", tmp_path / "picture.png"
        given = ("--inputs", folder / "inputs.toml", "--out", out, "--plot", picture, "--seed", "3")
        code, output, errors = command(question, folder / "one.nurf", *limit, *given)
        assert (code, errors) == (0, "")
        options = {"above": 5.0} if question == "failure" else {}
        inputs = {
            "load": stats.norm(2, 0.2),
            "young's modulus": stats.lognorm(np.sqrt(np.log(1 + 0.05**2)), scale=2 / np.sqrt(1 + 0.05**2)),
            "width": 2,
        }
        options |= {"correlation": [[1, 0.5], [0.5, 1]], "random_state": 3}
        wanted = getattr(decisions, question)(nurf.load(folder / "one.nurf"), inputs, **options)
        found = pd.read_csv(out)
        pd.testing.assert_frame_equal(found, wanted.table(), check_dtype=False, rtol=1e-6)
        assert output.splitlines()[0] == wanted.report().title
        assert picture.read_bytes().startswith(b"\x89PNG")

    def test_minimum(self, folder, command, tmp_path):
        lines = INPUTS.replace('"norm", mean = 2.0, std = 0.2', '"uniform", loc = 1, scale = 2, bounds = [1.2, 2.8]')
        (tmp_path / "inputs.toml").write_text(lines)
        code, output, _ = command("minimize", folder / "one.nurf", "-i", tmp_path / "inputs.toml", "-o", "-")
        assert code == 0
        found = pd.read_csv(io.StringIO(output)).iloc[0]
        assert_allclose([found["load"], found["young's modulus"]], [1.2, 2.5], atol=1e-6)
        assert_allclose(found["value"], 1.2**2 / 2.5 + 2, atol=0.05)
        assert "width" not in found

    def test_several_targets(self, folder, command):
        model = folder / "two.nurf"
        code, output, _ = command("propagate", model, "--out", "-")
        assert code == 0
        assert set(pd.read_csv(io.StringIO(output))["output"]) == {"y0", "y1"}
        code, output, _ = command("failure", model, "--above", "y0=9", "--below", "y1=1.5", "--method", "subset")
        assert code == 0
        wanted = decisions.failure(
            nurf.load(model), above=[9, np.nan], below=[np.nan, 1.5], method="subset", random_state=0
        )
        assert str(wanted.probability) in output
        code, output, _ = command("minimize", model, "-t", "y0", "--constraint", "y1=4:", "-o", "-")
        first = pd.read_csv(io.StringIO(output)).iloc[0]
        assert first["load"] * first["width"] > 3.9

    def test_without_a_file_inputs_are_uniform_over_the_data(self, folder, command):
        code, output, _ = command("propagate", folder / "one.nurf")
        assert code == 0
        wanted = decisions.propagate(nurf.load(folder / "one.nurf"), random_state=0)
        assert str(wanted.mean) in output

    def test_pairs_and_shapley_effects(self, folder, command):
        code, output, _ = command("sensitivity", folder / "one.nurf", "--second", "--shapley", "-o", "-")
        assert code == 0
        assert "shapley" in pd.read_csv(io.StringIO(output))
        code, output, _ = command("sensitivity", folder / "one.nurf", "--second")
        assert "load, young's modulus" in output

    def test_warnings_are_lines(self, folder, command):
        code, _, errors = command("failure", folder / "one.nurf", "--above", "-1e6")
        assert code == 0
        assert errors.startswith("nurf: the model is above -1e+06 everywhere: its values")

    def test_a_limit_that_is_never_reached(self, folder, command):
        code, output, errors = command("failure", folder / "one.nurf", "--above", "1e6")
        assert code == 2
        assert output == ""
        assert errors.startswith("nurf: the model must reach a limit, and is nowhere above 1e+06: its values")


class TestCalibration:
    """The file of inputs has entries for all inputs or for the unknown ones."""

    UNKNOWN = "[inputs]\nload = { bounds = [1, 3] }\nwidth = 2"
    MODULI, MEASURED = (1.2, 1.8, 2.4, 2.9), (5.4, 4.2, 3.7, 3.3)

    def write(self, path, prior=UNKNOWN, **columns):
        pd.DataFrame(columns).to_csv(path / "observations.csv", index=False)
        (path / "inputs.toml").write_text(prior)
        return path / "observations.csv", "--inputs", path / "inputs.toml", "--n-samples", "160", "--out", "-"

    def require_equal(self, output, model, *arguments, **options):
        """Compare a table in CSV with the answer of the library."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the chains of the sample")  # it is small
            wanted = decisions.calibrate(nurf.load(model), *arguments, n_samples=160, **options).table()
        found = pd.read_csv(io.StringIO(output))
        pd.testing.assert_frame_equal(found, wanted, check_dtype=False, rtol=1e-6)

    @pytest.mark.parametrize("name", ["y", "measured"])
    def test_known_inputs(self, name, folder, command, tmp_path):
        model = folder / "one.nurf"
        given = self.write(tmp_path, **{name: self.MEASURED, "young's modulus": self.MODULI})
        code, output, _ = command("calibrate", model, *given, "--noise", "0.1", "--seed", "3")
        assert code == 0
        prior, at = {"load": stats.uniform(1, 2), "width": 2}, {"young's modulus": self.MODULI}
        self.require_equal(output, model, self.MEASURED, 0.1, prior, at=at, random_state=3)
        assert_allclose(pd.read_csv(io.StringIO(output))["x"], 2, atol=0.1)  # measured: 2**2 / modulus + 2, nearly

    def test_entries_of_known_inputs_are_not_used(self, folder, command, tmp_path):
        columns = {"y": self.MEASURED, "young's modulus": self.MODULI}
        every = self.UNKNOWN + '\n"young\'s modulus" = 1e9'
        first, second = (
            command("calibrate", folder / "one.nurf", *self.write(tmp_path, prior, **columns), "--noise", "0.1")
            for prior in (self.UNKNOWN, every)
        )
        assert first[0] == 0
        assert first == second

    @pytest.mark.parametrize(
        ("model", "columns", "noise", "measured", "deviations"),
        [
            ("one", {"y": MEASURED}, "0.5", MEASURED, 0.5),
            ("two", {"y1": [4.1, 3.9], "y0": [np.nan, 4.2]}, "y0=0.2,y1=0.1", [[np.nan, 4.1], [4.2, 3.9]], [0.2, 0.1]),
            ("two", {"y1": [4.1, 3.9], "y0": [4.0, 4.2]}, "0.3", [[4.0, 4.1], [4.2, 3.9]], 0.3),
            ("two", {"y1": [4.1, 3.9]}, "y1=0.1", [[np.nan, 4.1], [np.nan, 3.9]], 0.1),
        ],
    )
    def test_repeated_measurements(self, model, columns, noise, measured, deviations, folder, command, tmp_path):
        model, picture = folder / f"{model}.nurf", tmp_path / "picture.svg"
        given = self.write(tmp_path, INPUTS, **columns)
        code, output, _ = command("calibrate", model, *given, "--noise", noise, "--plot", picture)
        assert code == 0
        file = read(folder)
        options = {"correlation": file.correlation, "random_state": 0}
        self.require_equal(output, model, measured, deviations, file.inputs, **options)
        assert "<svg" in picture.read_text()

    def test_report(self, folder, command, tmp_path):
        observations, *_ = self.write(tmp_path, y=self.MEASURED)
        code, output, _ = command("calibrate", folder / "one.nurf", observations, "--noise", "0.5")
        assert code == 0
        wanted = decisions.calibrate(nurf.load(folder / "one.nurf"), self.MEASURED, 0.5, random_state=0)
        assert output.rstrip() == str(wanted.report()).rstrip()

    @pytest.mark.parametrize(
        ("model", "columns", "noise", "code", "message"),
        [
            ("one", {"y": [4.0]}, (), 2, "Missing option '--noise'"),
            ("one", {"y": [4.0]}, ("--noise", "small"), 2, "expected a number, got small"),
            ("one", {"y": [4.0]}, ("--noise", "0,1"), 2, "expected a number, got 0,1"),
            ("one", {"y": [4.0]}, ("--noise", "0.1", "--noise", "0.2"), 2, "expected one number for y"),
            ("one", {"y": [4.0]}, ("--noise", "-1"), 2, "`noise` must be standard deviations > 0, got -1"),
            ("one", {"y": [4.0]}, ("--noise", "z=1"), 2, "expected one of y, got z"),
            ("one", {"width": [2.0]}, ("--noise", "1"), 2, "observations.csv: expected columns of measured outputs"),
            ("one", {"y": [4.0], "run": [1]}, ("--noise", "1"), 2, "got unknown ['run']"),
            ("one", {"y": ["a"]}, ("--noise", "1"), 2, "observations.csv, column 'y', line 2: expected a number"),
            ("one", {"y": [4.0, 4.1], "width": [2.0, None]}, ("--noise", "1"), 2, "column 'width', line 3"),
            ("one", {"y": [None], "width": [2.0]}, ("--noise", "1"), 2, "at least one a number"),
            ("one", {"y": [4.0], **{name: [2.0] for name in NAMES}}, ("--noise", "1"), 2, "at least one input unknown"),
            ("two", {"y": [4.0]}, ("--noise", "1"), 2, "of ['y0', 'y1'], and of known inputs"),
            ("two", {"y0": [4.0], "y1": [4.0]}, ("--noise", "y0=1"), 2, "expected a number for y1 too"),
        ],
    )
    def test_errors(self, model, columns, noise, code, message, folder, command, tmp_path):
        given = self.write(tmp_path, INPUTS, **columns)[:1]
        found, output, errors = command("calibrate", folder / f"{model}.nurf", *given, *noise)
        assert (found, output) == (code, "")
        assert message in re.sub(r"\s*│\s*│?\s*", " ", errors)

    def test_correlations_with_known_inputs(self, folder, command, tmp_path):
        given = self.write(tmp_path, INPUTS, y=[4.0], load=[2.0])
        code, _, errors = command("calibrate", folder / "one.nurf", *given, "--noise", "1")
        assert code == 2
        assert '`inputs` of [[correlation]] to be two of ["young\'s modulus"]' in errors


class TestReports:
    def test_answers_are_sections(self, folder, command, tmp_path):
        page = tmp_path / "page.html"
        given = ("--inputs", folder / "inputs.toml", "--above", "5", "--out", page)
        code, _, errors = command("report", folder / "one.nurf", *given)
        assert (code, errors) == (0, "")
        text = page.read_text(encoding="utf-8")
        file, model = read(folder), nurf.load(folder / "one.nurf")
        options = {"correlation": file.correlation, "random_state": 0}
        assert str(decisions.propagate(model, file.inputs, **options).mean) in text
        assert str(decisions.failure(model, file.inputs, above=5.0, **options).probability) in text
        for heading in ("Which inputs matter", "Distribution of the outputs", "Failure"):
            assert f"<h2>{heading}</h2>" in text
        assert command("report", folder / "one.nurf", "--out", page)[0] == 0
        assert "Which inputs matter" not in page.read_text(encoding="utf-8")


class TestTemplate:
    def test_it_can_be_used_as_it_is(self, folder, command, tmp_path):
        code, text, _ = command("inputs", folder / "one.nurf")
        assert code == 0
        assert command("inputs", folder / "one.nurf", "--out", tmp_path / "inputs.toml")[0] == 0
        assert (tmp_path / "inputs.toml").read_text() == text
        assert list(tomllib.loads(text)["inputs"]) == NAMES
        first = command("propagate", folder / "one.nurf", "-i", tmp_path / "inputs.toml", "-o", "-")[1]
        second = command("propagate", folder / "one.nurf", "-o", "-")[1]
        assert_allclose(*(pd.read_csv(io.StringIO(each))["value"] for each in (first, second)), rtol=1e-4)

    @pytest.mark.parametrize("name", ["x", "a b", 'say "x"', "tab\t", "Größe", "a.b", "\\", "", "'"])
    def test_any_name(self, name):
        content = tomllib.loads(template("m", [name], np.array([1e-300]), np.array([1e200])))
        found = InputFile.of(content, [name])
        assert found.bounds == {name: (1e-300, 1e200)}


class TestFiles:
    def test_distributions(self, folder):
        found = read(folder)
        modulus = found.inputs["young's modulus"]
        assert_allclose([modulus.mean(), modulus.std()], [2, 0.1])
        assert found.inputs["width"] == 2
        assert found.bounds["young's modulus"] == (1.5, 2.5)
        assert_allclose(found.correlation, [[1, 0.5], [0.5, 1]])

    def test_the_example_of_the_guide(self):
        page = (Path(__file__).parents[1] / "docs" / "command_line.md").read_text(encoding="utf-8")
        (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
        found = InputFile.of(tomllib.loads(text), ["load", "modulus", "width", "length"])
        assert_allclose(found.inputs["load"].std(), 0.3)
        assert found.bounds["modulus"] == (190, 230)
        assert found.correlation.shape == (3, 3)

    @pytest.mark.parametrize("kind", ["norm", "uniform", "gumbel_r", "logistic", "expon", "lognorm", "rayleigh"])
    def test_means_and_standard_deviations(self, kind):
        content = {"inputs": {"x": {"distribution": kind, "mean": 3, "std": 0.5}}}
        found = InputFile.of(content, ["x"]).inputs["x"]
        assert_allclose([found.mean(), found.std()], [3, 0.5])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[inputs", "not a TOML file"),
            ("load = 3", "the file: unknown 'load', expected inputs, correlation"),
            ("", "expected a table [inputs]"),
            ("[inputs]\nload = 1\nspeed = 2", "unknown speed; missing young's modulus, width"),
            (INPUTS.replace('"norm"', '"normal"'), "got 'normal': norm"),
            (INPUTS.replace('"norm"', '"poisson"'), "continuous distribution of scipy.stats, got 'poisson'"),
            (INPUTS.replace("std = 0.2", "std = -1"), "load: expected std > 0, got mean 2 and std -1"),
            (INPUTS.replace("std = 0.2", "scale = 1"), "norm has the parameters mean and std, got mean, scale"),
            (INPUTS.replace('"norm"', '"gamma"'), "gamma has the parameters a, loc and scale, got mean, std"),
            (INPUTS.replace('"norm"', '"cauchy"'), "cauchy has no mean and standard deviation"),
            (INPUTS.replace('"norm", mean = 2.0, std = 0.2', '"gamma"'), "load: gamma needs a"),
            (INPUTS.replace("mean = 2.0, std = 0.2", "loc = 1, scale = 0"), "norm has no values with"),
            (INPUTS.replace("mean = 2.0, std = 0.2", "sigma = 1"), "load: unknown 'sigma', expected loc, scale"),
            (INPUTS.replace("mean = 2.0, std = 0.2", "loc = '1'"), "expected numbers as parameters of load"),
            (INPUTS.replace("[1.5, 2.5]", "[2.5, 1.5]"), "low < high for young's modulus, got [2.5, 1.5]"),
            (INPUTS.replace("[1.5, 2.5]", "3"), "expected bounds = [low, high] for young's modulus, got 3"),
            (INPUTS.replace("width = 2", "width = true"), "expected a number, { bounds = [low, high] }"),
            (INPUTS.replace("width = 2", "width = { low = 2 }"), "expected a number, { bounds = [low, high] }"),
            (INPUTS.replace("value = 0.5", "value = 2"), "`value` of [[correlation]] to be a number between -1 and 1"),
            (INPUTS.replace('["load", ', '["width", '), "`inputs` of [[correlation]] to be two of ['load'"),
        ],
    )
    def test_what_is_wrong_is_said_in_one_line(self, text, message, folder, command, tmp_path):
        (tmp_path / "inputs.toml").write_text(text)
        code, output, errors = command("propagate", folder / "one.nurf", "--inputs", tmp_path / "inputs.toml")
        assert (code, output) == (2, "")
        assert errors.startswith("nurf: inputs.toml: ")
        assert errors.count("\n") == 1
        assert message in errors

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (("failure", "one.nurf"), 2, "expected a limit"),
            (("failure", "one.nurf", "--above", "high"), 2, "expected a number, got high"),
            (("failure", "one.nurf", "--above", "1,5"), 2, "expected one number for y"),
            (("failure", "two.nurf", "--above", "3"), 2, "expected target=number with y0, y1"),
            (("failure", "two.nurf", "--above", "lift=3"), 2, "expected one of y0, y1, got lift"),
            (("failure", "one.nurf", "--above", "1", "--below", "2"), 2, "`below` must not be larger"),
            (("minimize", "two.nurf"), 2, "expected one of y0, y1"),
            (("minimize", "two.nurf", "-t", "y0", "--constraint", "y1=3"), 2, "expected target=low:high"),
            (("minimize", "one.nurf", "-i", "inputs.toml"), 2, "for all inputs, got none for ['load']"),
            (("propagate", "one.nurf", "--plot", "picture.xyz"), 2, "picture.xyz: expected a picture"),
            (("propagate", "one.nurf", "--plot", "none/picture.png"), 2, "there is no folder"),
            (("propagate", "one.nurf", "--out", "none/table.csv"), 2, "there is no folder"),
            (("propagate", "missing.nurf"), 2, "missing.nurf"),
            (("propagate", "one.nurf", "-i", "missing.toml"), 2, "missing.toml: No such file"),
        ],
    )
    def test_wrong_usage(self, arguments, code, message, folder, command, monkeypatch):
        monkeypatch.chdir(folder)
        found, _, errors = command(*arguments)
        assert found == code
        assert message in re.sub(r"\s*│\s*│?\s*", " ", errors)
