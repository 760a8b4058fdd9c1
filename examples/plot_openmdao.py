"""
A learned component with exact partials, in OpenMDAO
====================================================

A simulation is too slow for an optimiser, so that its results are learned from a few runs. OpenMDAO then needs partial
derivatives of the learned model: differences are slow and inexact, and OpenMDAO's own metamodels learn from values
only. ``nurf.export.to_openmdao`` makes a component of a model that is learned from values and derivatives and returns
the exact partials of its predictions.

The example is a truss of three bars with a published optimum: the least volume is 263.8958, with the cross sections
0.7887 and 0.4082 (Nowacki 1973).

.. image:: /images/openmdao.png
   :alt: The limit of the stress of the simulation and of the model, and three optima, two of them at the same place
"""

# sphinx_gallery_thumbnail_path = "images/openmdao.png"
import matplotlib.pyplot as plt
import numpy as np
import openmdao.api as om
from scipy.stats import qmc

import nurf

# %%
# The simulation
# --------------
# Three bars meet in one joint, on which a force of 2 acts at 45 degrees. The outer bars have the cross section ``x[0]``
# and the length 100 times the root of two, the middle one ``x[1]`` and 100. Displacements solve ``K(x) u = f``, and one
# more solve for each unknown gives the derivatives of all stresses.

LENGTH, FORCE, LIMIT = 100.0, 2.0, 2.0
DIRECTIONS = np.array([[1.0, 1.0], [0.0, np.sqrt(2)], [-1.0, 1.0]]) / np.sqrt(2)
LENGTHS = LENGTH * np.array([np.sqrt(2), 1, np.sqrt(2)])
PARTS = np.einsum("b,bi,bj->bij", 1 / LENGTHS, DIRECTIONS, DIRECTIONS)  # of the stiffness matrix, one for each bar
BY_SECTION = np.stack([PARTS[0] + PARTS[2], PARTS[1]])


def stresses(x):
    """Return the stresses of three bars (3,), and their derivatives with respect to both cross sections (3, 2)."""
    stiffness = np.tensordot(x, BY_SECTION, 1)
    u = np.linalg.solve(stiffness, FORCE * np.ones(2) / np.sqrt(2))
    u_slopes = -np.linalg.solve(stiffness, (BY_SECTION @ u).T)
    of_displacements = DIRECTIONS / LENGTHS[:, None]
    return of_displacements @ u, of_displacements @ u_slopes


# %%
# Twelve runs, and two models
# ---------------------------
# The model of nurf sees values and derivatives, OpenMDAO's Kriging the values of the same runs.

LOWER, UPPER = np.array([0.3, 0.2]), np.array([1.2, 1.0])
X = qmc.scale(qmc.Sobol(2, seed=0).random(16)[:12], LOWER, UPPER)
y, gradients = map(np.stack, zip(*map(stresses, X), strict=True))
model = nurf.KernelFeatureRegressor().fit(X, y, gradients=gradients)


def learned():
    """Return the component of nurf."""
    return nurf.export.to_openmdao(model, inputs=["side", "middle"], outputs="stress")


def kriging():
    """Return OpenMDAO's component."""
    component = om.MetaModelUnStructuredComp(default_surrogate=om.KrigingSurrogate())
    for name, column in zip(["side", "middle"], X.T, strict=True):
        component.add_input(name, 1.0, training_data=column)
    component.add_output("stress", np.ones(3), training_data=y)
    return component


# %%
# The optimisation
# ----------------
# SLSQP minimises the volume with the stress of the first bar as a constraint, by exact partials of both components.


def optimum(component):
    """Return the cross sections of the least volume."""
    problem = om.Problem(reports=False)
    volume = om.ExecComp(f"volume = {LENGTH} * (2 * 2**0.5 * side + middle)")
    problem.model.add_subsystem("size", volume, promotes=["*"])
    problem.model.add_subsystem("truss", component, promotes=["*"])
    problem.driver = om.ScipyOptimizeDriver(optimizer="SLSQP", tol=1e-8, disp=False)
    for name, low, high in zip(["side", "middle"], LOWER, UPPER, strict=True):
        problem.model.add_design_var(name, lower=low, upper=high)
    problem.model.add_objective("volume", ref=100.0)
    problem.model.add_constraint("stress", upper=LIMIT, indices=[0])
    problem.setup()
    problem.set_val("side", 1.0)
    problem.set_val("middle", 0.8)
    problem.run_driver()
    return np.array([problem.get_val(name).item() for name in ("side", "middle")])


def volume(x):
    """Return the volume of the truss."""
    return LENGTH * (2 * np.sqrt(2) * x[0] + x[1])


found = {"nurf, values and derivatives": optimum(learned()), "OpenMDAO's Kriging, values": optimum(kriging())}

# %%
# The true stress at both optima shows whether the limit of 2 holds:

print(f"{'published':28s} volume 263.8958, stress 2.0000")
for name, x in found.items():
    print(f"{name:28s} volume {volume(x):.4f}, stress {stresses(x)[0][0]:.4f}")

# %%
# Lines are designs of equal volume; the limit of the stress, of the simulation and of the model, bounds the designs
# that are allowed.

grid = np.stack(np.meshgrid(np.linspace(0.6, 1.0, 60), np.linspace(0.2, 0.8, 60)), axis=-1)
points = grid.reshape(-1, 2)
exact = np.array([stresses(x)[0][0] for x in points]).reshape(60, 60)
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
axes = grid[..., 0], grid[..., 1]
ax.contour(*axes, volume(np.moveaxis(grid, -1, 0)), levels=12, colors="0.8", linewidths=0.8)
ax.contour(*axes, exact, levels=[LIMIT], colors="black", linewidths=3, alpha=0.4)
ax.contour(*axes, model.predict(points)[:, 0].reshape(60, 60), levels=[LIMIT], colors="C0", linestyles="--")
ax.plot([], [], color="black", linewidth=3, alpha=0.4, label="stress 2, simulation")
ax.plot([], [], color="C0", linestyle="--", label="stress 2, model of nurf")
for (name, x), marker in zip(found.items(), "os", strict=True):
    ax.plot(*x, marker, markersize=9, label=f"optimum, {name}")
ax.plot(0.7887, 0.4082, "k+", markersize=14, label="published optimum")
ax.set(xlabel="cross section of the outer bars", ylabel="cross section of the middle bar")
ax.legend(frameon=False, loc="upper right")
plt.show()
