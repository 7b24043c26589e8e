r"""What a fitted mixture says of whose sequences are, and of tasks it has not seen.

What a few sequences of a new task say of its shares (`estimate_shares`) has intervals. The variational
posterior counts a sequence that two generators explain alike as half a sequence of
each, and is too sure of itself where many are like that. So shares are drawn from the true posterior

$$p(\theta \mid x) \propto \mathrm{Dir}(\theta; \alpha)\,\prod_j \sum_k \theta_k P_k(x_j)$$

with θ integrated out: sequence by sequence, many draws side by side pick its generator given those of
the sequences before, and are weighted by how well they foresaw it (Kong, Liu and Wong, "Sequential
Imputations and Bayesian Missing Data Problems", JASA 1994), with some sweeps of Gibbs sampling at the
end. Given how many sequences each generator has, θ is Dirichlet. The generators stay as they are, so the
intervals are of θ alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from taskmix.errors import InputError
from taskmix.numerics import Interval, check_level, mean_interval
from taskmix.sequences._corpus import gather_corpus, number_tasks
from taskmix.sequences._fitted import FittedMixture, Tasks
from taskmix.sequences._generator import Floats
from taskmix.sequences._own_chains import OwnChains, OwnStrengths
from taskmix.sequences._own_generators import AdaptedStrengths
from taskmix.sequences._scores import (
    Prior,
    ScoreReference,
    SequenceScores,
    log_mean_of_others,
    log_posterior_of_tasks,
    log_prior_of_tasks,
)
from taskmix.sequences._sequences import Sequences

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
        ratio = _log_ratio(self.task_log_likelihood(gathered))
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
        by_task = self.task_log_likelihood(gathered)
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


_CELLS = 1 << 25  # numbers that are gone over in a sweep: more sequences, fewer draws
_FEWEST, _MOST = 256, 4096  # draws
_SWEEPS = 5


@dataclass(frozen=True, eq=False)
class TaskShares:
    """Shares of tasks from a few sequences each; see `SequenceMixture.estimate_shares`.

    >>> model = SequenceMixture(Markov(smoothing=0.1), 2, alpha=0.1, random_state=0)
    >>> _ = model.fit(["aaa", "aa", "bb", "bbb"], ["x", "x", "y", "y"])
    >>> few, more = (model.estimate_shares(["aaa"] * n, ["new"] * n, random_state=0) for n in (2, 20))
    >>> bool((more.high - more.low).max() < (few.high - few.low).max())
    True
    """

    tasks: tuple[Hashable, ...]
    counts: tuple[int, ...]  # [task], sequences
    mean: Floats  # [task, generator], of the posterior
    low: Floats  # [task, generator]
    high: Floats
    level: float
    log_likelihood: tuple[Interval, ...]
    """Of each task, for one symbol of a sequence that its shares were not estimated from; NaN where
    the task has one sequence only."""

    def rows(self) -> list[dict[str, object]]:
        """A row for each task, as `taskmix sequences adapt` writes it."""
        return [
            {
                "task": task,
                "sequences": self.counts[place],
                "shares": self.mean[place].tolist(),
                "low": self.low[place].tolist(),
                "high": self.high[place].tolist(),
                "log_likelihood": self.log_likelihood[place].mean,
                "log_likelihood_low": self.log_likelihood[place].low,
                "log_likelihood_high": self.log_likelihood[place].high,
            }
            for place, task in enumerate(self.tasks)
        ]


def draw_shares(
    log_likelihood: Floats,  # [sequence, generator], of one task
    alpha: Floats,  # [generator]
    generator: np.random.Generator,
) -> Floats:
    """[draw, generator], shares from their posterior."""
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    size, kinds = likelihood.shape
    draws = int(np.clip(_CELLS // (size * kinds), _FEWEST, _MOST))
    every = np.arange(draws)
    counts = np.zeros((draws, kinds))  # of each draw, sequences by generator
    picked = np.zeros((size, draws), np.int32)
    weights = np.zeros(draws)  # logarithms

    def pick(row: int) -> Floats:
        rising = np.cumsum(likelihood[row] * (counts + alpha), axis=1)
        points = generator.random(draws) * rising[:, -1]
        picked[row] = (rising[:, :-1] < points[:, None]).sum(axis=1)
        counts[every, picked[row]] += 1
        return np.asarray(rising[:, -1])

    for row in range(size):
        weights += np.log(pick(row))
        shares = np.exp(weights - weights.max())
        shares /= shares.sum()
        if row == size - 1 or 1 / (shares**2).sum() < draws / 2:
            points = (np.arange(draws) + generator.random()) / draws
            kept = np.minimum(np.searchsorted(np.cumsum(shares), points), draws - 1)
            counts, picked[: row + 1] = counts[kept], picked[: row + 1, kept]
            weights[:] = 0.0
    for _ in range(_SWEEPS):
        for row in range(size):
            counts[every, picked[row]] -= 1
            pick(row)
    theta = np.maximum(generator.standard_gamma(alpha + counts), 1e-300)
    return np.asarray(theta / theta.sum(axis=1, keepdims=True))


def interval_for_symbol(
    log_likelihood: Floats,  # [sequence]
    symbols: Floats,  # [sequence]
    level: float,
    *,
    most: float,  # that it can be: 0 for probabilities
) -> Interval:
    """Of Σ log-likelihood / Σ symbols, by the delta method for a ratio of means."""
    ratio = log_likelihood.sum() / symbols.sum()
    found = mean_interval(ratio + (log_likelihood - ratio * symbols) / symbols.mean(), level)
    return replace(found, high=min(found.high, most))
