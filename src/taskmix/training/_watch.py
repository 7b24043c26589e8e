"""Which evaluation was the best, and whether it is time to stop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskmix.tasks import EncodedTasks
from taskmix.training._evaluate import mean_score
from taskmix.training._events import Score


@dataclass
class Watch:
    """The best evaluation so far, and how many have gone by since.

    >>> watch = Watch(patience=2)
    >>> [watch.see(mean, step) for step, mean in enumerate((0.5, 0.7, 0.6, 0.7), start=1)]
    [True, True, False, False]
    >>> watch.step, watch.over
    (2, True)
    """

    patience: int | None
    score: float = -math.inf
    step: int = 0  # 0 until there was one
    waited: int = 0

    @property
    def over(self) -> bool:
        """Whether the run should stop: the score has not risen for `patience` evaluations."""
        return self.patience is not None and self.waited >= self.patience

    def see(self, mean: float, step: int) -> bool:
        """Takes the mean dev score after a step; True where it is the best so far."""
        # A set of tasks without dev scores (NaN) has no best moment but the latest.
        value = mean if not math.isnan(mean) else -math.inf
        if self.step == 0 or value > self.score or value == self.score == -math.inf:
            self.score, self.step, self.waited = value, step, 0
            return True
        self.waited += 1
        return False

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Goes on from a checkpoint."""
        self.score, self.step = tree["best_score"], tree["best_step"]
        self.waited = tree["waited"]

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"waited": self.waited, "best_score": self.score, "best_step": self.step}


def scores_by_position(
    tasks: EncodedTasks, scores: Sequence[Score], deviations: Mapping[str, float]
) -> dict[int, float]:
    """Each task's dev score, higher is better, by the task's position.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({name: {"train": (np.eye(2), ["no", "yes"])} for name in "ab"})
    >>> scores = [Score("b", "dev", "accuracy", 0.75), Score("b", "dev", "loss", 0.6)]
    >>> scores_by_position(encoding.encode(tasks), scores, {})
    {1: 0.75}
    """
    places = {name: position for position, name in enumerate(tasks.names)}
    return {
        places[found.task]: mean_score([found], dict(deviations))
        for found in scores
        if found.metric != "loss"
    }
