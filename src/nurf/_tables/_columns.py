"""The roles of columns: inputs, targets and partial derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from nurf.data import partial_owners

TARGET = "{target}"


@dataclass(frozen=True)
class Roles:
    """The roles of the columns of a table.

    Parameters
    ----------
    inputs, targets : tuple of str
    partials : tuple of dict
        For each target, a dict from inputs to the columns of the partial derivatives. Empty if there are none.
    """

    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    partials: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True)
class ColumnChoice:
    """Names of columns, or patterns with ``*`` and ``?`` as for file names.

    Parameters
    ----------
    targets : tuple of str
    gradients : tuple of str, optional
        Columns of partial derivatives. ``{target}`` is replaced by the name of each target, and is required if there
        are several targets.
    inputs : tuple of str, optional
        Default is all remaining columns.
    ignored : tuple of str, optional
        Columns that are not used.
    """

    targets: tuple[str, ...]
    gradients: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def roles(self, columns: Sequence[str]) -> Roles:
        """Return the roles of the columns of a table.

        The name of a column of partial derivatives ends with the name of the input, as in ``d_x1``, ``dy_x1`` or
        ``dy/dx1``.
        """
        targets = _found("target", self.targets, columns)
        ignored = _found("ignored", self.ignored, columns)
        if len(targets) > 1 and any(TARGET not in pattern for pattern in self.gradients):
            raise ValueError(
                f"patterns of gradients must contain {TARGET} if there are several targets, such as 'd{TARGET}_*', "
                f"got {', '.join(map(repr, self.gradients))}"
            )
        slopes = [
            _found("gradient", [pattern.replace(TARGET, target) for pattern in self.gradients], columns)
            for target in targets
        ]
        used = {*targets, *ignored, *(column for group in slopes for column in group)}
        if self.inputs:
            inputs = tuple(name for name in _found("input", self.inputs, columns) if name not in ignored)
            both = [name for name in inputs if name in used]
            if both:
                raise ValueError(f"column {both[0]!r} is both an input and a target or a gradient")
        else:
            inputs = tuple(name for name in columns if name not in used)
            if not self.gradients:
                _require_no_derivatives(inputs, targets)
        if not inputs:
            raise ValueError("no column is left for the inputs: all are targets, gradients or ignored")
        partials = tuple(_by_input(group, inputs) for group in slopes) if self.gradients else ()
        return Roles(inputs, targets, partials)


def _found(role: str, patterns: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that match one of the names or patterns, in the order of the patterns."""
    found: dict[str, None] = {}
    for place, pattern in enumerate(patterns):
        if pattern in patterns[:place]:
            raise ValueError(f"the {role} {pattern!r} is given more than once")
        fitting = [pattern] if pattern in columns else [name for name in columns if fnmatchcase(name, pattern)]
        if not fitting:
            raise ValueError(f"no column matches the {role} {pattern!r}: the columns are {_listed(columns)}")
        found |= dict.fromkeys(fitting)
    return tuple(found)


def _by_input(group: Sequence[str], inputs: Sequence[str]) -> dict[str, str]:
    """Return a dict from inputs to columns of partial derivatives."""
    partials: dict[str, str] = {}
    for column, owner in zip(group, partial_owners(group, inputs), strict=True):
        if owner is None:
            raise ValueError(
                f"gradient column {column!r} belongs to no input: its name must end with one of "
                f"{_listed(inputs)}, as in 'dy_{inputs[0]}' or 'dy/d{inputs[0]}'"
            )
        if owner in partials:
            raise ValueError(f"gradient columns {partials[owner]!r} and {column!r} both belong to input {owner!r}")
        partials[owner] = column
    lacking = [name for name in inputs if name not in partials]
    if lacking:  # a name that matches two inputs belongs to only one of them
        raise ValueError(
            f"there must be a gradient column for each input, got none for {_listed(lacking)}: cells of unknown "
            "derivatives may be empty"
        )
    return partials


def _require_no_derivatives(inputs: Sequence[str], targets: Sequence[str]) -> None:
    """Raise an error if default inputs look like derivatives of a target with respect to other inputs."""
    for target in targets:
        starts = tuple(f"{d}{gap}{target}{end}" for d in "d∂" for gap in ("", "_") for end in "_/")
        slopes = [name for name in inputs if name.startswith(starts)]
        others = [name for name in inputs if name not in slopes]
        owned = [name for name, owner in zip(slopes, partial_owners(slopes, others), strict=True) if owner is not None]
        if owned:
            start = next(start for start in starts if owned[0].startswith(start))
            raise ValueError(
                f"column {owned[0]!r} looks like a derivative of {target!r}: add --gradients '{start}*', or name the "
                "inputs with --inputs"
            )


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
