"""The paper's figures by one call: run, draw, decide, compare, report."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from reproduction import drawing, page, report
from reproduction.authors import reference
from reproduction.claims import CLAIMS
from reproduction.comparison import compare
from reproduction.evidence import Evidence
from reproduction.figures import FIGURES
from reproduction.files import write_text, write_with
from reproduction.findings import Section
from reproduction.kinds import PaperFigure, Results
from reproduction.plan import Scope
from reproduction.runner import Say, run_units
from reproduction.store import Store

OUT = Path("build", "reproduction")


def reproduce(
    figures: Iterable[str] | None = None,
    *,
    out: str | Path = OUT,
    quick: bool = False,
    trials: int | None = None,
    jobs: int = 1,
    docs: str | Path | None = None,
    say: Say = print,
) -> list[Section]:
    """Reproduce figures of the paper: compute, draw, decide its claims, compare with the authors' code, and report.

    Everything is written under ``out``: ``report.html``, the pictures ``figures/fig5.svg`` (and .pdf, .png), the errors
    ``tables/fig5.csv``, and all single results under ``results``, so that an interrupted run continues where it stopped
    and a figure that was computed before is only drawn.

    Parameters
    ----------
    figures : iterable of str, optional
        Such as ``["fig4", "fig11"]``; by default all.
    out : path, default "build/reproduction"
        A folder; created if it does not exist.
    quick : bool, default False
        Run two trials instead of the paper's ten (four from three dimensions on), and shorter training paths.
    trials : int, optional
        Another number of trials.
    jobs : int, default 1
        Number of processes.
    docs : path, optional
        The folder of the documentation, in which the page of the reproduction, its tables and pictures are written,
        too. All figures are needed for it, in the full setting.
    say : callable
        Takes the messages.

    Returns
    -------
    list of Section
        The sections of the report.
    """
    chosen = _chosen(figures)
    if trials is not None and trials < 1:
        raise ValueError(f"`trials` must be at least 1, got {trials}")
    if jobs < 1:
        raise ValueError(f"`jobs` must be at least 1, got {jobs}")
    scope = Scope(quick, trials)
    if docs is not None and (len(chosen) < len(FIGURES) or scope != Scope()):
        raise ValueError("`docs` needs all figures in the full setting, without `figures`, `quick` and `trials`")
    out = _writable(Path(out))
    start = time.perf_counter()
    units = [unit for figure in chosen for unit in figure.units(scope)]
    results = run_units(units, Store(out / "results"), jobs=jobs, say=say)
    sections = [_section(figure, results, scope, out) for figure in chosen]
    html = report.render(sections, setting=_setting(scope, jobs), seconds=time.perf_counter() - start)
    write_text(out / "report.html", html)
    say(f"wrote {out / 'report.html'}")
    if docs is not None:
        _publish(sections, results, out, Path(docs))
        say(f"wrote {Path(docs) / 'reproduction.md'}")
    return sections


def _publish(sections: Sequence[Section], results: Results, out: Path, docs: Path) -> None:
    """Write the page of the documentation, and copy its tables and pictures."""
    write_text(docs / "reproduction.md", page.render(sections, results))
    for section in sections:
        table, picture = out / "tables" / f"{section.name}.csv", section.picture.with_suffix(".png")
        write_with(docs / "reproduction" / table.name, partial(shutil.copyfile, table))
        write_with(docs / "images" / "reproduction" / picture.name, partial(shutil.copyfile, picture))


def _section(figure: PaperFigure, results: Results, scope: Scope, out: Path) -> Section:
    evidence = figure.evidence(results, scope)
    write_text(out / "tables" / f"{figure.name}.csv", figure.own_rows(evidence.table).to_csv())
    return Section(
        name=figure.name,
        title=figure.title,
        caption=figure.caption,
        says=figure.says,
        picture=drawing.write(figure.draw(evidence), out / "figures" / figure.name),
        findings=tuple(claim.beside(evidence, Evidence(reference(), paired=False)) for claim in CLAIMS[figure.name]),
        comparisons=compare(evidence.table, figure.keys),
        seconds=sum(results[unit].seconds for unit in dict.fromkeys(figure.units(scope))),
        note=figure.note(scope),
    )


def _chosen(figures: Iterable[str] | None) -> list[PaperFigure]:
    names = set(figures or ()) or set(FIGURES)
    unknown = sorted(names - set(FIGURES))
    if unknown:
        raise ValueError(f"no figure is called {', '.join(map(repr, unknown))}: expected {', '.join(FIGURES)}")
    return [figure for name, figure in FIGURES.items() if name in names]


def _writable(out: Path) -> Path:
    """Return the folder, created if necessary, after a test that a file can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"`out` must be a folder to write to, got {out}: {error.strerror or error}") from error
    return out


def _setting(scope: Scope, jobs: int) -> str:
    kind = "quick" if scope.quick else "full"
    usual = "2" if scope.quick else "10 in one and two dimensions and 4 above"
    trials = usual if scope.trials is None else str(scope.trials)
    return (
        f"nurf {version('nurf')}, {kind} setting: trials: {trials}; up to 50 neurons in one dimension, 250 in two, "
        f"1000 above; {jobs} process{'es' if jobs > 1 else ''} of one thread each."
    )
