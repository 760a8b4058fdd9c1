"""Reports of fitted models: one HTML page with its pictures, which needs no network.

They need matplotlib and jinja2: ``pip install "nurf[cli]"``.
"""

from nurf.report._evidence import Evidence, gather, predicted_at
from nurf.report._page import render

__all__ = ["Evidence", "gather", "predicted_at", "render"]
