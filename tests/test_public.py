"""The public names: docs/api.md lists all of them, and nothing else."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import nurf

DOCS = Path(__file__).parents[1] / "docs" / "api.md"
LAZY = {"nurf": {"plots", "torch"}}  # not in `__all__`, so that `from nurf import *` works without optional packages


# Rooms whose names are for the other rooms of the package; what users need of them is a name of `nurf`.
INTERNAL = {"nurf.blockwise", "nurf.choosing", "nurf.data"}


def documented():
    """Return the names that docs/api.md lists for each module: in a table, as a constant, or with a link."""
    entry = re.compile(r"^   (\w+)$|^\.\. py:data:: (\w+)$|^- \[?`(\w+)`", re.MULTILINE)
    _, *sections = re.split(r"(?m)^## `(.+)`$", DOCS.read_text(encoding="utf-8"))
    return {
        module: ["".join(names) for names in entry.findall(text)]
        for module, text in zip(sections[::2], sections[1::2], strict=True)
    }


def public_modules():
    found = {module.name for module in walk_packages(nurf.__path__, "nurf.")} - INTERNAL
    return ["nurf", *(name for name in sorted(found) if not any(part.startswith("_") for part in name.split(".")))]


@pytest.mark.parametrize("module", documented())
def test_documented_names_exist(module):
    for name in documented()[module]:
        assert hasattr(import_module(module), name), f"docs/api.md lists {name}, which {module} does not have"


@pytest.mark.parametrize("module", public_modules())
def test_public_names_are_documented_once(module):
    names = documented().get(module, [])
    assert len(names) == len(set(names))
    assert set(names) == set(import_module(module).__all__) | LAZY.get(module, set())


def test_optional_packages_are_imported_when_they_are_needed():
    code = """
import sys
from nurf import *
import nurf
assert "matplotlib" not in sys.modules
assert nurf.plots is sys.modules["nurf.plots"]
assert nurf.torch is sys.modules["nurf.torch"]
assert not {"torch", "botorch", "openmdao"} & set(sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'nurf' has no attribute 'plot'"):
        nurf.plot  # noqa: B018
