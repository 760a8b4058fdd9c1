"""Goals of studies: questions to be answered by runs, each with its answer and its error."""

from nurf.studies.goals._base import Answer
from nurf.studies.goals._calibration import Calibration
from nurf.studies.goals._error import Error
from nurf.studies.goals._failure import Failure
from nurf.studies.goals._level import Level
from nurf.studies.goals._minimum import Minimum
from nurf.studies.goals._sensitivities import Sensitivities
from nurf.studies.goals._texts import read_goal

__all__ = ["Answer", "Calibration", "Error", "Failure", "Level", "Minimum", "Sensitivities", "read_goal"]
