"""The parameters of the best evaluations: for the mean over tasks and, on demand, for each task.

Tasks that train together are not at their best at the same moment: a small one has learned all it can
while a large one still rises. With `keep` "each" a run keeps, besides the parameters of the best mean,
those of every task's own best evaluation, and each task is served by its own. That costs no training.
Tasks whose best came at the same step share one copy, so there are never more than evaluations.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from taskmix.training._watch import Watch

Keep = Literal["mean", "each"]
State = Mapping[str, Any]  # a model's `state_dict`
MEAN, EACH, STATES = "mean", "each", "states"  # the keys of a tree of several states


@dataclass
class Watches:
    """The best evaluations so far: of the mean and, with `keep` "each", of every task.

    >>> watches = Watches.of("each", ["a", "b"], patience=None)
    >>> watches.see(0.5, {"a": 0.9, "b": 0.1}, step=1), watches.see(0.6, {"a": 0.5, "b": 0.7}, step=2)
    ((True, ['a', 'b']), (True, ['b']))
    >>> watches.step_for("a"), watches.step_for(None)
    (1, 2)
    """

    mean: Watch
    own: dict[str, Watch]  # by task; empty where only the mean counts

    @classmethod
    def of(cls, keep: Keep, tasks: Sequence[str], *, patience: int | None) -> Watches:
        """Nothing seen yet."""
        return cls(Watch(patience), {name: Watch(None) for name in tasks if keep == "each"})

    @property
    def steps(self) -> tuple[int, ...]:
        """Of the best evaluations, 0 where there was none; what is kept changes with them."""
        return (self.mean.step, *(each.step for each in self.own.values()))

    def see(self, mean: float, scores: Mapping[str, float], step: int) -> tuple[bool, list[str]]:
        """Takes the dev scores after a step; for what they are the best: the mean, and which tasks."""
        better = [
            name
            for name, watch in self.own.items()
            if name in scores and watch.see(scores[name], step)
        ]
        return self.mean.see(mean, step), better

    def step_for(self, task: str | None) -> int:
        """Of the evaluation that is the best for a task, or for the mean."""
        if task is not None and task in self.own and self.own[task].step:
            return self.own[task].step
        return self.mean.step  # a task without dev scores has no best moment of its own

    def tree(self, states: Mapping[int, State]) -> dict[str, Any]:
        """What a record keeps as the best, of states by step: one, or several and what each is for."""
        if not self.own:
            return dict(states[self.mean.step])
        steps = {name: self.step_for(name) for name in self.own}
        kept = {step: dict(state) for step, state in states.items() if step in self.steps}
        return {MEAN: self.mean.step, EACH: steps, STATES: kept}

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        own = {EACH: {name: watch.state() for name, watch in self.own.items()}}
        return {**self.mean.state(), **(own if self.own else {})}

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Goes on from a checkpoint."""
        self.mean.restore(tree)
        for name, watch in self.own.items():
            watch.restore(tree[EACH][name])


@dataclass
class KeptParameters:
    """Copies of a model's parameters at its best evaluations."""

    watches: Watches
    _states: dict[int, State] = field(default_factory=dict)  # by step

    def see(self, mean: float, scores: Mapping[str, float], step: int, state: State) -> bool:
        """Takes the dev scores after a step; True where the mean is the best so far."""
        is_best, better = self.watches.see(mean, scores, step)
        if is_best or better:
            needed = set(self.watches.steps)
            self._states = {at: each for at, each in self._states.items() if at in needed}
            self._states[step] = copy.deepcopy(state)
        return is_best

    def serving(self, tasks: Sequence[str]) -> Iterator[tuple[State, list[int]]]:
        """Each copy that is kept, and the positions of the tasks that are served by it."""
        places: dict[int, list[int]] = {}
        for place, name in enumerate(tasks):
            places.setdefault(self.watches.step_for(name), []).append(place)
        for step, served in places.items():
            yield self._states[step], served

    @property
    def best_mean(self) -> State:
        """The copy of the best mean."""
        return self._states[self.watches.mean.step]

    def tree(self) -> dict[str, Any] | None:
        """What a checkpoint keeps of them; None before the first evaluation."""
        return self.watches.tree(self._states) if self._states else None

    def restore(self, state: Mapping[str, Any], best: Mapping[str, Any] | None) -> None:
        """Goes on from a checkpoint."""
        self.watches.restore(state)
        if best is not None:
            several = best.get(STATES, {self.watches.mean.step: best})
            self._states = {step: dict(each) for step, each in several.items()}


def best_state(best: Mapping[str, Any], task: str | None = None) -> dict[str, Any]:
    """The parameters that a record keeps as the best for a task, or for the mean.

    >>> best_state({"mean": 2, "each": {"a": 1}, "states": {1: {"w": 0.1}, 2: {"w": 0.2}}}, "a")
    {'w': 0.1}
    >>> best_state({"w": 0.3}, "a")  # of a run that keeps the best mean alone
    {'w': 0.3}
    """
    if STATES not in best:
        return dict(best)
    return dict(best[STATES][best[EACH].get(task, best[MEAN])])


def served_together(best: Mapping[str, Any], tasks: Sequence[str]) -> list[list[str]]:
    """The tasks in groups that one copy of the parameters serves.

    >>> served_together({"mean": 2, "each": {"a": 1, "b": 2, "c": 1}, "states": {}}, ["a", "b", "c"])
    [['a', 'c'], ['b']]
    """
    if STATES not in best:
        return [list(tasks)]
    groups: dict[int, list[str]] = {}
    for name in tasks:
        groups.setdefault(best[EACH].get(name, best[MEAN]), []).append(name)
    return list(groups.values())
