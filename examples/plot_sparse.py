"""A trained network compared with a sampled network
=================================================

The figure and the table of "Training instead of sampling". ::

    python examples/plot_sparse.py [--out docs/images]

The checkmark function on a noisy 31 x 31 grid: the hyperplanes that sparse training finds, the dual certificate, which
shows that no further neuron would help, the path over alpha, and the errors compared with sampled networks.

.. image:: /images/sparse.png
   :alt: Trained hyperplanes, certificate and path
"""
# sphinx_gallery_thumbnail_path = "images/sparse.png"

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from nurf import Jet, RandomFeatureRegressor, SparseFeatureRegressor, plots, polish, problems

WIDTH = 1 / 40
CHECKMARK = problems.get("checkmark")


def relative_error(model):
    """Return the relative error on new points without noise."""
    X = CHECKMARK.sample(5000, np.random.default_rng(1))
    truth = CHECKMARK.value(X)
    return np.linalg.norm(model.predict(X) - truth) / np.linalg.norm(truth)


def timed(name, model, data):
    """Fit a model; print its neurons, error and seconds."""
    start = time.perf_counter()
    model.fit(data.X, data.y, gradients=data.gradients)
    show(name, model, time.perf_counter() - start)
    return model


def show(name, model, seconds):
    """Print one row of the table."""
    print(f"| {name} | {len(model.hyperplanes_)} | {relative_error(model):.1e} | {seconds:.2f} |", flush=True)


def draw(path, model, data):
    """Draw the trained hyperplanes, the certificate and the path."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    plots.trained_hyperplanes(model.network_, domain=CHECKMARK.domain, function=CHECKMARK.value, ax=axes[0])
    axes[0].set_title(f"{model.n_neurons_} trained hyperplanes")
    scaled = model.scaling_(Jet(data.X, data.y))
    plots.certificate(model.fit_.network, scaled, model.alpha_, ax=axes[1])
    figure.colorbar(axes[1].images[-1], ax=axes[1], label=r"certificate $|p| / \alpha$")
    axes[1].set_title("certificate: at most 1 everywhere")
    plots.sparse_path(model.path_, alpha=model.alpha_, ax=axes[2])
    axes[2].set_title("path, with numbers of neurons")
    figure.get_layout_engine().set(wspace=0.06)  # so that the label of the last panel stays clear of the colour bar
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments=None):
    """Draw the picture and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="directory for the picture")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    data = CHECKMARK.jet(CHECKMARK.grid(31), noise=0.02, rng=np.random.default_rng(0))
    print("| model | neurons | relative error | seconds |\n|---|---|---|---|")
    common = {"scaling": None, "random_state": 0}
    at_once = {"width": WIDTH, "gradient_weight": 0.0, "growth": None, **common}
    for density in ("uniform", "nonlocal"):
        timed(f"sampled, {density}", RandomFeatureRegressor(80, density=density, **at_once), data)
    sampled = timed("sampled, nonlocal", RandomFeatureRegressor(250, density="nonlocal", **at_once), data)
    start = time.perf_counter()
    polished = polish(sampled, data, n_steps=5)
    show("the last one, polished", polished, time.perf_counter() - start)
    sparse = timed("sparse", SparseFeatureRegressor(width=WIDTH, **common), data)
    timed("sparse, learned widths", SparseFeatureRegressor(width="learned", **common), data)
    draw(options.out / "sparse.png", sparse, data)


if __name__ == "__main__":
    main()
