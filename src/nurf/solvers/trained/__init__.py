"""Training of all weights of a deep network on values and derivatives: the loss, the optimiser, the runs."""

from nurf.solvers.trained._loss import Parameters, TrainingRows, loss_and_gradient
from nurf.solvers.trained._soap import MatrixState, Soap, SoapState
from nurf.solvers.trained._training import Run, Schedule, Trainer

__all__ = ["Run", "Schedule", "Soap", "Trainer", "TrainingRows", "loss_and_gradient"]
