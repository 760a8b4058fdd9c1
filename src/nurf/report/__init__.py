"""Reports of fitted models: a self-contained HTML page with figures.

Reports need matplotlib and jinja2: ``pip install "nurf[cli]"``.
"""

from nurf.report._answers import Section, sections
from nurf.report._evidence import Evidence, gather, predicted_at
from nurf.report._page import render

__all__ = ["Evidence", "Section", "gather", "predicted_at", "render", "sections"]
