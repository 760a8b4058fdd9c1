"""
Values only: an epidemic and its hospitals
==========================================

Many simulators have no derivatives. This one simulates an epidemic: how full are the hospitals on their worst day, as a
function of six uncertain parameters? We fit a model to 120 runs, without gradients, compare it with a Gaussian process
of scikit-learn, and find out which of the six parameters matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nurf import Surrogate, plots

# %%
# The simulator
# -------------
# Susceptible people become exposed, infectious, and recover; some of them go to hospital. Contacts fall by a share when
# a lockdown starts. All runs are made at once, by the method of Runge and Kutta with steps of a quarter of a day.

NAMES = ["reproduction", "incubation", "infectious", "hospital share", "day of lockdown", "strength"]
LOWER = np.array([1.5, 2.0, 4.0, 0.01, 20.0, 0.2])
UPPER = np.array([3.5, 6.0, 10.0, 0.05, 60.0, 0.7])
STAY, DAYS, STEP = 12.0, 240, 0.25


def changes(t, state, X):
    """Return the derivatives of the shares of susceptible, exposed, infectious and hospitalised people."""
    number, incubation, infectious, share, day, strength = X.T
    susceptible, exposed, ill, hospital = state
    locked = 1 / (1 + np.exp(-(t - day) / 3))  # contacts fall over some days
    infections = number / infectious * (1 - strength * locked) * susceptible * ill
    onset, recovery = exposed / incubation, ill / infectious
    return np.stack([-infections, infections - onset, onset - recovery, share * recovery - hospital / STAY])


def epidemic(X):
    """Return the share of people in hospital on each day, of shape (days, n)."""
    state = np.zeros((4, len(X)))
    state[0], state[2] = 0.9995, 0.0005
    days = []
    for k in range(round(DAYS / STEP)):
        t = k * STEP
        if k % round(1 / STEP) == 0:
            days.append(state[3])
        first = changes(t, state, X)
        second = changes(t + STEP / 2, state + STEP / 2 * first, X)
        third = changes(t + STEP / 2, state + STEP / 2 * second, X)
        fourth = changes(t + STEP, state + STEP * third, X)
        state = state + STEP / 6 * (first + 2 * second + 2 * third + fourth)
    return np.array(days)


def worst_day(X):
    """Return the logarithm of the largest number of people in hospital, per 100,000."""
    return np.log(1e5 * epidemic(X).max(axis=0))


# %%
# 120 runs for the fit, and 2000 for the comparison.
rng = np.random.default_rng(0)
X, X_new = rng.uniform(LOWER, UPPER, (120, 6)), rng.uniform(LOWER, UPPER, (2000, 6))
y, y_new = worst_day(X), worst_day(X_new)

# %%
# Some of the runs:
figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
ax.plot(1e5 * epidemic(X[:12]), linewidth=1.2)
ax.set(xlabel="day", ylabel="in hospital, of 100,000", title="twelve of the 120 runs")

# %%
# The models
# ----------
# The logarithm of the largest number is fitted, without ``gradients``.
model = Surrogate(time_budget=10, random_state=0).fit(X, y)
kernel = ConstantKernel() * RBF(np.ones(6), (0.05, 1e3)) + WhiteKernel(1e-6, (1e-12, 1))
process = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True)).fit(X, y)


def error(fitted):
    """Return the root mean square error at new points, in standard deviations of the values."""
    return np.sqrt(np.mean((fitted.predict(X_new) - y_new) ** 2)) / y_new.std()


print(model.leaderboard_)
print(f"\nerror: {error(model):.3f}; Gaussian process of scikit-learn: {error(process):.3f}")
low, high = model.predict_interval(X_new, coverage=0.9).T
print(f"{np.mean((low <= y_new) & (y_new <= high)):.0%} of the new values are in their 90% intervals")

# %%
# Without gradients the two models are similar, and intervals are a little too narrow.
#
# What matters
# ------------
# The network has exact derivatives, although the data have none. The root mean square of a partial derivative, times
# the spread of the input, measures the influence of the input on the result.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
plots.sensitivity(model, X, names=NAMES, ax=left)
plots.predicted_against_true(y_new, model.predict(X_new), ax=right)
right.set(xlabel="true logarithm", ylabel="predicted logarithm")

# %%
# Slices along each input, through the mean of the samples, with 90% intervals:
axes = plots.slices(model, X, y, names=NAMES)
plt.show()
