"""
Fifty outputs: the bars of a bridge
===================================

A truss bridge has 50 bars, and each of them must hold. The forces in all bars depend on six cross sections and on where
a truck stands. One model predicts all 50 forces, with intervals. It is fitted to 40 runs of a small finite-element code
and its derivatives, by direct differentiation, which is efficient if there are more outputs than inputs, as the adjoint
is for one output and many inputs.
"""

import matplotlib.pyplot as plt
import numpy as np

from nurf import KernelFeatureRegressor

# %%
# The bridge
# ----------
# Eleven panels with crossed diagonals. Bars belong to six groups, each with a cross section of its own. There are more
# bars than equilibrium needs, so that forces depend on the cross sections.

PANELS, HEIGHT = 11, 1.2
bottom = [(float(i), 0.0) for i in range(PANELS + 1)]
top = [(float(i), HEIGHT) for i in range(1, PANELS)]
joints = np.array(bottom + top)


def upper(i):
    """Return the number of the joint at the top, above joint i of the bottom."""
    return PANELS + i


inner = range(1, PANELS - 1)
GROUPS = {
    "bottom": [(i, i + 1) for i in range(PANELS)],
    "top": [(upper(i), upper(i + 1)) for i in inner],
    "end posts": [(0, upper(1)), (PANELS, upper(PANELS - 1))],
    "verticals": [(i, upper(i)) for i in range(1, PANELS)],
    "falling": [(upper(i), i + 1) for i in inner],
    "rising": [(i, upper(i + 1)) for i in inner],
}
bars = np.array([bar for group in GROUPS.values() for bar in group])
group_of = np.repeat(np.arange(len(GROUPS)), [len(group) for group in GROUPS.values()])
NAMES = [*GROUPS, "truck"]

# %%
# Forces and their derivatives
# ----------------------------
# The stiffness matrix is ``K = sum_b s_b e_b e_b^T`` with ``s_b = A_b / L_b``, the area over the length. The
# displacements are ``u = K^-1 p`` for a load ``p``, and the force in a bar is ``s_b e_b.u``. Differentiating
# ``K u = p`` with respect to an input gives ``K u' = p' - K' u``: one more right-hand side for each input, and the
# derivatives of all 50 forces follow.

vectors = joints[bars[:, 1]] - joints[bars[:, 0]]
lengths = np.linalg.norm(vectors, axis=1)
E = np.zeros((len(bars), 2 * len(joints)))  # elongations of all bars for given displacements
for b, (first, second) in enumerate(bars):
    E[b, [2 * first, 2 * first + 1]] = -vectors[b] / lengths[b]
    E[b, [2 * second, 2 * second + 1]] = vectors[b] / lengths[b]
free = np.setdiff1d(np.arange(2 * len(joints)), [0, 1, 2 * PANELS + 1])  # one end is fixed, the other one rolls
E = E[:, free]


def load_of(truck):
    """Return the load of the bridge and of a truck, a smooth hump, and its derivative with respect to the position."""
    x = joints[: PANELS + 1, 0]
    hump = np.exp(-((x - truck) ** 2) / 2)
    load, slope = np.zeros((2, 2 * len(joints)))
    load[1 : 2 * PANELS + 2 : 2] = -0.3 - hump
    slope[1 : 2 * PANELS + 2 : 2] = -hump * (x - truck)
    return load[free], slope[free]


def bar_forces(x):
    """Return the forces (50,) and their derivatives (50, 7) for the logarithms of six areas and the position."""
    stiffness = np.exp(x[:6])[group_of] / lengths
    load, load_slope = load_of(x[6])
    K = E.T @ (stiffness[:, None] * E)
    u = np.linalg.solve(K, load)
    parts = stiffness * (group_of == np.arange(6)[:, None])  # derivatives with respect to each logarithm
    sides = np.column_stack([*(-E.T @ (part * (E @ u)) for part in parts), load_slope])
    slopes = stiffness[:, None] * (E @ np.linalg.solve(K, sides))
    slopes[:, :6] += (parts * (E @ u)).T
    return stiffness * (E @ u), slopes


LOWER, UPPER = np.array([*[-1.0] * 6, 1.0]), np.array([*[1.0] * 6, 10.0])


def samples(n, rng):
    """Return inputs (n, 7), forces (n, 50) and their derivatives (n, 50, 7)."""
    X = rng.uniform(LOWER, UPPER, (n, 7))
    runs = [bar_forces(x) for x in X]
    return X, np.array([forces for forces, _ in runs]), np.array([slopes for _, slopes in runs])


# %%
# 40 bridges for the fit, and 500 for the comparison.
rng = np.random.default_rng(0)
X, Y, G = samples(40, rng)
X_new, Y_new, _ = samples(500, rng)
print(X.shape, Y.shape, G.shape)

# %%
# One model for all forces
# ------------------------
model = KernelFeatureRegressor().fit(X, Y, gradients=G)
values = KernelFeatureRegressor().fit(X, Y)
for name, fitted in {"40 runs": values, "40 runs with derivatives": model}.items():
    error = np.linalg.norm(fitted.predict(X_new) - Y_new) / np.linalg.norm(Y_new)
    print(f"{name:26s} relative error of all forces {error:.2g}")

# %%
# A new design
# ------------
# Forces in a bridge that is not among the samples: the truth, and the error of the model. Blue bars are in tension, red
# bars in compression. The arrow shows the position of the truck.


def draw(ax, forces, largest, title, truck):
    """Draw the bridge with bars in the colour of their forces."""
    colors = plt.cm.coolwarm_r(0.5 + 0.5 * forces / largest)
    for (first, second), color in zip(bars, colors, strict=True):
        ax.plot(*joints[[first, second]].T, color=color, linewidth=4, solid_capstyle="round")
    ax.plot(*joints.T, "o", color="0.25", markersize=3)
    ax.annotate("", (truck, -0.05), (truck, -0.6), arrowprops={"arrowstyle": "<-", "linewidth": 1.5})
    ax.set(title=title, aspect="equal", ylim=(-0.7, HEIGHT + 0.2))
    ax.axis("off")
    scale = plt.cm.ScalarMappable(plt.Normalize(-largest, largest), "coolwarm_r")
    ax.figure.colorbar(scale, ax=ax, shrink=0.8, label="force")


design, truth = X_new[0], Y_new[0]
(predicted,) = model.predict(design[None])
figure, panels = plt.subplots(2, 1, figsize=(8.5, 4.2), layout="constrained")
draw(panels[0], truth, np.abs(truth).max(), "true forces", design[6])
draw(
    panels[1],
    predicted - truth,
    0.02 * np.abs(truth).max(),
    "error of the model, in colours 50 times as strong",
    design[6],
)

# %%
# A crossing
# ----------
# The truck crosses this bridge, and no bar may be overloaded. The model predicts all 50 forces at 200 positions in
# milliseconds. Three bars, with 90% intervals, and the true forces as dashed lines:
trucks = np.linspace(LOWER[6], UPPER[6], 200)
crossing = np.tile(design, (200, 1))
crossing[:, 6] = trucks
intervals = model.predict_interval(crossing, coverage=0.9)
true_forces = np.array([bar_forces(x)[0] for x in crossing])
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for group, color in (("bottom", "C0"), ("falling", "C1"), ("top", "C2")):
    b = int(np.flatnonzero(group_of == NAMES.index(group))[3])
    ax.fill_between(trucks, *intervals[:, b].T, color=color, alpha=0.3)
    ax.plot(trucks, model.predict(crossing)[:, b], color=color, label=f"{group}, bar {b}")
    ax.plot(trucks, true_forces[:, b], "k--", linewidth=1)
ax.set(xlabel="position of the truck", ylabel="force")
figure.legend(loc="outside right center", frameon=False)
plt.show()
