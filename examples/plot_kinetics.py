"""
Chemical kinetics: sensitivities, and rates over many decades
=============================================================

Robertson's reaction is a classic of stiff equations: three species, and three rate constants that span thirteen
decades. How much product is there after 40 seconds? We integrate the equations together with their sensitivities, take
logarithms of the rates, and fit a model of the yield. We also make a common mistake with gradients, which is detected.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from nurf import Surrogate, check_derivatives, plots

# %%
# The equations and their sensitivities
# -------------------------------------
# A turns into B, slowly. Two B give one C and a B, fast; and B gives A back if it meets C:
#
# .. code-block:: none
#
#     a' = -k1 a           + k3 b c
#     b' =  k1 a - k2 b^2  - k3 b c
#     c' =         k2 b^2
#
# The sensitivities ``S = d(a, b, c) / d(log k1, log k2, log k3)`` satisfy the linear equation ``S' = J S + F`` with the
# Jacobians ``J`` and ``F`` of the right-hand side with respect to the state and to the logarithms. They are integrated
# with the state, as nine more unknowns. Derivatives with respect to logarithms are all of similar size; derivatives
# with respect to the rates differ by many decades.

SECONDS = 40.0
LOWER, UPPER = np.log([1e-4, 1e5, 1e2]), np.log([1e0, 1e9, 1e6])
NAMES = ["log k1", "log k2", "log k3"]


def reaction(state, k):
    """Return the rates of change, and their derivatives with respect to the state and the logarithms of k."""
    a, b, c = state
    flows = k * [a, b * b, b * c]
    by_state = k[:, None] * [[1, 0, 0], [0, 2 * b, 0], [0, c, b]]
    stoichiometry = np.array([[-1, 0, 1], [1, -1, -1], [0, 1, 0]])
    return stoichiometry @ flows, stoichiometry @ by_state, stoichiometry * flows


def with_sensitivities(t, z, k):
    """Return the derivative of the state and of its sensitivities, in one vector of length 12."""
    change, by_state, by_rates = reaction(z[:3], k)
    return np.concatenate([change, (by_state @ z[3:].reshape(3, 3) + by_rates).ravel()])


def product(log_k):
    """Return the amount of C after 40 seconds, and its gradient with respect to the logarithms of the rates."""
    start = np.concatenate([[1.0, 0.0, 0.0], np.zeros(9)])
    solution = solve_ivp(
        with_sensitivities, (0, SECONDS), start, method="LSODA", args=(np.exp(log_k),), rtol=1e-8, atol=1e-11
    )
    return solution.y[2, -1], solution.y[9:12, -1]


def samples(n, rng):
    """Return logarithms of rates, amounts and gradients."""
    X = rng.uniform(LOWER, UPPER, (n, 3))
    runs = [product(x) for x in X]
    return X, np.array([y for y, _ in runs]), np.array([gradient for _, gradient in runs])


# %%
# 30 samples for the fit, and 150 for the comparison.
rng = np.random.default_rng(0)
X, y, G = samples(30, rng)
X_new, y_new, _ = samples(150, rng)

# %%
# The reaction with Robertson's rates, and with a first step that is ten times as fast.
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for k1, style in ((0.04, "-"), (0.4, "--")):
    k = np.array([k1, 3e7, 1e4])
    times = np.logspace(-6, np.log10(SECONDS), 300)
    run = solve_ivp(
        lambda t, z, k=k: reaction(z, k)[0],
        (0, SECONDS),
        [1, 0, 0],
        method="LSODA",
        t_eval=times,
        rtol=1e-8,
        atol=1e-11,
    )
    for name, amount, color in zip("ABC", run.y * [[1], [1e4], [1]], ("C0", "C1", "C2"), strict=True):
        label = f"{name}{' x 10000' * (name == 'B')}, k1 = {k1:g}"
        ax.semilogx(times, amount, style, color=color, label=label)
ax.set(xlabel="seconds", ylabel="amount", title="Robertson's reaction")
figure.legend(loc="outside right center", frameon=False)

# %%
# A mistake that is found
# -----------------------
# Most codes return derivatives with respect to the rates, not to their logarithms. If they are passed with logarithms
# as inputs, they contradict the values. ``fit`` detects the mistake and warns, and so does ``check_derivatives``
# without a fit:
by_rates = G / np.exp(X)
print(check_derivatives(X, y, by_rates).message)
print(check_derivatives(X, y, G).message)

# %%
# The chain rule is ``dy / dlog k = k dy/dk``.
#
# The model
# ---------
# ``Surrogate`` chooses an infinitely wide network for 30 samples. The gradients show that the yield depends on two
# combinations of the three logarithms: B is in equilibrium, which the rates ``k2`` and ``k3`` determine together.
model = Surrogate(time_budget=15, random_state=0).fit(X, y, gradients=G)
values = Surrogate(time_budget=15, random_state=0).fit(X, y)
print(model.leaderboard_)

figure, panels = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained", sharex=True, sharey=True)
for ax, fitted, title in ((panels[0], values, "30 yields"), (panels[1], model, "30 yields with sensitivities")):
    plots.predicted_against_true(y_new, fitted.predict(X_new), ax=ax)
    ax.set(title=title, xlabel="true yield", ylabel="")
panels[0].set_ylabel("predicted yield")

# %%
# Slices through the mean of the samples: the yield rises with the first two rates and falls with the third. Bands are
# 90% intervals, if they are wide enough to be visible.
axes = plots.slices(model, X, y, names=NAMES)
axes[0].set_ylabel("yield after 40 seconds")
plt.show()
