"""The version of a computation: it changes with the source of every definition that the computation can reach."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from reproduction.seeds import digest

PACKAGES = ("nurf", "reproduction")
Place = tuple[str, str]  # a module, and a name at its top level


@cache
def version(*classes: type) -> str:
    """Return the digest of classes and of all definitions in ``PACKAGES`` that they can reach.

    Docstrings, comments, annotations and the layout of the source do not count, nor do definitions that are not
    reached, even if they are in the same modules.
    """
    return digest({".".join(place): _top_level(place[0]).definitions[place[1]] for place in reached(*classes)})


def reached(*classes: type) -> list[Place]:
    """Return the places of classes and of all definitions that they can reach by the names in their source, sorted.

    Names are looked up through imports and packages, whether or not their lines are executed. An object is made by a
    line that names its class, so annotations are not needed; what a computation is given must be among ``classes``.
    Names that are computed (``getattr``) are not found.
    """
    found: set[Place] = set()
    waiting = [_home(own.__module__, (own.__name__,)) for own in classes]
    while waiting:
        place = waiting.pop()
        if place is not None and place not in found:
            found.add(place)
            waiting += [_home(place[0], names) for names in _top_level(place[0]).names[place[1]]]
    return sorted(found)


@dataclass(frozen=True)
class _TopLevel:
    """What a module defines and imports.

    Attributes
    ----------
    definitions : dict
        The statements that bind each name, as Python writes their syntax trees.
    names : dict
        The names in these statements: ``("f",)`` for ``f``, ``("package", "f")`` for ``package.f``.
    imports : dict
        The full name that each imported name stands for, such as ``"nurf.jets.Jet"``.
    """

    definitions: dict[str, str]
    names: dict[str, set[tuple[str, ...]]]
    imports: dict[str, str]


@cache
def _top_level(module: str) -> _TopLevel:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the source of {module} is needed to know its version")
    tree = _Bare().visit(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
    definitions: dict[str, str] = {}
    names: dict[str, set[tuple[str, ...]]] = {}
    imports: dict[str, str] = {}
    for node in tree.body:
        for name in _bound(node):
            definitions[name] = definitions.get(name, "") + ast.unparse(node)
            names.setdefault(name, set()).update(_names(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imports |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            imports |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return _TopLevel(definitions, names, imports)


def _home(module: str, names: tuple[str, ...]) -> Place | None:
    """Return where the name that a module uses is defined; None for local variables, modules and other packages."""
    first, rest = names[0], names[1:]
    if first in _top_level(module).definitions:
        return module, first
    full = _top_level(module).imports.get(first, "")
    source, _, original = full.rpartition(".")
    if full.partition(".")[0] not in PACKAGES:
        return None
    if _is_module(full):
        return _home(full, rest) if rest else None
    return _home(source, (original,))


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the last part is a name in a module that is no package
        return False


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a statement binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    return sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})


def _names(node: ast.stmt) -> set[tuple[str, ...]]:
    """Return the names in a statement, alone and with the attribute that follows."""
    found: set[tuple[str, ...]] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            found.add((n.id,))
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name):
            found.add((n.value.id, n.attr))
    return found


class _Bare(ast.NodeTransformer):
    """Removes docstrings and annotations."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = ast.Constant(None)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node
