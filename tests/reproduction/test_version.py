"""The version of a computation changes with what it does, and with nothing else."""

import importlib
import sys
from itertools import count
from pathlib import Path
from textwrap import dedent

import pytest
from tiny import DRAWS, FLAT, SAMPLING, TINY, TRAINING

from reproduction import plan, version
from reproduction.cases import Case
from reproduction.fits import Draws, Sampling
from reproduction.store import Store, Unit

NUMBERS = count()
SOURCES = {
    "__init__": "from {package}.low import LEVEL, Part, helper\nfrom {package}.side import unused",
    "low": """
        import math
        LEVEL = 2.0
        OTHER = 3.0

        class Part:
            '''A part.'''
            def work(self, x: float) -> float:
                '''Return the work.'''
                return math.sqrt(x)  # a root

        def helper(x):
            return x + LEVEL
        """,
    "side": "def unused(x):\n    return x\n\ndef through_a_module(x):\n    return x - 1",
    "top": """
        from {package} import Part, helper, side

        class Root:
            part: Part

            def run(self, x):
                return helper(self.part.work(x)) + side.through_a_module(x)

        class Given:
            part = Part()
        """,
}


@pytest.fixture
def version_with(tmp_path, monkeypatch):
    """Return a function that writes a package with changed sources and gives the version of its ``Root``."""
    monkeypatch.syspath_prepend(tmp_path)

    def written(module="top", old="", new=""):
        package = f"written_{next(NUMBERS)}"
        monkeypatch.setattr(version, "PACKAGES", (package,))
        (tmp_path / package).mkdir()
        for name, source in SOURCES.items():
            text = dedent(source)
            if name == module:
                assert old in text
                text = text.replace(old, new)
            (tmp_path / package / f"{name}.py").write_text(text.replace("{package}", package))
        importlib.invalidate_caches()
        monkeypatch.setattr(version, "digest", lambda found: str(found).replace(package, "package"))
        top = importlib.import_module(f"{package}.top")
        return version.version(top.Root, top.Given)

    return written


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("low", "LEVEL = 2.0", "LEVEL = 2.5"),  # a constant, through an import of the package
        ("low", "return x + LEVEL", "return x - LEVEL"),
        ("low", "math.sqrt(x)", "math.exp(x)"),  # a method
        ("side", "x - 1", "x - 2"),  # a function of a module that was imported
        ("top", "helper(self", "abs(self"),
    ],
)
def test_the_version_changes_with_what_is_computed(version_with, module, old, new):
    assert version_with(module, old, new) != version_with()


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("low", "A part.", "Another part."),
        ("low", "# a root", "# the root of x"),
        ("low", "x: float", "x: int"),
        ("top", "part: Part", "part: object"),
        ("low", "\n\ndef helper", "\n\n\n\ndef helper"),
        ("low", "OTHER = 3.0", "OTHER = 4.0"),
        ("side", "return x\n", "return 2 * x\n"),
        ("__init__", "LEVEL, Part", "Part, LEVEL"),
    ],
)
def test_the_version_does_not_change_with_words_layout_and_what_is_not_reached(version_with, module, old, new):
    assert version_with(module, old, new) == version_with()


def called(function):
    """Return the places of all functions and classes of the packages that a call executes."""
    found = set()

    def note(frame, event, _):
        module, top = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname.partition(".")[0]
        generated = "<" in frame.f_code.co_filename + top  # by dataclasses; lambdas of constants have no name
        if event == "call" and module.partition(".")[0] in version.PACKAGES and not generated:
            found.add((module, top))

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(
    ("experiment", "methods"),
    [
        (SAMPLING, plan.METHODS_1D),
        (Sampling(FLAT, (4, 8, 12)), plan.METHODS_2D),
        (TRAINING, plan.SPARSE),
        (DRAWS, plan.PICTURED),
    ],
    ids=["sampling", "sampling in the plane", "training", "draws"],
)
def test_everything_that_a_fit_calls_is_in_its_version(experiment, methods):
    kind = type(experiment)
    reached = set(version.reached(kind, Case))
    for method in methods:
        ran = called(lambda method=method: experiment.run(method, 0))
        assert (kind.__module__, kind.__name__) in ran
        assert ran <= reached


def test_the_version_leaves_out_what_no_fit_of_the_paper_uses():
    modules = {module for module, _ in version.reached(Sampling, Draws, Case)}
    for other in ("cli", "plots", "report", "export", "estimators", "blockwise", "kernels", "solvers.process"):
        assert not any(module.startswith(f"nurf.{other}") for module in modules)
    assert "nurf.engines._wide" not in modules
    assert not modules & {"reproduction.drawing", "reproduction.claims", "reproduction.cli"}


def test_results_of_another_version_are_not_used(monkeypatch):
    unit = Unit(Draws(TINY, 20), "local", 0)
    before = Store(Path("folder")).path(unit)
    monkeypatch.setattr(Draws, "version", "another")
    assert Store(Path("folder")).path(unit) != before
