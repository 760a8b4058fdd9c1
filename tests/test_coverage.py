"""Quantiles of errors: against order statistics, tables, and simulated data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, t

from nurf.solvers._coverage import calibration, effective_number, plus_interval, require_errors, standard_error


class TestIntervals:
    @pytest.mark.parametrize(("m", "rank"), [(9, 9), (19, 18), (99, 90), (200, 181)])
    def test_are_order_statistics(self, m, rank):
        """The smallest rank ``r`` with ``r / (m + 1) >= 0.9``, if predictions differ by less than the errors."""
        rng = np.random.default_rng(m)
        predictions, errors = 0.1 * rng.normal(size=(3, m, 2)), np.abs(rng.normal(size=(m, 2)))
        low, high = np.moveaxis(plus_interval(predictions, errors, 0.9), -1, 0)
        assert_allclose(high, np.sort(predictions + errors, axis=1)[:, rank - 1])
        assert_allclose(low, -np.sort(errors - predictions, axis=1)[:, rank - 1])

    @pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 10.0])
    @pytest.mark.parametrize("m", [3, 9, 40])
    def test_are_ordered_and_nested_and_contain_the_jackknife(self, m, spread):
        """However much predictions differ, also where the ends of the jackknife+ change places."""
        rng = np.random.default_rng(m)
        predictions, errors = spread * rng.normal(size=(30, m, 2)), np.abs(rng.normal(size=(m, 2)))
        inner = np.full((30, 2, 2), np.nan)
        for coverage in (1e-12, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999):
            found = plus_interval(predictions, errors, coverage)
            assert np.all(found[..., 0] <= found[..., 1])
            assert not np.any((found[..., 0] > inner[..., 0]) | (found[..., 1] < inner[..., 1]))
            rank = int(np.ceil(coverage * (m + 1) - 1e-9))
            if 1 <= rank <= m:
                assert np.all(found[..., 0] <= np.sort(predictions - errors, axis=1)[:, m - rank])
                assert np.all(found[..., 1] >= np.sort(predictions + errors, axis=1)[:, rank - 1])
            inner = found

    @pytest.mark.parametrize("m", [3, 5, 8])
    def test_of_very_few_errors_are_stretched(self, m):
        errors = np.arange(1.0, m + 1)[:, None]
        low, high = plus_interval(np.zeros((1, m, 1)), errors, 0.9)[0, 0]
        stretch = t(m).ppf(0.95) / t(m).ppf(1 - 0.5 / (m + 1)) * (1 + 1 / np.sqrt(2 * m))
        assert stretch > 1
        assert_allclose([low, high], [-stretch * m, stretch * m])

    @pytest.mark.parametrize("m", [3, 6, 8, 30])
    def test_cover_normal_errors(self, m):
        """20,000 data sets: a standard error of 0.0021.

        From 9 errors on, the share is ``ceil(0.9 (m + 1)) / (m + 1)``, whatever their distribution. With fewer, it is a
        guess beyond the largest error, and on the safe side by the standard error that is added.
        """
        rng = np.random.default_rng(0)
        errors, fresh = np.abs(rng.normal(size=(m, 20_000))), rng.normal(size=20_000)
        low, high = plus_interval(np.zeros((1, m, 20_000)), errors, 0.9)[0].T
        share = np.mean((low <= fresh) & (fresh <= high))
        most = np.ceil(0.9 * (m + 1)) / (m + 1) if m >= 9 else 0.96
        assert 0.9 - 5 * 0.0021 < share < most + 5 * 0.0021

    @pytest.mark.parametrize(("effective", "rank"), [(40.0, 37), (20.0, 38), (9.0, 40)])
    def test_of_uneven_weights_are_those_of_fewer_errors(self, effective, rank):
        """The smallest rank ``r`` of 40 errors with ``r / 40 >= 0.9 (n + 1) / n``."""
        errors = np.random.default_rng(0).permutation(np.arange(1.0, 41))[:, None]
        low, high = plus_interval(np.zeros((1, 40, 1)), errors, 0.9, effective)[0, 0]
        assert_allclose([low, high], [-rank, rank])

    def test_of_very_uneven_weights_are_stretched(self):
        errors = np.arange(1.0, 41)[:, None]
        low, high = plus_interval(np.zeros((1, 40, 1)), errors, 0.9, 2.5)[0, 0]
        stretch = t(2.5).ppf(0.95) / t(2.5).ppf(1 - 0.5 / 3.5) * (1 + 1 / np.sqrt(5.0))
        assert_allclose([low, high], [-40 * stretch, 40 * stretch])


class TestEffectiveNumber:
    @pytest.mark.parametrize("unit", [1e-3, 1.0, 7.0])
    def test_of_equal_weights_is_their_number(self, unit):
        assert_allclose(effective_number(np.full(12, unit)), 12)
        assert_allclose(effective_number(unit * np.array([1.0] * 12 + [1e-9] * 30)), 12, rtol=1e-6)

    def test_gives_the_standard_error_of_a_weighted_root_mean_square(self):
        """20,000 data sets: a deviation is known to ``1 / sqrt(40,000)`` = 0.5%.

        A root of a mean of relative variance v has one of ``v / 4`` up to a share of order v = 2 / 60, less than 3%.
        """
        rng = np.random.default_rng(0)
        weights = 625 ** rng.random(200)
        squares = rng.normal(size=(20_000, 200)) ** 2 @ weights / weights.sum()
        assert 40 < effective_number(weights) < 90
        assert_allclose(np.std(np.sqrt(squares)), standard_error(effective_number(weights)), rtol=0.03 + 5 * 0.005)


class TestCalibration:
    def test_is_one_for_normal_errors(self):
        """The 0.9 quantile of |z| of 10,000 errors has a relative standard error of ``sqrt(0.09 / n) / (2 phi q)``."""
        factor = calibration(np.abs(np.random.default_rng(0).normal(size=10_000)))
        assert abs(factor - 1) < 5 * 0.3 / 100 / (2 * 0.1031 * 1.645)

    @pytest.mark.parametrize(("effective", "rank"), [(40.0, 37), (20.0, 38), (9.0, 40)])
    def test_of_uneven_weights_is_that_of_fewer_errors(self, effective, rank):
        ratios = np.arange(1.0, 41)
        assert_allclose(calibration(ratios, effective), rank / norm.ppf(0.95))

    def test_unknown_errors_do_not_count(self):
        ratios = np.abs(np.random.default_rng(0).normal(size=(40, 2, 3)))
        holes = ratios.copy()
        holes[::2, 0, 1] = np.nan
        holes[2:, 1, 2] = np.nan
        found, whole = calibration(holes), calibration(ratios)
        assert_allclose(found[0, 1], calibration(ratios[1::2, 0, 1]))
        assert np.isnan(found[1, 2])
        for index in ((0, 0), (0, 2), (1, 0), (1, 1)):
            assert_allclose(found[index], whole[index])


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_errors(n):
    with pytest.raises(ValueError, match=f"need at least 3 samples with a value, got {n}"):
        require_errors(n)
