"""Shared generators against what they should beat, in one call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from taskmix.errors import InputError
from taskmix.numerics import Interval, paired_interval
from taskmix.sequences._choice import Fitting, find_symbols, fit_now
from taskmix.sequences._corpus import number_tasks
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._fitted import LearnedMixture, Tasks
from taskmix.sequences._generator import Floats
from taskmix.sequences._multinomial import Multinomial
from taskmix.sequences._prediction import Judgement, SequencePrediction
from taskmix.sequences._restarts import FitState
from taskmix.sequences._stochastic import BatchState

SHARED_NAME = "shared generators"  # also names a recorded fit: another word, and it is done again


@dataclass(frozen=True, eq=False)
class Compared:
    """One model on held-out sequences."""

    name: str
    judgement: Judgement
    log_likelihood: Floats  # [task], of one observation
    gain: Interval | None  # of the shared generators over this model; None for themselves

    @property
    def perplexity(self) -> float:
        """Over all observations."""
        total = self.judgement.log_likelihood.sum() / self.judgement.symbols.sum()
        return float(np.exp(-total))

    @property
    def accuracy(self) -> float:
        """Of the next symbol; NaN for vectors."""
        return float(self.judgement.correct.sum() / self.judgement.symbols.sum())

    @property
    def error(self) -> float:
        """Root mean squared error of the next vector; NaN for symbols."""
        return float(np.sqrt(self.judgement.squared_error.sum() / self.judgement.symbols.sum()))


@dataclass(frozen=True, eq=False)
class MixtureComparison:
    """All models on the same held-out sequences; `models` are fitted."""

    rows: tuple[Compared, ...]
    models: dict[str, SequenceModel]

    def __getitem__(self, name: str) -> Compared:
        return next(row for row in self.rows if row.name == name)


def make_baselines(model: SequenceMixture) -> dict[str, SequenceModel]:
    """The shared generators and what they are compared with, none of them fitted."""
    options = model.get_params(deep=False)
    whole = model.n_generators
    count = sum(whole) if isinstance(whole, list | tuple) else whole
    first = options["generator"]
    one = first[0] if isinstance(first, list | tuple) else first
    single = {**options, "generator": one, "n_generators": 1, "n_init": 1, "start": None}
    single |= {"alpha": 1.0, "own": False}  # the first of no consequence
    mixed = {**options, "start": None, "own": False}
    found: dict[str, SequenceModel] = {
        SHARED_NAME: clone(model),
        "one model per task": SeparateModels(SequenceMixture(**single)),
        "one model per task, backed off": SequenceMixture(**{**single, "own": True}),
        "one pooled model": PooledMixture(**single),
        "pooled mixture": PooledMixture(**mixed),
    }
    if model.observes == "symbols" and model.halting:
        words = {**mixed, "generator": Multinomial(), "n_generators": count}
        found["plain LDA"] = SequenceMixture(**words)
    return found


def compare_with_baselines(
    model: SequenceMixture,
    sequences: Sequence[Any],
    tasks: Tasks,
    test_sequences: Sequence[Any],
    test_tasks: Tasks,
    *,
    models: Mapping[str, SequenceModel] | None = None,
    on_progress: Callable[[str], None] | None = None,
    fitting: Fitting = fit_now,
) -> MixtureComparison:
    """Fits all models on the same sequences and judges them on others of the same tasks; `models`
    that are fitted already are judged as they are. `fitting` is how: `RecordedFits` keeps what is done.

    Gains are in log-likelihood of an observation, of the first model over each other, paired by task;
    by sequence, where there is one task.

    >>> model = SequenceMixture(Markov(smoothing=0.1), 2, alpha=0.1, n_init=1, random_state=0)
    >>> found = compare_with_baselines(
    ...     model, ["aaaa"] * 4 + ["bbbb"] * 4, ["x"] * 4 + ["y"] * 4, ["aaaa", "bbbb"], ["x", "y"])
    >>> found["one pooled model"].gain.mean > 0
    True
    """
    symbols = find_symbols(sequences, model)
    candidates = make_baselines(model) if models is None else dict(models)
    names, codes = number_tasks(test_tasks)
    if len(codes) == 0:
        raise InputError("There should be held-out sequences to judge models by. Found none.")
    rows: list[Compared] = []
    for name, candidate in candidates.items():
        if on_progress is not None:
            on_progress(name)
        judged = partial(candidate.judge, test_sequences, test_tasks)
        if hasattr(candidate, "tasks_"):
            judgement = judged()
        else:
            inner = candidate.model if isinstance(candidate, SeparateModels) else candidate
            inner.set_params(symbols=symbols)
            judgement = fitting(name, candidate, sequences, tasks, judged)
        totals = np.bincount(codes, judgement.log_likelihood, len(names))
        each = totals / np.bincount(codes, judgement.symbols, len(names))
        gain = None
        if rows and len(names) == 1:
            first = rows[0].judgement
            gain = paired_interval(
                first.log_likelihood / first.symbols, judgement.log_likelihood / judgement.symbols
            )
        elif rows:
            gain = paired_interval(rows[0].log_likelihood, each)
        rows.append(Compared(name, judgement, each, gain))
    return MixtureComparison(tuple(rows), candidates)


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
