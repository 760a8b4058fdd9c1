"""Every number that steers a choice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """The numbers by which candidates are judged and chosen.

    Parameters
    ----------
    n_folds : int, default 5
        Number of folds, without each of which a candidate is fitted.
    few_samples : int, default 150
        Up to this number of samples, sampled and deep networks are judged by fits without each fold. With more,
        leave-one-out in closed form is nearly as honest: reported / true errors of the collection are within 1/3..3
        either way, and fits without each fold cost five times more.
    rows_per_parameter : int, default 20
        Scales of an infinitely wide network that were learned from at least this many rows for each of them depend
        little on any single sample: leave-one-out errors in closed form differ by less than 15% from errors with scales
        that were learned without the sample. With fewer rows they can be seven times too small (200 scales, 161 rows).
        Sampled networks are also judged by fits without each fold if there are fewer rows for each input.
    exact : float, default 1e-11
        A race ends if an error is not larger, in units of the standard deviation of the values: few simulators have
        more digits, and with more neurons the rounding of their sum grows.
    factor : float, default 2
        Candidates get the next effort if their error is within this factor of the smallest of their engine. With 1.4
        and 4, errors were 0.98 and 1.00 times those with 2 (geometric mean, dominated by single functions), in 0.87 and
        1.07 times the time: `RandomFeatureRegressor` on 38 functions, 10 and 50 samples for each input, with and
        without gradients.
    standard_errors : float, default 0.5
        A challenger wins if it is better than the incumbent by this many standard errors of the paired difference of
        logarithms of squared errors.
    derivative_errors : float, default 1
        Standard errors by which a fit with derivatives must beat a fit to the values alone, which is simpler and cannot
        be spoiled by wrong derivatives. In 9 of 222 fits of infinitely wide and sampled networks to 20 samples with
        wrong gradients (six kinds, eight functions), errors were more than 1.3 times those of fits to the values. With
        0.5 there were 14, with 2 there were 4, and 25 if the values had to be better by 0.5. With exact gradients and
        with 10% of noise the mean errors were the same up to 2%, with 2 standard errors 7% larger. This was measured
        without the condition on the mean square (``simplest``).
    floor : float, default 0.01
        This share of the smaller mean square is added to squared errors before their logarithms are compared. Chosen /
        best of five engines on 38 functions with 10 and 50 samples for each input, with and without gradients: 1.06;
        with 0 and 1 standard errors 1.07 and 1.09; with shares of 0, 0.001, 0.1 and 1: 1.09, 1.08, 1.08, 1.10; in
        squares 1.13.
    tail_errors : float, default 1
        A challenger that is better in logarithms does not win if its mean square is larger by this many standard
        errors: logarithms forget the tails. If one error makes up the mean square, this is its own standard error.
        Chosen / best of 276 data sets of 8 to 300 samples is 1.098, with 0 it is 1.113, with 1.5, 2 and without the
        condition 1.096. Deep networks with a small median and 3 to 14 times the root mean square of another network no
        longer win on GenzDiscontinuous and on the deflection of a beam.
    n_draws : int, default 200
        Number of draws of samples that show what choosing adds to an error.
    """

    n_folds: int = 5
    few_samples: int = 150
    rows_per_parameter: int = 20
    exact: float = 1e-11
    factor: float = 2.0
    standard_errors: float = 0.5
    derivative_errors: float = 1.0
    floor: float = 0.01
    tail_errors: float = 1.0
    n_draws: int = 200


POLICY = Policy()
