"""The paper's claims about its figures, each with the tests that decide it."""

from __future__ import annotations

import numpy as np

from reproduction.criteria import (
    Claim,
    aligned,
    alike,
    along,
    always_better,
    at_sparse,
    better,
    better_now,
    densest_at_an_axis,
    deteriorates,
    dominant,
    inflection_points,
    noise_not_reached,
    noise_reached,
    stagnates,
    training_costs,
    training_over_best,
    way_to_sparse,
    worse,
)
from reproduction.thresholds import (
    ABOUT_11,
    ABOUT_30,
    ALIKE,
    BIG,
    CLEAR,
    FEW,
    FROM_1D,
    FROM_2D,
    FROM_2D_HARD,
    FROM_ND,
    LARGE,
    MOSTLY,
    NOT_WORSE,
    QUICK,
    SLIGHT,
    SMEARED,
)

WAVE = np.array([[1.0, -np.sqrt(2.0)]])
AXES = np.eye(2)
BUMP, BUMP2, CHECK, CORNER, SEPARABLE = "gaussian_bump", "gaussian_bump_s2", "checkmark_2d", "corner", "separable"
CHECKS = ("checkmark_3d", "checkmark_4d")
LOCALISED = ("local", "nonlocal", "local_residual")
WAVE_CASE, ARM, BOREHOLE = "planar_wave", "robot_arm_6d", "borehole_8d"


def general(*keys: str) -> tuple[Claim, ...]:
    """Return the claims about training, which the paper makes for all cases."""
    return (
        Claim(
            "Sampled neurons are not expected to outperform trained ones with the same number of neurons.",
            "section 5",
            tuple(training_over_best(key, NOT_WORSE) for key in keys),
        ),
        Claim(
            "Training is orders of magnitude more expensive than a random feature model of as many neurons.",
            "section 5",
            tuple(training_costs(key) for key in keys),
        ),
    )


def peak(key: str) -> tuple[Claim, ...]:
    """Return the claims on the corner peak."""
    return (
        Claim(
            f"There is a big difference between densities that find the active subspace and uniform sampling ({key}).",
            "section 5.2.1",
            tuple(better(key, method, "uniform", BIG, FROM_ND) for method in ("active_subspace", *LOCALISED)),
        ),
        Claim(
            f"Densities that place hyperplanes close to the peak have an additional advantage ({key}).",
            "section 5.2.1",
            tuple(better(key, method, "active_subspace", SLIGHT, FROM_ND) for method in LOCALISED),
        ),
    )


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "fig1": (
        Claim(
            "Even with three times the units of the trained network, the error of uniform sampling is noticeable.",
            "section 1.1",
            (better_now(BUMP, "sparse", "uniform", CLEAR),),
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
            "section 1.1",
            (along(WAVE_CASE, "sparse", WAVE, least=MOSTLY), better_now(WAVE_CASE, "sparse", "uniform", CLEAR)),
        ),
        Claim(
            "Nonuniform sampling is a marked improvement over uniform sampling, and aligned with the trained weights.",
            "section 1.2",
            (along(WAVE_CASE, "local", WAVE, least=MOSTLY), better_now(WAVE_CASE, "local", "uniform", CLEAR)),
        ),
    ),
    "fig3": (
        Claim(
            "Going from uniform to nonuniform sampling improves the fit with the same number of weights.",
            "section 1.2",
            (better_now(CHECK, "local", "uniform", CLEAR),),
        ),
        Claim(
            "The hyperplanes of the nonuniform and the trained network align with the level sets.",
            "section 1.2",
            (aligned(CHECK, "local"), aligned(CHECK, "sparse")),
        ),
    ),
    "fig4": (
        Claim(
            "The trained network reaches the noise level with about 11 neurons.",
            "section 5.1.1",
            (noise_reached(BUMP, "sparse", *ABOUT_11),),
        ),
        Claim(
            "Nonuniform sampling reaches it with about 30.",
            "section 5.1.1",
            (noise_reached(BUMP, "local", *ABOUT_30), noise_reached(BUMP, "representation", *ABOUT_30)),
        ),
        Claim(
            "Uniform sampling has not reached it with 50.", "section 5.1.1", (noise_not_reached(BUMP, "uniform", 50),)
        ),
        Claim(
            "Exact representation and local sampling are not significantly different.",
            "section 5.1.1",
            (alike(BUMP, "representation", "local", low=FROM_1D), alike(BUMP2, "representation", "local", low=FROM_1D)),
        ),
        Claim(
            "Uniform sampling, nonuniform sampling and trained networks differ significantly.",
            "section 5.1.1",
            (
                at_sparse(BUMP, "local", "uniform", ALIKE),
                at_sparse(BUMP, "sparse", "local", ALIKE),
                at_sparse(BUMP2, "local", "uniform", ALIKE),
                at_sparse(BUMP2, "sparse", "local", ALIKE),
            ),
        ),
        *general(BUMP, BUMP2),
    ),
    "fig5": (
        Claim(
            "On the planar wave, local sampling is significantly better than uniform and comes close to sparse.",
            "section 5.1.3",
            (better(WAVE_CASE, "local", "uniform", CLEAR, FROM_2D), way_to_sparse(WAVE_CASE, "local")),
        ),
        Claim(
            "On the planar wave, active subspaces perform as well as local sampling.",
            "section 5.1.3",
            (alike(WAVE_CASE, "active_subspace", "local", low=FROM_2D),),
        ),
        Claim(
            "On the planar wave, the exact representation does not perform well: the function has no compact support.",
            "section 5.1.3",
            (worse(WAVE_CASE, "representation", "local", CLEAR, FROM_2D),),
        ),
        Claim(
            "On the checkmark, all nonuniform densities but active subspaces perform similarly.",
            "section 5.1.4",
            tuple(
                alike(CHECK, method, "local", low=FROM_2D, factor=CLEAR)
                for method in ("nonlocal", "representation", "local_residual")
            ),
        ),
        Claim(
            "On the checkmark, active subspaces perform like uniform sampling.",
            "section 5.1.4",
            (alike(CHECK, "active_subspace", "uniform", low=FROM_2D),),
        ),
        *general(WAVE_CASE, CHECK),
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
            tuple(alike(key, "active_subspace", "uniform", low=FROM_ND) for key in CHECKS),
        ),
        Claim(
            "In three and four dimensions, nonlocal and residual sampling perform significantly better.",
            "section 5.1.4",
            tuple(
                better(key, method, "uniform", CLEAR, LARGE)
                for key in CHECKS
                for method in ("nonlocal", "local_residual")
            ),
        ),
        Claim(
            "In three and four dimensions, nonlocal and residual sampling are closer to sparse training.",
            "section 5.1.4",
            tuple(way_to_sparse(key, method) for key in CHECKS for method in ("nonlocal", "local_residual")),
        ),
        *(
            Claim(
                f"Simple local sampling deteriorates for higher accuracy ({key}).",
                "section 5.1.4",
                (deteriorates(key),),
            )
            for key in CHECKS
        ),
        *general(*CHECKS),
    ),
    "fig8": (
        Claim(
            "On the corner, local sampling stagnates.",
            "section 5.1.5",
            (stagnates(CORNER, "local", FROM_2D_HARD), worse(CORNER, "local", "uniform", CLEAR, LARGE)),
        ),
        Claim(
            "On the corner, nonlocal and residual sampling mitigate this and perform on par with uniform sampling.",
            "section 5.1.5",
            (
                alike(CORNER, "nonlocal", "uniform", low=FROM_2D_HARD),
                alike(CORNER, "local_residual", "uniform", low=FROM_2D_HARD),
            ),
        ),
        Claim(
            "On the corner, only the exact representation and residual sampling outperform uniform, by a small margin.",
            "section 5.1.5",
            (
                *(
                    better(CORNER, method, "uniform", SLIGHT, FROM_2D_HARD)
                    for method in ("representation", "local_residual")
                ),
                *(
                    worse(CORNER, method, "uniform", 1 / SLIGHT, FROM_2D_HARD)
                    for method in ("active_subspace", "local", "nonlocal")
                ),
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
                    better(SEPARABLE, "representation", method, SLIGHT, FROM_2D_HARD)
                    for method in ("uniform", "active_subspace", "local", "nonlocal", "local_residual")
                ),
                worse(SEPARABLE, "representation", "sparse", CLEAR),
            ),
        ),
        *general(CORNER, SEPARABLE),
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
    "fig10": (*peak("corner_peak_3d"), *peak("corner_peak_4d"), *general("corner_peak_3d", "corner_peak_4d")),
    "fig11": (
        Claim(
            "On the robot arm, identifying the dominant directions (active subspaces) is a significant improvement.",
            "section 5.2.2",
            (better(ARM, "active_subspace", "uniform", ALIKE, FROM_ND),),
        ),
        Claim(
            "On the robot arm, taking the location into account is a further improvement.",
            "section 5.2.2",
            tuple(better(ARM, method, "active_subspace", SLIGHT, FROM_ND) for method in LOCALISED),
        ),
        Claim(
            "On the borehole function, active subspaces do not outperform uniform sampling below about 300 neurons.",
            "section 5.2.2",
            (
                worse(BOREHOLE, "active_subspace", "uniform", 1 / ALIKE, 0, 300),
                better(BOREHOLE, "active_subspace", "uniform", SLIGHT, 300),
            ),
        ),
        Claim(
            "On the borehole function, localised sampling beats active subspaces at few neurons.",
            "section 5.2.2",
            tuple(better(BOREHOLE, method, "active_subspace", ALIKE, 0, FEW) for method in LOCALISED),
        ),
        Claim(
            "On the borehole function, localised sampling is consistently better than both global densities.",
            "section 5.2.2",
            tuple(always_better(BOREHOLE, method) for method in LOCALISED),
        ),
        *general(ARM, BOREHOLE),
    ),
}
