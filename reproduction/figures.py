"""The paper's figures."""

from __future__ import annotations

from reproduction.kinds import Convergence, Densities, PaperFigure, Portraits, Statements

PICTURES: tuple[PaperFigure, ...] = (
    Portraits(
        "fig1",
        "A Gaussian bump in one dimension",
        "Uniform, nonuniform and trained networks: noisy data, the network, and its inflection points.",
        "The nonuniform and the trained network allocate more inflection points to regions with high variability.",
        "gaussian_bump",
        30,
        11,
    ),
    Portraits(
        "fig2",
        "A planar wave",
        "Uniform, nonuniform and trained networks: hyperplanes over the function (top), network and data (bottom).",
        "The nonuniform and the trained network orient their hyperplanes along the directions of variability.",
        "planar_wave",
        30,
        11,
        also=("gaussian_bump",),
    ),
    Portraits(
        "fig3",
        "The checkmark in two dimensions",
        "Uniform, nonuniform and trained networks: hyperplanes over the function (top), network and data (bottom).",
        "Hyperplanes align with the level sets, although there is no globally dominant direction.",
        "checkmark_2d",
        75,
        31,
    ),
    Convergence(
        "fig4",
        "Convergence for the Gaussian bump",
        "Relative errors against numbers of neurons; left: sigmoid (s = 1), right: softplus (s = 2).",
        "Uniform sampling, nonuniform sampling and training differ significantly; the nonuniform densities do not.",
        ("gaussian_bump", "gaussian_bump_s2"),
        "The noise bounds the errors from below. There are no results of the authors' code for training at s = 2.",
    ),
    Convergence(
        "fig5",
        "Convergence for anisotropic functions",
        "Relative errors against numbers of neurons; left: planar wave, right: checkmark.",
        "Active subspaces do as well as gradients on the wave, no better than uniform sampling on the checkmark.",
        ("planar_wave", "checkmark_2d"),
        "The noise bounds the errors from below.",
    ),
    Densities(
        "fig6",
        "Densities for anisotropic functions",
        "Kernel density estimates over the angle of the normal and the offset; top: wave, bottom: checkmark.",
        "Local samples and trained weights lie along the wave's direction; the exact representation is smeared.",
        ("planar_wave", "checkmark_2d"),
    ),
    Convergence(
        "fig7",
        "The checkmark in three and four dimensions",
        "Relative errors against numbers of neurons; left: d = 3, right: d = 4.",
        "Active subspaces perform like uniform sampling; nonlocal and residual sampling are significantly better.",
        ("checkmark_3d", "checkmark_4d"),
    ),
    Convergence(
        "fig8",
        "Convergence for a corner and a separable function",
        "Relative errors against numbers of neurons; left: nonsmooth corner, right: sum of two planar functions.",
        "Local sampling stagnates on the corner; only training exploits that the separable function is one.",
        ("corner", "separable"),
        "The noise bounds the errors from below.",
    ),
    Densities(
        "fig9",
        "Densities for a corner and a separable function",
        "Kernel density estimates over the angle of the normal and the offset; top: corner, bottom: separable.",
        "Only training finds the two axes of the separable function.",
        ("corner", "separable"),
    ),
    Convergence(
        "fig10",
        "The corner peak",
        "Relative errors against numbers of neurons; left: d = 3, right: d = 4.",
        "Finding the active subspace makes a big difference; placing hyperplanes near the peak adds to it.",
        ("corner_peak_3d", "corner_peak_4d"),
    ),
    Convergence(
        "fig11",
        "Robot arm and borehole",
        "Relative errors against numbers of neurons; left: robot arm (d = 6), right: borehole (d = 8).",
        "Directions help, locations help further; localised sampling is consistently better on the borehole.",
        ("robot_arm_6d", "borehole_8d"),
        "The path of the robot arm is one step shorter than the authors'. The borehole function is the true one, "
        "also in the thin curves; the paper's own figure shows another.",
    ),
)

STATEMENTS = Statements(
    "sec5",
    "Statements about all cases",
    "Trained networks along the path over alpha, with the concave and with the convex penalty.",
    "Adaptive methods are consistently better; trained networks are smaller and far more expensive; residual "
    "sampling needs a good alpha and delta.",
    about=tuple(figure for figure in PICTURES if figure.keys),
)

FIGURES: dict[str, PaperFigure] = {figure.name: figure for figure in (*PICTURES, STATEMENTS)}
