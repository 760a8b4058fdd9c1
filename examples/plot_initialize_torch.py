"""
Initial weights from gradients, trained in torch
================================================

A perceptron in torch learns the length of a robot arm from 1000 samples with gradients. The initial weights are torch's
defaults, or the first layer is set by ``nurf.torch.initialize_``, or all layers are. To separate the effect of the
gradients from the effect of longer normals, the first layer is also sampled uniformly. Everything else is the same:
inputs are standardised, and Adam trains on values and gradients. Lines are medians over five seeds, for the samples and
the weights, and bands reach from the smallest to the largest error.

.. image:: /images/initialize_torch.png
   :alt: Errors while training, from four kinds of initial weights
"""

# sphinx_gallery_thumbnail_path = "images/initialize_torch.png"
import matplotlib.pyplot as plt
import numpy as np
import torch

import nurf

N_SEEDS, N_STEPS, EVERY = 5, 800, 40
RATE = 3e-3
ARM = nurf.problems.get("robot_arm")
torch.set_num_threads(1)

# %%
# The data
# --------
# Inputs and values are scaled to mean zero and variance one, as torch's default weights assume; gradients are scaled by
# the chain rule.


def samples(n, rng):
    """Return inputs, values and gradients."""
    jet = ARM.jet(ARM.sample(n, rng))
    return jet.X, jet.y, jet.gradients


def scaled(X, y, G, units):
    """Return inputs, values and gradients in standardised units of the training samples."""
    center, scale, mean, deviation = units
    return (X - center) / scale, (y - mean) / deviation, G * scale / deviation


# %%
# The network and its training
# ----------------------------
# Three hidden layers of 64 neurons, batches of 250 samples, and a step size that falls to zero. The loss is the sum of
# the mean squared errors of the values and of the gradients, which autograd computes.


def perceptron(d):
    """Return a network with torch's default weights."""
    hidden = [layer for size in (d, 64, 64) for layer in (torch.nn.Linear(size, 64), torch.nn.Tanh())]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(64, 1))


def train(module, data, test, rng):
    """Train, and return relative errors of the values at the test points, one for every ``EVERY`` steps."""
    X, y, G = (torch.tensor(array, dtype=torch.float32) for array in data)
    fresh, truth = torch.tensor(test[0], dtype=torch.float32), test[1]
    weight = 1 / float((G**2).sum(1).mean())
    adam = torch.optim.Adam(module.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, N_STEPS)
    errors = []
    for step in range(N_STEPS + 1):
        if step % EVERY == 0:
            with torch.no_grad():
                errors.append(float(np.sqrt(np.mean((module(fresh)[:, 0].numpy() - truth) ** 2))))
        rows = torch.tensor(rng.permutation(len(X))[:250])
        points = X[rows].requires_grad_()
        values = module(points)[:, 0]
        (slopes,) = torch.autograd.grad(values.sum(), points, create_graph=True)
        loss = ((values - y[rows]) ** 2).mean() + weight * ((slopes - G[rows]) ** 2).sum(1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        schedule.step()
    return errors


# %%
# Five seeds each
# ---------------


def errors_of(start, seed):
    """Return the errors during training from given initial weights."""
    rng = np.random.default_rng(seed)
    X, y, G = samples(1000, rng)
    units = X.mean(axis=0), X.std(axis=0), y.mean(), y.std()
    data, test = scaled(X, y, G, units), scaled(*samples(5000, rng), units)
    torch.manual_seed(seed)
    module = start(perceptron(X.shape[1]), data, seed)
    return train(module, data, test, np.random.default_rng(seed))


def initialised(**options):
    """Return a function that makes initial weights by ``initialize_``."""
    return lambda module, data, seed: nurf.torch.initialize_(module, *data, random_state=seed, **options)


STARTS = {
    "torch's default": lambda module, data, seed: module,
    "first layer uniform": initialised(density="uniform"),
    "first layer by gradients": initialised(),
    "all layers": initialised(layers="all"),
}
curves = {name: np.array([errors_of(start, seed) for seed in range(N_SEEDS)]) for name, start in STARTS.items()}

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
steps = EVERY * np.arange(N_STEPS // EVERY + 1)
for name, errors in curves.items():
    (line,) = ax.semilogy(steps, np.median(errors, axis=0), label=name)
    ax.fill_between(steps, errors.min(axis=0), errors.max(axis=0), color=line.get_color(), alpha=0.15, linewidth=0)
ax.set(xlabel="steps", ylabel="root mean square error / standard deviation", title="Robot arm, 1000 samples")
ax.legend(frameon=False)

# %%
# The errors at the end, and after a third of the steps, median over the seeds (smallest, largest):

for name, errors in curves.items():
    early, late = errors[:, len(steps) // 3], errors[:, -1]
    row = [f"{np.median(e):.2e} ({e.min():.1e}, {e.max():.1e})" for e in (early, late)]
    print(f"{name:25s} {row[0]}   {row[1]}")
