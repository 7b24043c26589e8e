"""What shared generators should be compared with, behind the same calls."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from taskmix.errors import InputError
from taskmix.sequences._comparing._choice import find_symbols
from taskmix.sequences._estimator import (
    Judgement,
    LearnedMixture,
    SequenceMixture,
    SequencePrediction,
    Tasks,
)
from taskmix.sequences._generator import Floats
from taskmix.sequences._mixture import BatchState, FitState
from taskmix.sequences._observed import number_tasks


class PooledMixture(SequenceMixture):
    """A mixture that does not know of tasks: all have the same shares.

    With one generator it is one model for all.

    >>> model = PooledMixture(Markov(), 1, random_state=0).fit(["ab", "ba"], ["x", "y"])
    >>> model.score(["ab"], ["x"]) == model.score(["ab"], ["y"])
    True
    """

    def _named(self, tasks: Tasks | None, count: int) -> Tasks:
        if tasks is not None and len(tasks) != count:
            raise InputError(
                f"`tasks` should name the task of each of the {count} sequences. Found {len(tasks)}."
            )
        return ["all"] * count

    def _place_of(self, task: Hashable) -> int:
        return -1

    def _shares_of(self, task: Hashable) -> Floats:
        check_is_fitted(self, "parameters_")
        return np.asarray(self.theta_[0])


@dataclass(frozen=True, eq=False)
class SeparateState:
    """After an iteration of the fit of one model for each task."""

    done: int  # iterations of all models
    models: tuple[LearnedMixture, ...]  # what those that are fitted have learned
    inner: FitState | BatchState  # of the one after them

    @property
    def bound(self) -> float | None:
        return self.inner.bound


class LearnedModels(TypedDict):
    """What the fit of one model for each task has found; files have it in this form."""

    tasks_: tuple[Hashable, ...]
    models_: list[LearnedMixture]


class SeparateModels(BaseEstimator):  # type: ignore[misc]
    """One model for each task, which knows nothing of the others.

    `model` is what is fitted to each, one generator unless it says otherwise.

    >>> models = SeparateModels(SequenceMixture(Markov(), 1, random_state=0))
    >>> _ = models.fit(["aa", "bb"], ["x", "y"])
    >>> models.complete("", "x")[0], models.complete("", "y")[0]
    ('a', 'b')
    """

    def __init__(self, model: SequenceMixture) -> None:
        self.model = model

    def fit(
        self, sequences: Sequence[Any], tasks: Tasks, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        for _ in self.fit_states(sequences, tasks, sample_weight=sample_weight):
            pass
        return self

    def fit_states(
        self,
        sequences: Sequence[Any],
        tasks: Tasks,
        *,
        sample_weight: ArrayLike | None = None,
        resume: SeparateState | None = None,
    ) -> Iterator[SeparateState]:
        """Fits, and gives a state after every iteration; `resume` is one to go on from."""
        names, codes = number_tasks(tasks)
        symbols = find_symbols(sequences, self.model)
        weights = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight)
        done, models = 0, list[LearnedMixture]()
        inner: FitState | BatchState | None = None
        if resume is not None:
            done, models, inner = resume.done, list(resume.models), resume.inner
        for place in range(len(models), len(names)):
            rows = np.flatnonzero(codes == place).tolist()
            own = clone(self.model).set_params(symbols=symbols)
            for state in own.fit_states(
                [sequences[row] for row in rows], sample_weight=weights[rows], resume=inner
            ):
                done += 1
                yield SeparateState(done, tuple(models), state)
            models.append(own.learned())
            inner = None
        self.restore({"tasks_": names, "models_": models})

    def learned(self) -> LearnedModels:
        """What `fit` has found."""
        return {"tasks_": self.tasks_, "models_": [each.learned() for each in self.models_]}

    def restore(self, learned: LearnedModels) -> Self:
        """Becomes a model that has learned this."""
        self.tasks_ = learned["tasks_"]
        self.models_ = [clone(self.model).restore(each) for each in learned["models_"]]
        return self

    def judge(self, sequences: Sequence[Any], tasks: Tasks) -> Judgement:
        """How well every symbol or vector is foreseen from those before it, by sequence."""
        names, codes = number_tasks(tasks)
        parts: list[tuple[Any, Judgement]] = []
        for place, name in enumerate(names):
            rows = np.flatnonzero(codes == place).tolist()
            parts.append((rows, self._model_of(name).judge([sequences[row] for row in rows])))
        fields = Judgement.__dataclass_fields__
        whole = {name: np.empty(len(codes), getattr(parts[0][1], name).dtype) for name in fields}
        for rows, found in parts:
            for name in fields:
                whole[name][rows] = getattr(found, name)
        return Judgement(**whole)

    def score_samples(self, sequences: Sequence[Any], tasks: Tasks) -> Floats:
        """[sequence], log-likelihoods."""
        return self.judge(sequences, tasks).log_likelihood

    def score(self, sequences: Sequence[Any], tasks: Tasks) -> float:
        """The mean log-likelihood of a sequence."""
        return float(self.score_samples(sequences, tasks).mean())

    def predict_next(self, prefix: Any, task: Hashable) -> SequencePrediction:
        return self._model_of(task).predict_next(prefix, "all")

    def sample(self, task: Hashable, prefix: Any = None, **options: Any) -> Any:
        return self._model_of(task).sample("all", prefix, **options)

    def complete(self, prefix: Any, task: Hashable, **options: Any) -> tuple[Any, float]:
        return self._model_of(task).complete(prefix, "all", **options)

    def _model_of(self, task: Hashable) -> SequenceMixture:
        check_is_fitted(self, "models_")
        try:
            found: SequenceMixture = self.models_[self.tasks_.index(task)]
        except ValueError:
            raise InputError(
                f"The task should be one of the {len(self.tasks_)} that were fitted. Found {task!r}."
            ) from None
        return found


SequenceModel = SequenceMixture | SeparateModels  # what can be compared, a PooledMixture among them
