"""Draw the pictures of the documentation that show results of benchmarks.

    python benchmarks/pictures.py [--out docs/images] [--report demo/report.html]

`collection.png`: errors of `Surrogate` beside errors of the best of other regressors, from `results/collection.csv`.
`trust.png`: reported beside true errors, from `results/trust.csv`.
`report.png` and `report_sliders.png`, with `--report`: the sliders and pictures of the report that `make demo` writes,
after "Find the maximum", and the upper part of them. This needs playwright and Chromium.
"""

import argparse
import csv
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

RESULTS = Path(__file__).parent / "results"
OTHERS = ("GP", "kernel ridge", "MLP", "gradient boosting")
LEAST = 1e-11  # smaller errors are rounding, and are drawn there
TITLES = {"none": "values only", "exact": "values and gradients"}


def read(name):
    """Return the rows of a file of results."""
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def best_and_ours(method):
    """Return for each function the smallest error of the other regressors, and ours."""
    errors = {}
    for row in read("collection.csv"):
        errors.setdefault(row["function"], {})[row["method"]] = max(float(row["error"]), LEAST)
    return np.array([[min(found[name] for name in OTHERS), found[method]] for found in errors.values()]).T


def draw_collection(path):
    """Draw a dot for each function: right of the line, `Surrogate` has the smaller error."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.3), layout="constrained", sharex=True, sharey=True)
    for ax, method, title in zip(panels, ("surrogate values", "surrogate"), TITLES.values(), strict=True):
        best, ours = best_and_ours(method)
        with_line(ax, (LEAST / 2, 2))
        ax.plot(best, ours, "o", markersize=6, alpha=0.7)
        ax.text(0.05, 0.92, f"smaller on {np.sum(ours < best)} of {len(best)} functions", transform=ax.transAxes)
        ax.set(title=title, xlabel="error of the best of four other regressors")
    panels[0].set_ylabel("error of Surrogate")
    save(figure, path)


def draw_trust(path):
    """Draw the reported error of each fit beside the true one, and the band in which it is right within a factor 3."""
    rows = [row for row in read("trust.csv") if (row["model"], row["part"]) == ("sampled", "few")]
    sizes = sorted({int(row["samples"]) for row in rows})
    colors = plt.colormaps["viridis_r"](np.linspace(0.1, 1, len(sizes)))
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.3), layout="constrained", sharex=True, sharey=True)
    for ax, (gradients, title) in zip(panels, TITLES.items(), strict=True):
        with_line(ax, (1e-4, 6), factor=3)
        for size, color in zip(sizes, colors, strict=True):
            pairs = [
                (float(row["error"]), float(row["reported"]))
                for row in rows
                if (row["gradients"], int(row["samples"])) == (gradients, size)
            ]
            ax.plot(*np.maximum(pairs, 1e-4).T, "o", color=color, markersize=4, alpha=0.8, label=f"{size}")
        ax.set(title=title, xlabel="true error")
    panels[0].set_ylabel("reported error")
    panels[0].legend(title="samples", loc="lower right", fontsize="small")
    save(figure, path)


def draw_report(page, out):
    """Take pictures of a report in Chromium after a search for the maximum: the whole section and its upper part."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1100, "height": 2400})
        tab.goto(page.resolve().as_uri())
        tab.get_by_role("button", name="Find the maximum").click()
        tab.get_by_role("status").filter(has_text="ended there").wait_for()
        tab.wait_for_timeout(5000)  # until bands and the heat map are drawn
        section = tab.locator("#explore").bounding_box()
        upper, lower = (tab.locator(f"#explore {part}").first.bounding_box() for part in (".explore", ".pictures"))
        picture = tab.locator("#explore .pictures > div").first.bounding_box()
        tab.screenshot(path=out / "report.png", clip=section)
        end = lower["y"] + picture["height"]
        clip = {"x": upper["x"], "y": upper["y"], "width": upper["width"], "height": end - upper["y"]}
        tab.screenshot(path=out / "report_sliders.png", clip=clip)
        browser.close()
    print(f"wrote {out / 'report.png'} and {out / 'report_sliders.png'}")


def with_line(ax, limits, factor=None):
    """Draw the line of equal errors on axes with logarithmic scales, and a band of a factor around it."""
    line = np.array(limits)
    if factor:
        ax.fill_between(line, line / factor, line * factor, color="0.9")
    ax.plot(line, line, color="black", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")


def save(figure, path):
    """Save a figure and close it."""
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"wrote {path}")


def main(arguments=None):
    """Draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="directory for the pictures")
    parser.add_argument("--report", type=Path, metavar="HTML", help="a report, of which a picture is taken")
    options = parser.parse_args(arguments)
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    if options.report:
        draw_report(options.report, out)
    draw_collection(out / "collection.png")
    draw_trust(out / "trust.png")


if __name__ == "__main__":
    main()
