"""Known reasons for differences between our errors and those of the authors' code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reason:
    """A reason why errors of some cases and methods differ from the authors'.

    Parameters
    ----------
    text : str
    cases, methods : tuple of str
        Empty for all.
    largest : float
        The largest number of neurons that it applies to.
    higher, lower : bool
        Whether it explains errors above and below theirs.
    """

    text: str
    cases: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    largest: float = np.inf
    higher: bool = True
    lower: bool = True

    def accounts_for(self, case: str, method: str, neurons: float, gap: float) -> bool:
        """Return whether this explains ``gap``, the logarithm of ours over theirs."""
        named = (not self.cases or case in self.cases) and (not self.methods or method in self.methods)
        return named and neurons <= self.largest and (self.higher if gap > 0 else self.lower)


RESIDUALS = ("local_residual", "nonlocal_residual")
PEAKS = ("corner_peak_3d", "corner_peak_4d")
ONE_SET = "few sampled points near the peak decide, and all trials of theirs share one set of points"

# The first that applies is reported. Errors "with their conventions" were computed on new data, with their conventions
# in place of ours.
REASONS: tuple[Reason, ...] = (
    Reason(
        "the gradient on the creases: central differences give theirs the mean of both sides, (1/2, 1/2) on the "
        "diagonal, a third direction; ours is that of one side. With their conventions 0.15 (N = 138), 0.12 (N = 250)",
        ("corner",),
        ("local",),
        lower=False,
    ),
    Reason(
        "at s = 2 theirs counts a constant and two linear neurons among the N, penalised; ours has an affine tail "
        "beside N sampled neurons. With their conventions 0.20 (local, N = 8) and 0.11 (nonlocal residual, N = 12)",
        ("gaussian_bump_s2",),
        ("local", "nonlocal", "representation", *RESIDUALS),
        largest=24,
        higher=False,
    ),
    Reason(f"{ONE_SET}; theirs has no constant", PEAKS, ("uniform", "active_subspace"), largest=24, higher=False),
    Reason(
        "their network has no constant for this method; ours has one, which matters while there are few neurons",
        (),
        ("uniform", "active_subspace"),
        largest=24,
        higher=False,
    ),
    Reason(ONE_SET, PEAKS),
    Reason(
        "theirs counts the constant, which is penalised, among the N neurons: one sampled neuron fewer, worth 15% at "
        "N = 8 in 40 further trials, whose spread covers the rest",
        ("gaussian_bump",),
        ("local", "nonlocal", "representation", *RESIDUALS),
        largest=24,
        higher=False,
    ),
    Reason(
        "one sampled neuron fewer (the constant is one of the N), and alpha from the 16 of the stage, where ours comes "
        "from those of all stages. With their conventions 0.37 (N = 13) and 0.038 (N = 42)",
        ("planar_wave",),
        ("local_residual",),
        higher=False,
    ),
    Reason(
        "theirs counts the constant, which is penalised, among the N neurons: one sampled neuron fewer",
        ("planar_wave", "checkmark_2d", "corner", "separable", "borehole_8d"),
        ("local", "nonlocal", "representation", *RESIDUALS),
        largest=13,
        higher=False,
    ),
    Reason(
        "theirs counts a penalised constant among its neurons: it has two and three where ours, at the same alpha, has "
        "none and two. At equal alpha the errors agree: 0.894 and 0.363 (theirs), 0.907 and 0.368 (ours)",
        ("gaussian_bump",),
        ("sparse",),
        largest=3,
    ),
    Reason(
        "theirs counts a penalised constant among its neurons, and comes to a size at another alpha than ours: while "
        "networks are small, the penalty decides their errors",
        ("planar_wave", "checkmark_2d", "corner", "separable"),
        ("sparse",),
        largest=10,
    ),
    Reason(
        "chance: theirs are two trials; eight further ones of ours spread by 30%, and give 0.325 with their rules",
        ("planar_wave",),
        ("representation",),
    ),
    Reason(
        "chance: theirs is one trial; three further ones of ours spread by 4%, those of the run by 1%",
        ("borehole_8d",),
        ("uniform",),
    ),
    Reason(
        "chance: eight further trials gave 0.422 for active subspaces and 0.163 for local sampling at N = 454, with "
        "spreads of 4% and 6%",
        ("checkmark_3d",),
        ("active_subspace", "local"),
    ),
)
