"""How errors grow with the standard deviations that processes expect."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nurf import KernelFeatureRegressor
from nurf.solvers.process._growth import Growth


def held_out(power, m=2000, k=1, seed=0, gross=0):
    """Errors that grow with a power of the standard deviations, which differ by five orders of magnitude."""
    rng = np.random.default_rng(seed)
    s = np.exp(rng.uniform(-6, 6, (m, k)))
    errors = 3e-7 * s ** (1 + power) * rng.normal(size=(m, k))
    errors[:gross] *= 1e6
    return errors, s


class TestGrowth:
    @pytest.mark.parametrize("power", [0.0, 0.3, 0.8])
    @pytest.mark.parametrize("gross", [0, 20])
    def test_finds_the_power(self, power, gross):
        """The standard error of the slope of a line through 2000 logarithms (deviation 1.1, range 12) is 0.007."""
        assert abs(Growth.of(*held_out(power, gross=gross)).power - power) < 0.06

    def test_errors_that_grow_less_keep_their_proportion(self):
        assert Growth.of(*held_out(-0.5)).power == 0

    def test_few_errors_are_no_evidence(self):
        """Over 200 sets of five errors in proportion to their standard deviations, the mean power stays small."""
        powers = [Growth.of(*held_out(0.0, m=5, seed=seed)).power for seed in range(200)]
        assert np.mean(powers) < 0.25

    def test_outputs_in_any_unit_have_the_same_power(self):
        errors, s = held_out(0.5, k=3)
        units = np.array([1e-150, 1.0, 1e150])
        one, other = Growth.of(errors, s), Growth.of(errors * units, s * units)
        assert one.power == other.power
        assert_allclose(other.ratios, one.ratios, rtol=1e-6)
        assert_allclose(other.amplitudes(s * units), one.amplitudes(s), rtol=1e-6)

    def test_does_not_extrapolate(self):
        growth = Growth.of(*held_out(0.5))
        assert growth.amplitudes(10 * growth.largest) == growth.amplitudes(growth.largest)
        assert growth.amplitudes(growth.smallest / 10) == growth.amplitudes(growth.smallest)
        s, h = np.exp(np.linspace(-5, 5, 30))[:, None], 1e-6
        differences = (growth.amplitudes(s * (1 + h)) - growth.amplitudes(s * (1 - h))) / (2 * h * s)
        assert_allclose(growth.amplitude_slopes(s), differences, rtol=1e-6)

    def test_errors_of_zero(self):
        growth = Growth.of(np.zeros((10, 2)), np.ones((10, 2)))
        assert np.all(growth.factors(10.0) == 0)


@pytest.mark.filterwarnings("ignore:.*carry 90% of the squared error")
def test_standard_deviations_of_a_fit_hold_errors_at_the_corners():
    """A product of exponential functions: far from all samples errors are larger, and the process knows by how much."""
    shares = {True: [], False: []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, slopes = rng.uniform(-1, 1, (50, 3)), rng.uniform(-1.5, 1.5, 3)
        model = KernelFeatureRegressor().fit(X, np.exp(X @ slopes))
        for corners in (False, True):
            at = rng.uniform(-1, 1, (400, 3))
            at = np.sign(at) if corners else at
            values, deviations = model.predict(at, return_std=True)
            shares[corners].append(np.mean(np.abs(values - np.exp(at @ slopes)) < 1.645 * deviations))
    assert np.mean(shares[False]) > 0.75
    assert np.mean(shares[True]) > 0.75
