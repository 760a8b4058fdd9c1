"""The decision whether further runs are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nurf.studies._store import DONE, FAILED, Run
from nurf.studies.goals._base import Answer

GAIN = 0.9  # of the loss that twice the runs must fall below, for further runs to pay
FAILING = 2  # times the runs of the initial design, after which a simulator that never gave a value is given up
SEEN = 4  # times the runs of the initial design before that is judged


@dataclass(frozen=True)
class Verdict:
    """Whether a study is done.

    Parameters
    ----------
    done : bool
    reason : str
        "target", "budget", "exhausted" (all combinations of levels are taken), "failing" (twice the initial design, and
        no run ended with a value), "no gain" (further runs do not pay), or "open".
    sure : float
        The probability that the target is met; NaN if it is not known.
    text : str
        The reason in words.
    """

    done: bool
    reason: str
    sure: float
    text: str


def verdict(
    answer: Answer | None,
    history: Mapping[int, Mapping[str, Any]],
    runs: Sequence[Run],
    n_initial: int,
    max_runs: int | None,
    exhausted: bool,
) -> Verdict:
    """Return whether a study is done, from its answer, the answers of fewer runs, and all runs."""
    ended = [run for run in runs if run.state in (DONE, FAILED)]
    n_runs = len(ended)
    sure = float("nan") if answer is None else answer.sure
    if answer is not None and answer.reached and n_runs >= n_initial:
        return Verdict(True, "target", sure, f"done: {answer.what} is at most {answer.target:.3g} ({sure:.0%} sure)")
    so_far = "" if answer is None or answer.target is None else f"; the target is met with probability {sure:.2f}"
    if max_runs is not None and n_runs >= max_runs:
        return Verdict(True, "budget", sure, f"done: the budget of {max_runs} runs is spent{so_far}")
    if exhausted:
        return Verdict(True, "exhausted", sure, f"done: all combinations of levels are taken{so_far}")
    if n_runs >= FAILING * n_initial and all(run.state == FAILED for run in ended):
        message, count = Counter(run.message for run in ended).most_common(1)[0]
        text = f"done: all {n_runs} runs failed, {count} of them with the message: {message}"
        return Verdict(True, "failing", sure, text)
    before = [n for n in history if 2 * n <= n_runs]
    if answer is not None and before and n_runs >= SEEN * n_initial:
        loss = float(history[max(before)]["loss"])
        if answer.loss > GAIN * loss and answer.target is not None:
            text = f"done: further runs do not pay: {answer.what} was {loss:.3g} after {max(before)} runs"
            return Verdict(True, "no gain", sure, f"{text}, and is {answer.loss:.3g} after {n_runs}{so_far}")
    return Verdict(False, "open", sure, f"more runs are needed{so_far}")
