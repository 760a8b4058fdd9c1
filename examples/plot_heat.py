"""
Heat conduction: finite elements and their adjoint
==================================================

A plate of nine tiles is heated by a chip and cooled at its left edge. How warm is a sensor elsewhere on the plate, as a
function of the nine conductivities? A finite-element solver computes the temperature, and its adjoint gives all nine
derivatives at the cost of one more solve. We run both 40 times and fit a fast model.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu

from nurf import KernelFeatureRegressor, plots

# %%
# The solver
# ----------
# The equation is ``-div(k grad u) = q`` in the unit square, ``u = 0`` at the left edge, and no flux through the others.
# Linear finite elements on triangles give ``K(k) u = f``, where ``K(k) = sum_t k_t K_t`` is a sum over the tiles.

N, TILES = 30, 3
nodes = np.stack(np.meshgrid(np.linspace(0, 1, N + 1), np.linspace(0, 1, N + 1), indexing="ij"), axis=-1).reshape(-1, 2)
corner = (np.arange(N)[:, None] * (N + 1) + np.arange(N)).ravel()  # the lower left node of each cell
triangles = np.concatenate(
    [corner[:, None] + [0, N + 1, N + 2], corner[:, None] + [0, N + 2, 1]]
)  # two in each cell, as three nodes
centres = nodes[triangles].mean(axis=1)
tile_of = (centres * TILES).astype(int) @ [TILES, 1]
area = 0.5 / N**2


def element_matrices():
    """Return the stiffness matrices of all triangles for the conductivity 1, of shape (T, 3, 3)."""
    x = nodes[triangles]
    edges = np.roll(x, -2, axis=1) - np.roll(x, -1, axis=1)  # opposite to each node
    return np.einsum("tid,tjd->tij", edges, edges) / (4 * area)


def assemble(elements):
    """Return the sparse matrix of some triangles at the nodes where the temperature is unknown."""
    rows, columns = np.repeat(triangles, 3, axis=1).ravel(), np.tile(triangles, (1, 3)).ravel()
    matrix = coo_matrix((elements.ravel(), (rows, columns)), shape=(len(nodes), len(nodes))).tocsc()
    return matrix[free][:, free]


free = np.flatnonzero(nodes[:, 0] > 0)
ELEMENTS = element_matrices()
TILE_MATRICES = [assemble(ELEMENTS * (tile_of == t)[:, None, None]) for t in range(TILES**2)]


def disc(centre, radius):
    """Return the integrals of all unknown hat functions over a disc."""
    inside = np.linalg.norm(centres - centre, axis=1) < radius
    return np.bincount(triangles[inside].ravel(), minlength=len(nodes))[free] * area / 3


CHIP, SENSOR = ((0.75, 0.25), 0.16), ((0.55, 0.8), 0.08)  # centres and radii
heat = 10 * disc(*CHIP)
measure = disc(*SENSOR) / disc(*SENSOR).sum()  # the mean temperature of the sensor is measure.u

# %%
# The adjoint
# -----------
# The output is ``y = m.u`` with ``K u = f``. With the adjoint ``l``, the solution of ``K l = m``, its derivatives are
# ``dy/dk_t = -l.(K_t u)``: all derivatives from one more solve with the same factorisation. Conductivities span a
# decade, so that the inputs are their logarithms, and ``dy / dlog k_t = k_t dy/dk_t``.


def sensor_temperature(log_k):
    """Return the temperature of the sensor, its gradient with respect to the nine inputs, and the fields u and l."""
    k = np.exp(log_k)
    factors = splu(sum(k[t] * TILE_MATRICES[t] for t in range(len(k))))
    u, adjoint = factors.solve(heat), factors.solve(measure)
    gradient = np.array([-k[t] * (adjoint @ (TILE_MATRICES[t] @ u)) for t in range(len(k))])
    return measure @ u, gradient, u, adjoint


def samples(n, rng):
    """Return logarithms of conductivities from 0.3 to 3, temperatures and gradients."""
    X = rng.uniform(np.log(0.3), np.log(3), (n, TILES**2))
    runs = [sensor_temperature(x)[:2] for x in X]
    return X, np.array([y for y, _ in runs]), np.array([gradient for _, gradient in runs])


# %%
# 40 samples for the fit, and 400 for the comparison.
rng = np.random.default_rng(0)
X, y, G = samples(40, rng)
X_new, y_new, _ = samples(400, rng)

# %%
# A finite difference agrees with the adjoint:
step = 1e-5 * np.eye(TILES**2)[4]
print((sensor_temperature(X[0] + step)[0] - sensor_temperature(X[0] - step)[0]) / 2e-5, G[0, 4])

# %%
# One run: the temperature, and the adjoint, which shows where more heat would warm the sensor most. The chip is a solid
# circle, the sensor a dashed circle.


def draw_places(ax, color):
    """Draw the chip and the sensor."""
    ax.add_patch(plt.Circle(*CHIP, fill=False, color=color, linewidth=1.5))
    ax.add_patch(plt.Circle(*SENSOR, fill=False, color=color, linewidth=1.5, linestyle="--"))
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))


_, _, u, adjoint = sensor_temperature(X[0])
figure, panels = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for ax, title, field, cmap in (
    (panels[0], "conductivity", None, "viridis"),
    (panels[1], "temperature", u, "inferno"),
    (panels[2], "adjoint", adjoint, "cividis"),
):
    if field is None:
        image = ax.tripcolor(*nodes.T, triangles, np.exp(X[0])[tile_of], cmap=cmap)
    else:
        image = ax.tripcolor(*nodes.T, triangles, np.bincount(free, field, len(nodes)), cmap=cmap, shading="gouraud")
    draw_places(ax, "white")
    ax.set(title=title)
    figure.colorbar(image, ax=ax, shrink=0.85)

# %%
# The model
# ---------
# Models with and without the adjoint, from the same 40 runs, are compared at 400 new points. Scales and noise are
# learned; no parameters need tuning.

values = KernelFeatureRegressor().fit(X, y)
both = KernelFeatureRegressor().fit(X, y, gradients=G)
figure, panels = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained", sharex=True, sharey=True)
for ax, model, title in ((panels[0], values, "40 values"), (panels[1], both, "40 values and gradients")):
    plots.predicted_against_true(y_new, model.predict(X_new), ax=ax)
    ax.set(title=title, xlabel="true temperature", ylabel="")
panels[0].set_ylabel("predicted temperature")

# %%
# Which tiles matter? The tiles at the cold edge, which all heat must cross. The tiles on the right hardly matter.
relevance = both.relevance_.reshape(TILES, TILES)
figure, ax = plt.subplots(figsize=(4.2, 3.6), layout="constrained")
image = ax.imshow(relevance.T, origin="lower", extent=(0, 1, 0, 1), cmap="Blues", vmin=0)
draw_places(ax, "black")
ax.set(title="relevance of each tile")
figure.colorbar(image, ax=ax)
plt.show()
