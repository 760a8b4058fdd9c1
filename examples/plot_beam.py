"""
A beam: from 60 runs to a decision
==================================

A tapered beam sticks out of a wall and carries a weight and snow. Three questions are asked before it is built: which
of its uncertain properties matter, how probable it is that it sags by more than 10 mm, and which beam is the lightest
that sags more than that at most once in a thousand cases. We answer all of them from 60 runs of a finite-element
program with its adjoint, and see how sure the answers are.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import gamma, gumbel_r, lognorm, norm, qmc

from nurf import Surrogate
from nurf.decisions import failure, minimize, propagate, sensitivity
from nurf.plots import predicted_against_true

# %%
# The program
# -----------
# Euler-Bernoulli elements of equal length, each with the bending stiffness at its middle. The stiffness matrix is a sum
# of one matrix for all elements times these, and the sag at the end has one adjoint solution, which gives all
# derivatives: with ``K u = f`` and ``K p = e``, the derivative of ``e.u`` is ``p.(df - dK u)``.

SPAN, WIDTH, DENSITY, ELEMENTS = 3.0, 0.1, 7850.0, 20
NAMES = ["root", "tip", "modulus", "weight", "snow"]  # heights in m, GPa, kN, kN/m
LOWER, UPPER = np.array([0.12, 0.06, 180, 2, 0]), np.array([0.3, 0.2, 240, 16, 6])

step = SPAN / ELEMENTS
places = (np.arange(ELEMENTS) + 0.5) / ELEMENTS
bending = np.array([[6, 3, -6, 3], [3, 2, -3, 1], [-6, -3, 6, -3], [3, 1, -3, 2]]) * 2 / step**3
units = np.diag([1, step, 1, step])
bending = units @ bending @ units
freedoms = 2 * np.arange(ELEMENTS)[:, None] + np.arange(4)  # deflection and slope at both ends of each element
of_snow = np.tile(step / 2 * np.array([1, step / 6, 1, -step / 6]), (ELEMENTS, 1))
uniform_load = np.bincount(freedoms.ravel(), weights=of_snow.ravel())


def run(x):
    """Return sag in mm and mass in kg of one beam, and their gradients."""
    root, tip, modulus, weight, snow = x
    heights = root + (tip - root) * places
    stiffness = modulus * 1e9 * WIDTH * heights**3 / 12
    K = np.zeros((2 * ELEMENTS + 2, 2 * ELEMENTS + 2))
    np.add.at(K, (freedoms[:, :, None], freedoms[:, None, :]), stiffness[:, None, None] * bending)
    end = np.zeros(2 * ELEMENTS + 2)
    end[-2] = 1.0
    f = 1e3 * (weight * end + snow * uniform_load)
    u, p = np.zeros_like(f), np.zeros_like(f)
    u[2:], p[2:] = np.linalg.solve(K[2:, 2:], np.stack([f, end], axis=1)[2:]).T  # the wall holds the first two
    energy = np.einsum("ei,ij,ej->e", p[freedoms], bending, u[freedoms])  # p.dK u for each element
    by_height = -energy * 3 * stiffness / heights
    sag = [by_height @ (1 - places), by_height @ places, -energy @ stiffness / modulus, 1e3 * p @ end]
    sag.append(1e3 * p @ uniform_load)
    per_height = DENSITY * WIDTH * SPAN / 2
    values = 1e3 * u[-2], per_height * (root + tip)
    return values, np.array([1e3 * np.array(sag), [per_height, per_height, 0, 0, 0]])


# %%
# The sag of a beam of constant height is known: ``P L^3 / (3 E I) + q L^4 / (8 E I)``. Derivatives agree with
# differences.
x = np.array([0.2, 0.2, 210, 8, 2])
EI = 210e9 * WIDTH * 0.2**3 / 12
print("sag:", run(x)[0][0], "mm, known:", 1e6 * (8 * SPAN**3 / 3 + 2 * SPAN**4 / 8) / EI, "mm")
moves = 1e-5 * np.diag(x)
differences = [(run(x + move)[0][0] - run(x - move)[0][0]) / (2 * move.sum()) for move in moves]
print("largest error of derivatives:", np.abs(run(x)[1][0] / differences - 1).max())

# %%
# 60 runs, and the model
# ----------------------
# The runs fill the box of designs, materials and loads that we want to ask about. Sag and mass are two outputs of one
# model. (The mass needs no model, but as an output it can be minimised.)
X = qmc.scale(qmc.Sobol(5, seed=0).random(64)[:60], LOWER, UPPER)
runs = [run(x) for x in X]
y, G = np.array([values for values, _ in runs]), np.array([gradients for _, gradients in runs])
frame = pd.DataFrame(X, columns=NAMES)
model = Surrogate(time_budget=8, random_state=0).fit(frame, y, gradients=G)
print(model.leaderboard_)
print("estimated errors:", model.estimated_error_, "of", y.std(axis=0))

fresh = pd.DataFrame(qmc.scale(qmc.Sobol(5, seed=1).random(256), LOWER, UPPER), columns=NAMES)
true = np.array([run(x)[0] for x in fresh.to_numpy()])
figure, ax = plt.subplots(figsize=(4.2, 4.2), layout="constrained")
predicted_against_true(true[:, 0], model.predict(fresh)[:, 0], ax=ax)
ax.set(xlabel="true sag, mm", ylabel="predicted sag, mm", title="256 beams that were not run before")

# %%
# Which inputs matter
# -------------------
# A first design is 0.2 m high at the wall and 0.1 m at the end. Numbers fix inputs, and distributions make them random:
# the strongest weight of a year, the snow, and the scatter of the modulus. (The sag is the first output.)
RANDOM = {"modulus": lognorm(0.04, scale=208), "weight": gumbel_r(5, 0.7), "snow": gamma(2.5, scale=0.4)}


def question(root, tip):
    """Return the inputs of a design."""
    return {"root": root, "tip": tip, **RANDOM}


design = question(0.2, 0.1)
indices = sensitivity(model, design, random_state=0)
print("names:", indices.names)
print("first-order indices of the sag:", np.round(indices.first[:, 0], 3))
print("intervals:", np.round(indices.first[:, 0].interval, 3).tolist())

figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
indices.plot(panels[0])
panels[0].set_title("which inputs matter")
spread = propagate(model, design, random_state=0)
spread.plot(panels[1])
panels[1].set(title="how the sag is distributed", xlabel="sag, mm")

# %%
# How probable is too much
# ------------------------
# The limit has an entry for each output: 10 mm of sag, none for the mass. The answer is checked by 20,000 runs of the
# program itself, which cost 300 times as much as all of the above.
LIMIT = 10.0
risk = failure(model, design, above=[LIMIT, np.nan], random_state=0)
print(risk.report())

rng = np.random.default_rng(0)
loads = np.stack([marginal.rvs(20_000, random_state=rng) for marginal in RANDOM.values()], axis=1)
sags = np.array([run([0.2, 0.1, *row])[0][0] for row in loads])
share = np.mean(sags > LIMIT)
print(f"the program: {share:.4f}, standard error {np.sqrt(share / len(sags)):.4f}")

# %%
# The lightest beam
# -----------------
# The design should sag too much once in a thousand cases, which is a reliability index of 3.09. To first order, the
# most probable loads at which such a design reaches the limit are 3.09 standard deviations away, in the direction of
# the design point above. The limit is curved, so that the reliability index of a design differs from the distance of
# its design point; we correct by the difference for the first design.
away = norm.isf(1e-3) + risk.distances[0] - float(risk.reliability)
scores = np.array([norm.isf(RANDOM[name].sf(x)) for name, x in zip(risk.names, risk.design_points[0], strict=True)])
scores *= away / np.linalg.norm(scores)
worst = {name: float(RANDOM[name].isf(norm.sf(score))) for name, score in zip(risk.names, scores, strict=True)}
print("design loads:", {name: round(value, 2) for name, value in worst.items()})

# %%
# The mass is the second output. Its minimum under these loads keeps the sag below the limit.
bounds = {"root": (0.12, 0.3), "tip": (0.06, 0.2), **worst}
lightest = minimize(model, bounds, output=1, constraints={0: (None, LIMIT)}, random_state=0)
print(lightest.report())

# %%
# Is it right? The probability is asked again at the new design, and from the program.
root, tip = lightest.x
again = failure(model, question(root, tip), above=[LIMIT, np.nan], random_state=0)
sags = np.array([run([root, tip, *row])[0][0] for row in loads])
print("first design:", run([0.2, 0.1, 210, 5, 1])[0][1], "kg, probability", risk.probability)
print("lightest:", run([root, tip, 210, 5, 1])[0][1], "kg, probability", again.probability)
print(f"the program at the lightest: {np.mean(sags > LIMIT):.4f}, standard error {np.sqrt(1e-3 / len(sags)):.4f}")

# %%
# How much margin is there? The probability over the height at the wall, with 90% intervals of the model and without a
# further run.
roots = np.linspace(root - 0.03, root + 0.02, 8)
chances = [
    failure(model, question(a, tip), above=[LIMIT, np.nan], n_points=4096, n_draws=50, random_state=0).probability
    for a in roots
]
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.fill_between(roots, *np.transpose([chance.interval for chance in chances]), alpha=0.3, label="90% interval")
ax.semilogy(roots, np.array(chances, float), label="model")
ax.plot(root, np.mean(sags > LIMIT), "k*", markersize=11, label="lightest beam, 20,000 runs")
ax.axhline(1e-3, color="0.5", linestyle=":")
ax.set(xlabel="height at the wall, m", ylabel="probability", title=f"more than {LIMIT:g} mm")
ax.legend()
plt.show()
