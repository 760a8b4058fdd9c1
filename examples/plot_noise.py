"""
Noisy data: option prices from few random paths
===============================================

A bank values an option by Monte Carlo: the mean payoff over random paths of the market. Differentiating each path gives
the derivatives of the price, its *greeks*. With few paths both are noisy. A model combines many noisy prices and
derivatives at different states of the market.

The option is a European call, whose price is known in closed form, so that errors can be measured.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from nurf import KernelFeatureRegressor

# %%
# Prices and derivatives of paths
# -------------------------------
# The stock ends at ``s_T = s exp((r - v^2 / 2) T + v sqrt(T) z)`` with a normal number ``z``. The call pays
# ``max(s_T - K, 0)``, and its price is the mean payoff times ``exp(-r T)``. Inputs are the spot price ``s``, the
# volatility ``v`` and the maturity ``T``. The derivative of the mean is the mean of the derivatives, path by path.

STRIKE, RATE, PATHS = 100.0, 0.02, 64
LOWER, UPPER = np.array([70.0, 0.1, 0.25]), np.array([130.0, 0.4, 1.5])


def monte_carlo(X, rng):
    """Return noisy prices (n,) and noisy gradients (n, 3)."""
    s, v, T = X.T[..., None]
    z = rng.standard_normal((len(X), PATHS))
    end = s * np.exp((RATE - v**2 / 2) * T + v * np.sqrt(T) * z)
    discount = np.exp(-RATE * T)
    payoffs = discount * np.maximum(end - STRIKE, 0)
    pays = discount * (end > STRIKE)  # the derivative of the payoff with respect to the end of the path
    by_spot = pays * end / s
    by_volatility = pays * end * (np.sqrt(T) * z - v * T)
    by_maturity = pays * end * (RATE - v**2 / 2 + v * z / (2 * np.sqrt(T))) - RATE * payoffs
    gradients = np.stack([by_spot, by_volatility, by_maturity], axis=1).mean(axis=-1)
    return payoffs.mean(axis=1), gradients


def closed_form(X):
    """Return the true price and its derivative with respect to the spot price, by the formula of Black and Scholes."""
    s, v, T = X.T
    d1 = (np.log(s / STRIKE) + (RATE + v**2 / 2) * T) / (v * np.sqrt(T))
    return s * ndtr(d1) - STRIKE * np.exp(-RATE * T) * ndtr(d1 - v * np.sqrt(T)), ndtr(d1)


# %%
# 150 states of the market for the fit, and 5000 for the comparison.
rng = np.random.default_rng(0)
X, X_new = rng.uniform(LOWER, UPPER, (150, 3)), rng.uniform(LOWER, UPPER, (5000, 3))
y, G = monte_carlo(X, rng)
price, delta = closed_form(X_new)

# %%
# Models
# ------
# One model is fitted to 150 prices, the other to 150 prices with their greeks. The noise of prices and of greeks is
# unknown, and is learned. The prices of both models are more accurate than the noisy prices, and the second model is by
# far the better one.
models = {
    "prices": KernelFeatureRegressor().fit(X, y),
    "prices and greeks": KernelFeatureRegressor().fit(X, y, gradients=G),
}


def rmse(a, b):
    """Return the root mean square difference."""
    return np.sqrt(np.mean((a - b) ** 2))


print(f"{'':18s} error of the price  of delta")
print(f"{'Monte Carlo':18s} {rmse(y, closed_form(X)[0]):18.2f} {rmse(G[:, 0], closed_form(X)[1]):9.3f}")
for name, model in models.items():
    of_price, of_delta = rmse(model.predict(X_new), price), rmse(model.predict_gradient(X_new)[:, 0], delta)
    print(f"{name:18s} {of_price:18.2f} {of_delta:9.3f}")

# %%
# Intervals are for new *measurements*, noise included: they should contain nine of ten new Monte Carlo prices.
model = models["prices and greeks"]
noisy, _ = monte_carlo(X_new, rng)
low, high = model.predict_interval(X_new, coverage=0.9).T
print(f"{np.mean((low <= noisy) & (noisy <= high)):.0%} of new noisy prices are in their 90% intervals")
print(f"estimated error {model.estimated_error_:.2f}, noise included; it is {rmse(model.predict(X_new), noisy):.2f}")

# %%
# The picture
# -----------
# Price and delta against the spot price, for a volatility of 0.25 and one year. Dots are samples of similar volatility
# and maturity.
spots = np.linspace(LOWER[0], UPPER[0], 200)
line = np.column_stack([spots, np.full(200, 0.25), np.full(200, 1.0)])
near = (np.abs(X[:, 1] - 0.25) < 0.06) & (np.abs(X[:, 2] - 1.0) < 0.3)
figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, column, title in ((panels[0], y, "price"), (panels[1], G[:, 0], "delta, the derivative by the spot price")):
    ax.plot(X[near, 0], column[near], "o", color="0.6", markersize=4, label=f"means of {PATHS} paths")
    ax.set(title=title, xlabel="spot price")
for name, fitted in models.items():
    panels[0].plot(spots, fitted.predict(line), label=f"model of {name}")
    panels[1].plot(spots, fitted.predict_gradient(line)[:, 0])
panels[0].fill_between(
    spots, *model.predict_interval(line, coverage=0.9).T, color="C1", alpha=0.2, label="90% interval"
)
for ax, truth in zip(panels, closed_form(line), strict=True):
    ax.plot(spots, truth, "k--", linewidth=1, label="closed form")
panels[0].legend()
plt.show()
