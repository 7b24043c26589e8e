"""What a fitted mixture says of whose sequences are, and of tasks it has not seen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from taskmix.errors import InputError
from taskmix.numerics import Interval, check_level
from taskmix.sequences._estimator._fitted import FittedMixture, Tasks
from taskmix.sequences._estimator._prediction import log_likelihood_by_task
from taskmix.sequences._estimator._scores import (
    Prior,
    ScoreReference,
    SequenceScores,
    log_mean_of_others,
    log_posterior_of_tasks,
    log_prior_of_tasks,
)
from taskmix.sequences._estimator._shares import TaskShares, draw_shares, interval_for_symbol
from taskmix.sequences._generator import Floats
from taskmix.sequences._observed import Sequences, gather_corpus, number_tasks
from taskmix.sequences._own import AdaptedStrengths, OwnChains, OwnStrengths

_FOLDS = 10  # at most, of a new task's sequences


class ScoredMixture(FittedMixture):
    """Scores of sequences against tasks, for `SequenceMixture`."""

    reference_: ScoreReference | None = None

    def task_log_posterior(
        self, sequences: Any, *, prior: Prior = "counts", lengths: ArrayLike | None = None
    ) -> Floats:
        """[sequence, task], log P(task | sequence) over `tasks_`.

        The `prior` over tasks is the number of sequences each was fitted to (`counts`), `uniform`, or a
        number for each task.
        """
        found = self.task_log_likelihood(sequences, lengths=lengths)
        return log_posterior_of_tasks(found, self._log_prior(prior))

    def log_ratio(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> Floats:
        """[sequence], how much likelier in its task than in another: the mean over the others, each
        with what it has of its own. Without `tasks` [sequence, task], for all in `tasks_`."""
        gathered = self._gather(sequences, lengths)
        ratio = _log_ratio(self._log_by_task(gathered))
        if tasks is None:
            return ratio
        return np.asarray(ratio[np.arange(len(ratio)), self._codes(tasks, len(gathered))])

    def anomaly(
        self,
        sequences: Any,
        tasks: Tasks,
        *,
        kind: Literal["log_ratio", "surprise"] = "log_ratio",
        lengths: ArrayLike | None = None,
    ) -> Floats:
        """[sequence], p-values: the share of the task's own sequences, held out, that are as odd.

        Odd is a low `log_ratio` (rather somebody else's) or a high `surprise` (unlikely, symbol by
        symbol). `calibrate_scores` has to have been called for the model.
        """
        if self.reference_ is None:
            raise InputError(
                "The model should be calibrated before it gives p-values. Found that it is not. Call "
                "`calibrate_scores(model, sequences, tasks)` with what it was fitted to."
            )
        found = self.score_sequences(sequences, tasks, lengths=lengths)
        p_values = found.p_ratio if kind == "log_ratio" else found.p_surprise
        assert p_values is not None
        return p_values

    def score_sequences(
        self,
        sequences: Any,
        tasks: Tasks,
        *,
        prior: Prior = "counts",
        lengths: ArrayLike | None = None,
    ) -> SequenceScores:
        """All scores of sequences, each against its task; p-values where the model is calibrated."""
        gathered = self._gather(sequences, lengths)
        codes = self._codes(tasks, len(gathered))
        rows = np.arange(len(gathered))
        by_task = self._log_by_task(gathered)
        posterior = log_posterior_of_tasks(by_task, self._log_prior(prior))
        names = tuple(self.tasks_[code] for code in codes)
        own = by_task[rows, codes]
        symbols = gathered.lengths + self.bank_.halting
        ratio = _log_ratio(by_task)[rows, codes]
        p_ratio = p_surprise = None
        if self.reference_ is not None:
            p_ratio = self.reference_.p_values("log_ratio", ratio, names)
            p_surprise = self.reference_.p_values("surprise", -own / symbols, names)
        return SequenceScores(
            tasks=names,
            log_likelihood=own,
            symbols=symbols,
            log_ratio=ratio,
            log_posterior=posterior[rows, codes],
            likeliest=tuple(self.tasks_[code] for code in posterior.argmax(axis=1)),
            p_ratio=p_ratio,
            p_surprise=p_surprise,
        )

    def estimate_shares(
        self,
        sequences: Any,
        tasks: Tasks,
        *,
        level: float = 0.95,
        lengths: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> TaskShares:
        """Shares of tasks from these sequences alone with their intervals, and how likely a symbol of
        such a task's next sequence is. The generators stay as they are; `adapt` gives a model that
        knows the tasks."""
        check_level(level)
        gathered = self._gather(sequences, lengths)
        names, codes = number_tasks(tasks)
        if len(codes) != len(gathered):
            gather_corpus(gathered, tasks)  # says so
        generator, beyond = self._random(random_state), (1 - level) / 2
        found = self._log_by_generator(gathered)
        draws = [
            draw_shares(found[codes == code], self.alpha_, generator) for code in range(len(names))
        ]
        each = np.array([np.quantile(part, (beyond, 1 - beyond), axis=0) for part in draws])
        ahead = self._log_of_next(gathered, codes)
        symbols = (gathered.lengths + self.bank_.halting).astype(np.float64)
        most = 0.0 if self.bank_.observes == "symbols" else float("inf")
        intervals = []
        for code in range(len(names)):
            rows = codes == code
            if rows.sum() > 1:
                intervals.append(interval_for_symbol(ahead[rows], symbols[rows], level, most=most))
            else:
                intervals.append(Interval(float("nan"), float("nan"), float("nan"), 1, level))
        return TaskShares(
            tasks=names,
            counts=tuple(np.bincount(codes).tolist()),
            mean=np.array([part.mean(axis=0) for part in draws]),
            low=each[:, 0],
            high=each[:, 1],
            level=level,
            log_likelihood=tuple(intervals),
        )

    def _own_strengths(self) -> bool | OwnStrengths | AdaptedStrengths:
        """How much of their own tasks have here, as another model may be told."""
        if isinstance(self.own_, OwnChains):
            held = self.own_.held
            return OwnStrengths(self.own_.chains.order, held, self.tasks_[: len(held.groups)])
        return False if self.own_ is None else self.own_.held

    def for_part(self) -> Self:
        """The same model, not fitted, for a part of the sequences: what was learned from all of them
        and hardly depends on a part (the alphabet, how much tasks have of their own) is not learned
        again."""
        symbols = self.n_symbols_ or None if self.alphabet_ is None else self.alphabet_.symbols
        made = clone(self).set_params(n_init=1, on_state=None, own=self._own_strengths())
        return cast("Self", made.set_params(symbols=symbols))

    def _log_by_generator(self, gathered: Sequences) -> Floats:
        """[sequence, generator]"""
        check_is_fitted(self, "parameters_")
        return self.bank_.log_likelihood(
            self.parameters_, self.bank_.prepare(gathered, self.n_jobs)
        )

    def _log_by_task(self, gathered: Sequences) -> Floats:
        """[sequence, task]"""
        places = np.array([self._place_of(name) for name in self.tasks_])
        return log_likelihood_by_task(self._parts(), gathered, self.theta_, places)

    def _log_prior(self, prior: Prior) -> Floats:
        counts = self.gamma_.sum(axis=1) - self.alpha_.sum()
        return log_prior_of_tasks(prior, self.tasks_, counts.clip(0))

    def _log_of_next(self, gathered: Sequences, codes: NDArray[np.int64]) -> Floats:
        """[sequence], by a model that has learned its task from the other sequences of it; NaN where
        there are no others."""
        parts = np.zeros(len(codes), np.int64)
        chosen, names = [], []
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            parts[rows] = np.arange(len(rows)) % _FOLDS
            for part in range(min(_FOLDS, len(rows)) if len(rows) > 1 else 0):
                inside = rows[parts[rows] != part]
                chosen.append(inside)
                names += [("left out", int(code), part)] * len(inside)
        ahead = np.full(len(codes), np.nan)
        if names:
            other = self.adapt(gathered.select(np.concatenate(chosen)), names)
            rows = np.flatnonzero(np.bincount(codes)[codes] > 1)
            own = [("left out", int(codes[row]), int(parts[row])) for row in rows]
            ahead[rows] = other.score_samples(gathered.select(rows), own)
        return ahead

    def _codes(self, tasks: Tasks, count: int) -> Any:
        """[sequence], the place of its task among `tasks_`."""
        self._shares(tasks, count)  # raises where one is not known
        places: dict[Hashable, int] = {name: place for place, name in enumerate(self.tasks_)}
        names, codes = number_tasks(self._named(tasks, count))
        return np.array([places[name] for name in names], np.int64)[codes]


def _log_ratio(by_task: Floats) -> Floats:
    """[sequence, task]; 0 where a sequence is impossible in the task and in all others."""
    rest = log_mean_of_others(by_task)
    nowhere = np.isneginf(by_task) & np.isneginf(rest)
    return np.asarray(np.where(nowhere, 0.0, by_task) - np.where(nowhere, 0.0, rest))
