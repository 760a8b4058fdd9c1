"""Derivatives in all the shapes in which they come: exact, wrong, in part, elsewhere, along directions, not at all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf import Jet, RandomFeatureRegressor, problems
from nurf.densities import Nonlocal, Uniform

A, B = np.array([0.8, -0.5, 0.3, 0.1]), np.array([0.2, 0.3, -0.7, 0.4])


def smooth(X):
    """Values, gradients and Hessians of a function that varies along two directions of four."""
    u, v = X @ A, X @ B
    y = np.sin(3 * u) + 0.3 * v**2
    gradients = 3 * np.cos(3 * u)[:, None] * A + 0.6 * v[:, None] * B
    return y, gradients, -9 * np.sin(3 * u)[:, None, None] * np.outer(A, A) + 0.6 * np.outer(B, B)


def points(n=60, seed=0):
    return np.random.default_rng(10 + seed).uniform(-1, 1, (n, 4))


def model(n_neurons=100, **parameters):
    return RandomFeatureRegressor(n_neurons, **{"random_state": 0, **parameters})


def plain(n_neurons=60, **parameters):
    """All neurons at once, of one width: what is compared differs in the loss alone."""
    fixed = {"growth": None, "width": 0.4, "density": "uniform", "derivatives": "given", "alpha": 1e-8}
    return model(n_neurons, **{**fixed, **parameters})


def error(estimator, f=smooth, X=None):
    X = np.random.default_rng(1).uniform(-1, 1, (1000, 4)) if X is None else X
    y = f(X)[0]
    return np.sqrt(np.mean((estimator.predict(X) - y) ** 2)) / np.std(y)


def random_directions(n, seed=3):
    return np.random.default_rng(seed).normal(size=(n, 4))


@pytest.fixture(scope="module")
def values_only():
    return {
        seed: error(model(random_state=seed).fit(points(seed=seed), smooth(points(seed=seed))[0])) for seed in (0, 1)
    }


class TestGradientWeight:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_exact_gradients_count_and_help(self, seed, values_only):
        X = points(seed=seed)
        y, gradients, _ = smooth(X)
        estimator = model(random_state=seed).fit(X, y, gradients=gradients)
        assert estimator.gradient_weight_ > 0
        assert error(estimator) < values_only[seed] / 5
        without = model(random_state=seed, gradient_weight=0).fit(X, y, gradients=gradients)
        assert error(estimator) < error(without) / 5

    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize("kind", ["noise", "layer", "bias"])
    def test_wrong_gradients_do_not_count_and_do_not_hurt(self, kind, seed, values_only):
        """Pure noise; exact ones with a steep layer at the faces of the box; a constant added to all."""
        X = points(seed=seed)
        y, gradients, _ = smooth(X)
        size = np.std(gradients)
        wrong = {
            "noise": 2 * size * np.random.default_rng(3).normal(size=X.shape),
            "layer": gradients + 20 * np.sign(X) * np.exp((np.abs(X) - 1) / 0.02),
            "bias": gradients + size,
        }[kind]
        estimator = model(random_state=seed).fit(X, y, gradients=wrong)
        assert estimator.gradient_weight_ == 0
        assert error(estimator) < 1.2 * values_only[seed]
        if kind != "layer":
            trusting = model(random_state=seed, gradient_weight=0.1).fit(X, y, gradients=wrong)
            assert error(trusting) > 10 * error(estimator)

    def test_a_number_is_the_weight(self):
        X = points()
        y, gradients, _ = smooth(X)
        assert plain(gradient_weight=0.03).fit(X, y, gradients=gradients).gradient_weight_ == 0.03

    @pytest.mark.parametrize("kind", ["gradient_weight", "hessian_weight"])
    def test_a_large_weight_fits_derivatives_rather_than_values(self, kind):
        X = points(40)
        y, gradients, hessians = smooth(X)
        truth = {"gradient_weight": gradients, "hessian_weight": hessians}[kind]
        misfits = []
        for weight in (0.0, 1e-3, 10.0):
            estimator = plain(gradient_weight=0).set_params(**{kind: weight})
            estimator.fit(X, y, gradients=gradients, hessians=hessians)
            method = {"gradient_weight": estimator.predict_gradient, "hessian_weight": estimator.predict_hessian}[kind]
            misfits.append((np.linalg.norm(method(X) - truth), np.linalg.norm(estimator.predict(X) - y)))
        (slope_0, value_0), (slope_1, _), (slope_2, value_2) = misfits
        assert slope_0 > slope_1 > slope_2
        assert value_0 < value_2

    def test_is_least_squares_with_the_rows_of_the_gradients(self):
        """The normal equations by hand, in scaled units."""
        X = points(50)
        y, gradients, hessians = smooth(X)
        estimator = plain(20, gradient_weight=0.2, hessian_weight=0.01)
        estimator.fit(X, y, gradients=gradients, hessians=hessians)
        scaling, network = estimator.scaling_, estimator.fit_.network
        Z = scaling.inputs(X)
        a, b, width = network.hyperplanes.normals, network.hyperplanes.offsets, 0.4
        s = 1 / (1 + np.exp(-(Z @ a.T + b) / width))
        first, second = s * (1 - s) / width, s * (1 - s) * (1 - 2 * s) / width**2
        slopes = (first[:, None, :] * a.T).reshape(-1, 20)
        bends = (second[:, None, None, :] * (a.T[:, None] * a.T)).reshape(-1, 20)
        ones, zeros = np.ones((50, 1)), np.zeros((50 * 4, 1))
        rows = np.vstack(
            [np.hstack([s, ones]), np.sqrt(0.2) * np.hstack([slopes, zeros]), 0.1 * np.pad(bends, ((0, 0), (0, 1)))]
        )
        scaled = scaling(Jet(X, y, gradients, hessians))
        parts = (scaled.y, np.sqrt(0.2) * scaled.gradients.ravel(), 0.1 * scaled.hessians.ravel())
        weights = network.coefficients
        residual = np.concatenate(parts) - rows @ weights
        stationary = rows.T @ residual
        assert_allclose(stationary[20], 0, atol=1e-9)  # the constant is not penalised
        ratios = stationary[:20] / weights[:20]
        assert_allclose(ratios, ratios.mean(), rtol=1e-4)


class TestKnownInPart:
    @pytest.mark.parametrize(
        ("kind", "factor"),
        [
            ("one partial missing", 0.5),
            ("one partial known", 0.5),
            ("every second row", 0.5),
            ("few rows", 1.0),
            ("one column missing", 2.0),  # no harm: the sampling must look across an input whose partials are unknown
        ],
    )
    @pytest.mark.parametrize("seed", [0, 1])
    def test_what_is_known_helps(self, kind, factor, seed, values_only):
        X = points(seed=seed)
        y, gradients, _ = smooth(X)
        rng, rows = np.random.default_rng(3), np.arange(60)
        known = np.zeros((60, 4), bool)
        if kind == "one partial missing":
            known[:] = True
            known[rows, rng.integers(0, 4, 60)] = False
        elif kind == "one partial known":
            known[rows, rng.integers(0, 4, 60)] = True
        elif kind == "one column missing":
            known[:, :3] = True
        else:
            known[:: {"every second row": 2, "few rows": 12}[kind]] = True
        estimator = model(random_state=seed).fit(X, y, gradients=np.where(known, gradients, np.nan))
        assert error(estimator) < factor * values_only[seed]
        assert estimator.gradient_weight_ > 0 or factor >= 1

    def test_the_loss_knows_only_what_is_known(self):
        """What stands behind a NaN cannot matter; what does not, matters."""
        X = points()
        y, gradients, _ = smooth(X)
        gaps = gradients.copy()
        gaps[::2, 1], gaps[5] = np.nan, np.nan
        first = plain(gradient_weight=0.1).fit(X, y, gradients=gaps).predict(X)
        rows = [Jet(X, y)]
        for i in range(4):
            there = ~np.isnan(gaps[:, i])
            alone = np.full((there.sum(), 4), np.nan)
            alone[:, i] = gaps[there, i]
            rows.append(Jet(X[there], np.full(there.sum(), np.nan), alone))
        apart = plain(gradient_weight=0.1).fit(
            X,
            y,
            gradients=np.concatenate([j.gradients for j in rows[1:]]),
            gradients_at=np.concatenate([j.X for j in rows[1:]]),
        )
        assert_allclose(apart.predict(X), first, atol=1e-5)
        whole = plain(gradient_weight=0.1).fit(X, y, gradients=gradients).predict(X)
        assert np.abs(whole - first).max() > 1e-4

    def test_masks_of_several_outputs(self, values_only):
        """A partial derivative counts where it is known for all outputs."""
        X = points()
        y, gradients, _ = smooth(X)
        both, slopes = np.column_stack([y, 1e5 * y**2]), np.stack([gradients, 2e5 * y[:, None] * gradients], 1)
        one, two = slopes.copy(), slopes.copy()
        one[::3, 0, 2] = np.nan
        two[::3, :, 2] = np.nan
        a, b = (plain(gradient_weight=0.1).fit(X, both, gradients=g).predict(X) for g in (one, two))
        assert_allclose(a, b, rtol=1e-9, atol=1e-9)


class TestElsewhere:
    def test_is_the_jet_made_by_hand(self):
        X, P = points(), points(30, seed=5)
        y, slopes = smooth(X)[0], smooth(P)[1]
        gaps = np.concatenate([np.full((60, 4), np.nan), slopes])
        jet = Jet(X, y) + Jet(P, np.full(30, np.nan), slopes)
        assert_array_equal(jet.gradients, gaps)
        estimator = plain(20, gradient_weight=0.2).fit(X, y, gradients=slopes, gradients_at=P)
        network, scaling = estimator.fit_.network, estimator.scaling_
        Z = scaling.inputs(P)
        a, b = network.hyperplanes.normals, network.hyperplanes.offsets
        residual = scaling(jet).gradients[60:] - network.gradient(Z)
        s, t = (1 / (1 + np.exp(-(U @ a.T + b) / 0.4)) for U in (scaling.inputs(X), Z))
        left = (scaling(jet).y[:60] - network.value(scaling.inputs(X))) @ s
        left += 0.2 * np.einsum("kd,kn,nd->n", residual, t * (1 - t) / 0.4, a)
        assert_allclose(left / network.coef, np.mean(left / network.coef), rtol=1e-4)

    def test_at_the_points_themselves_is_nothing_special(self):
        X = points()
        y, gradients, _ = smooth(X)
        here = plain(gradient_weight=0.1).fit(X, y, gradients=gradients)
        there = plain(gradient_weight=0.1).fit(X, y, gradients=gradients, gradients_at=X)
        assert_allclose(there.predict(X), here.predict(X), atol=1e-5)

    @pytest.mark.parametrize("seed", [0, 1])
    def test_helps(self, seed, values_only):
        X, P = points(seed=seed), points(60, seed=7)
        estimator = model(random_state=seed).fit(X, smooth(X)[0], gradients=smooth(P)[1], gradients_at=P)
        assert estimator.gradient_weight_ > 0
        assert error(estimator) < values_only[seed] / 3

    def test_with_weights_hessians_and_a_share_for_validation(self):
        X, P = points(100), points(50, seed=7)
        y, _, hessians = smooth(X)
        weights = np.random.default_rng(0).uniform(0.5, 2, 100)
        estimator = model(60).fit(
            X, y, gradients=smooth(P)[1], gradients_at=P, hessians=hessians, sample_weight=weights, validation=0.2
        )
        assert error(estimator) < 0.1

    def test_of_several_outputs(self):
        X, P = points(), points(60, seed=7)
        both, slopes = (
            np.stack([smooth(X)[0], -1e6 * smooth(X)[0]], 1),
            np.stack([smooth(P)[1], -1e6 * smooth(P)[1]], 1),
        )
        estimator = model(60).fit(X, both, gradients=slopes, gradients_at=P)
        fresh = points(500, seed=9)
        for k, factor in enumerate((1, -1e6)):
            assert np.std(estimator.predict(fresh)[:, k] / factor - smooth(fresh)[0]) < 0.05


class TestDirections:
    @pytest.mark.parametrize("n_outputs", [1, 3])
    def test_along_a_basis_are_gradients(self, n_outputs):
        X = points()
        y, gradients, _ = smooth(X)
        factors = np.array([1.0, -3.0, 1e4])[:n_outputs]
        if n_outputs > 1:
            y, gradients = y[:, None] * factors, gradients[:, None, :] * factors[:, None]
        basis = np.linalg.qr(np.random.default_rng(0).normal(size=(60, 4, 4)))[0]
        slopes = np.einsum("n...d,nqd->n...q", gradients, basis)
        whole = plain(gradient_weight=0.1).fit(X, y, gradients=gradients)
        along = plain(gradient_weight=0.1).fit(X, y, gradients=slopes, directions=basis)
        assert_allclose(along.predict(X) / factors[-1], whole.predict(X) / factors[-1], atol=1e-6)
        assert not model().fit(X, y, gradients=slopes, directions=basis).estimated_

    def test_their_lengths_do_not_matter(self):
        X, V = points(), random_directions(60)
        y, gradients, _ = smooth(X)
        sizes = np.random.default_rng(1).uniform(-5, 5, (60, 1))
        fits = [
            plain(gradient_weight=0.1).fit(X, y, gradients=np.sum(U * gradients, axis=1), directions=U)
            for U in (V, sizes * V)
        ]
        assert_allclose(fits[0].predict(X), fits[1].predict(X), atol=1e-6)

    @pytest.mark.parametrize("seed", [0, 1])
    def test_one_at_each_point_helps(self, seed, values_only):
        X, V = points(seed=seed), random_directions(60)
        y, gradients, _ = smooth(X)
        estimator = model(random_state=seed).fit(X, y, gradients=np.sum(V * gradients, axis=1), directions=V)
        assert estimator.gradient_weight_ > 0
        assert error(estimator) < 0.5 * values_only[seed]

    def test_at_other_points(self, values_only):
        X, P, V = points(), points(120, seed=7), random_directions(120)
        slopes = np.sum(V * smooth(P)[1], axis=1)
        estimator = model().fit(X, smooth(X)[0], gradients=slopes, directions=V, gradients_at=P)
        assert error(estimator) < 0.5 * values_only[0]

    def test_are_checked_where_they_span_all(self):
        """The part of a gradient along one direction contradicts no difference of values."""
        X = points(200)[:, :2]
        y, gradients = np.sin(2 * X[:, 0]) + X[:, 1], np.column_stack([2 * np.cos(2 * X[:, 0]), np.ones(200)])
        basis = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 2, 2)))[0]
        slopes = np.einsum("nd,nqd->nq", gradients, basis)
        model(20, check_gradients=True).fit(X, y, gradients=slopes, directions=basis)
        with pytest.raises(ValueError, match="contradict the values"):
            model(20, check_gradients=True).fit(X, y, gradients=-slopes, directions=basis)
        with pytest.warns(UserWarning, match=r"could not be confirmed: .*\(0 of 200 rows"):
            model(20, check_gradients=True).fit(X, y, gradients=slopes[:, 0], directions=basis[:, 0])


class TestDerivativeWeight:
    def test_zero_is_not_known_in_the_loss(self):
        X = points()
        y, gradients, _ = smooth(X)
        light, gaps = np.ones(60), gradients.copy()
        light[::2], gaps[::2] = 0, np.nan
        spoilt = np.where(light[:, None] > 0, gradients, 1e3)
        a = plain(gradient_weight=0.1).fit(X, y, gradients=spoilt, derivative_weight=light)
        b = plain(gradient_weight=0.1).fit(X, y, gradients=gaps)
        assert_allclose(a.predict(X), b.predict(X), atol=1e-6)

    def test_is_a_factor_of_the_gradient_weight(self):
        X = points()
        y, gradients, _ = smooth(X)
        a = plain(gradient_weight=0.1).fit(X, y, gradients=gradients, derivative_weight=np.full(60, 0.3))
        b = plain(gradient_weight=0.03).fit(X, y, gradients=gradients)
        assert_allclose(a.predict(X), b.predict(X), atol=1e-6)

    def test_tells_good_gradients_from_bad_ones(self):
        X = points()
        y, gradients, _ = smooth(X)
        good = np.arange(60) % 2 == 0
        mixed = gradients + np.where(good, 0.0, 3.0)[:, None] * np.random.default_rng(0).normal(size=(60, 4))
        blind = plain(gradient_weight=0.1).fit(X, y, gradients=mixed)
        told = plain(gradient_weight=0.1).fit(X, y, gradients=mixed, derivative_weight=np.where(good, 1.0, 1e-6))
        assert error(told) < 0.5 * error(blind)


class TestSeveralOutputs:
    def test_of_very_different_scales_share_their_hyperplanes(self):
        X = points()
        y, gradients, _ = smooth(X)
        factors = np.array([1e-6, 1.0, 1e8])
        second = np.column_stack([y, y**2, np.exp(y)]) * factors
        slopes = np.stack([gradients, 2 * y[:, None] * gradients, np.exp(y)[:, None] * gradients], 1) * factors[:, None]
        estimator = model(60).fit(X, second, gradients=slopes)
        fresh = points(500, seed=9)
        z = smooth(fresh)[0]
        truth = np.column_stack([z, z**2, np.exp(z)]) * factors
        assert len(estimator.hyperplanes_) == estimator.network_.coef.shape[0] <= 60
        assert estimator.network_.coef.shape[1] == 3
        errors = np.std(estimator.predict(fresh) - truth, axis=0) / np.std(truth, axis=0)
        assert np.all(errors < 0.1), errors


def test_attributes_are_those_of_the_network_not_of_a_stage_that_was_left_out():
    """Noisy values: sooner or later the last stage is worse, and has another width."""
    rng = np.random.default_rng(0)
    left_out = 0
    for seed in range(12):
        X = rng.uniform(-1, 1, (60, 2))
        y = X[:, 0] + 0.5 * rng.normal(size=60)
        estimator = model(200, random_state=seed, derivatives="given").fit(X, y)
        history, size = estimator.fit_.history, estimator.fit_.network.features.n_neurons
        stage = next(stage for stage in history if stage.n_neurons == size)
        assert estimator.width_ == np.mean(stage.setting.activation.width)
        widths = np.broadcast_to(estimator.fit_.network.activation.width, size)
        assert estimator.width_ == widths[-1]
        left_out += history[-1].setting.activation != stage.setting.activation
    assert left_out > 0


class TestEstimatedDerivatives:
    @pytest.mark.parametrize(("name", "n", "factor"), [("planar_wave", 150, 5), ("borehole", 100, 2)])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_beat_uniform_sampling_where_directions_differ(self, name, n, factor, seed):
        problem = problems.get(name)
        X = problem.sample(n, np.random.default_rng(seed))
        fresh = problem.sample(1000, np.random.default_rng(99))
        truth = problem.value(fresh)
        errors = {}
        for density, derivatives in {"auto": "estimate", "uniform": "given"}.items():
            estimator = model(60, density=density, derivatives=derivatives, random_state=seed)
            errors[density] = np.std(estimator.fit(X, problem.value(X)).predict(fresh) - truth)
        assert errors["auto"] < errors["uniform"] / factor

    @pytest.mark.parametrize("seed", [0, 1])
    def test_are_not_much_worse_at_a_corner(self, seed):
        problem = problems.get("corner")
        X = problem.sample(150, np.random.default_rng(seed))
        fresh = problem.sample(1000, np.random.default_rng(99))
        errors = [
            np.std(
                model(60, density=d, random_state=seed).fit(X, problem.value(X)).predict(fresh) - problem.value(fresh)
            )
            for d in ("auto", "uniform")
        ]
        assert errors[0] < 1.5 * errors[1]

    def test_are_the_default_without_gradients(self):
        X = points(seed=0)
        y = smooth(X)[0]
        auto, asked = model(60).fit(X, y), model(60, derivatives="estimate").fit(X, y)
        assert_array_equal(auto.predict(X), asked.predict(X))
        assert auto.estimated_
        assert auto.density_ == Nonlocal(1)


class TestSize:
    def test_grows_as_long_as_that_helps(self):
        wave = problems.get("planar_wave")
        rng = np.random.default_rng(0)
        X = wave.sample(300, rng)
        jet = wave.jet(X)
        sizes, errors = [], []
        for noise in (0.0, 0.5):
            y = jet.y + noise * rng.normal(size=300)
            estimator = model("auto").fit(X, y, gradients=jet.gradients)
            history = estimator.fit_.history
            errors.append([stage.error for stage in history])
            sizes.append(estimator.fit_.network.features.n_neurons)
            assert [stage.n_neurons for stage in history] == [50, 150, 450, 1350, 4050][: len(history)]
            assert history[-1].error > 0.95 * min(errors[-1][:-1]) or len(history) == 5
        assert sizes[1] <= sizes[0]
        assert min(errors[1]) > 0.3

    def test_is_at_most_the_number_that_is_given(self):
        X = points()
        for n in (1, 2, 17):
            found = model(n).fit(X, smooth(X)[0]).fit_.network.features.n_neurons
            assert 1 <= found <= n


class TestWidth:
    def test_auto_is_about_as_good_as_the_best(self):
        """In one stage of all neurons the widths differ by orders of magnitude."""
        wave = problems.get("planar_wave")
        jet, fresh = wave.jet(wave.sample(200, np.random.default_rng(0))), wave.sample(1000, np.random.default_rng(1))
        truth = wave.value(fresh)

        def found(**parameters):
            estimator = model(60, gradient_weight=0, density="nonlocal", **parameters)
            estimator.fit(jet.X, jet.y, gradients=jet.gradients)
            return np.std(estimator.predict(fresh) - truth)

        ladder = [found(width=width) for width in (1.6, 0.4, 0.1, 0.025)]
        assert max(ladder) > 100 * min(ladder)
        assert found() < 10 * min(ladder)

    def test_multiscale_is_a_width_for_each_neuron(self):
        X = points(200)
        estimator = model(60, width="multiscale").fit(X, smooth(X)[0], gradients=smooth(X)[1])
        widths = estimator.fit_.network.activation.width
        n = estimator.fit_.network.features.n_neurons
        assert widths.shape == (n,)
        assert len(np.unique(widths)) > 0.9 * n
        assert np.all((widths >= 0.025 / 4 * (1 - 1e-9)) & (widths <= 1.6 * 4 * (1 + 1e-9)))
        assert widths.max() > 4 * widths.min()
        assert error(estimator) < 0.05

    def test_a_number_is_the_width_of_all(self):
        X = points()
        estimator = model(60, width=0.3).fit(X, smooth(X)[0])
        assert_array_equal(estimator.fit_.network.activation.width, 0.3)
        assert estimator.width_ == 0.3


def cells(report):
    return dict(report.lines)


class TestReport:
    def check(self, estimator, n):
        report = estimator.report()
        lines, text, html = cells(report), str(report), report._repr_html_()
        size = estimator.fit_.network.features.n_neurons
        assert report.title.startswith(f"{size} neurons for {n} samples in {estimator.n_features_in_} dimensions")
        assert lines["neurons"].split()[0] == str(size)
        assert lines["alpha"].startswith(f"{estimator.alpha_:.2g}, by ")
        assert lines["law"].startswith(type(estimator.density_).__name__)
        assert lines["width"].startswith(f"{estimator.width_:.3g}")
        assert lines["estimated error"].startswith(f"{estimator.fit_.error:.2g} of the standard deviation")
        weight = estimator.gradient_weight_
        assert lines["derivatives in the loss"].startswith(f"gradients {weight:g}" if weight else "none")
        assert ("estimated derivatives" in lines["law"]) == estimator.estimated_
        for label, value in report.lines:
            assert f"  {label}" in text
            assert value in text
            assert f">{label}</th>" in html
            assert value.replace(">", "&gt;") in html
        assert html.startswith("<table>")
        assert html.count("<tr>") == len(report.lines)
        return lines

    def test_with_gradients(self):
        X = points()
        y, gradients, _ = smooth(X)
        estimator = model().fit(X, y, gradients=gradients)
        lines = self.check(estimator, 60)
        assert "stages of 4 -> 12 -> 36" in lines["neurons"]
        assert "they help" in lines["derivatives in the loss"]
        assert "Uniform" in lines["law"]
        assert "tried 0.025 to 1.6" in lines["width"]
        assert f"{estimator.fit_.error * np.std(y):.2g} in their units" in lines["estimated error"]

    def test_without_gradients(self):
        X = points()
        lines = self.check(model().fit(X, smooth(X)[0]), 60)
        assert lines["derivatives in the loss"] == "none"

    def test_where_uniform_sampling_wins_over_estimates(self):
        rng = np.random.default_rng(0)
        for seed in range(8):
            X = rng.uniform(-1, 1, (40, 4))
            estimator = model(30, random_state=seed).fit(X, rng.normal(size=40))
            if estimator.density_ == Uniform():
                assert not estimator.estimated_
                assert self.check(estimator, 40)["law"].startswith("Uniform")
                return
        pytest.fail("uniform sampling did not win")

    def test_at_once(self):
        X = points()
        estimator = plain(alpha="auto", selection="gcv").fit(X, smooth(X)[0])
        lines = self.check(estimator, 60)
        assert lines["neurons"] == "60"
        assert lines["law"] == "Uniform"
        assert lines["width"] == "0.4 of the radius of the data"
        assert lines["alpha"].endswith("by generalised cross-validation")

    def test_with_weights_that_were_given_and_validation_rows(self):
        X = points(100)
        y, gradients, hessians = smooth(X)
        estimator = model(60, gradient_weight=0.05, hessian_weight=0.001)
        estimator.fit(X, y, gradients=gradients, hessians=hessians, validation=0.2)
        lines = self.check(estimator, 80)
        assert lines["derivatives in the loss"] == "gradients 0.05, Hessians 0.001"
        assert lines["alpha"].endswith("by validation rows")

    def test_of_several_outputs(self):
        X = points()
        y = smooth(X)[0]
        lines = self.check(model(30).fit(X, np.column_stack([y, y**2])), 60)
        assert lines["estimated error"].endswith("outputs added up")

    def test_of_sharp_and_multiscale_activations(self):
        X = points()
        y = smooth(X)[0]
        assert "sharp" in self.check(model(30, activation="relu").fit(X, y), 60)["width"]
        lines = cells(model(60, width="multiscale").fit(X, y).report())
        assert "in all" in lines["width"]

    def test_needs_a_fit(self):
        with pytest.raises(ValueError, match="not fitted yet"):
            model().report()
