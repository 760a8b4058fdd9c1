"""The command line: what it passes on, and what it says to bad input."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from nurf import cli, experiments

runner = CliRunner()


@pytest.fixture
def calls(monkeypatch):
    """What ``experiments.reproduce`` is called with."""
    found = []
    monkeypatch.setattr(experiments, "reproduce", lambda figures, **options: found.append((figures, options)))
    return found


def run(*arguments):
    return runner.invoke(cli.make_app(), list(arguments))


def test_the_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.output == f"nurf {version('nurf')}\n"


def test_options_are_passed_on(calls, tmp_path):
    result = run("reproduce", "fig4", "fig7", "--trials", "3", "--quick", "--jobs", "2", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    ((figures, options),) = calls
    assert figures == ["fig4", "fig7"]
    options.pop("say")
    assert options == {"out": tmp_path, "quick": True, "trials": 3, "jobs": 2}


def test_by_default_all_figures_are_asked_for(calls):
    assert run("reproduce").exit_code == 0
    ((figures, options),) = calls
    assert not figures
    assert (options["quick"], options["trials"], options["jobs"]) == (False, None, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig12"], "no figure is called 'fig12': expected fig1, fig2"),
        (["--trials", "0"], "`trials` must be at least 1, got 0"),
        (["--jobs", "0"], "`jobs` must be at least 1, got 0"),
        (["--trials", "few"], "Invalid value for '--trials'"),
    ],
)
def test_bad_input_is_answered_in_a_line(arguments, message, tmp_path):
    result = run("reproduce", *arguments, "--out", str(tmp_path))
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_an_interrupt_says_how_to_go_on(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "reproduce", interrupted)
    result = run("reproduce")
    assert result.exit_code == 130
    assert "the same command goes on from there" in result.output


@pytest.mark.parametrize("missing", ["typer", "jinja2", "matplotlib"])
def test_a_missing_extra_is_named(missing, tmp_path):
    program = "\n".join(
        [
            "import sys",
            f"sys.modules[{missing!r}] = None",
            f"sys.argv = ['nurf', 'reproduce', 'fig1', '--out', {str(tmp_path)!r}]",
            "from nurf.cli import main",
            "main()",
        ]
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode != 0
    assert 'pip install "nurf[' in result.stderr
    assert "Traceback" not in result.stderr
