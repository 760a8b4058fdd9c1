"""The command `nurf`: what it prints and writes, its exit codes, and that errors are one line."""

import html
import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("jinja2")
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

import nurf
from nurf.cli import _terminal
from nurf.cli._app import app

# one machine is slow, another crowded: a large budget does not make this fit longer, and a small one might refuse it
FIT = ("--target", "y", "--gradients", "dy_*", "--engine", "wide", "--time-budget", "600")


def process(*arguments, **options):
    """Run the command in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "nurf.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with samples of two targets, and a model of one of them, fitted by the command itself."""
    path = tmp_path_factory.mktemp("cli")
    problem = nurf.problems.get("planar_wave")
    jet = problem.jet(problem.sample(30, np.random.default_rng(0)))
    frame = pd.DataFrame(jet.X, columns=["x1", "x2"]).assign(y=jet.y)
    frame[["dy_x1", "dy_x2"]] = jet.gradients
    frame.head(20).to_csv(path / "samples.csv", index=False)
    both = frame.assign(z=2 - 3 * jet.y)
    both[["dz_x1", "dz_x2"]] = -3 * jet.gradients
    both.to_csv(path / "both.csv", index=False)
    frame[["x2", "x1"]].head(7).to_csv(path / "new.csv", index=False)
    done = process("fit", path / "samples.csv", *FIT, "--out", path / "model.nurf")
    assert done.returncode == 0, done.stderr
    (path / "fit.txt").write_text(done.stdout + "---" + done.stderr)
    return path


@pytest.fixture(scope="module")
def sampled(folder):
    """A model of the same samples with sampled neurons, saved by the library."""
    frame = pd.read_csv(folder / "samples.csv")
    model = nurf.RandomFeatureRegressor(20, density="uniform", width=0.5, growth=None, random_state=0)
    model.fit(frame[["x1", "x2"]], frame["y"]).save(folder / "sampled.nurf")
    return folder / "sampled.nurf"


class TestFit:
    def test_it_says_what_was_chosen_and_writes_one_file(self, folder):
        output, errors = (folder / "fit.txt").read_text().split("---")
        assert output.startswith("engine  estimated error")
        assert "y: estimated error" in output
        assert output.rstrip().endswith(f"wrote {folder / 'model.nurf'}")
        assert errors == ""  # no progress bar in a pipe
        assert {path.name for path in folder.iterdir() if path.name.startswith(("model", "."))} == {"model.nurf"}

    def test_the_model_is_that_of_the_library(self, folder):
        frame = pd.read_csv(folder / "samples.csv")
        X = frame[["x1", "x2"]]
        same = nurf.Surrogate(600, engines=["wide"], random_state=0)
        same.fit(X, frame["y"], gradients=frame[["dy_x1", "dy_x2"]])
        model = nurf.load(folder / "model.nurf")
        # two processes: threads may add in another order, and learned scales follow
        assert_allclose(model.predict(X), same.predict(X), rtol=0, atol=1e-4)
        assert list(model.feature_names_in_) == ["x1", "x2"]

    def test_several_targets(self, folder, tmp_path, command):
        options = ("--engine", "wide", "--time-budget", "600", "--no-test")
        out = tmp_path / "both.nurf"
        code, output, errors = command(
            "fit", folder / "both.csv", "-t", "y,z", "-g", "d{target}_*", *options, "-o", out
        )
        assert (code, errors) == (0, "")
        assert "z: estimated error" in output
        code, output, _ = command("predict", out, folder / "new.csv", "--gradient", "--interval", "0.8")
        frame = pd.read_csv(io.StringIO(output))
        names = [f"{y}{end}" for y in "yz" for end in ("", "_low", "_high")]
        assert list(frame.columns) == [*names[:3], "dy_x1", "dy_x2", *names[3:], "dz_x1", "dz_x2"]
        # z = 2 - 3 y holds for the samples, and for predictions as far as these are right
        assert_allclose(frame["z"], 2 - 3 * frame["y"], atol=1e-3)
        assert_allclose(frame["dz_x1"], -3 * frame["dy_x1"], atol=1e-2)

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (("missing.csv", "--target", "y"), 2, "nurf: missing.csv: No such file or directory\n"),
            (
                ("samples.csv", "--target", "z"),
                2,
                "nurf: no column matches the target 'z': the columns are 'x1', 'x2', 'y'",
            ),
            (("samples.csv", "--target", "y"), 2, "add --gradients 'dy_*'"),
            (("samples.csv", *FIT, "--out", "none/model.nurf"), 2, "nurf: there is no folder "),
            (("missing.csv", *FIT, "--out", "."), 2, "nurf: . is a folder"),  # before anything is read
            (("samples.csv",), 2, "Missing option '--target'"),
            (("samples.csv", "--target", "y", "--engine", "magic"), 2, "magic"),
            (("samples.csv", "--target", "y", "--time-budget", "0"), 2, "--time-budget"),
        ],
    )
    def test_errors_are_one_line_and_nothing_is_written(self, folder, command, monkeypatch, arguments, code, message):
        monkeypatch.chdir(folder)
        before = sorted(os.listdir())
        found, output, errors = command("fit", *arguments)
        assert (found, output) == (code, "")
        assert message in errors
        if errors.startswith("nurf: "):
            assert errors.count("\n") == 1
        assert sorted(os.listdir()) == before

    def test_names_with_commas_are_quoted(self, folder, tmp_path, command):
        frame = pd.read_csv(folder / "samples.csv").rename(columns={"x2": "c,d", "dy_x2": "dy_c,d"})
        frame.assign(run=frame["x1"] ** 2).to_csv(tmp_path / "s.csv", index=False)
        names = ("--inputs", 'x1, "c,d"', "--gradients", 'dy_x1,"dy_c,d"')
        assert command("check", tmp_path / "s.csv", *names)[0] == 0
        assert command("fit", tmp_path / "s.csv", *FIT, *names[:2], "--out", tmp_path / "m.nurf")[0] == 0
        assert list(nurf.load(tmp_path / "m.nurf").feature_names_in_) == ["x1", "c,d"]
        code, _, errors = command("check", tmp_path / "s.csv", "--inputs", 'x1,"c,d')
        assert code == 2
        assert "expected names with commas between them" in errors

    def test_what_is_wrong_in_a_file_is_named_by_column_and_line(self, tmp_path, command):
        path = tmp_path / "bad.csv"
        path.write_text("x,y\n1,2\n2,three\n")
        assert command("fit", path, "--target", "y") == (
            2,
            "",
            "nurf: bad.csv, column 'y', line 3: expected a number, got 'three'\n",
        )

    @pytest.mark.parametrize(("n", "words"), [(1, "not known: there are too few samples"), (3, "at new points")])
    def test_a_few_samples_give_a_model_and_a_report(self, tmp_path, command, n, words):
        path = tmp_path / "few.csv"
        path.write_text("x,y\n" + "1,2\n2,3\n3,5\n"[: 4 * n])
        code, output, _ = command("fit", path, "-t", "y", "--engine", "wide", "-o", tmp_path / "few.nurf")
        assert code == 0
        assert words in output
        assert command("report", tmp_path / "few.nurf", "-o", tmp_path / "few.html")[0] == 0
        assert "No rows were held out" in (tmp_path / "few.html").read_text(encoding="utf-8")

    def test_debug_shows_where_anywhere(self, command):
        for arguments in (("--debug", "fit", "no.csv", "-t", "y"), ("fit", "no.csv", "-t", "y", "--debug")):
            code, output, errors = command(*arguments)
            assert (code, output) == (2, "")
            assert re.search(r"Traceback(.|\n)*FileNotFoundError: .*no\.csv", errors)


class TestPredict:
    def test_predictions_are_those_of_the_model(self, folder, command):
        arguments = ("predict", folder / "model.nurf", folder / "new.csv", "--gradient", "--std", "--interval", "0.9")
        code, output, _ = command(*arguments)
        assert code == 0
        frame = pd.read_csv(io.StringIO(output))
        model, X = nurf.load(folder / "model.nurf"), pd.read_csv(folder / "new.csv")[["x1", "x2"]]
        values, deviations = model.predict(X, return_std=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # if derivatives were not used, their deviations are a guess
            slopes, slope_deviations = model.predict_gradient(X, return_std=True)
        low, high = model.predict_interval(X, 0.9).T
        names = ["y", "y_std", "y_low", "y_high", "dy_x1", "dy_x2", "dy_x1_std", "dy_x2_std"]
        assert list(frame.columns) == names
        columns = [values, deviations, low, high, *slopes.T, *slope_deviations.T]
        assert_allclose(frame.to_numpy(), np.column_stack(columns), rtol=1e-12)

    def test_blocks_change_nothing(self, folder, command, monkeypatch):
        _, whole, _ = command("predict", folder / "model.nurf", folder / "new.csv")
        monkeypatch.setattr("nurf.cli._models.BLOCK", 3)
        _, blocks, _ = command("predict", folder / "model.nurf", folder / "new.csv")
        left, right = (pd.read_csv(io.StringIO(text)) for text in (whole, blocks))
        # products of other sizes round in another way, and sums of kernels cancel: far below the error of the model
        assert_allclose(left, right, atol=1e-6)

    @pytest.mark.parametrize("name", ["out.csv", "out.npz"])
    def test_predictions_in_a_file(self, folder, tmp_path, command, name):
        out = tmp_path / name
        assert command("predict", folder / "model.nurf", folder / "new.csv", "--out", out) == (0, "", "")
        _, text, _ = command("predict", folder / "model.nurf", folder / "new.csv")
        if name.endswith("csv"):
            found = pd.read_csv(out)["y"]
        else:
            with np.load(out) as file:
                found = file["y"]
        assert_allclose(found, pd.read_csv(io.StringIO(text))["y"], rtol=1e-12)
        assert os.listdir(tmp_path) == [name]

    def test_points_from_a_pipe_to_a_pipe(self, folder):
        text = (folder / "new.csv").read_text()
        done = process("predict", folder / "model.nurf", "-", input=text)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 8

    def test_a_reader_that_has_enough_is_no_error(self, folder, tmp_path):
        X = np.random.default_rng(0).uniform(-0.5, 0.5, (20_000, 2))
        pd.DataFrame(X, columns=["x1", "x2"]).to_csv(tmp_path / "many.csv", index=False)
        command = f'"{sys.executable}" -m nurf.cli predict {folder / "model.nurf"} {tmp_path / "many.csv"}'
        script = f"set -o pipefail; {command} | head -n 1"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "y\n", "")

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (("model.nurf", "samples.csv", "--interval", "1.5"), 2, "between 0 and 1, got 1.5"),
            (("new.csv", "samples.csv"), 2, "nurf: new.csv: this is not a file of nurf, which must start with"),
            (("model.nurf", "wrong.csv"), 2, "nurf: wrong.csv: column 'x2' is missing"),
            (("model.nurf", "new.csv", "--out", "new.xlsx"), 2, "nurf: new.xlsx: the name of a table must end with"),
            (("missing.nurf", "new.csv", "--out", "."), 2, "nurf: . is a folder"),  # before anything is read
        ],
    )
    def test_errors(self, folder, command, monkeypatch, arguments, code, message):
        monkeypatch.chdir(folder)
        Path("wrong.csv").write_text("x1\n1\n")
        found, output, errors = command("predict", *arguments)
        assert (found, output) == (code, "")
        assert message in errors


class TestReport:
    def test_three_commands_from_nothing_to_a_report(self, folder, tmp_path, command):
        out = tmp_path / "report.html"
        assert command("report", folder / "model.nurf", "--out", out) == (0, f"{out}\n", "")
        page = out.read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        for words in ("model.nurf", "samples.csv", "20 samples", "What was chosen", "held-out rows", "Slices"):
            assert words in page
        assert os.listdir(tmp_path) == ["report.html"]
        foot = html.unescape(re.search(r"<footer.*?</footer>", out.read_text(), re.DOTALL)[0])
        assert re.search(r"Written on \d{4}-\d\d-\d\d by nurf", foot)
        assert f"<code>nurf report {folder / 'model.nurf'} --out {out}</code>" in foot
        assert re.search(r"model.nurf was fitted on \d{4}-\d\d-\d\d to samples.csv: <code>nurf fit .*--target y", foot)

    def test_a_model_that_was_saved_by_the_library_has_a_report_that_says_what_it_lacks(self, tmp_path, command):
        X = np.linspace(-1, 1, 20)[:, None]
        nurf.RandomFeatureRegressor(10, width=0.5, random_state=0).fit(X, X[:, 0] ** 2).save(tmp_path / "m.nurf")
        assert command("report", tmp_path / "m.nurf", "-o", tmp_path / "r.html")[0] == 0
        assert "The file holds no samples" in (tmp_path / "r.html").read_text(encoding="utf-8")

    def test_a_table_of_other_rows_is_a_test(self, folder, tmp_path, command):
        problem = nurf.problems.get("planar_wave")
        jet = problem.jet(problem.sample(20, np.random.default_rng(5)))
        frame = pd.DataFrame(jet.X, columns=["x1", "x2"]).assign(y=jet.y)[["y", "x2", "x1"]]
        frame.to_csv(tmp_path / "test.csv", index=False)
        arguments = ("report", folder / "model.nurf", "--test", tmp_path / "test.csv", "-o", tmp_path / "r.html")
        assert command(*arguments)[0] == 0
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert "the rows of test.csv, to which the model was not fitted" in page
        error = nurf.load(folder / "model.nurf").predict(frame[["x1", "x2"]]) - jet.y
        assert f"{np.sqrt(np.mean(error**2)):.3g}" in page


class TestCheck:
    def test_gradients_that_belong_to_the_values(self, tmp_path, command):
        command("sample", "planar_wave", "-n", "200", "-o", tmp_path / "s.csv")
        code, output, errors = command("check", tmp_path / "s.csv")
        assert (code, errors) == (0, "")
        assert output.startswith("y: consistent: the gradients explain the values")

    def test_a_wrong_sign_is_named_and_fails(self, tmp_path, command):
        command("sample", "planar_wave", "-n", "200", "-o", tmp_path / "s.csv")
        frame = pd.read_csv(tmp_path / "s.csv")
        frame[["dy_x1", "dy_x2"]] *= -1
        frame.to_csv(tmp_path / "s.csv", index=False)
        code, output, _ = command("check", tmp_path / "s.csv", "--target", "y", "--gradients", "dy_*")
        assert (code, output) == (1, "y: contradiction: the gradients have the wrong sign\n")

    def test_too_few_samples_decide_nothing(self, folder, tmp_path, command):
        pd.read_csv(folder / "samples.csv").head(2).to_csv(tmp_path / "two.csv", index=False)
        code, output, _ = command("check", tmp_path / "two.csv")
        assert code == 0
        assert output.startswith("y: not decided")

    @pytest.mark.parametrize(
        "options", [("--target", "z"), ("--gradients", "dy_x1"), ("--inputs", "x1,x1"), ("--debug",)]
    )
    def test_what_cannot_be_compared_is_no_verdict(self, tmp_path, command, options):
        path = tmp_path / "s.csv"
        if "--debug" not in options:
            command("sample", "planar_wave", "-n", "20", "-o", path)
        code, output, errors = command("check", path, *options)
        assert (code, output) == (2, "")
        assert ("Traceback" in errors) == ("--debug" in options)


class TestProblems:
    def test_all_are_listed_with_their_inputs(self, command):
        code, output, _ = command("problems")
        assert code == 0
        assert [line.split()[0] for line in output.splitlines()] == nurf.problems.names()
        assert re.search(r"borehole +8 inputs +The flow of water", output)

    def test_samples_are_those_of_the_library_in_native_units(self, tmp_path, command):
        assert command("sample", "borehole", "-n", 5, "--seed", 3, "--out", tmp_path / "s.npz")[0] == 0
        problem = nurf.problems.get("borehole", native=True)
        jet = problem.jet(problem.sample(5, np.random.default_rng(3)))
        with np.load(tmp_path / "s.npz") as file:
            arrays = dict(file)
        assert_array_equal(np.column_stack([arrays[f"x{j}"] for j in range(1, 9)]), jet.X)
        assert_array_equal(arrays["y"], jet.y)
        assert_array_equal(np.column_stack([arrays[f"dy_x{j}"] for j in range(1, 9)]), jet.gradients)

    def test_samples_without_derivatives_go_to_the_output(self, command):
        _, output, _ = command("sample", "corner_peak", "--dimension", 2, "-n", 3, "--no-gradients")
        assert output.splitlines()[0] == "x1,x2,y"
        assert len(output.splitlines()) == 4

    def test_an_unknown_problem(self, command):
        code, _, errors = command("sample", "hole")
        assert code == 2
        assert errors.startswith("nurf: unknown problem 'hole': expected one of gaussian_bump")


class TestExport:
    def test_plain_python_predicts_the_same(self, folder, sampled, tmp_path, command):
        out = tmp_path / "model.py"
        assert command("export", sampled, "--to", "python", "-o", out) == (0, f"{out}\n", "")
        names = {}
        exec(out.read_text(), names)
        model, X = nurf.load(sampled), pd.read_csv(folder / "new.csv")[["x1", "x2"]]
        # sums of some hundred terms that may cancel: far above rounding, far below the range of the values
        assert_allclose([names["value"](list(x)) for x in X.to_numpy()], model.predict(X), atol=1e-6)

    def test_the_file_is_named_like_the_model(self, sampled, command):
        code, output, _ = command("export", sampled, "--to", "c")
        assert (code, output) == (0, f"{sampled.with_suffix('.c')}\n")
        assert "#include <math.h>" in sampled.with_suffix(".c").read_text()

    def test_torch(self, folder, sampled, tmp_path, command):
        torch = pytest.importorskip("torch")
        assert command("export", sampled, "--to", "torch", "-o", tmp_path / "m.pt2")[0] == 0
        X = pd.read_csv(folder / "new.csv")[["x1", "x2"]]
        values = torch.export.load(tmp_path / "m.pt2").module()(torch.tensor(X.to_numpy()))
        assert_allclose(values.numpy(), nurf.load(sampled).predict(X), atol=1e-6)

    def test_jax(self, folder, sampled, tmp_path, command):
        jax = pytest.importorskip("jax")
        pytest.importorskip("flatbuffers")
        from jax import export

        assert command("export", sampled, "--to", "jax", "-o", tmp_path / "m.jax")[0] == 0
        X = pd.read_csv(folder / "new.csv")[["x1", "x2"]]
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        try:
            values = export.deserialize(bytearray((tmp_path / "m.jax").read_bytes())).call(X.to_numpy())
        finally:
            jax.config.update("jax_enable_x64", before)
        assert_allclose(np.asarray(values), nurf.load(sampled).predict(X), atol=1e-6)

    def test_a_missing_framework_is_named(self, folder, sampled, tmp_path, command, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnx", None)
        code, _, errors = command("export", sampled, "--to", "onnx", "-o", tmp_path / "m.onnx")
        assert (code, errors) == (2, 'nurf: to_onnx needs onnx: pip install "nurf[onnx]"\n')
        assert os.listdir(tmp_path) == []


class TestCommand:
    def test_help_has_examples(self):
        runner = CliRunner()
        for name in ("fit", "predict", "report", "check", "sample", "export"):
            result = runner.invoke(app, [name, "--help"])
            assert result.exit_code == 0
            assert f"nurf {name}" in result.output.replace("Usage: root", "")
            assert "Example" in result.output
        result = runner.invoke(app, ["--help"])
        assert "nurf report model.nurf" in result.output
        assert "--install-completion" in result.output

    def test_the_version(self, command):
        assert command("--version") == (0, f"nurf {nurf.__version__}\n", "")

    def test_an_unknown_command_is_wrong_usage(self, command):
        assert command("fly")[0] == 2

    def test_without_the_extra_one_line_says_what_to_install(self):
        code = """
import sys
sys.modules["typer"] = None
import importlib.util as util
find = util.find_spec
util.find_spec = lambda name, *rest: None if name == "typer" else find(name, *rest)
sys.argv = ["nurf", "fit"]
from nurf.cli import main
main()
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == 'nurf: the command needs typer: pip install "nurf[cli]"\n'

    def test_an_interrupt_is_no_error(self, command, monkeypatch):
        def stop():
            raise KeyboardInterrupt

        monkeypatch.setattr(nurf.problems, "names", stop)
        code, output, errors = command("problems")
        assert (code, output) == (130, "")
        assert "Traceback" not in errors

    def test_an_error_of_ours_is_one_line_that_says_how_to_see_more(self, command, monkeypatch):
        def fail():
            raise RuntimeError("two\nlines")

        monkeypatch.setattr(nurf.problems, "names", fail)
        assert command("problems") == (2, "", "nurf: RuntimeError: two lines (nurf --debug shows where)\n")

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("fit samples.csv --target d", ["dy_x1", "dy_x2"]),
            ("fit samples.csv -t y --inputs x1,x", ["x1,x1", "x1,x2"]),
            ("fit --target d", []),
            ("fit missing.csv --target d", []),
            ("sample co", ["corner", "corner_peak"]),
        ],
    )
    def test_the_shell_completes_columns_and_problems(self, folder, command, monkeypatch, words, expected):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("_NURF_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", f"nurf {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        code, output, _ = command()
        assert code == 0
        assert output.split() == expected

    def test_warnings_are_lines_and_progress_is_for_terminals(self, capsys, monkeypatch):
        with _terminal.working("Working"):
            warnings.warn("several\nlines", stacklevel=1)
        assert capsys.readouterr() == ("", "nurf: several lines\n")
        monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
        monkeypatch.setenv("TERM", "xterm")
        with _terminal.working("Working"):
            pass
        output, errors = capsys.readouterr()
        assert output == ""
        assert "Working" in errors
