"""The check of gradients: it confirms right ones, names the mistake in wrong ones, and does not accuse noise."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    check_derivatives,
    problems,
)
from nurf.data._derivative_checks._neighbours import NeighbourChanges
from pairwise import pairwise

SMOOTH = [  # between neighbours among 500 points the trapezoidal rule errs by less than a tenth
    problems.get("gaussian_bump"),
    problems.get("planar_wave"),
    problems.get("checkmark", dimension=2),
    problems.get("corner_peak", dimension=2),
    problems.get("borehole", native=True),
]
smooth = pytest.mark.parametrize("problem", SMOOTH, ids=lambda problem: problem.name)


def make_data(n=500, d=3, seed=0):
    """A function to which all inputs contribute alike."""
    X = np.random.default_rng(seed).uniform(size=(n, d))
    return X, np.sin(3 * X).sum(axis=1), 3 * np.cos(3 * X)


def assert_not_accused(findings):
    """Assert that right gradients are not called wrong, up to one of at most 40 times.

    In 10 000 trials they never were, so that the rate is below 3e-4. Two or more of 40 are then less likely than 1e-4.
    """
    assert len(findings) <= 40
    assert sum(finding.consistent is False for finding in findings) <= 1


def sample(problem, n, seed=0):
    X = problem.sample(n, np.random.default_rng(seed))
    return X, problem.value(X), problem.gradient(X)


@smooth
@pytest.mark.parametrize("n", [500, 2000])
def test_right_gradients_are_confirmed(problem, n):
    finding = check_derivatives(*sample(problem, n))
    assert finding.consistent is True
    assert finding.misfit < 0.5
    assert "explain the values" in finding.message


@pytest.mark.parametrize("problem", [p for p in SMOOTH if p.dimension <= 2], ids=lambda problem: problem.name)
def test_the_misfit_shrinks_with_the_number_of_samples(problem):
    few, many = (check_derivatives(*sample(problem, n)).misfit for n in (20, 300))
    assert many < few / 3


@pytest.mark.parametrize("factor", [-1.0, 0.0, 0.5, 3.0, 1000.0])
def test_the_misfit_is_the_distance_from_right_gradients(factor):
    """Of a function that the values determine, it is relative to the right gradients."""
    X, y, gradients = make_data(300, d=2)
    assert check_derivatives(X, y, factor * gradients).misfit == pytest.approx(abs(factor - 1), rel=0.05)


@smooth
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_wrong_sign_is_named(problem, noise):
    X, y, gradients = sample(problem, 2000)
    gradients = gradients * (1 + noise * np.random.default_rng(1).normal(size=gradients.shape))
    finding = check_derivatives(X, y, -gradients)
    assert finding.consistent is False
    assert finding.message == "the gradients have the wrong sign"
    assert finding.misfit == pytest.approx(2, rel=0.2)


@smooth
@pytest.mark.parametrize("factor", [1000.0, 0.001, -50.0, 4.0])
def test_a_factor_is_named(problem, factor):
    X, y, gradients = sample(problem, 2000)
    finding = check_derivatives(X, y, factor * gradients)
    assert finding.consistent is False
    number = re.match(r"the gradients must be multiplied by ([^\s:]+)", finding.message)[1]
    assert float(number) == pytest.approx(1 / factor, rel=0.2)


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize(("factor", "mends"), [(1000.0, "0.001"), (-1.0, "-1"), (0.01, "100")])
def test_one_input_in_other_units_is_named(column, factor, mends):
    X, y, gradients = make_data(2000)
    gradients[:, column] *= factor
    finding = check_derivatives(X, y, gradients)
    assert finding.consistent is False
    named = finding.message.removeprefix("partial derivatives have wrong units or signs: multiply column ")
    number, value = named.split(" by ")
    assert int(number) == column
    assert float(value) == pytest.approx(float(mends), rel=0.1)


def test_inputs_may_have_units_of_their_own():
    """Neighbours are found by the range of each input; misfits do not depend on units."""
    X, y, gradients = make_data()
    units = np.array([1e-6, 1.0, 1e9])
    plain = check_derivatives(X, y, gradients)
    scaled = check_derivatives(5 + units * X, 1e-150 * y, 1e-150 * gradients / units)
    assert plain.consistent is scaled.consistent is True
    assert scaled.misfit == pytest.approx(plain.misfit, rel=1e-3)


@pytest.mark.parametrize("power", [1, 2], ids=["linear", "quadratic"])
def test_a_square_transposition_is_named(power):
    n = d = 40
    rng = np.random.default_rng(0)
    X, slopes = rng.uniform(1, 2, size=(n, d)), rng.normal(size=d)
    y, gradients = X**power @ slopes, power * X ** (power - 1) * slopes
    assert check_derivatives(X, y, gradients).consistent is True
    finding = check_derivatives(X, y, gradients.T)
    assert finding.consistent is False
    assert finding.message == "the gradients are transposed"


@pytest.mark.parametrize(("n", "d"), [(50, 1), (500, 3), (200, 8)])
def test_noise_tells_nothing(n, d):
    rng = np.random.default_rng(0)
    finding = check_derivatives(rng.uniform(size=(n, d)), rng.normal(size=n), rng.normal(size=(n, d)))
    assert finding.consistent is None
    assert "do not tell whether the gradients are right" in finding.message
    assert finding.misfit > 0.5


@pytest.mark.parametrize(("n", "d"), [(8, 1), (20, 2), (200, 2), (40, 8), (500, 8)])
@pytest.mark.parametrize("noise", [0.0, 0.03, 0.3])
def test_right_gradients_of_noisy_values_are_not_accused(n, d, noise):
    findings = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, w = rng.uniform(size=(n, d)), rng.normal(size=d)
        y = np.sin(X @ w) + noise * rng.normal(size=n)
        findings.append(check_derivatives(X, y, np.cos(X @ w)[:, None] * w))
    assert_not_accused(findings)


@smooth
@pytest.mark.parametrize("n", [20, 50, 100])
def test_right_gradients_at_sparse_points_are_not_accused(problem, n):
    assert_not_accused([check_derivatives(*sample(problem, n, seed)) for seed in range(20)])


def test_constant_values():
    X, _, gradients = make_data(100)
    flat = check_derivatives(X, np.full(100, 3.7), np.zeros_like(X))
    assert (flat.consistent, flat.misfit) == (True, 0.0)
    assert "constant" in flat.message
    assert check_derivatives(X, np.full(100, 3.7), gradients).consistent is not True


def test_gradients_of_zero_do_not_explain_values_that_vary():
    X, y, gradients = make_data()
    assert check_derivatives(X, y, 0 * gradients).consistent is not True


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_points(n):
    finding = check_derivatives(*make_data(n, d=8))
    assert finding.consistent is None
    assert np.isnan(finding.misfit)
    assert "too few to tell" in finding.message


def test_points_that_are_all_the_same():
    X, y, gradients = make_data(50)
    finding = check_derivatives(np.repeat(X[:1], 50, axis=0), y, gradients)
    assert finding.consistent is None
    assert finding.message == "gradients at 1 different points are too few to tell"


def test_repeated_points_do_not_hide_their_neighbours():
    X, y, gradients = (np.repeat(a, 3, axis=0) for a in make_data())
    assert check_derivatives(X, y, gradients).consistent is True
    assert check_derivatives(X, y, -gradients).message == "the gradients have the wrong sign"


def test_derivatives_that_are_not_known_are_ignored():
    X, y, gradients = make_data(800)
    gradients[::4, 0] = np.nan
    for sign, words in ((1, "the gradients explain the values"), (-1, "the gradients have the wrong sign")):
        finding = check_derivatives(X, y, sign * gradients)
        assert finding.consistent is (sign > 0)
        assert finding.message.startswith(words)
        assert finding.message.endswith(" (600 of 800 rows are fully known)")


def test_nothing_known_is_nothing_to_tell():
    X, y, gradients = make_data(50)
    assert check_derivatives(X, y, np.full_like(gradients, np.nan)).consistent is None


TOLD = [  # where 3000 points tell a mistake
    *SMOOTH,
    problems.get("corner"),
    problems.get("separable"),
    problems.get("robot_arm"),
    problems.get("robot_arm", native=True),
]
ALL = [  # where points may be too few for the function
    *TOLD,
    problems.get("checkmark", dimension=3),
    problems.get("checkmark", dimension=6),
    problems.get("corner_peak", dimension=4),
]
everywhere = pytest.mark.parametrize("problem", ALL, ids=lambda problem: f"{problem.name}-{problem.dimension}")
told = pytest.mark.parametrize("problem", TOLD, ids=lambda problem: f"{problem.name}-{problem.dimension}")


@pairwise(
    everywhere, pytest.mark.parametrize(("n", "n_seeds"), [(8, 8), (20, 8), (100, 4), (1000, 2)]), noise=[0.0, 0.1]
)
def test_right_gradients_are_not_accused(problem, noise, n, n_seeds):
    findings = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X, y, gradients = sample(problem, n, seed)
        y = y + noise * y.std() * rng.normal(size=n)
        findings.append(check_derivatives(X, y, gradients))
        if noise:
            noisy = gradients * (1 + noise * rng.normal(size=gradients.shape))
            findings.append(check_derivatives(X, y, noisy))
    assert_not_accused(findings)


@pytest.mark.parametrize("frequency", np.linspace(0.5, 3.5, 13))
def test_a_coarse_grid_is_no_mistake(frequency):
    """On a grid the trapezoidal rule errs by one factor, tan(t) / t with t = frequency / 2: as a wrong scale would."""
    x = np.arange(200.0)[:, None]
    y, gradients = np.sin(frequency * x[:, 0] + 0.3), frequency * np.cos(frequency * x + 0.3)
    assert check_derivatives(x, y, gradients).consistent is not False


@pairwise(
    told,
    pytest.mark.parametrize(
        ("factor", "words"),
        [(-1.0, "have the wrong sign"), (1000.0, "must be multiplied by 0.0"), (1 / 6, "must be multiplied by ")],
    ),
    noise=[0.0, 0.01],
)
def test_mistakes_of_all_partial_derivatives_are_named_on_all_problems(problem, noise, factor, words):
    X, y, gradients = sample(problem, 3000)
    if problem.name in ("corner_peak", "gaussian_bump"):
        noise /= 10  # most values are alike: their spread is that of a few
    y = y + noise * y.std() * np.random.default_rng(1).normal(size=len(y))
    finding = check_derivatives(X, y, factor * gradients)
    assert finding.consistent is False
    assert words in finding.message


@pytest.mark.parametrize("problem", [p for p in TOLD if p.dimension > 1], ids=lambda p: f"{p.name}-{p.dimension}")
def test_one_partial_derivative_is_named_on_all_problems(problem):
    X, y, gradients = sample(problem, 3000)
    column = int(np.argmax(np.abs(gradients * np.ptp(X, axis=0)).mean(axis=0)))
    gradients[:, column] *= -1
    finding = check_derivatives(X, y, gradients)
    assert finding.consistent is False
    assert f"column {column} by -" in finding.message


@told
def test_swapped_columns_are_named_on_all_problems(problem):
    X, y, gradients = sample(problem, 3000)
    order = np.roll(np.arange(problem.dimension), 1)
    swapped = gradients[:, order]
    finding = check_derivatives(X, y, swapped)
    if np.allclose(swapped, gradients):
        assert finding.consistent is True
    else:
        assert finding.consistent is False
        if not (problem.name == "borehole" and problem.native):  # there a column of other units is a factor as well
            assert "in another order" in finding.message


@pytest.mark.parametrize("d", [2, 5, 20])
def test_the_order_of_columns_is_found(d):
    rng = np.random.default_rng(0)
    X, order = rng.uniform(size=(4000, d)), np.roll(rng.permutation(d), 1) if d > 2 else np.array([1, 0])
    units = 10.0 ** rng.uniform(-3, 3, size=d)
    gradients = 2 * np.cos(2 * X + np.arange(d))
    finding = check_derivatives(
        X * units, np.sin(2 * X + np.arange(d)).sum(axis=1), (gradients / units)[:, np.argsort(order)]
    )
    named = [f"column {order[k]} belongs to input {k}" for k in range(d) if order[k] != k]
    assert finding.consistent is False
    assert finding.message.removeprefix("the columns of the gradients are in another order: ").split(", ") == named


@pytest.mark.parametrize(
    ("scale", "name"),
    [
        (lambda X: np.ptp(X, axis=0), "the range"),
        (lambda X: np.ptp(X, axis=0) / 2, "half the range"),
        (lambda X: X.std(axis=0), "the standard deviation"),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_gradients_by_scaled_inputs_are_named(scale, name, noise):
    units = np.array([0.02, 1.0, 300.0])
    X, y, gradients = make_data(2000)
    X, gradients = X * units, gradients / units
    y = y + noise * y.std() * np.random.default_rng(1).normal(size=len(y))
    finding = check_derivatives(X, y, gradients * scale(X))
    assert finding.consistent is False
    assert finding.message == f"the gradients are with respect to scaled inputs: divide each by {name} of its input"
    finding = check_derivatives(X, y, gradients / scale(X))
    assert finding.message == f"the gradients must be multiplied by {name} of each input"


def test_one_scale_for_all_inputs_or_the_values_is_hinted_at():
    X, y, gradients = make_data(2000)
    assert "divide each by the range of its input" in check_derivatives(20 * X, y, gradients).message
    assert (
        "one over the range of the inputs?"
        in check_derivatives(20 * X[:, :1], np.sin(X[:, 0]), np.cos(X[:, :1])).message
    )
    assert "the standard deviation of the values?" in check_derivatives(X, 50 * y, gradients / y.std()).message


@pairwise(
    everywhere,
    pytest.mark.parametrize(
        ("factor", "partial"),
        [(0.25, False), (-1.0, False), (-1.0, True)],  # a quarter of one slope of many may hide in the noise
    ),
    noise=[0.02, 0.1],
)
def test_mistakes_beside_noise_are_not_confirmed(problem, factor, noise, partial):
    X, y, gradients = sample(problem, 2000, seed=2)
    y = y + noise * y.std() * np.random.default_rng(1).normal(size=len(y))
    column = int(np.argmax(np.abs(gradients * np.ptp(X, axis=0)).mean(axis=0)))
    gradients[:, column if partial else slice(None)] *= factor
    assert check_derivatives(X, y, gradients).consistent is not True


def positive_data(n=500, d=3, seed=0):
    """Positive inputs in units of their own, positive values, and gradients."""
    Z, units = np.random.default_rng(seed).uniform(0.5, 2.5, size=(n, d)), 10.0 ** (np.arange(d) - 1)
    return Z * units, 4 + np.sin(1.5 * Z).sum(axis=1), 1.5 * np.cos(1.5 * Z) / units


ADVICE = {  # what is wrong: wrong data, and words of the message; and what the advice makes of the gradients
    "x dy/dx": (
        lambda X, y, G: (X, y, G * X),
        "multiplied by the inputs (x dy/dx, that is dy / dlog x): divide each by its input",
        lambda X, y, G: G / X,
    ),
    "dlog y / dlog x": (
        lambda X, y, G: (X, y, G * X / y[:, None]),
        "logarithmic derivatives (dlog y / dlog x): multiply each by y / x",
        lambda X, y, G: G * y[:, None] / X,
    ),
    "of log y": (
        lambda X, y, G: (X, y, G / y[:, None]),
        "gradients of log y: multiply them by y",
        lambda X, y, G: G * y[:, None],
    ),
    "log y": (
        lambda X, y, G: (X, np.log(y), G),
        "`y` seems to be log-transformed, but the gradients are not: divide them by exp(y)",
        lambda X, y, G: G / np.exp(y)[:, None],
    ),
    "log10 y": (
        lambda X, y, G: (X, np.log10(y), G),
        "`y` seems to be log-transformed, but the gradients are not: divide them by 10^y log(10)",
        lambda X, y, G: G / (10 ** y[:, None] * np.log(10)),
    ),
    "log x": (
        lambda X, y, G: (np.log(X), y, G),
        "`X` seems to be log-transformed, but the gradients are not: multiply each by exp(x)",
        lambda X, y, G: G * np.exp(X),
    ),
    "log10 x": (
        lambda X, y, G: (np.log10(X), y, G),
        "`X` seems to be log-transformed, but the gradients are not: multiply each by 10^x log(10)",
        lambda X, y, G: G * 10**X * np.log(10),
    ),
    "log x and log y": (
        lambda X, y, G: (np.log(X), np.log(y), G),
        "`X` and `y` seem to be log-transformed, but the gradients are not: multiply each by exp(x - y)",
        lambda X, y, G: G * np.exp(X - y[:, None]),
    ),
    "standardised units": (
        lambda X, y, G: (X, y, G * X.std(axis=0) / y.std()),
        "multiply them by the standard deviation of the values, and divide each by the standard deviation of its input",
        lambda X, y, G: G * y.std() / X.std(axis=0),
    ),
}


class TestAdvice:
    @pytest.mark.parametrize("mistake", ADVICE)
    @pytest.mark.parametrize("n", [100, 500])
    def test_is_right_and_mends_the_gradients(self, mistake, n):
        spoil, words, mend = ADVICE[mistake]
        X, y, gradients = spoil(*positive_data(n))
        finding = check_derivatives(X, y, gradients)
        assert finding.consistent is False
        assert finding.message.endswith(words)
        mended = check_derivatives(X, y, mend(X, y, gradients))
        assert mended.consistent is True
        assert mended.misfit < 0.1

    @pytest.mark.parametrize("column", [0, 1, 2, 3, 4, 5, 6, 7])
    @pytest.mark.parametrize("factor", [-1.0, 1000.0])
    def test_one_column_of_many_among_few_points(self, column, factor):
        X, y, gradients = make_data(60, d=8)
        gradients[:, column] *= factor
        assert check_derivatives(X, y, gradients).message == (
            f"partial derivatives have wrong units or signs: multiply column {column} by {1 / factor:g}"
        )

    def test_inputs_that_were_standardised_without_their_gradients(self):
        units = np.array([0.02, 1.0, 300.0])
        X, y, gradients = make_data()
        scaler = StandardScaler().fit(X * units)
        message = check_derivatives(scaler.transform(X * units), y, gradients / units).message
        assert (
            "`X` seems to be standardised, but the gradients are not: multiply them by `scaler.scale_`, about"
            in message
        )
        numbers = np.array(message.split("about ")[1].split(";")[0].split(", "), float)
        assert numbers == pytest.approx(scaler.scale_, rel=0.1)
        assert check_derivatives(scaler.transform(X * units), y, gradients / units * scaler.scale_).consistent is True

    @pytest.mark.parametrize("seed", range(3))
    def test_inputs_that_were_rotated_without_their_gradients(self, seed):
        X, y, gradients = make_data(1000, d=4)
        rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]
        assert "linear combinations" in check_derivatives(X @ rotation, y, gradients).message
        assert check_derivatives(X @ rotation, y, gradients @ rotation).consistent is True

    def test_inputs_of_one_unit_that_were_standardised(self):
        X, y, gradients = make_data()
        message = check_derivatives(StandardScaler().fit_transform(30 * X), y, gradients / 30).message
        assert "`X` seems to be standardised, but the gradients are not: multiply them by `scaler.scale_`" in message

    def test_inputs_that_were_scaled_to_the_unit_cube(self):
        X, y, gradients = make_data()
        scaler = MinMaxScaler().fit(7 * X)
        message = check_derivatives(scaler.transform(7 * X), y, gradients / 7).message
        assert (
            "`X` seems to be scaled to [0, 1], but the gradients are not: multiply them by `scaler.data_range_`"
            in message
        )

    def test_values_that_were_standardised_without_the_gradients(self):
        X, y, gradients = make_data()
        scaler = StandardScaler().fit(7.3 * y[:, None])
        message = check_derivatives(X, scaler.transform(7.3 * y[:, None])[:, 0], 7.3 * gradients).message
        assert (
            "`y` seems to be standardised, but the gradients are not: divide them by `scaler.scale_`, about" in message
        )
        assert float(message.split("about ")[1].split(";")[0]) == pytest.approx(scaler.scale_[0], rel=0.1)

    def test_inputs_and_values_that_were_standardised(self):
        units = np.array([0.02, 1.0, 300.0])
        X, y, gradients = make_data()
        x, v = StandardScaler().fit_transform(X * units), StandardScaler().fit_transform(7.3 * y[:, None])[:, 0]
        message = check_derivatives(x, v, 7.3 * gradients / units).message
        assert "`X` and `y` seem to be scaled, but the gradients are not" in message

    def test_is_not_given_if_mistakes_cannot_be_told_apart(self):
        """With inputs and values of one size, x dy/dx and dlog y / dlog x are the same up to noise."""
        rng = np.random.default_rng(0)
        X = rng.uniform(1, 3, size=(200, 1))
        y = X[:, 0] * (1 + 0.2 * rng.normal(size=200))
        assert "multipl" not in check_derivatives(X, y, 40 * X / y[:, None]).message

    @pytest.mark.parametrize(("n", "d"), [(200, 1), (300, 2), (300, 4)])
    def test_shuffled_rows_are_named(self, n, d):
        """One of 450 was missed, so that the rate is below 0.012: 3 or more of 5 are less likely than 2e-5."""
        X, y, gradients = make_data(n, d)
        shuffles = [np.random.default_rng(seed).permutation(gradients) for seed in range(5)]
        found = [finding for slopes in shuffles if (finding := check_derivatives(X, y, slopes)).consistent is False]
        assert len(found) >= 3
        assert {f.message for f in found} == {"the rows of the gradients seem to be in another order than the points"}

    @pytest.mark.parametrize("k", [2, 3, 5])
    def test_transposed_jacobians_are_named(self, k):
        rng = np.random.default_rng(0)
        X, A = rng.uniform(size=(200, k)), rng.normal(size=(k, k))
        y, gradients = np.sin(X @ A.T), np.cos(X @ A.T)[:, :, None] * A
        assert check_derivatives(X, y, gradients).consistent is True
        finding = check_derivatives(X, y, np.swapaxes(gradients, 1, 2))
        assert finding.consistent is False
        assert finding.message.startswith("the gradients are transposed: `gradients[n, i, j]` must be the derivative")

    def test_gradients_of_another_output_are_named(self):
        X, _, _ = make_data(200)
        y, gradients = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] ** 2]), np.zeros((200, 2, 3))
        gradients[:, 0, 0], gradients[:, 1, 1] = 3 * np.cos(3 * X[:, 0]), 2 * X[:, 1]
        finding = check_derivatives(X, y, gradients[:, ::-1])
        assert finding.consistent is False
        assert re.fullmatch(
            "output 0: they are the gradients of output 1|output 1: they are .* output 0", finding.message
        )


class TestUnknownInputs:
    @pytest.mark.parametrize("n", [60, 500])
    def test_do_not_hide_what_the_others_say(self, n):
        X, y, gradients = make_data(n)
        wrong = {"the gradients have the wrong sign": -gradients, "multiplied by 0.001": 1000 * gradients}
        wrong["multiply column 0 by -1"] = gradients * [-1, 1, 1]
        gradients[:, 2] = np.nan
        finding = check_derivatives(X, y, gradients)
        assert finding.consistent is True
        assert np.isnan(finding.value_noise)
        for words, slopes in wrong.items():
            slopes[:, 2] = np.nan
            finding = check_derivatives(X, y, slopes)
            assert finding.consistent is False
            assert finding.message.endswith(f"{words} (the derivatives with respect to input 2 are unknown)")

    def test_get_no_column_of_another_input(self):
        """All partial derivatives of a function of one direction are alike, up to factors."""
        for seed in range(5):
            rng = np.random.default_rng(seed)
            X, w = rng.uniform(-1, 1, size=(60, 8)), rng.normal(size=8)
            gradients = 3 * np.cos(3 * X @ w + 1)[:, None] * w
            gradients[:, 7] = np.nan
            assert check_derivatives(X, np.sin(3 * X @ w + 1), gradients).consistent is not False

    def test_scattered_ones_leave_others_that_are_known(self):
        X, y, gradients = make_data(500, d=5)
        gradients[np.random.default_rng(1).uniform(size=gradients.shape) < 0.4] = np.nan
        assert check_derivatives(X, y, gradients).consistent is True
        assert check_derivatives(X, y, -gradients).message.startswith("the gradients have the wrong sign")


def kinetics(n, seed=0):
    """The concentration six hours after a dose, absorbed and eliminated at rates over decades, and its gradients."""
    low, high = np.array([[10, 0.1, 0.01, 1], [1000, 10, 1, 100]])
    X = low * (high / low) ** np.random.default_rng(seed).uniform(size=(n, 4))
    dose, a, e, volume = X.T
    slow, fast, gap, y = np.exp(-6 * e), np.exp(-6 * a), a - e, kinetics_at(X)
    by_a = dose / volume * (6 * a * fast / gap - e * (slow - fast) / gap**2)
    by_e = dose / volume * a * ((slow - fast) / gap**2 - 6 * slow / gap)
    return X, y, np.column_stack([y / dose, by_a, by_e, -y / volume])


def kinetics_at(X):
    dose, a, e, volume = X.T
    return dose / volume * a * (np.exp(-6 * e) - np.exp(-6 * a)) / (a - e)


MISTAKES = {  # over decades: wrong gradients, and words of the message
    "negated": (lambda X, y, G: -G, "the wrong sign"),
    "one column negated": (lambda X, y, G: G * [1, 1, 1, -1], "multiply column 3 by -1"),
    "times 1000": (lambda X, y, G: 1000 * G, "must be multiplied by 0.001"),
    "one column times 1000": (lambda X, y, G: G * [1000, 1, 1, 1], "multiply column 0 by 0.001"),
    "x dy/dx": (lambda X, y, G: G * X, "multiplied by the inputs"),
    "dlog y / dlog x": (lambda X, y, G: G * X / y[:, None], "logarithmic derivatives"),
    "standard deviations": (lambda X, y, G: G * X.std(axis=0), "divide each by the standard deviation of its input"),
    "ranges": (lambda X, y, G: G * np.ptp(X, axis=0), "divide each by the range of its input"),
    "rows shuffled": (lambda X, y, G: np.random.default_rng(1).permutation(G), "in another order than the points"),
    "rows shifted": (lambda X, y, G: np.roll(G, 1, axis=0), "row i has the gradient of row i - 1"),
    "columns rolled": (lambda X, y, G: np.roll(G, 1, axis=1), "in another order: column 1 belongs to input 0"),
}


class TestOverDecades:
    def test_the_gradients_are_right(self):
        """Against differences."""
        X, _, gradients = kinetics(20)
        for k in range(4):
            steps = 1e-6 * X * (np.arange(4) == k)
            low, high = (kinetics_at(X + sign * steps) for sign in (-1, 1))
            assert gradients[:, k] == pytest.approx((high - low) / (2 * steps[:, k]), rel=1e-4, abs=1e-12)

    @pytest.mark.parametrize("n", [30, 100, 300])
    def test_right_gradients_are_confirmed(self, n):
        X, y, gradients = kinetics(n)
        assert check_derivatives(X, y, gradients).consistent is True
        assert check_derivatives(np.log(X), np.log(y), gradients * X / y[:, None]).consistent is True

    @pytest.mark.parametrize("mistake", MISTAKES)
    @pytest.mark.parametrize("n", [100, 300])
    def test_mistakes_are_named(self, mistake, n):
        X, y, gradients = kinetics(n)
        spoil, words = MISTAKES[mistake]
        finding = check_derivatives(X, y, spoil(X, y, gradients))
        assert finding.consistent is False
        assert words in finding.message


class TestWhere:
    @pytest.mark.parametrize("factor", [1e6, -1e9, 1e200])
    @pytest.mark.parametrize("row", [0, 41])
    def test_a_gross_row(self, factor, row):
        for X, y, gradients in (make_data(200), make_data(20, d=2), kinetics(100)):
            spoiled = gradients.copy()
            spoiled[row % len(y)] *= factor
            finding = check_derivatives(X, y, spoiled)
            assert (finding.consistent, finding.rows) == (False, (row % len(y),))
            assert f"the gradients of row {row % len(y)} are far larger" in finding.message

    def test_a_gross_row_among_rows_without_values(self):
        X, y, gradients = make_data(200)
        y[:10] = np.nan
        gradients[20] *= 1e6
        assert check_derivatives(X, y, gradients).rows == (20,)

    def test_columns_and_their_factors(self):
        X, y, gradients = make_data(300)
        finding = check_derivatives(X, y, gradients * [1, -1, 1000])
        assert (finding.columns, finding.rows) == ((1, 2), ())
        assert finding.factors == pytest.approx((-1, 0.001))
        assert finding.message.endswith("multiply column 1 by -1, 2 by 0.001")

    def test_nowhere(self):
        finding = check_derivatives(*make_data(300))
        assert (finding.rows, finding.columns, finding.factors, finding.next_point) == ((), (), (), ())

    def test_the_next_run_decides(self):
        """The value there is what the gradients say, to first order; with another sign it is not."""

        def f(X):
            return np.sin(40 * X).sum(axis=1)

        X = np.random.default_rng(0).uniform(size=(30, 3))
        y, gradients = f(X), 40 * np.cos(40 * X)
        finding = check_derivatives(X, y, gradients)
        assert finding.consistent is None
        row = int(re.search(r"near row (\d+)", finding.message)[1])
        told, before = map(float, re.search(r"is (\S+) instead of (\S+)$", finding.message).groups())
        assert before == pytest.approx(y[row], rel=1e-5)
        rise = float(f(np.array([finding.next_point]))[0]) - y[row]
        assert told - before == pytest.approx(rise, rel=0.2)
        assert np.linalg.norm((finding.next_point - X[row]) / np.ptp(X, axis=0)) < 0.05


class TestTransformersInFrontOfTheRegressor:
    """scikit-learn's pipeline and transformed target hand gradients on as they are."""

    @pytest.mark.parametrize(
        ("transformers", "data", "words"),
        [
            ([StandardScaler()], positive_data, "`X` seems to be standardised"),
            ([FunctionTransformer(np.log)], kinetics, "`X` seems to be log-transformed"),
        ],
    )
    def test_of_inputs_are_noticed(self, transformers, data, words):
        X, y, gradients = data(100)
        model = KernelFeatureRegressor("gaussian", metric="scales", check_gradients="raise")
        with pytest.raises(ValueError, match=f"`gradients` contradict the values: {words}"):
            make_pipeline(*transformers, model).fit(X, y, kernelfeatureregressor__gradients=gradients)

    @pytest.mark.parametrize(
        ("data", "options", "words"),
        [
            (kinetics, {"func": np.log, "inverse_func": np.exp}, "`y` seems to be log-transformed"),
            (kinetics, {"transformer": StandardScaler()}, "`y` seems to be standardised"),
        ],
    )
    def test_of_values_are_noticed(self, data, options, words):
        X, y, gradients = data(100)
        model = KernelFeatureRegressor("gaussian", metric="scales", check_gradients="raise")
        with pytest.raises(ValueError, match=f"`gradients` contradict the values: {words}"):
            TransformedTargetRegressor(model, **options).fit(X, y, gradients=gradients)


def test_of_many_outputs_some_are_compared():
    X, y, gradients = make_data(100)
    finding = check_derivatives(X, np.column_stack([y] * 20), np.stack([-gradients] * 20, axis=1))
    assert finding.message == "output 0: the gradients have the wrong sign (8 of 20 outputs were compared)"


def rough(kind, X, rng):
    """Return values and gradients of a function that few samples do not resolve."""
    w = rng.normal(size=X.shape[1])
    w *= np.exp(rng.uniform(0, 3)) / np.linalg.norm(w)
    t = (X - 0.5) @ w
    values, slopes = {
        "wave": (np.sin(3 * t + 1), 3 * np.cos(3 * t + 1)),
        "step": (np.tanh(50 * t), 50 * (1 - np.tanh(50 * t) ** 2)),
        "kink": (np.abs(t), np.sign(t)),
    }[kind]
    return values, slopes[:, None] * w


@pytest.mark.parametrize("kind", ["wave", "step", "kink"])
@pytest.mark.parametrize("spoil", ["nothing", "values", "gradients", "unknown"])
def test_right_gradients_of_rough_functions_are_not_accused(kind, spoil):
    """In 3000 trials they never were, so that the rate is below 1e-3: 3 or more of 72 are less likely than 6e-5."""
    accused = 0
    for d in (1, 2, 8, 20):
        for n in (8, 15, 30):
            for seed in range(6):
                rng = np.random.default_rng([seed, n, d])
                X = rng.uniform(size=(n, d))
                y, gradients = rough(kind, X, rng)
                if spoil == "values":
                    y = y + 0.2 * y.std() * rng.normal(size=n)
                elif spoil == "gradients":
                    level = 2 * np.sqrt(np.mean(gradients**2, axis=0))
                    gradients = gradients + rng.uniform(size=n)[:, None] * level * rng.normal(size=gradients.shape)
                elif spoil == "unknown" and d > 1:
                    gradients[:, 0] = np.nan
                accused += check_derivatives(X, y, gradients).consistent is False
    assert accused <= 2


class TestNoise:
    @pytest.mark.parametrize(
        ("d", "level", "n"),
        # along a line, no neighbours among 1000 points are far enough apart to tell noise of a tenth from the function
        [
            (d, level, n)
            for d in (1, 2, 3)
            for level in (0.02, 0.1)
            for n in (1000, 4000)
            if (d, level, n) != (1, 0.1, 1000)
        ],
    )
    def test_of_values(self, d, level, n):
        X, y, gradients = make_data(n, d)
        noise = level * y.std()
        finding = check_derivatives(X, y + noise * np.random.default_rng(1).normal(size=n), gradients)
        assert finding.consistent is True
        assert finding.value_noise == pytest.approx(noise, rel=0.2)  # over seeds, 0.98 with a deviation of 0.034
        assert "; the values are noisy: about " in finding.message
        percent = float(finding.message.split("the values are noisy: about ")[1].split("%")[0])
        assert percent == pytest.approx(100 * level, rel=0.2)

    @pytest.mark.parametrize("d", [1, 2, 3])
    def test_of_gradients(self, d):
        units = 10.0 ** np.arange(d)
        X, y, gradients = make_data(3000, d)
        noise = 0.1 * np.sqrt(np.mean(gradients**2))
        gradients = gradients + noise * np.random.default_rng(1).normal(size=gradients.shape)
        finding = check_derivatives(X * units, y, gradients / units)
        assert finding.consistent is True
        assert finding.gradient_noise == pytest.approx(noise, rel=0.2)
        assert "; the gradients are noisy: about " in finding.message

    @smooth
    def test_none(self, problem):
        X, y, gradients = sample(problem, 3000)
        finding = check_derivatives(X, y, gradients)
        assert "noisy" not in finding.message
        assert np.isnan(finding.value_noise) or finding.value_noise < 0.005 * y.std()

    @pairwise(everywhere, level=[0.0, 0.01, 0.1], n=[200, 1000])
    def test_what_is_told_is_right(self, problem, level, n):
        X, y, gradients = sample(problem, n)
        finding = check_derivatives(X, y + level * y.std() * np.random.default_rng(1).normal(size=n), gradients)
        # noise of a hundredth of the spread need not be told from none
        assert np.isnan(finding.value_noise) or abs(finding.value_noise / y.std() - level) < 0.5 * level + 0.01

    def test_cannot_be_told_beside_a_mistake(self):
        X, y, gradients = make_data()
        finding = check_derivatives(X, y, -gradients)
        assert np.isnan([finding.value_noise, finding.gradient_noise]).all()


@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e6, 1e150])
@pytest.mark.parametrize("in_values", [False, True])
def test_units_of_any_size(unit, in_values):
    X, y, gradients = make_data(1000)
    X, y, gradients = (X, unit * y, unit * gradients) if in_values else (unit * X, y, gradients / unit)
    finding = check_derivatives(X, y + 0.05 * y.std() * np.random.default_rng(1).normal(size=1000), gradients)
    assert finding.consistent is True
    assert finding.value_noise / y.std() == pytest.approx(0.05, rel=0.2)
    assert check_derivatives(X, y, -gradients).message == "the gradients have the wrong sign"
    swapped = check_derivatives(X, y, gradients[:, [1, 0, 2]])
    assert "column 1 belongs to input 0, column 0 belongs to input 1" in swapped.message


def test_offsets():
    X, y, gradients = make_data(1000)
    finding = check_derivatives(X + 1e6, y - 1e6, gradients)
    assert finding.consistent is True
    assert finding.value_noise < 1e-3
    assert check_derivatives(X + 1e6, y - 1e6, -gradients).message == "the gradients have the wrong sign"


@pytest.mark.parametrize(("n", "d"), [(20000, 1), (20000, 3), (20000, 50), (300, 50)])
def test_many_points_and_many_inputs(n, d):
    rng = np.random.default_rng(0)
    X, w = rng.uniform(size=(n, d)), rng.normal(size=d) / np.sqrt(d)
    y, gradients = np.sin(X @ w), np.cos(X @ w)[:, None] * w
    assert check_derivatives(X, y, gradients).consistent is True
    assert check_derivatives(X, y, -gradients).message == "the gradients have the wrong sign"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda gradients: -gradients, "have the wrong sign"),
        (lambda gradients: 1000 * gradients, "must be multiplied by 0.001"),
        (lambda gradients: np.roll(gradients, 1, axis=0), "rows of the gradients are shifted"),
    ],
    ids=["sign", "factor", "shift"],
)
def test_changes_between_neighbours_tell_of_kinks(spoil, words):
    """Six of seven sets of 40 samples are named, four of eight by the process alone; fewer than 10 of 20 are not luck.

    With a share of 0.85, fewer than 10 of 20 have a probability of 1e-5.
    """
    directions = np.array([[1, 0.5, -0.3, 0.2], [-0.4, 1, 0.6, 0.1], [0.3, -0.2, 1, 0.8]])
    found = []
    for seed in range(20):
        X = np.random.default_rng(seed).uniform(-1, 1, (40, 4))
        T = X @ directions.T + [0.1, -0.2, 0.3]
        found.append(check_derivatives(X, np.abs(T).sum(axis=1), spoil(np.sign(T) @ directions)))
    assert sum(words in each.message for each in found) >= 10


class TestNeighbourChanges:
    def changes(self, m=40, noise=0.0):
        X = np.random.default_rng(0).uniform(size=(m, 3))
        y, gradients = (X**2).sum(axis=1) + X[:, 0] * X[:, 1], 2 * X + X[:, [1, 0, 2]] * [1, 1, 0]
        return NeighbourChanges.of(X, y, np.ones(3), noise), gradients

    def test_the_trapezoidal_rule_is_exact_for_quadratics(self):
        near, gradients = self.changes()
        expected = np.log1p(near.changes**2 / near.least).mean(axis=1)  # without gaps
        assert_allclose(near.scores(gradients), [expected, expected], rtol=1e-9)

    def test_wrong_gradients_explain_less_and_right_ones_win(self):
        near, gradients = self.changes()
        right = near.scores(gradients)
        for wrong in (-gradients, gradients[::-1], gradients * [1, -1, 1], 0.1 * gradients, 10 * gradients):
            scores = near.scores(wrong)
            assert near.odds(right - scores) > 10
            assert near.odds(scores - right) == 0

    def test_small_gains_are_no_evidence(self):
        near, _ = self.changes()
        assert near.odds(np.full((2, 40), 0.5)) == 0
        assert near.odds(np.full((2, 40), 1.5)) > 10

    def test_unknown_derivatives_say_nothing(self):
        near, gradients = self.changes()
        gradients[:, 1] = np.nan
        assert not near.scores(gradients).any()

    @pytest.mark.parametrize("m", [1, 2, 3])
    def test_few_samples_are_no_evidence(self, m):
        near, gradients = self.changes(m)
        assert near.odds(near.scores(gradients)) < 10


@pytest.mark.parametrize(("factor", "words"), [(-1.0, "have the wrong sign"), (1000.0, "must be multiplied by 0.001")])
def test_few_directions_of_many_inputs_tell_what_the_inputs_do_not(factor, words):
    rng = np.random.default_rng(0)
    X, A = rng.uniform(-1, 1, size=(150, 30)), rng.normal(size=(30, 3)) / np.sqrt(30)
    y, gradients = np.sin(3 * X @ A).sum(axis=1), 3 * np.cos(3 * X @ A) @ A.T
    assert check_derivatives(X, y, gradients).consistent is not False
    assert words in check_derivatives(X, y, factor * gradients).message


def test_many_inputs_and_many_samples():
    """Fewer samples are compared than there are inputs."""
    rng = np.random.default_rng(0)
    X, a = rng.uniform(-1, 1, (700, 160)), rng.normal(size=160)
    assert check_derivatives(X, np.sin(X @ a), np.cos(X @ a)[:, None] * a).consistent is not False


def test_a_grid():
    x = np.stack(np.meshgrid(*[np.linspace(0, 1, 20)] * 2), axis=-1).reshape(-1, 2)
    y, gradients = np.sin(3 * x).sum(axis=1), 3 * np.cos(3 * x)
    assert check_derivatives(x, y, gradients).consistent is True
    assert check_derivatives(x, y, -gradients).consistent is False


def test_rows_without_values_are_left_out():
    X, y, gradients = make_data(800)
    y[::4] = np.nan
    finding = check_derivatives(X, y, -gradients)
    assert finding.message == "the gradients have the wrong sign (600 of 800 rows are fully known)"


class TestSeveralOutputs:
    def test_all_right(self):
        X, y, gradients = make_data()
        finding = check_derivatives(X, np.column_stack([y, -2 * y]), np.stack([gradients, -2 * gradients], axis=1))
        assert finding.consistent is True

    @pytest.mark.parametrize("wrong", [0, 1])
    def test_one_wrong_output_is_enough(self, wrong):
        X, y, gradients = make_data()
        several = np.stack([gradients, gradients], axis=1)
        several[:, wrong] *= -1
        finding = check_derivatives(X, np.column_stack([y, y]), several)
        assert (finding.consistent, finding.message) == (False, f"output {wrong}: the gradients have the wrong sign")

    @pytest.mark.parametrize("wrong", [0, 1])
    def test_a_wrong_output_is_told_beside_one_that_cannot_be_judged(self, wrong):
        """A certain mistake weighs more than noise with a larger misfit."""
        X, y, gradients = make_data()
        rng = np.random.default_rng(1)
        values, slopes = [rng.normal(size=len(y))], [1000 * rng.normal(size=gradients.shape)]
        values.insert(wrong, y)
        slopes.insert(wrong, -gradients)
        finding = check_derivatives(X, np.column_stack(values), np.stack(slopes, axis=1))
        assert finding.consistent is False


ESTIMATORS = [
    lambda action: RandomFeatureRegressor(30, width=0.5, growth=None, check_gradients=action, random_state=0),
    lambda action: SparseFeatureRegressor(0.1, gradient_weight=0.1, check_gradients=action, random_state=0),
    lambda action: KernelFeatureRegressor("gaussian", metric="scales", max_rows=200, check_gradients=action),
    lambda action: DeepFeatureRegressor((16, 16), steps=200, check_gradients=action, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["sampled", "sparse", "wide", "deep"])
class TestInFit:
    @pytest.mark.parametrize("action", ["warn", "raise", False])
    def test_right_gradients_pass(self, estimator, action):
        X, y, gradients = make_data(200)
        model = estimator(action).fit(X, y, gradients=gradients)
        assert model.score(X, y) > 0.9
        assert (model.gradient_check_ is not None) == (action is not False)

    @pytest.mark.parametrize(("factor", "finding"), [(-1, "wrong sign"), (100, "must be multiplied by 0.01")])
    def test_wrong_gradients_raise(self, estimator, factor, finding):
        X, y, gradients = make_data(200)
        with pytest.raises(ValueError, match=rf"`gradients` contradict the values: .*{finding}"):
            estimator("raise").fit(X, y, gradients=factor * gradients)

    def test_wrong_gradients_warn_in_one_line_at_the_line_of_the_caller(self, estimator):
        X, y, gradients = make_data(200)
        with pytest.warns(UserWarning, match="`gradients` contradict the values: .*the wrong sign") as record:
            model = estimator("warn").fit(X, y, gradients=-gradients)
        assert len(record) == 1
        assert "\n" not in str(record[0].message)
        assert record[0].filename == __file__
        assert model.gradient_check_.message == "the gradients have the wrong sign"

    def test_what_cannot_be_decided_is_not_said(self, estimator):
        X, _, gradients = make_data(100)
        y = np.random.default_rng(0).normal(size=len(X))
        assert estimator("raise").fit(X, y, gradients=gradients).gradient_check_.consistent is None

    def test_no_gradients_are_not_checked(self, estimator):
        X, y, _ = make_data(100)
        model = estimator("raise")
        if isinstance(model, SparseFeatureRegressor):
            model.set_params(gradient_weight=0.0)
        assert model.fit(X, y).gradient_check_ is None

    def test_nothing_is_checked_if_it_is_turned_off(self, estimator):
        X, y, gradients = make_data(200)
        assert estimator(False).fit(X, y, gradients=-gradients).gradient_check_ is None

    def test_rows_of_weight_zero_are_not_checked(self, estimator):
        X, y, gradients = make_data(200)
        counts = np.arange(200) % 2
        gradients[counts == 0] *= -1
        for name in ("sample_weight", "derivative_weight"):
            model = estimator("raise").fit(X, y, gradients=gradients, **{name: counts})
            assert model.score(X[counts > 0], y[counts > 0]) > 0.5

    @pytest.mark.parametrize("action", [True, None, "yes", 0])
    def test_other_actions_are_refused(self, estimator, action):
        X, y, gradients = make_data(20)
        with pytest.raises(ValueError, match="`check_gradients` must be 'warn', 'raise' or False, got"):
            estimator(action).fit(X, y, gradients=gradients)


class TestReport:
    def line(self, gradients, **options):
        X, y, right = make_data(200)
        model = RandomFeatureRegressor(30, random_state=0, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X, y, gradients=None if gradients is None else gradients(right))
        return dict(model.report().lines)["derivatives in the loss"], model

    def test_none(self):
        assert self.line(None)[0] == "none were given"

    def test_contradictory_ones_are_not_used(self):
        """Gradients of a thousand times the size never help, whatever their weight."""
        line, model = self.line(lambda right: 1000 * right)
        assert model.gradient_weight_ == 0
        wrong = (
            r"they contradict the values \(the gradients must be multiplied by 0.001\), error \S+ with and \S+ without"
        )
        assert re.match(rf"(not used|not used in the loss|used in the sampling only): {wrong} them", line)

    def test_contradictory_ones_with_a_given_weight(self):
        line, _ = self.line(lambda right: -right, gradient_weight=0.1)
        assert line == "gradients 0.1: although they contradict the values (the gradients have the wrong sign)"

    def test_a_weight_of_zero(self):
        assert (
            self.line(lambda right: right, gradient_weight=0.0, density="uniform")[0] == "not used: their weight is 0"
        )


@pytest.mark.parametrize(
    ("n", "gradients", "message"),
    [(5, None, "`gradients` must be an array of shape"), (0, np.empty((0, 2)), "`X` must have at least one row")],
    ids=["None", "no rows"],
)
def test_what_cannot_be_checked_is_refused(n, gradients, message):
    with pytest.raises(ValueError, match=message):
        check_derivatives(np.ones((n, 2)), np.ones(n), gradients)
