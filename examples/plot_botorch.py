"""
Bayesian optimisation with derivatives, in BoTorch
==================================================

A function of four inputs is expensive, and its gradient is available. BoTorch searches for its minimum: it fits a model
to all evaluations so far, finds the point of the largest expected improvement, and evaluates the function there. The
model is BoTorch's own Gaussian process, which uses values only, or ``nurf.KernelFeatureRegressor`` without and with
gradients, exported by ``nurf.export.to_botorch``. Everything else is the same.

.. image:: /images/botorch.png
   :alt: Smallest value so far against the number of evaluations, for three models
"""

# sphinx_gallery_thumbnail_path = "images/botorch.png"
import warnings

import matplotlib.pyplot as plt
import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings of torch about the dependencies of BoTorch
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

import nurf

N_SEEDS, N_FIRST, N_STEPS = 3, 8, 10
LOWER, UPPER = np.full(4, -2.0), np.full(4, 2.0)
BOUNDS = torch.tensor(np.array([LOWER, UPPER]))
torch.set_num_threads(1)

# %%
# The function
# ------------
# Rosenbrock's valley in four dimensions, on a logarithmic scale: its minimum is 0, at (1, 1, 1, 1).


def valley(X):
    """Return values at points (n, 4), and gradients."""
    steps, rest = X[:, 1:] - X[:, :-1] ** 2, 1 - X[:, :-1]
    total = np.sum(10 * steps**2 + rest**2, axis=1)
    by_x = np.zeros_like(X)
    by_x[:, :-1] = -40 * steps * X[:, :-1] - 2 * rest
    by_x[:, 1:] += 20 * steps
    return np.log1p(total), by_x / (1 + total)[:, None]


# %%
# The models
# ----------
# BoTorch maximises, so that all models are fitted to the negative function.


def gaussian_process(X, y, G):
    """Return BoTorch's default model."""
    model = SingleTaskGP(
        torch.tensor(X),
        torch.tensor(-y[:, None]),
        input_transform=Normalize(X.shape[1], bounds=BOUNDS),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def nurf_values(X, y, G):
    """Return an infinitely wide network that is fitted to values."""
    return nurf.export.to_botorch(nurf.KernelFeatureRegressor("matern", metric="scales").fit(X, -y))


def nurf_gradients(X, y, G):
    """Return an infinitely wide network that is fitted to values and gradients."""
    return nurf.export.to_botorch(nurf.KernelFeatureRegressor("matern", metric="scales").fit(X, -y, gradients=-G))


# %%
# The search
# ----------


def smallest(make_model, seed):
    """Return the smallest value so far, after the initial evaluations and after each further one."""
    X = np.random.default_rng(seed).uniform(LOWER, UPPER, (N_FIRST, len(LOWER)))
    torch.manual_seed(seed)
    for _ in range(N_STEPS):
        y, G = valley(X)
        acquisition = LogExpectedImprovement(make_model(X, y, G), best_f=-y.min())
        found, _ = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=3, raw_samples=32)
        X = np.concatenate([X, found.numpy()])
    return np.minimum.accumulate(valley(X)[0])[N_FIRST - 1 :]


MODELS = {
    "BoTorch's process, values": gaussian_process,
    "nurf, values": nurf_values,
    "nurf, values and gradients": nurf_gradients,
}
curves = {name: np.array([smallest(make, seed) for seed in range(N_SEEDS)]) for name, make in MODELS.items()}

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
counts = N_FIRST + np.arange(N_STEPS + 1)
for name, values in curves.items():
    (line,) = ax.semilogy(counts, np.median(values, axis=0), label=name)
    ax.fill_between(counts, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.15, linewidth=0)
ax.set(xlabel="evaluations", ylabel="smallest value so far", title="Rosenbrock's valley, four inputs")
ax.yaxis.set_major_formatter("{x:g}")
ax.yaxis.set_minor_formatter("{x:g}")
figure.legend(loc="outside lower center", ncols=3, frameon=False)

# %%
# The smallest value at the end, median over the seeds (smallest, largest):

for name, values in curves.items():
    last = values[:, -1]
    print(f"{name:27s} {np.median(last):.2e} ({last.min():.1e}, {last.max():.1e})")
