"""The command line: what it passes on, and its answers to bad input."""

import runpy
import sys

import pytest
from typer.testing import CliRunner

from reproduction import cli
from reproduction.__main__ import main


@pytest.fixture
def calls(monkeypatch):
    """The arguments of ``reproduce``."""
    found = []
    monkeypatch.setattr(cli, "reproduce", lambda figures, **options: found.append((figures, options)))
    return found


def run(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


def test_options_are_passed_on(calls, tmp_path):
    result = run("fig4", "fig7", "--trials", "3", "--quick", "--jobs", "2", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    ((figures, options),) = calls
    assert figures == ["fig4", "fig7"]
    options.pop("say")
    assert options == {"out": tmp_path, "quick": True, "trials": 3, "jobs": 2, "docs": None}


def test_the_default_is_all_figures_into_build(calls):
    assert run().exit_code == 0
    ((figures, options),) = calls
    assert not figures
    assert options["out"].parts == ("build", "reproduction")
    assert (options["quick"], options["trials"], options["jobs"]) == (False, None, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig4", "fig12"], "no figure is called 'fig12': expected fig1, fig2"),
        (["--trials", "0"], "`trials` must be at least 1, got 0"),
        (["--jobs", "0"], "`jobs` must be at least 1, got 0"),
        (["--out", __file__], "`out` must be a folder to write to"),
        (["--trials", "few"], "Invalid value for '--trials'"),
        (["fig4", "--docs", "docs"], "`docs` needs all figures in the full setting"),
        (["--quick", "--docs", "docs"], "`docs` needs all figures in the full setting"),
    ],
)
def test_bad_input_is_answered_in_a_line(arguments, message, tmp_path):
    result = run("--out", str(tmp_path), *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_an_interrupted_run_says_how_to_continue(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "reproduce", interrupted)
    result = run()
    assert result.exit_code == 130
    assert "the same command continues" in result.output


def test_it_is_run_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["reproduction", "--help"])
    monkeypatch.delitem(sys.modules, "reproduction.__main__")
    with pytest.raises(SystemExit) as end:
        runpy.run_module("reproduction", run_name="__main__")
    assert end.value.code == 0
    assert "python -m reproduction" in capsys.readouterr().out


@pytest.mark.parametrize("missing", ["typer", "rich", "jinja2", "matplotlib"])
def test_a_missing_dependency_is_named_in_a_line(missing, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("reproduction", missing)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)  # importing it fails now
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == f'reproduction needs {missing}: pip install "nurf[reproduction]"'
