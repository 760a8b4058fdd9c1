"""
Forces: the path of a reaction over a potential
===============================================

Quantum chemistry computes the energy of an arrangement of atoms, and at little extra cost the forces on them, which are
the negative gradient. A reaction goes from one minimum of the energy over a saddle to another; the height of the saddle
is the barrier. The search for the saddle needs thousands of force evaluations. With a model that learns from energies
and forces, twenty are enough.

The energy is the Müller-Brown potential, a standard test in two dimensions, which can be drawn completely.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from nurf import KernelFeatureRegressor

# %%
# Energy and forces
# -----------------
# A sum of four Gaussians, ``A exp(a (x - x0)^2 + b (x - x0) (y - y0) + c (y - y0)^2)``.

HEIGHTS = np.array([-200.0, -100.0, -170.0, 15.0])
FORMS = np.array([[-1.0, 0.0, -10.0], [-1.0, 0.0, -10.0], [-6.5, 11.0, -6.5], [0.7, 0.6, 0.7]])
CENTRES = np.array([[1.0, 0.0], [0.0, 0.5], [-0.5, 1.5], [-1.0, 1.0]])


def energy_and_forces(X):
    """Return energies (n,) and forces (n, 2) at the points."""
    dx, dy = np.moveaxis(X[:, None, :] - CENTRES, -1, 0)
    a, b, c = FORMS.T
    terms = HEIGHTS * np.exp(a * dx**2 + b * dx * dy + c * dy**2)
    slopes = np.stack([2 * a * dx + b * dy, b * dx + 2 * c * dy], axis=-1)
    return terms.sum(axis=1), -np.einsum("nt,ntd->nd", terms, slopes)


# %%
# The path
# --------
# The path is a chain of points between two minima. Each point is moved by the force orthogonal to the path, and then
# all points are moved along the path so that they stay evenly spaced (the string method). This takes thousands of
# gradients, which come from the model.


def relax(path, gradient, n_steps=400, step=2e-4, largest=0.03):
    """Return the path after a number of steps against the gradients across it, with evenly spaced points."""
    for _ in range(n_steps):
        tangents = path[2:] - path[:-2]
        tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
        slopes = gradient(path[1:-1])
        across = slopes - np.sum(slopes * tangents, axis=1, keepdims=True) * tangents
        path = path.copy()
        path[1:-1] -= np.clip(step * across, -largest, largest)
        lengths = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
        even = np.linspace(0, lengths[-1], len(path))
        path = np.column_stack([np.interp(even, lengths, coordinate) for coordinate in path.T])
    return path


def find_minimum(start):
    """Return the minimum of the energy near a point."""

    def value_and_gradient(x):
        (value,), (force,) = energy_and_forces(x[None])
        return value, -force

    return minimize(value_and_gradient, start, jac=True).x


reactant, product = find_minimum([-0.5, 1.5]), find_minimum([0.6, 0.0])
straight = np.linspace(reactant, product, 25)

# %%
# Learning on the way
# -------------------
# Start with the two minima and three points between them. In each round, fit the energy and the forces, relax the path
# on the model, and evaluate the true energy at three points of the path where the standard deviation of the model is
# largest. The gradient of the energy is *minus* the force.

X = straight[[0, 6, 12, 18, 24]]
rounds = []
for _ in range(6):
    energies, forces = energy_and_forces(X)
    model = KernelFeatureRegressor().fit(X, energies, gradients=-forces)
    path = relax(straight, model.function().gradient)
    rounds.append((X, model, path))
    _, doubt = model.predict(path, return_std=True)
    doubt[[0, -1]] = 0
    for _ in range(3):
        worst = int(np.argmax(doubt))
        X = np.vstack([X, path[worst]])
        doubt[max(0, worst - 3) : worst + 4] = 0  # choose the next point elsewhere

true_path = relax(straight, lambda points: -energy_and_forces(points)[1], n_steps=2000)
barrier = energy_and_forces(true_path)[0].max() - energy_and_forces(true_path[:1])[0][0]
print(f"true barrier {barrier:.1f}")
for X, model, path in rounds:
    heights = model.predict(path)
    print(f"{len(X):3d} evaluations: barrier {heights.max() - heights[0]:6.1f}")

# %%
# The picture
# -----------
# The energy of the model in colour, the true energy as grey lines, the evaluated points, the path on the model in red,
# and the true path dashed. Far from the path the model is wrong, which does not matter here.


def draw(ax, X, model, path):
    """Draw the true energy, the energy of the model, and the path on the model."""
    x, y = np.linspace(-1.6, 1.2, 120), np.linspace(-0.4, 2.0, 120)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    levels = np.arange(-140, 60, 20)
    ax.contour(x, y, energy_and_forces(grid)[0].reshape(120, 120), levels=levels, colors="0.75", linewidths=0.8)
    ax.contourf(x, y, model.predict(grid).reshape(120, 120), levels=levels, cmap="YlGnBu_r", alpha=0.6, extend="both")
    ax.plot(*true_path.T, color="black", linewidth=1, linestyle="--")
    ax.plot(*path.T, color="C3", linewidth=2)
    ax.plot(*X.T, "o", color="black", markersize=4)
    ax.set(title=f"{len(X)} evaluations", xlim=(-1.6, 1.2), ylim=(-0.4, 2.0), xticks=[], yticks=[])


figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
for ax, state in zip(panels, rounds[::2], strict=True):
    draw(ax, *state)

# %%
# The energy along the last path, with 90% intervals, which are too narrow to be seen.
X, model, path = rounds[-1]
low, high = model.predict_interval(path, coverage=0.9).T
figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
position = np.linspace(0, 1, len(path))
ax.fill_between(position, low, high, alpha=0.3)
ax.plot(position, model.predict(path), label="model")
ax.plot(position, energy_and_forces(path)[0], "k.", label="true energy")
ax.set(xlabel="position along the path", ylabel="energy", title="over two saddles")
ax.legend()
plt.show()
