"""The page of a report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
except ModuleNotFoundError as error:
    raise ImportError('reports need jinja2: pip install "nurf[cli]"') from error


from nurf import plots
from nurf.plots import Sensitivity, input_names
from nurf.report import _explore as explore
from nurf.report import _figures as figures
from nurf.report._answers import sections
from nurf.report._evidence import Evidence

TEMPLATES = Path(__file__).parent / "templates"
MOST_TARGETS = 6  # largest number of targets with figures
ENGINES = {
    "wide": "an infinitely wide network with learned scales",
    "sampled": "a shallow network with sampled neurons",
    "trained": "a deep network with all weights trained",
    "sparse": "a shallow network with few trained neurons",
}


@dataclass(frozen=True)
class Errors:
    """Errors of one target on held-out rows."""

    n: int
    rms: float
    relative: float
    median: float
    largest: float
    r2: float
    covered: float
    gradients: float

    @classmethod
    def of(cls, evidence: Evidence, output: int) -> Errors | None:
        """Return the errors of one output, or None if no rows were held out."""
        y, f, ends = (part[:, output] for part in (evidence.true, evidence.predicted, evidence.intervals))
        if not len(y):
            return None
        sizes, variance = np.abs(y - f), np.mean((y - y.mean()) ** 2)
        square = float(np.mean(sizes**2))
        return cls(
            n=len(y),
            rms=float(np.sqrt(square)),
            relative=float(np.sqrt(square / variance)) if variance > 0 else np.nan,
            median=float(np.median(sizes)),
            largest=float(sizes.max()),
            r2=float(1 - square / variance) if variance > 0 else np.nan,
            covered=np.nan if np.isnan(ends).any() else float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))),
            gradients=float(evidence.gradient_errors[output]),
        )

    def cells(self, coverage: float) -> list[tuple[str, str]]:
        """Return the columns of a table: labels and texts."""
        return [
            ("rows", str(self.n)),
            ("root mean square", number(self.rms)),
            ("relative", percent(self.relative)),
            ("median", number(self.median)),
            ("largest", number(self.largest)),
            ("R²", r2(self.r2)),
            (f"in {percent(coverage)} intervals", percent(self.covered)),
            ("gradients", percent(self.gradients)),
        ]


@dataclass(frozen=True)
class Target:
    """The part of the page for one target."""

    model: Any
    evidence: Evidence | None
    output: int
    name: str
    names: list[str]
    pictured: bool

    @property
    def estimate(self) -> float:
        """The estimated error, in the units of the target."""
        return float(np.ravel(self.model.estimated_error_)[self.output])

    @property
    def scale(self) -> float:
        """The standard deviation of the values of the target."""
        return float(np.ravel(self.model.y_scale_)[self.output])

    @cached_property
    def errors(self) -> Errors | None:
        """The errors on held-out rows."""
        return None if self.evidence is None else Errors.of(self.evidence, self.output)

    @cached_property
    def predictions(self) -> list[figures.Picture]:
        """Predicted against true values, and residuals."""
        return figures.predictions(self._shown, self.output) if self._shown and self.errors else []

    @cached_property
    def slices(self) -> list[figures.Picture]:
        """Slices of the function with intervals; empty if there are too few samples for intervals."""
        if self._sloped is None or self.model.uncertainty_ is None or not np.isfinite(self.estimate):
            return []
        return figures.slices(self.model, self._sloped, self.output, self.names)

    @cached_property
    def inputs(self) -> list[figures.Picture]:
        """The sensitivity to each input, and the active directions."""
        return figures.inputs(self.model, self._sloped, self.output, self.names) if self._sloped else []

    @cached_property
    def relevance(self) -> list[tuple[str, float]]:
        """The inputs and their relevance, the largest first."""
        if self._sloped is None:
            return []
        sizes = Sensitivity.of(self.model, figures.frame_of(self.model, self._sloped.X), self.output).relevance
        return sorted(zip(self.names, sizes.tolist(), strict=True), key=lambda pair: -pair[1])

    @cached_property
    def hyperplanes(self) -> figures.Picture | None:
        """The figure of the hyperplanes."""
        return figures.hyperplanes(self.model, self._sloped, self.output, self.names) if self._sloped else None

    @property
    def _shown(self) -> Evidence | None:
        return self.evidence if self.pictured else None

    @property
    def _sloped(self) -> Evidence | None:
        """The samples, if the network has gradients."""
        return self._shown if self.model.fit_.network.n_derivatives else None


def render(
    model: Any,
    *,
    title: str = "model",
    evidence: Evidence | None = None,
    answers: Mapping[str, Any] | Sequence[Any] = (),
    command: str = "",
) -> str:
    """Return a report of a fitted model as a self-contained HTML page, in light and dark colours.

    Parameters
    ----------
    model : regressor of nurf
        A fitted regressor.
    title : str, optional
        The heading, such as the name of a file.
    evidence : Evidence, optional
        Samples, and predictions on held-out rows. Default is the evidence stored with the model. Without evidence, the
        page has no figures, and says so.
    answers : sequence of results of nurf.decisions, or dict, optional
        Answers that were asked of the model, each of which becomes a section; a dict has their headings.
    command : str, optional
        The command that writes the report, for its foot.
    """
    evidence = Evidence.of(model) if evidence is None else evidence
    names = input_names(model, None)
    k = int(np.size(model.y_scale_))
    if evidence is not None and (evidence.X.shape[1:], len(evidence.targets)) != ((len(names),), k):
        raise ValueError(
            f"the samples of a report must have {len(names)} inputs and {k} targets, as the model has, got "
            f"{evidence.X.shape[1]} and {len(evidence.targets)}"
        )
    outputs = evidence.targets if evidence else [f"output {q}" for q in range(k)] if k > 1 else ["output"]
    targets = [Target(model, evidence, q, name, names, q < MOST_TARGETS) for q, name in enumerate(outputs)]
    board, check = getattr(model, "leaderboard_", None), getattr(model, "gradient_check_", None)
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "r2": r2,
        "cell": cell,
        "listed": listed,
        "sentence": sentence,
    }
    program, reason = explore.script(model)
    facts = None if evidence is None or reason else _facts(model, evidence, names, title)
    return environment.get_template("report.html.j2").render(
        program=program,
        policy=explore.policy(str(program)),
        reason=reason,
        facts="" if facts is None else explore.embedded(facts),
        title=title,
        model=model,
        evidence=evidence,
        names=names,
        targets=targets,
        unpictured=targets[MOST_TARGETS:],
        engine=_engine(model),
        board=board,
        chart=None if board is None else _chart(board),
        check=check,
        finding="" if check is None else _named(check.message, outputs),
        lines=model.report().lines,
        answers=sections(answers),
        summary=model.report().title,
        version=version("nurf"),
        command=command,
        today=datetime.now(UTC).date().isoformat(),
        # not escaped: the style is ours, not data
        css=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
    )


def _facts(model: Any, evidence: Evidence, names: list[str], title: str) -> dict[str, Any]:
    relevance = Sensitivity.of(model, figures.frame_of(model, evidence.X)).relevance
    return explore.facts(model, evidence, names, title, relevance)


def _named(message: str, outputs: Sequence[str]) -> str:
    """Return a message with the number of an output replaced by its name."""
    return re.sub(r"^output (\d+):", lambda match: f"{outputs[int(match[1])]}:", message)


def _chart(board: Any) -> figures.Picture:
    size = (3.7, 0.8 + 0.32 * len(board))
    return figures.drawn(lambda ax: plots.leaderboard(board, ax=ax), "estimated errors of all engines", size)


def _engine(model: Any) -> str:
    name = getattr(model, "engine_", type(model).__name__)
    return f"{name}: {ENGINES[name]}" if name in ENGINES else name


# filters of the template


def number(x: float) -> str:
    """Return a number with three digits; a dash if it is unknown."""
    return f"{x:.3g}" if np.isfinite(x) else "–"


def cell(x: Any) -> str:
    """Return an entry of a table: a number with three digits, a text as it is.

    >>> cell(0.12345), cell("speed"), cell(3)
    ('0.123', 'speed', '3')
    """
    return number(x) if isinstance(x, float) else str(x)


def percent(x: float) -> str:
    """Return a share in per cent with two digits; a dash if it is unknown.

    >>> percent(0.0123), percent(0.995), percent(1.0), percent(8e-10)
    ('1.2%', '99.5%', '100%', '< 0.001%')
    """
    if not np.isfinite(x):
        return "–"
    if 0 < x < 1e-5:
        return "< 0.001%"
    return f"{100 * x:.2g}%" if x < 0.1 else f"{100 * x:.3g}%"


def r2(x: float) -> str:
    """Return a coefficient of determination with three digits, or with as many as show that it is not one.

    >>> r2(0.98765), r2(0.99996), r2(1 - 1e-9)
    ('0.988', '0.99996', '> 0.999999')
    """
    if not np.isfinite(x):
        return "–"
    if not 0.9995 < x < 1:
        return f"{x:.3g}"
    return "> 0.999999" if x > 0.999999 else f"{x:.{int(np.ceil(-np.log10(1 - x)))}f}"


def listed(names: Sequence[str], most: int = 20) -> str:
    """Return names as a list in a sentence, of which all after the first ``most`` are only counted.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], 2)
    ('a', 'a, b and c', 'a, b and 2 more inputs')
    """
    parts = list(names) if len(names) <= most else [*names[:most], f"{len(names) - most} more inputs"]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def sentence(text: str) -> str:
    """Return a text that can begin a sentence: "the" with a capital, the names of outputs as they are.

    >>> sentence("the gradients explain the values"), sentence("lift: the gradients")
    ('The gradients explain the values', 'lift: the gradients')
    """
    return "T" + text[1:] if text.startswith("the ") else text
