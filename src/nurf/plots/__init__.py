"""Plots of fits and hyperplanes. Each function draws on an ``ax`` (``slices`` on several) and returns it.

All functions require matplotlib: ``pip install "nurf[plot]"``. They do not open windows, save files or change the
settings of matplotlib.

>>> from matplotlib.figure import Figure
>>> from nurf import plots
>>> ax = Figure().subplots()
>>> for name, errors in {"uniform": [0.3, 0.1], "nonlocal": [0.03, 0.01]}.items():
...     ax = plots.convergence([10, 100], errors, style=name, ax=ax)
>>> [text.get_text() for text in ax.legend(handlelength=3.5).get_texts()]
['uniform', 'nonlocal']
"""

try:
    import matplotlib as _matplotlib
except ModuleNotFoundError as error:
    raise ImportError('nurf.plots needs matplotlib: pip install "nurf[plot]"') from error

from nurf.plots._axes import (
    axes_or_current,
    deviations_of,
    input_names,
    literal,
    on_scale,
    scale_of,
    set_scale,
    shortened,
)
from nurf.plots._convergence import convergence
from nurf.plots._densities import angle_offset_density
from nurf.plots._heat_map import heat_map
from nurf.plots._hyperplanes import hyperplanes, section
from nurf.plots._leaderboard import leaderboard
from nurf.plots._loss_curve import loss_curve
from nurf.plots._predictions import predicted_against_true, residuals
from nurf.plots._relevance import relevance
from nurf.plots._sensitivity import Sensitivity, active_directions, sensitivity
from nurf.plots._slices import slices
from nurf.plots._sparse import certificate, sparse_path, trained_hyperplanes
from nurf.plots._style import STYLES, Style, style_of

__all__ = [
    "STYLES",
    "Style",
    "active_directions",
    "angle_offset_density",
    "certificate",
    "convergence",
    "heat_map",
    "hyperplanes",
    "leaderboard",
    "loss_curve",
    "predicted_against_true",
    "relevance",
    "residuals",
    "sensitivity",
    "slices",
    "sparse_path",
    "style_of",
    "trained_hyperplanes",
]
