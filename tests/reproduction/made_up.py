"""A report with made-up sections."""

from math import nan

from matplotlib.figure import Figure

from reproduction import report
from reproduction.findings import Comparison, Finding, Section

ROWS = (
    Comparison("wave", "uniform", 9, 2.0e-2, 0.1, 20, 2.0e-2, 0.2, 8),
    Comparison("wave", "local", 100, 1.0e-3, 0.1, 20, 4.0e-3, 0.2, 8, "theirs is <penalised>"),
    Comparison("wave", "sparse", 20, 5.0e-4, nan, 1, 5.0e-4, nan, 1),
    Comparison("bump & corner", "local", 1000, 3.0e-5, 0.3, 4, 3.0e-8, 0.2, 8),
    Comparison("bump & corner", "uniform", 200, 1.0e-1, 0.7, 20, 0.2, 0.2, 8),
)
LONG = tuple(Comparison("wave", f"method {n % 4}", n, 1 / n, 0.1, 20, 1 / n, 0.1, 8) for n in range(1, 101))
FINDINGS = (
    Finding("Nonuniform <b>beats</b> uniform & more.", "Section 5, N ≤ 30", True, "0.21 ± 0.05 < 1"),
    Finding("Sparse needs a third.", "Section 1", False, "0.52"),
    Finding("The rate is 2.5.", "Figure 4", None, "needs N = 2000"),
)


def pictures(folder):
    """Return three files by matplotlib, with ids in common."""
    paths = [folder / f"{n}.svg" for n in range(3)]
    for n, path in enumerate(paths):
        figure = Figure(figsize=(8, 3))
        figure.subplots().plot([0, 1], [n, 1])
        figure.savefig(path)
    return paths


def section(picture, name="fig4", findings=FINDINGS, comparisons=ROWS, **kwargs):
    """Return a section; texts are made up from the name."""
    texts = {"title": f"Title of {name}", "caption": f"Caption of {name}", "says": "Local & nonlocal: N < 5."}
    return Section(
        name=name, picture=picture, findings=findings, comparisons=comparisons, seconds=83.4, **texts | kwargs
    )


def sections(folder):
    """Return three sections: with a short table, with a long one, and without claims and comparisons."""
    first, second, third = pictures(folder)
    return [
        section(first, note="The text & the figure differ."),
        section(second, "fig5", FINDINGS[:1], LONG, title="A" + 80 * "a"),  # a word wider than a narrow screen
        section(third, "fig6", (), ()),
    ]


def html(given):
    """Return the report with these sections."""
    return report.render(given, setting="quick <5 trials>.", seconds=754.2)
