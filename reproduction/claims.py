"""The paper's claims about its figures, each with the tests that decide it."""

from __future__ import annotations

import numpy as np

from reproduction.cases import CASES
from reproduction.checks import Claim
from reproduction.criteria import (
    ADAPTIVE,
    alike,
    always_better,
    as_accurate_as_convex,
    at_sparse,
    better,
    better_at,
    deteriorates,
    fewer_than_convex,
    noise_not_reached,
    noise_reached,
    sensitive,
    stagnates,
    training_costs,
    training_over_best,
    way_to_sparse,
    worse,
)
from reproduction.placement import aligned, along, densest_at_an_axis, dominant, inflection_points
from reproduction.plan import narrow_name, unpenalised_name
from reproduction.thresholds import BIG, CLEAR, MOSTLY, QUICK, SLIGHT, SMEARED

WAVE = np.array([[1.0, -np.sqrt(2.0)]])
AXES = np.eye(2)
BUMP, BUMP2, CHECK, CORNER, SEPARABLE = "gaussian_bump", "gaussian_bump_s2", "checkmark_2d", "corner", "separable"
CHECKS, PEAKS = ("checkmark_3d", "checkmark_4d"), ("corner_peak_3d", "corner_peak_4d")
WAVE_CASE, ARM, BOREHOLE = "planar_wave", "robot_arm_6d", "borehole_8d"
SMALL = tuple(key for key, case in CASES.items() if case.dimension <= 2)
PAPERS = tuple(key for key in CASES if key != BOREHOLE)  # the functions of the paper's figures
ANOTHER = "The paper's figure shows another function than the borehole function"

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "fig1": (
        Claim(
            "Even with three times the units of the trained network, the error of uniform sampling is noticeable.",
            "section 1.2",
            (better_at(BUMP, "sparse", 11, "uniform", 30, CLEAR),),
        ),
        Claim(
            "The nonuniform and the trained network put more inflection points where the function varies.",
            "caption of figure 1",
            (
                inflection_points(BUMP, "local", many=True),
                inflection_points(BUMP, "sparse", many=True),
                inflection_points(BUMP, "uniform", many=False),
            ),
        ),
    ),
    "fig2": (
        Claim(
            "The trained network learns the direction, and is significantly more accurate with fewer neurons.",
            "section 1.2",
            (
                along(WAVE_CASE, "sparse", WAVE, least=MOSTLY),
                better_at(WAVE_CASE, "sparse", 11, "uniform", 30, CLEAR),
            ),
        ),
        Claim(
            "In figures 1 and 2, nonuniform sampling is a marked improvement over uniform sampling.",
            "section 1.3",
            tuple(better_at(key, "local", 30, "uniform", 30, CLEAR) for key in (BUMP, WAVE_CASE)),
        ),
        Claim(
            "The nonuniform weights are aligned with the trained ones.",
            "section 1.3",
            (along(WAVE_CASE, "local", WAVE, least=MOSTLY),),
        ),
    ),
    "fig3": (
        Claim(
            "Going from uniform to nonuniform sampling improves the fit with the same number of weights.",
            "section 1.3",
            (better_at(CHECK, "local", 75, "uniform", 75, CLEAR),),
        ),
        Claim(
            "The hyperplanes of the nonuniform and the trained network align with the level sets.",
            "section 1.3",
            (aligned(CHECK, "local"), aligned(CHECK, "sparse")),
        ),
    ),
    "fig4": (
        Claim(
            "The trained network reaches the noise level with about 11 neurons.",
            "section 5.1.1",
            (noise_reached(BUMP, "sparse", 11),),
        ),
        Claim(
            "Nonuniform sampling reaches it with about 30.",
            "section 5.1.1",
            (noise_reached(BUMP, "local", 30), noise_reached(BUMP, "representation", 30)),
        ),
        Claim(
            "Uniform sampling has not reached it with 50.", "section 5.1.1", (noise_not_reached(BUMP, "uniform", 50),)
        ),
        Claim(
            "Exact representation and local sampling are not significantly different.",
            "section 5.1.1",
            (alike(BUMP, "representation", "local"), alike(BUMP2, "representation", "local")),
        ),
        Claim(
            "Uniform sampling, nonuniform sampling and trained networks differ significantly.",
            "section 5.1.1",
            (
                at_sparse(BUMP, "local", "uniform", CLEAR),
                at_sparse(BUMP, "sparse", "local", CLEAR),
                at_sparse(BUMP2, "local", "uniform", CLEAR),
                at_sparse(BUMP2, "sparse", "local", CLEAR),
            ),
        ),
    ),
    "fig5": (
        Claim(
            "On the planar wave, local sampling is significantly better than uniform and comes close to sparse.",
            "section 5.1.3",
            (better(WAVE_CASE, "local", "uniform", CLEAR), way_to_sparse(WAVE_CASE, "local")),
        ),
        Claim(
            "On the planar wave, active subspaces perform as well as local sampling.",
            "section 5.1.3",
            (alike(WAVE_CASE, "active_subspace", "local"),),
        ),
        Claim(
            "On the planar wave, the exact representation does not perform well: the function has no compact support.",
            "section 5.1.3",
            (worse(WAVE_CASE, "representation", "local", CLEAR),),
        ),
        Claim(
            "On the checkmark, all nonuniform densities but active subspaces perform similarly.",
            "section 5.1.4",
            tuple(alike(CHECK, method, "local") for method in ("nonlocal", "representation", "local_residual")),
        ),
        Claim(
            "On the checkmark, active subspaces perform like uniform sampling.",
            "section 5.1.4",
            (alike(CHECK, "active_subspace", "uniform"),),
        ),
    ),
    "fig6": (
        Claim(
            "On the planar wave, local samples and trained weights align with the active direction; the exact "
            "representation is smeared in the angle.",
            "section 5.1.3",
            (
                along(WAVE_CASE, "local", WAVE, least=MOSTLY),
                along(WAVE_CASE, "sparse", WAVE, least=MOSTLY),
                along(WAVE_CASE, "representation", WAVE, most=SMEARED),
            ),
        ),
    ),
    "fig7": (
        Claim(
            "In three and four dimensions, active subspaces perform the same as uniform sampling.",
            "section 5.1.4",
            tuple(alike(key, "active_subspace", "uniform") for key in CHECKS),
        ),
        Claim(
            "In three and four dimensions, nonlocal and residual sampling perform significantly better.",
            "section 5.1.4",
            tuple(better(key, method, "uniform", CLEAR) for key in CHECKS for method in ("nonlocal", "local_residual")),
        ),
        Claim(
            "In three and four dimensions, nonlocal and residual sampling are closer to sparse training.",
            "section 5.1.4",
            tuple(way_to_sparse(key, method) for key in CHECKS for method in ("nonlocal", "local_residual")),
        ),
        Claim(
            "Simple local sampling deteriorates for higher accuracy.",
            "section 5.1.4",
            tuple(deteriorates(key) for key in CHECKS),
        ),
    ),
    "fig8": (
        Claim(
            "On the corner, local sampling stagnates.",
            "section 5.1.5",
            (stagnates(CORNER, "local"), worse(CORNER, "local", "uniform", CLEAR)),
        ),
        Claim(
            "On the corner, nonlocal and residual sampling mitigate this and perform on par with uniform sampling.",
            "section 5.1.5",
            (
                alike(CORNER, "nonlocal", "uniform"),
                alike(CORNER, "local_residual", "uniform"),
            ),
        ),
        Claim(
            "On the corner, only the exact representation and residual sampling outperform uniform, by a small margin.",
            "section 5.1.5",
            (
                *(better(CORNER, method, "uniform", SLIGHT) for method in ("representation", "local_residual")),
                *(worse(CORNER, method, "uniform", 1 / SLIGHT) for method in ("active_subspace", "local", "nonlocal")),
            ),
        ),
        Claim(
            "On the separable function, sparse training converges quickly, which random features cannot.",
            "section 5.1.6",
            (training_over_best(SEPARABLE, 1 / QUICK),),
        ),
        Claim(
            "On the separable function, the exact representation has a small advantage over other densities, but is "
            "substantially less accurate than training.",
            "section 5.1.6",
            (
                *(
                    better(SEPARABLE, "representation", method, SLIGHT)
                    for method in ("uniform", "active_subspace", "local", "nonlocal", "local_residual")
                ),
                worse(SEPARABLE, "representation", "sparse", CLEAR),
            ),
        ),
    ),
    "fig9": (
        Claim(
            "Only sparse training finds the two axes of the separable function.",
            "section 5.1.6",
            (
                along(SEPARABLE, "sparse", AXES, least=MOSTLY),
                along(SEPARABLE, "representation", AXES, most=SMEARED),
                along(SEPARABLE, "local", AXES, most=SMEARED),
            ),
        ),
        Claim(
            "The dominant direction of local sampling is that of the largest gradients, (-10, 7) and (10, 7).",
            "section 5.1.6",
            (dominant(SEPARABLE, "local", float(np.degrees(np.arctan2(7.0, 10.0)))),),
        ),
        Claim(
            "The exact representation peaks around the axes, but is blurred.",
            "section 5.1.6",
            (densest_at_an_axis(SEPARABLE, "representation"), along(SEPARABLE, "representation", AXES, most=SMEARED)),
        ),
    ),
    "fig10": (
        Claim(
            "There is a big difference between densities that find the active subspace and uniform sampling.",
            "section 5.2.1",
            tuple(better(key, method, "uniform", BIG) for key in PEAKS for method in ("active_subspace", *ADAPTIVE)),
        ),
        Claim(
            "Densities that place hyperplanes close to the peak have an additional advantage.",
            "section 5.2.1",
            tuple(better(key, method, "active_subspace", SLIGHT) for key in PEAKS for method in ADAPTIVE),
        ),
    ),
    "fig11": (
        Claim(
            "On the robot arm, identifying the dominant directions (active subspaces) is a significant improvement.",
            "section 5.2.2",
            (better(ARM, "active_subspace", "uniform", CLEAR),),
        ),
        Claim(
            "On the robot arm, taking the location into account is a further improvement.",
            "section 5.2.2",
            tuple(better(ARM, method, "active_subspace", SLIGHT) for method in ADAPTIVE),
        ),
        Claim(
            "On the borehole function, active subspaces outperform uniform sampling only from about 300 neurons on.",
            "section 5.2.2",
            (
                worse(BOREHOLE, "active_subspace", "uniform", 1 / SLIGHT, high=300),
                better(BOREHOLE, "active_subspace", "uniform", SLIGHT, low=300),
            ),
            ANOTHER,
        ),
        Claim(
            "On the borehole function, localised sampling is consistently better than both global densities.",
            "section 5.2.2",
            (always_better(BOREHOLE),),
            ANOTHER,
        ),
    ),
    "sec5": (
        Claim(
            "The adaptive methods consistently outperform uniform sampling and active subspaces.",
            "section 5",
            tuple(always_better(key) for key in PAPERS),
        ),
        Claim(
            "Compared with the convex penalty, the concave one gives fewer neurons and similar accuracy.",
            "section 5",
            tuple(test(key) for key in SMALL for test in (fewer_than_convex, as_accurate_as_convex)),
        ),
        Claim(
            "Sampled neurons are not expected to outperform trained ones with the same number of neurons.",
            "section 5",
            tuple(training_over_best(key, SLIGHT) for key in PAPERS),
        ),
        Claim(
            "Training is orders of magnitude more expensive than a random feature model of as many neurons.",
            "section 5",
            tuple(training_costs(key) for key in PAPERS),
        ),
        Claim(
            "Residual sampling is sensitive to the choice of alpha and delta: neither may be too small.",
            "section 4.5",
            tuple(
                sensitive(key, name(key))
                for name in (unpenalised_name, narrow_name)
                for key in SMALL
                if CASES[key].order == 1
            ),
        ),
    ),
}
