"""Where to run a simulator next: studies that ask for points, take results, and stop when the answer is known."""

from nurf.studies import goals
from nurf.studies._command import Command
from nurf.studies._design import design
from nurf.studies._loading import load
from nurf.studies._stopping import Verdict
from nurf.studies._study import Study

__all__ = ["Command", "Study", "Verdict", "design", "goals", "load"]
