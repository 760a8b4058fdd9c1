"""The model of the runs of a study, and the answer to its question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.studies._failing import Failing
from nurf.studies._learning import LEAST, Data, Learner
from nurf.studies._planning import Plan
from nurf.studies._space import Space
from nurf.studies._store import DONE, FAILED, Run, Store
from nurf.studies.goals._base import Answer, Goal, View

DRAWS = 128  # of the model


@dataclass(eq=False)
class Knowledge:
    """The model of the runs with values, its draws, and its answer, which are kept until there are more runs.

    Parameters
    ----------
    store : Store
    space : Space
    goal : Goal
    plan : Plan
    learner : Learner
    names : sequence of str or None
        The names of the outputs, if the user gave some.
    """

    store: Store
    space: Space
    goal: Goal
    plan: Plan
    learner: Learner
    names: Sequence[str] | None = None
    answered: tuple[tuple[int, ...], Answer] | None = None
    written: tuple[int, ...] | None = None
    drawn: tuple[tuple[int, ...], Any] | None = None

    def learn(self) -> tuple[Any, list[Run]]:
        """Return the model of all runs with values, or None if there are too few, and the runs."""
        runs = self.store.runs()
        data = Data.of(runs, self.space)
        return (self.learner.learn(data) if len(data) >= LEAST else None), runs

    def model(self) -> Any:
        """Return the model of all runs with values."""
        model, runs = self.learn()
        if model is None:
            done = sum(run.state == DONE for run in runs)
            raise ValueError(f"a model needs at least {LEAST} runs with values, got {done}")
        return model

    def answer(self) -> Answer | None:
        """Return the answer to the question, and write it to the file; None if there are too few runs."""
        model, runs = self.learn()
        if model is None:
            return None
        data: Any = self.learner.data
        if self.answered is None or self.answered[0] != data.runs:
            self.answered = data.runs, self.goal.answer(self.view(runs))
        answer = self.answered[1]
        if self.written != data.runs:
            ended = sum(run.state in (DONE, FAILED) for run in runs)
            self.store.keep_answer(ended, answer.summary())
            self.written = data.runs
        return answer

    def _answer_of(self, view: View) -> Answer:
        """Return the answer from a view; it may be asked inside a transaction, and is written outside."""
        if self.answered is None or self.answered[0] != view.data.runs:
            self.answered = view.data.runs, self.goal.answer(view)
        return self.answered[1]

    def losses(self) -> dict[int, float]:
        """Return a dict from numbers of runs to losses of the answers."""
        self.answer()
        found = {n: answer["loss"] for n, answer in self.store.answers().items()}
        return {n: np.inf if loss is None else float(loss) for n, loss in found.items()}

    def view(self, runs: Sequence[Run]) -> View:
        """Return the view of the goal: the last model, its draws, and a seed from the number of all runs."""
        model, data, rng = self.learner.model, self.learner.data, self.plan.rng(len(runs))
        if data is None:
            raise ValueError(f"a model needs at least {LEAST} runs with values")
        if self.drawn is None or self.drawn[0] != data.runs:
            self.drawn = data.runs, model.draws(DRAWS, self.plan.rng(len(data)))
        works, draws, names = Failing.of(runs, self.space).works, self.drawn[1], self.outputs(data.y.shape[1])
        return View(self.space, data, model, draws, noise_of(model, data), names, works, rng, self._answer_of)

    def outputs(self, k: int) -> tuple[str, ...]:
        """Return the names of ``k`` outputs."""
        return tuple(self.names or (["y"] if k == 1 else [f"y{o}" for o in range(k)]))


def noise_of(model: Any, data: Data) -> Array:
    """Return the variances of the noise of values, of shape (k,); 0 if the model does not know them."""
    noise = getattr(getattr(model, "model_", model), "noise_", {})
    return np.broadcast_to(np.square(noise.get("values", 0.0)), data.y.shape[1:]).astype(float)
