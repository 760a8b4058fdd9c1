"""
Optimal control: the costate is the gradient
============================================

A motor must keep a pendulum upright at the lowest cost. The lowest cost from each state is the *value function*; its
gradient determines the optimal control. Pontryagin's principle gives both at single states: the solution of a boundary
value problem gives the cost, and its costate is the gradient of the value function. We solve 20 such problems, fit a
model, and use it as a controller. Then the value function is found from its equation alone, without any path.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_bvp, solve_ivp
from scipy.linalg import solve_continuous_are
from scipy.stats import qmc

from nurf import RandomFeatureRegressor, Surrogate
from nurf.functionals import along

# %%
# The problem
# -----------
# The state is the angle from the top and its velocity, ``x = (q, v)`` with ``q' = v`` and ``v' = 2 sin q + u``. The
# cost of a control ``u`` is ``1/2 int q^2 + v^2 + u^2 dt``. Along an optimal path the Hamiltonian is
# ``H = (q^2 + v^2 + u^2) / 2 + l.x'`` with the costate ``l = (l_q, l_v)``, and
#
# .. code-block:: none
#
#     u = -l_v,   l_q' = -q - 2 cos(q) l_v,   l_v' = -v - l_q.
#
# Near the top the problem is linear, and the value is ``x.P x / 2`` with the matrix ``P`` of a Riccati equation. This
# gives the boundary condition after eight seconds: ``l(T) = P x(T)``.

GRAVITY, SECONDS = 2.0, 8.0
P = solve_continuous_are(np.array([[0.0, 1.0], [GRAVITY, 0.0]]), np.array([[0.0], [1.0]]), np.eye(2), np.eye(1))
LIMIT = np.array([2.0, 2.0])


def dynamics(state, control):
    """Return the time derivatives of angle and velocity."""
    return np.stack([state[1], GRAVITY * np.sin(state[0]) + control])


def pontryagin(t, z):
    """Return the derivatives of state, costate and cost, in the five rows of z."""
    q, v, l_q, l_v, _ = z
    costates = [-q - GRAVITY * np.cos(q) * l_v, -v - l_q]
    return np.vstack([dynamics(z[:2], -l_v), costates, [(q**2 + v**2 + l_v**2) / 2]])


def solve(start):
    """Return the value at a state, its gradient, and the whole path; states on the way there are solved first."""
    t = np.linspace(0, SECONDS, 60)
    guess = np.zeros((5, len(t)))
    for share in np.linspace(0.25, 1, 4):

        def ends(first, last, share=share):
            return np.concatenate([first[:2] - share * start, last[2:4] - P @ last[:2], first[4:]])

        path = solve_bvp(pontryagin, ends, t, guess, tol=1e-5, max_nodes=5000)
        if not path.success:
            raise RuntimeError(f"no solution from {start}: {path.message}")
        t, guess = path.x, path.y
    last = path.y[:2, -1]
    return path.y[4, -1] + last @ P @ last / 2, path.y[2:4, 0], path


def samples(n, rng):
    """Return states, values and gradients."""
    X = rng.uniform(-LIMIT, LIMIT, (n, 2))
    runs = [solve(x)[:2] for x in X]
    return X, np.array([value for value, _ in runs]), np.array([costate for _, costate in runs])


# %%
# 20 states for the fit, and 60 for the comparison.
rng = np.random.default_rng(0)
X, y, G = samples(20, rng)
X_new, y_new, G_new = samples(60, rng)

# %%
# The model
# ---------
# The benefit of the costates: relative errors of the value and of its gradient at 60 new states.


def relative(predicted, true):
    """Return the relative error in the L2 norm."""
    return np.linalg.norm(predicted - true) / np.linalg.norm(true)


models = {
    "20 values": Surrogate(random_state=0).fit(X, y),
    "20 values and costates": Surrogate(random_state=0).fit(X, y, gradients=G),
}
for name, model in models.items():
    of_value, of_gradient = relative(model.predict(X_new), y_new), relative(model.predict_gradient(X_new), G_new)
    print(f"{name:24s} error of the value {of_value:.1e}, of the gradient {of_gradient:.1e}")

# %%
# The same value without any path
# -------------------------------
# The value function solves the Hamilton-Jacobi-Bellman equation, which is not linear. The cost of a fixed control
# ``u(x)`` solves a linear equation, ``(v, 2 sin q + u).grad V = -(q^2 + v^2 + u^2) / 2`` with ``V(0) = 0``. So the
# control is improved in turns: a model solves this equation, which is data like any other, and its gradient gives the
# next control ``u = -dV/dv``. The first control is the linear one.
states = qmc.scale(qmc.Sobol(2, rng=0).random(256), -1.1 * LIMIT, 1.1 * LIMIT)
control = -(states @ P)[:, 1]
for turn in range(4):
    flow = dynamics(states.T, control).T
    cost = (np.sum(states**2, axis=1) + control**2) / 2
    policy = RandomFeatureRegressor(400, density="uniform", width=1.6, random_state=0)
    policy.fit([[0.0, 0.0]], [0.0], functionals=[along(flow).equals(-cost, at=states)])
    control = -policy.predict_gradient(states)[:, 1]
    of_value, of_gradient = relative(policy.predict(X_new), y_new), relative(policy.predict_gradient(X_new), G_new)
    print(f"turn {turn}                   error of the value {of_value:.1e}, of the gradient {of_gradient:.1e}")

# %%
# The model drives the motor
# --------------------------
# The optimal control at a state is ``u = -dV/dv``. The model computes it in microseconds. We compare it with the linear
# controller ``u = -(P x)_v``, and with the solution of the boundary value problem.

value_gradient = models["20 values and costates"].function().gradient
controllers = {"linear": lambda x: -(P @ x)[1], "model": lambda x: -value_gradient(x)[1]}
start = np.array([1.8, 0.8])


def drive(controller):
    """Return times, states and controls of a run from the start, and its cost."""

    def run(t, z):
        control = controller(z[:2])
        return np.append(dynamics(z[:2], control), (z[:2] @ z[:2] + control**2) / 2)

    path = solve_ivp(run, (0, SECONDS), [*start, 0.0], rtol=1e-7, atol=1e-9, dense_output=True)
    t = np.linspace(0, SECONDS, 200)
    states = path.sol(t)[:2]
    last = states[:, -1]
    return t, states, [controller(x) for x in states.T], path.y[2, -1] + last @ P @ last / 2


best, _, optimal = solve(start)
runs = {name: drive(controller) for name, controller in controllers.items()}
print(f"least cost {best:.3f};", "; ".join(f"{name} {cost:.3f}" for name, (*_, cost) in runs.items()))

# %%
# Left: the value function and the paths of both controllers, with the 20 states of the samples; arrows point against
# the costates. Right: the control of the motor.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
q, v = np.linspace(-2.1, 2.1, 100), np.linspace(-2.1, 2.1, 100)
grid = np.stack(np.meshgrid(q, v), axis=-1).reshape(-1, 2)
value = models["20 values and costates"].predict(grid).reshape(100, 100)
image = left.contourf(q, v, value, levels=np.arange(0, 24, 2), cmap="YlGnBu", extend="max")
figure.colorbar(image, ax=left, label="value")
left.plot(*X.T, "ko", markersize=4)
left.quiver(*X.T, *(-G / np.linalg.norm(G, axis=1, keepdims=True)).T, width=0.005, scale=18)
for (name, (t, states, controls, _)), color in zip(runs.items(), ("C1", "C3"), strict=True):
    left.plot(*states, color=color, linewidth=2, label=name)
    right.plot(t, controls, color=color, linewidth=2, label=name)
left.set(xlabel="angle from the top", ylabel="velocity", xlim=(-2.1, 2.1), ylim=(-2.1, 2.1))
right.plot(optimal.x, -optimal.y[3], color="black", linestyle="--", label="optimal")
right.set(xlabel="seconds", ylabel="control", xlim=(0, 5))
right.legend()
plt.show()
