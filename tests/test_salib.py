"""Problems of SALib: samples have our distributions, and its analyses of a model agree with ours."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from nurf import KernelFeatureRegressor, export
from nurf.decisions import sensitivity

INPUTS = {
    "a": stats.uniform(2, 3),
    "b": stats.norm(loc=1, scale=0.5),
    "c": stats.lognorm(0.3, scale=2.0),
    "d": stats.loguniform(0.1, 10),
    "e": stats.truncnorm(-1, 2, 5, 0.5),
    "f": stats.triang(0.3, 1, 2),
    "g": stats.weibull_min(1.5, 3.0, 2.0),
}


class TestProblems:
    def test_samples_have_the_distributions(self):
        """Quantiles of 4096 Sobol points differ from those of the distributions by less than a per cent of a width."""
        sobol = pytest.importorskip("SALib.sample.sobol")
        problem = export.to_salib(INPUTS)
        X = sobol.sample(problem, 4096, calc_second_order=False, seed=0)
        assert problem["names"] == list(INPUTS)
        for column, marginal in zip(X.T, INPUTS.values(), strict=True):
            p = np.array([0.05, 0.3, 0.5, 0.9])
            width = marginal.ppf(0.95) - marginal.ppf(0.05)
            assert_allclose(np.quantile(column, p), marginal.ppf(p), atol=0.01 * width)

    def test_its_indices_of_a_model_are_ours(self):
        salib = pytest.importorskip("SALib")
        X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
        model = KernelFeatureRegressor().fit(X, X[:, 0] + X[:, 0] * X[:, 1] ** 2)
        inputs = [stats.truncnorm(-2, 2), stats.uniform(-2, 4)]
        problem = salib.ProblemSpec(export.to_salib(inputs))
        problem.sample_sobol(1024, seed=0).evaluate(model.function()).analyze_sobol(seed=0)
        found = sensitivity(model, inputs, second=True, random_state=0)
        theirs = problem.analysis
        assert_allclose(found.first, theirs["S1"], atol=theirs["S1_conf"].max() + 0.02)
        assert_allclose(found.total, theirs["ST"], atol=theirs["ST_conf"].max() + 0.02)
        assert_allclose(found.interaction[0], theirs["S2"][0, 1], atol=theirs["S2_conf"][0, 1] + 0.02)

    def test_names_in_order(self):
        assert export.to_salib([stats.norm(), stats.uniform()]) == {
            "num_vars": 2,
            "names": ["x0", "x1"],
            "bounds": [[0.0, 1.0], [0.0, 1.0]],
            "dists": ["norm", "unif"],
        }


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ({"a": stats.gamma(2.0)}, r"got gamma for a\. `nurf\.decisions\.sensitivity` takes any"),
        ({"a": 3.0}, "got float for a"),
        ([stats.lognorm(0.3, loc=1.0)], r"no `loc` for lognorm, got 1\.0 for x0"),
        ([], "at least one distribution"),
    ],
)
def test_what_salib_does_not_know(inputs, match):
    with pytest.raises(ValueError, match=match):
        export.to_salib(inputs)
