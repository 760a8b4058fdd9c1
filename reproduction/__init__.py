"""The paper's experiments: configurations, cached results, pictures, and what they show.

They need matplotlib and jinja2: ``pip install "nurf[cli]"``. On the command line: ``nurf reproduce --quick``.
"""

from reproduction.figures import FIGURES
from reproduction.findings import Comparison, Finding, Section
from reproduction.reproduce import reproduce

__all__ = ["FIGURES", "Comparison", "Finding", "Section", "reproduce"]
