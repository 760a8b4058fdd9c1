"""Data flows one way: a module imports from its own package, and what packages of strictly lower levels offer."""

import ast
from importlib.util import resolve_name
from pathlib import Path

import pytest

import nurf

LEVELS = [
    {"_memory", "_threads", "_types"},
    {"_blocks"},
    {"_linear", "_validation", "differentiation"},
    {"jets"},
    {"_scaling", "_tensors", "activations", "functionals"},
    {"_reduction", "_warping", "data"},
    {"networks"},
    {"densities", "kernels", "problems"},
    {"solvers"},
    {"choosing"},
    {"engines"},
    {"files"},
    {"blockwise"},
    {"estimators"},
    {"_tables", "export", "plots", "torch"},
    {"decisions", "report"},
    {"studies"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}
FOUNDATIONS = {"densities": {"_base", "_angular"}}  # inside a package: modules that import none of the others

ROOT = Path(nurf.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = ("nurf", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, package: str) -> set[str]:
    """Full names of all that a source file in ``package`` imports from nurf, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            names |= {f"{origin}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "nurf"}


def offences(module: str, source: str, is_package: bool = False) -> list[str]:
    """What ``module`` imports against the rule, as sentences that name both modules."""
    _, *own = module.split(".")
    if not own:
        return []  # nurf/__init__.py stands above everything
    if own[0] not in LEVEL:
        return [f"{module} is in no level of tests/test_architecture.py: add it to the table"]
    found = []
    for name in sorted(imports(source, module if is_package else module.rpartition(".")[0])):
        _, *other = name.split(".")
        if not other or other[0] not in LEVEL:
            found.append(f"{module} imports {name}, which is in no level of the table")
        elif other[0] == own[0]:
            foundations = FOUNDATIONS.get(own[0], set())
            if own[-1] in foundations and (len(other) < 2 or other[1] not in foundations):
                found.append(f"{module} imports {name}, which is built on it")
        elif LEVEL[other[0]] >= LEVEL[own[0]]:
            found.append(f"{module} (level {LEVEL[own[0]]}) imports {name} (level {LEVEL[other[0]]})")
        elif any(part.startswith("_") for part in other[1:]):
            found.append(f"{module} imports {name}, which is private: import it in the `__init__` of its package")
    return found


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_point_downwards(path):
    assert offences(module_name(path), path.read_text(), path.stem == "__init__") == []


@pytest.mark.parametrize(
    ("module", "source", "named"),
    [
        ("nurf.jets", "from nurf.networks._network import ShallowNetwork", "nurf.networks"),
        ("nurf.jets", "import nurf.networks as n", "nurf.networks"),
        ("nurf.jets", "from nurf import networks", "nurf.networks"),
        ("nurf.jets", "from .networks import ShallowNetwork", "nurf.networks"),
        ("nurf.jets", "def f():\n    from nurf.networks._network import ShallowNetwork", "nurf.networks"),
        ("nurf.networks._network", "from ..densities import Local", "nurf.densities"),
        ("nurf.networks._network", "from nurf.problems import Corner", "nurf.problems"),
        ("nurf.densities._base", "from nurf.densities._local import Local", "nurf.densities._local"),
        ("nurf.densities._base", "from nurf.densities import Local", "nurf.densities.Local"),
        ("nurf.densities._angular", "from ._mixture import PreparedMixture", "nurf.densities._mixture"),
        ("nurf.networks._network", "from nurf.jets import _checked", "nurf.jets._checked"),
        ("nurf.networks._network", "from nurf.data._streams import Stream", "nurf.data._streams"),
        ("nurf.engines._wide", "from nurf.solvers.process._process import Process", "nurf.solvers.process._process"),
        ("nurf.engines._wide", "def f():\n    import nurf.solvers._rows", "nurf.solvers._rows"),
        ("nurf.networks._network", "import nurf", "nurf"),
        ("nurf.networks._network", "from nurf import RandomFeatureRegressor", "nurf.RandomFeatureRegressor"),
    ],
)
def test_an_upward_import_is_found(module, source, named):
    (offence,) = offences(module, source)
    assert module in offence
    assert named in offence


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("nurf.networks._network", "import numpy\nfrom scipy.special import comb\nfrom nurf.jets import Jet"),
        (
            "nurf.densities._local",
            "from nurf.densities._base import PreparedDensity\nfrom ._mixture import PreparedMixture",
        ),
        ("nurf.densities._base", "from nurf.densities._angular import in_range"),
        ("nurf.networks._network", "from nurf._types import Array\nfrom nurf.data import Stream"),
        ("nurf.solvers._draws", "from nurf.solvers.process._process import Process"),
        ("nurf.engines._wide", "from nurf.solvers.process import Process"),
        ("nurf", "from nurf.plots import predictions"),
    ],
)
def test_a_downward_import_passes(module, source):
    assert offences(module, source) == []


def test_a_package_may_import_its_modules():
    assert offences("nurf.densities", "from ._local import Local", is_package=True) == []


def test_a_module_without_a_level_is_found():
    (offence,) = offences("nurf.helpers", "")
    assert "nurf.helpers" in offence
    assert "add it to the table" in offence
