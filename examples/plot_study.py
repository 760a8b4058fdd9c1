"""Where to run a simulator next
=============================

A study of the six-hump camel function: runs are asked one at a time, results have gradients, and the study stops when a
smaller value is improbable. ::

    python examples/plot_study.py [--out docs/images] [--seed 0]

A fifth of the inputs has no value, as if the simulator failed there: the study finds out where, and runs elsewhere. The
picture shows the runs on the contours of the function, and the loss of the answer against the number of runs.

.. image:: /images/study.png
   :alt: Runs of a study around the minima of a function, and the loss of its answer
"""
# sphinx_gallery_thumbnail_path = "images/study.png"

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nurf


def camel(x, y):
    """Return the six-hump camel function."""
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2


def gradient(x, y):
    """Return its partial derivatives."""
    return np.stack([8 * x - 8.4 * x**3 + 2 * x**5 + y, x + 16 * y**3 - 8 * y], axis=-1)


def simulate(point):
    """Return value and gradient, or fail in a corner."""
    x, y = point["x"], point["y"]
    if x + y > 1.2:
        raise RuntimeError("no mesh")
    return camel(x, y), gradient(x, y)


def draw(study, path):
    """Draw the runs, and the loss of the answer."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
    X, Y = np.meshgrid(np.linspace(-2, 2, 200), np.linspace(-1, 1, 200))
    left.contour(X, Y, np.log(camel(X, Y) + 1.1), 15, colors="0.75", linewidths=0.8)
    left.fill_between([0.2, 2], [1, -0.8], 1, color="0.9", label="no value")
    runs = study.runs
    for state, marker in ("done", "o"), ("failed", "x"):
        for origin, color in ("design", "C0"), ("filling", "C2"), ("goal", "C1"):
            own = runs[(runs.state == state) & (runs.origin == origin)]
            if len(own):
                style = {"marker": marker, "color": color, "label": f"{origin}, {state}"}
                left.scatter(own.x, own.y, zorder=3, clip_on=False, **style)
    left.set(xlabel="x", ylabel="y", title=f"{len(runs)} runs", xlim=(-2, 2), ylim=(-1, 1))
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize="small")
    study.plot(right)
    figure.savefig(path / "study.png", dpi=110)


def main(given=None):
    """Run the study, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(given)
    goal = nurf.goals.Minimum(0.001)
    study = nurf.Study({"x": (-2, 2), "y": (-1, 1)}, goal, max_runs=60, random_state=arguments.seed)
    study.run(simulate)
    print(study.report())
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw(study, arguments.out)


if __name__ == "__main__":
    main()
