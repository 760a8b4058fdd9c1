"""What the paper says about its figures, each claim with the tests that decide it."""

from __future__ import annotations

import numpy as np

from reproduction.criteria import (
    ALIKE,
    CLEAR,
    SLIGHT,
    Claim,
    aligned,
    alike,
    along,
    always_better,
    at_sparse,
    beside_training,
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
    way_to_sparse,
    worse,
)

WAVE = np.array([[1.0, -np.sqrt(2.0)]])
AXES = np.eye(2)
BUMP, BUMP2, CHECK, CORNER, SEPARABLE = "gaussian_bump", "gaussian_bump_s2", "checkmark_2d", "corner", "separable"
CHECKS = ("checkmark_3d", "checkmark_4d")
WAVE_CASE, ARM, BOREHOLE = "planar_wave", "robot_arm_6d", "borehole_8d"


def general(*keys: str) -> tuple[Claim, ...]:
    """Return what the paper says about training on all cases."""
    return (
        Claim(
            "Sampled neurons are not expected to outperform trained ones with the same number of neurons.",
            "section 5",
            tuple(beside_training(key, (), 1.05) for key in keys),
        ),
        Claim(
            "Training is orders of magnitude more expensive than a random feature model of as many neurons.",
            "section 5",
            tuple(training_costs(key, 10.0) for key in keys),
        ),
    )


def peak(key: str) -> tuple[Claim, ...]:
    """Return the claims on the corner peak."""
    laws = ("local", "nonlocal", "local_residual")
    return (
        Claim(
            f"There is a big difference between laws that find the active subspace and uniform sampling ({key}).",
            "section 5.2.1",
            tuple(better(key, law, "uniform", 2.0, 30) for law in ("active_subspace", *laws)),
        ),
        Claim(
            f"Laws that place hyperplanes close to the peak have an additional advantage ({key}).",
            "section 5.2.1",
            tuple(better(key, law, "active_subspace", SLIGHT, 30) for law in laws),
        ),
    )


LOCALISED = ("local", "nonlocal", "local_residual")
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
            (along(WAVE_CASE, "sparse", WAVE, least=0.9), better_now(WAVE_CASE, "sparse", "uniform", CLEAR)),
        ),
        Claim(
            "Nonuniform sampling is a marked improvement over uniform sampling, and aligned with the trained weights.",
            "section 1.2",
            (along(WAVE_CASE, "local", WAVE, least=0.9), better_now(WAVE_CASE, "local", "uniform", CLEAR)),
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
            (noise_reached(BUMP, "sparse", 7, 13),),
        ),
        Claim(
            "Nonuniform sampling reaches it with about 30.",
            "section 5.1.1",
            (noise_reached(BUMP, "local", 17, 40), noise_reached(BUMP, "representation", 17, 40)),
        ),
        Claim(
            "Uniform sampling has not reached it with 50.", "section 5.1.1", (noise_not_reached(BUMP, "uniform", 50),)
        ),
        Claim(
            "Exact representation and local sampling are not significantly different.",
            "section 5.1.1",
            (alike(BUMP, "representation", "local", low=8), alike(BUMP2, "representation", "local", low=8)),
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
            (better(WAVE_CASE, "local", "uniform", CLEAR, 13), way_to_sparse(WAVE_CASE, "local")),
        ),
        Claim(
            "On the planar wave, active subspaces perform as well as local sampling.",
            "section 5.1.3",
            (alike(WAVE_CASE, "active_subspace", "local", low=13),),
        ),
        Claim(
            "On the planar wave, the exact representation does not perform well: the function has no compact support.",
            "section 5.1.3",
            (worse(WAVE_CASE, "representation", "local", CLEAR, 13),),
        ),
        Claim(
            "On the checkmark, all nonuniform laws but active subspaces perform similarly.",
            "section 5.1.4",
            tuple(alike(CHECK, law, "local", CLEAR, 13) for law in ("nonlocal", "representation", "local_residual")),
        ),
        Claim(
            "On the checkmark, active subspaces perform like uniform sampling.",
            "section 5.1.4",
            (alike(CHECK, "active_subspace", "uniform", low=13),),
        ),
        *general(WAVE_CASE, CHECK),
    ),
    "fig6": (
        Claim(
            "On the planar wave, local samples and trained weights align with the active direction; the exact "
            "representation is smeared in the angle.",
            "section 5.1.3",
            (
                along(WAVE_CASE, "local", WAVE, least=0.9),
                along(WAVE_CASE, "sparse", WAVE, least=0.9),
                along(WAVE_CASE, "representation", WAVE, most=0.75),
            ),
        ),
    ),
    "fig7": (
        Claim(
            "In three and four dimensions, active subspaces perform the same as uniform sampling.",
            "section 5.1.4",
            tuple(alike(key, "active_subspace", "uniform", low=30) for key in CHECKS),
        ),
        Claim(
            "In three and four dimensions, nonlocal and residual sampling perform significantly better.",
            "section 5.1.4",
            tuple(better(key, law, "uniform", CLEAR, 200) for key in CHECKS for law in ("nonlocal", "local_residual")),
        ),
        Claim(
            "In three and four dimensions, nonlocal and residual sampling are closer to sparse training.",
            "section 5.1.4",
            tuple(way_to_sparse(key, law) for key in CHECKS for law in ("nonlocal", "local_residual")),
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
            (stagnates(CORNER, "local", 24), worse(CORNER, "local", "uniform", CLEAR, 200)),
        ),
        Claim(
            "On the corner, nonlocal and residual sampling mitigate this and perform on par with uniform sampling.",
            "section 5.1.5",
            (alike(CORNER, "nonlocal", "uniform", low=24), alike(CORNER, "local_residual", "uniform", low=24)),
        ),
        Claim(
            "On the corner, only the exact representation and residual sampling outperform uniform, by a small margin.",
            "section 5.1.5",
            (
                *(better(CORNER, law, "uniform", SLIGHT, 24) for law in ("representation", "local_residual")),
                *(worse(CORNER, law, "uniform", 1 / SLIGHT, 24) for law in ("active_subspace", "local", "nonlocal")),
            ),
        ),
        Claim(
            "On the separable function, sparse training converges quickly, which random features cannot.",
            "section 5.1.6",
            (beside_training(SEPARABLE, (), 1 / 3),),
        ),
        Claim(
            "On the separable function, the exact representation has a small advantage over other sampled laws, but is "
            "substantially less accurate than training.",
            "section 5.1.6",
            (
                *(
                    better(SEPARABLE, "representation", law, SLIGHT, 24)
                    for law in ("uniform", "active_subspace", "local", "nonlocal", "local_residual")
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
                along(SEPARABLE, "sparse", AXES, least=0.9),
                along(SEPARABLE, "representation", AXES, most=0.75),
                along(SEPARABLE, "local", AXES, most=0.75),
            ),
        ),
        Claim(
            "The dominant direction of local sampling is that of the largest gradients, (-10, 7) and (10, 7).",
            "section 5.1.6",
            (dominant(SEPARABLE, "local", float(np.degrees(np.arctan2(7.0, 10.0))), "that direction"),),
        ),
        Claim(
            "The exact representation peaks around the axes, but is blurred.",
            "section 5.1.6",
            (densest_at_an_axis(SEPARABLE, "representation"), along(SEPARABLE, "representation", AXES, most=0.75)),
        ),
    ),
    "fig10": (*peak("corner_peak_3d"), *peak("corner_peak_4d"), *general("corner_peak_3d", "corner_peak_4d")),
    "fig11": (
        Claim(
            "On the robot arm, identifying the dominant directions (active subspaces) is a significant improvement.",
            "section 5.2.2",
            (better(ARM, "active_subspace", "uniform", ALIKE, 30),),
        ),
        Claim(
            "On the robot arm, taking the location into account is a further improvement.",
            "section 5.2.2",
            tuple(better(ARM, law, "active_subspace", SLIGHT, 30) for law in LOCALISED),
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
            tuple(better(BOREHOLE, law, "active_subspace", ALIKE, 0, 50) for law in LOCALISED),
        ),
        Claim(
            "On the borehole function, localised sampling is consistently better than both global laws.",
            "section 5.2.2",
            tuple(always_better(BOREHOLE, law) for law in LOCALISED),
        ),
        *general(ARM, BOREHOLE),
    ),
}
