"""The reproduction uses the public names of the library only."""

import ast
import importlib
from pathlib import Path

import pytest

import reproduction

FILES = sorted(Path(reproduction.__file__).parent.rglob("*.py"))


def private_names(source):
    """Return what a source file takes from nurf, and is not in the ``__all__`` of a public module."""
    tree = ast.parse(source)
    taken = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            taken |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            taken |= {(node.module or "", alias.name) for alias in node.names}
    taken = {(module, name) for module, name in taken if module.partition(".")[0] == "nurf"}
    modules = {f"{module}.{name}".rstrip(".") for module, name in taken if is_module(f"{module}.{name}".rstrip("."))}
    aliases = {module.rpartition(".")[2]: module for module in modules}
    for node in ast.walk(tree):  # plots.style_of
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            taken.add((aliases[node.value.id], node.attr))
    return sorted(
        f"{module}.{name}".rstrip(".")
        for module, name in taken
        if "._" in f"{module}.{name}" or not (is_module(f"{module}.{name}".rstrip(".")) or name in exported(module))
    )


def is_module(name):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def exported(module):
    """Return the names in ``__all__``; without one, what the module defines under a public name."""
    found = importlib.import_module(module)
    own = [name for name, value in vars(found).items() if getattr(value, "__module__", "") == module]
    return getattr(found, "__all__", [name for name in own if not name.startswith("_")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_imports_are_public(path):
    assert private_names(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from nurf._types import Array", ["nurf._types.Array"]),
        ("from nurf.densities._base import Density", ["nurf.densities._base.Density"]),
        ("import nurf.plots._style", ["nurf.plots._style"]),
        ("def f():\n    from nurf.densities import _base", ["nurf.densities._base"]),
        ("from nurf.problems import _PROBLEMS", ["nurf.problems._PROBLEMS"]),
        ("from nurf.densities import Callable", ["nurf.densities.Callable"]),
        ("from nurf import plots\nplots._style.STYLES", ["nurf.plots._style"]),
        ("from nurf import plots, problems\nimport numpy\nfrom nurf.jets import Jet\nplots.STYLES, problems.get", []),
    ],
)
def test_private_names_are_found(source, found):
    assert private_names(source) == found
