"""The check of gradients: it confirms right ones, names the mistake in wrong ones, and never accuses noise."""

import numpy as np
import pytest

from nurf import RandomFeatureRegressor, check_derivatives, problems

SMOOTH = [
    problems.get("gaussian_bump"),
    problems.get("planar_wave"),
    problems.get("checkmark", dimension=3),
    problems.get("corner_peak", dimension=4),
    problems.get("borehole", native=True),
]
smooth = pytest.mark.parametrize("problem", SMOOTH, ids=lambda problem: problem.name)


def make_data(n=500, d=3, seed=0):
    """A function to which all inputs contribute alike."""
    X = np.random.default_rng(seed).uniform(size=(n, d))
    return X, np.sin(3 * X).sum(axis=1), 3 * np.cos(3 * X)


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


@smooth
def test_the_misfit_shrinks_with_the_distance_of_neighbours(problem):
    few, many = (check_derivatives(*sample(problem, n)).misfit for n in (300, 6000))
    assert many < few


def test_the_misfit_is_that_of_the_trapezoidal_rule():
    """Two lines of neighbours, by hand: a quadratic function is met exactly, a cubic one up to third order."""
    x = np.array([0.0, 0.1, 1.0, 1.1, 2.0, 2.1, 3.0, 3.1])[:, None]
    assert check_derivatives(x, x[:, 0] ** 2, 2 * x).misfit < 1e-12
    left, right = x[::2, 0], x[1::2, 0]
    rise = right**3 - left**3
    gap = rise - 3 * (left**2 + right**2) / 2 * 0.1
    finding = check_derivatives(x, x[:, 0] ** 3, 3 * x**2)
    assert finding.misfit == pytest.approx(np.linalg.norm(gap) / np.linalg.norm(rise), rel=1e-6)


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
    words, number = finding.message.rsplit(" ", 1)
    assert words == "the gradients must be multiplied by"
    assert float(number) == pytest.approx(1 / factor, rel=0.2)


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize(("factor", "mends"), [(1000.0, "0.001"), (-1.0, "-1"), (0.01, "100")])
def test_one_input_in_other_units_is_named(column, factor, mends):
    X, y, gradients = make_data(2000)
    gradients[:, column] *= factor
    finding = check_derivatives(X, y, gradients)
    assert finding.consistent is False
    named = finding.message.removeprefix("partial derivatives must be multiplied, that of input ").split(":")[0]
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
    assert "do not explain the values" in finding.message
    assert finding.misfit > 0.5


@pytest.mark.parametrize(("n", "d"), [(8, 1), (20, 2), (200, 2), (40, 8), (500, 8)])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1, 0.3])
def test_right_gradients_of_noisy_values_are_never_accused(n, d, noise):
    accused = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, w = rng.uniform(size=(n, d)), rng.normal(size=d)
        y = np.sin(X @ w) + noise * rng.normal(size=n)
        finding = check_derivatives(X, y, np.cos(X @ w)[:, None] * w)
        if finding.consistent is False:
            accused.append(finding)
    assert not accused


@smooth
@pytest.mark.parametrize("n", [20, 50, 100])
def test_right_gradients_at_sparse_points_are_never_accused(problem, n):
    findings = [check_derivatives(*sample(problem, n, seed)) for seed in range(20)]
    assert [finding for finding in findings if finding.consistent is False] == []


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
    assert "0 pairs of neighbours are too few" in finding.message


def test_repeated_points_do_not_hide_their_neighbours():
    X, y, gradients = (np.repeat(a, 3, axis=0) for a in make_data())
    assert check_derivatives(X, y, gradients).consistent is True
    assert check_derivatives(X, y, -gradients).message == "the gradients have the wrong sign"


def test_rows_that_are_not_known_are_ignored():
    X, y, gradients = make_data(800)
    gradients[::4, 0] = np.nan
    known = ~np.isnan(gradients).any(axis=1)
    for sign in (1, -1):
        with_gaps = check_derivatives(X, y, sign * gradients)
        assert with_gaps == check_derivatives(X[known], y[known], sign * gradients[known])
        assert with_gaps.consistent is (sign > 0)


def test_nothing_known_is_nothing_to_tell():
    X, y, gradients = make_data(50)
    assert check_derivatives(X, y, np.full_like(gradients, np.nan)).consistent is None


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
        assert (finding.consistent, finding.message) == (False, "the gradients have the wrong sign")

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


class TestInFit:
    def fit(self, *data, **gradients):
        return RandomFeatureRegressor(30, check_gradients=True, random_state=0).fit(*data, **gradients)

    def test_right_gradients_pass(self):
        X, y, gradients = make_data()
        assert self.fit(X, y, gradients=gradients).score(X, y) > 0.9

    @pytest.mark.parametrize(("factor", "finding"), [(-1, "wrong sign"), (100, "must be multiplied by 0.01")])
    def test_wrong_gradients_raise(self, factor, finding):
        X, y, gradients = make_data()
        with pytest.raises(ValueError, match=rf"`gradients` contradict the values: .*{finding}"):
            self.fit(X, y, gradients=factor * gradients)

    def test_noise_warns_at_the_line_of_the_caller(self):
        X, _, gradients = make_data()
        y = np.random.default_rng(0).normal(size=len(X))
        model = RandomFeatureRegressor(30, check_gradients=True, random_state=0)
        with pytest.warns(UserWarning, match="`gradients` could not be confirmed: .*do not explain") as record:
            model.fit(X, y, gradients=gradients)
        assert record[0].filename == __file__

    def test_nothing_to_check_raises(self):
        with pytest.raises(ValueError, match="needs gradients, got none"):
            self.fit(*make_data()[:2])

    def test_nothing_is_checked_unless_asked_for(self):
        X, y, gradients = make_data()
        model = RandomFeatureRegressor(30, random_state=0).fit(X, y, gradients=-gradients)
        assert model.score(X, y) > 0.5

    def test_rows_of_weight_zero_are_not_checked(self):
        X, y, gradients = make_data(800)
        counts = np.arange(800) % 2
        gradients[counts == 0] *= -1
        assert self.fit(X, y, gradients=gradients, sample_weight=counts).score(X[counts > 0], y[counts > 0]) > 0.5
