"""What a fitted mixture answers: shares, likelihoods, predictions and samples."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from typing import Any, Self, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taskmix.errors import InputError
from taskmix.sequences._bank import Bank
from taskmix.sequences._corpus import Corpus, gather_corpus, number_tasks
from taskmix.sequences._expectation import Settling, divide_sequences
from taskmix.sequences._generator import Floats
from taskmix.sequences._own_chains import OwnChains
from taskmix.sequences._own_generators import Own
from taskmix.sequences._prediction import (
    Judgement,
    LearnedParts,
    RowShares,
    SequencePrediction,
    complete_sequence,
    judge,
    log_likelihood_by_task,
    log_likelihoods,
    posteriors,
    predict_after,
    sample_sequence,
)
from taskmix.sequences._scores import ScoreReference
from taskmix.sequences._sequences import Alphabet, Sequences, flatten_sequences

Tasks = Sequence[Hashable] | NDArray[Any]


class LearnedMixture(TypedDict, total=False):
    """What a fit has found, by the names of the model's attributes; files have it in this form."""

    bank_: Bank
    parameters_: tuple[Any, ...]
    alpha_: Floats
    tasks_: tuple[Hashable, ...]
    gamma_: Floats
    theta_: Floats
    alphabet_: Alphabet | None
    n_symbols_: int
    dimension_: int
    longest_: int
    bounds_: list[float]
    n_iter_: int
    converged_: bool
    own_: Own | None
    reference_: ScoreReference | None


_LEARNED = tuple(LearnedMixture.__annotations__)


class FittedMixture(BaseEstimator):  # type: ignore[misc]
    """Everything but fitting, for `SequenceMixture`."""

    n_jobs: int
    random_state: int | np.random.RandomState | None
    bank_: Bank
    parameters_: tuple[Any, ...]
    alpha_: Floats  # [generator]
    tasks_: tuple[Hashable, ...]
    gamma_: Floats  # [task, generator]
    theta_: Floats  # [task, generator]
    alphabet_: Alphabet | None
    n_symbols_: int
    dimension_: int
    longest_: int
    own_: Own | None = None  # what each task has of its own

    def transform(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> Floats:
        """[task, generator]: the shares of tasks from these sequences alone, in the order in which
        tasks first appear. The generators stay as they are."""
        gathered = self._gather(sequences, lengths)
        corpus = gather_corpus(gathered, self._named(tasks, len(gathered)))
        gamma = self._gamma(corpus, self.alpha_)
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))

    def adapt(self, sequences: Any, tasks: Tasks, *, lengths: ArrayLike | None = None) -> Self:
        """A copy that also knows these tasks, from a handful of sequences; those it knew already
        learn from them as well. The generators stay as they are."""
        gathered = self._gather(sequences, lengths)
        corpus = gather_corpus(gathered, self._named(tasks, len(gathered)))
        known = {name: place for place, name in enumerate(self.tasks_)}
        priors = np.repeat(self.alpha_[None], len(corpus.tasks), axis=0)
        for place, name in enumerate(corpus.tasks):
            if name in known:
                priors[place] = self.gamma_[known[name]]
        gamma = self._gamma(corpus, priors)
        rows = {name: self.gamma_[place] for name, place in known.items()}
        rows.update(zip(corpus.tasks, gamma, strict=True))
        other = copy(self)
        other._keep(self.parameters_, self.alpha_, tuple(rows), np.array(list(rows.values())))
        places = np.array([other.tasks_.index(name) for name in corpus.tasks])
        if isinstance(self.own_, OwnChains):
            other.own_ = self.own_.with_more(corpus, places, len(rows))
        elif self.own_ is not None:
            theta = other.theta_[places]
            other.own_ = self.own_.with_more(
                self.bank_, self.parameters_, corpus, theta, places, len(rows)
            )
        return other

    def score_samples(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> Floats:
        """[sequence], log-likelihoods of sequences of known tasks."""
        gathered = self._gather(sequences, lengths)
        return log_likelihoods(self._parts(), gathered, self._shares(tasks, len(gathered)))

    def task_log_likelihood(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> Floats:
        """[sequence, task], log-likelihoods of every sequence in each of these tasks, with what a task
        has of its own (None: in all that are known, in the order of `tasks_`). A task None is one that
        is not known: the same generators with the mean shares."""
        gathered = self._gather(sequences, lengths)
        names = self.tasks_ if tasks is None else tasks
        return log_likelihood_by_task(self._parts(), gathered, self._rows(names))

    def score(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> float:
        """The mean log-likelihood of a sequence."""
        return float(self.score_samples(sequences, tasks, lengths=lengths).mean())

    def perplexity(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> float:
        """exp of the mean negative log-likelihood of an observation, ends counted where modelled."""
        found = self.judge(sequences, tasks, lengths=lengths)
        return float(np.exp(-found.log_likelihood.sum() / found.symbols.sum()))

    def judge(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> Judgement:
        """How well every symbol or vector is foreseen from those before it, by sequence."""
        gathered = self._gather(sequences, lengths)
        return judge(self._parts(), gathered, self._shares(tasks, len(gathered)))

    def predict_proba(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> Floats:
        """[sequence, generator], which of the shared generators a sequence is from."""
        gathered = self._gather(sequences, lengths)
        return posteriors(self._parts(), gathered, self._shares(tasks, len(gathered)))

    def predict(
        self, sequences: Any, tasks: Tasks | None = None, *, lengths: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """[sequence], the most likely generator."""
        return np.asarray(self.predict_proba(sequences, tasks, lengths=lengths).argmax(axis=1))

    def predict_next(self, prefix: Any, task: Hashable = None) -> SequencePrediction:
        """What comes after the prefix, which may be empty, in a task (None: in a task not known)."""
        return predict_after(self._parts(), self._prefix(prefix), self._rows([task])).select(0)

    def complete(
        self, prefix: Any, task: Hashable = None, *, length: int | None = None, width: int = 8
    ) -> tuple[Any, float]:
        """A most likely whole sequence that begins with the prefix, by beam search, and the
        logarithm of its probability given the prefix. Vectors go on by their mean."""
        given = self._prefix(prefix)
        if length is None and not self.bank_.halting:
            raise InputError(
                "`length` should be given: these generators do not say when a sequence ends."
            )
        longest = length if length is not None else max(2 * self.longest_, len(given.values) + 1)
        way, level = complete_sequence(self._parts(), given, self._rows([task]), longest, width)
        return self._decoded(way), level

    def sample(
        self,
        task: Hashable = None,
        prefix: Any = None,
        *,
        length: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Any:
        """A sequence of a task that begins with the prefix. `length` is needed where generators do
        not halt, and is the largest where they do."""
        given = self._prefix(() if prefix is None else prefix)
        random = self._random(random_state)
        made = sample_sequence(self._parts(), given, self._rows([task]), length, random)
        return self._decoded(made)

    def learned(self) -> LearnedMixture:
        """What `fit` has found."""
        found = {name: getattr(self, name) for name in _LEARNED if hasattr(self, name)}
        return cast("LearnedMixture", found)

    def restore(self, learned: LearnedMixture) -> Self:
        """Becomes a model that has learned this; a KeyError where it is something else."""
        for name in learned:
            if name not in _LEARNED:
                raise KeyError(name)
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def _gather(
        self, sequences: Any, lengths: ArrayLike | None = None, *, prefix: bool = False
    ) -> Sequences:
        check_is_fitted(self, "bank_")
        if isinstance(sequences, Sequences):
            return sequences  # codes of this model already
        gathered = flatten_sequences(
            sequences,
            lengths,
            observes=self.bank_.observes,
            symbols=self.n_symbols_ or None,
            alphabet=self.alphabet_,
            allow_empty=prefix,
        )
        if not len(gathered):
            raise InputError("There should be at least one sequence. Found none.")
        if gathered.dimension != self.dimension_:
            if prefix and not len(gathered.values):
                return Sequences(np.empty((0, self.dimension_)), gathered.starts)
            raise InputError(
                f"Vectors should have {self.dimension_} numbers, as those that were fitted. Found "
                f"{gathered.dimension}."
            )
        return gathered

    def _prefix(self, prefix: Any) -> Sequences:
        check_is_fitted(self, "parameters_")
        return self._gather([prefix], prefix=True)

    def _named(self, tasks: Tasks | None, count: int) -> Tasks:
        return ["all"] * count if tasks is None else tasks

    def _random(self, state: int | np.random.RandomState | None = None) -> np.random.Generator:
        """A generator of our own from what scikit-learn calls a random state."""
        seeds = check_random_state(self.random_state if state is None else state)
        return np.random.default_rng(seeds.randint(2**31, size=4))

    def _keep(
        self, parameters: tuple[Any, ...], alpha: Floats, tasks: tuple[Hashable, ...], gamma: Floats
    ) -> None:
        self.parameters_, self.alpha_ = parameters, alpha
        self.tasks_, self.gamma_ = tasks, gamma
        self.theta_ = gamma / gamma.sum(axis=1, keepdims=True)

    def _gamma(self, corpus: Corpus, priors: Floats) -> Floats:
        found = self._log_by_generator(corpus.sequences)
        settling = Settling(iterations=500, tolerance=1e-6)
        return divide_sequences(corpus, found, priors, None, settling, workers=self.n_jobs).gamma

    def _log_by_generator(self, gathered: Sequences) -> Floats:
        """[sequence, generator]"""
        check_is_fitted(self, "parameters_")
        chunks = self.bank_.prepare(gathered, self.n_jobs)
        return self.bank_.log_likelihood(self.parameters_, chunks)

    def _parts(self) -> LearnedParts:
        check_is_fitted(self, "parameters_")
        unknown = None if self.alphabet_ is None else self.alphabet_.unknown
        return LearnedParts(self.bank_, self.parameters_, self.own_, unknown)

    def _rows(self, tasks: Tasks) -> RowShares:
        """Of each of these tasks."""
        theta = np.array([self._shares_of(task) for task in tasks])
        return RowShares(theta, np.array([self._place_of(task) for task in tasks]))

    def _place_of(self, task: Hashable) -> int:
        """Of a task that is known; -1 of one that is not."""
        return -1 if task is None or self.own_ is None else self.tasks_.index(task)

    def _shares(self, tasks: Tasks | None, count: int) -> RowShares:
        """Of each sequence."""
        names, codes = number_tasks(self._named(tasks, count))
        if len(codes) != count:
            raise InputError(
                f"`tasks` should name the task of each of the {count} sequences. Found {len(codes)}."
            )
        return self._rows(names).select(codes)

    def _shares_of(self, task: Hashable) -> Floats:
        check_is_fitted(self, "parameters_")
        if task is None:
            return np.asarray(self.alpha_ / self.alpha_.sum())
        try:
            return np.asarray(self.theta_[self.tasks_.index(task)])
        except ValueError:
            raise InputError(
                f"The task should be one of the {len(self.tasks_)} that were fitted. Found {task!r}. "
                "Let the model learn it from a few sequences with `adapt`, or name no task."
            ) from None

    def _decoded(self, values: NDArray[Any]) -> Any:
        """Codes as the symbols they stand for; letters as a string, as they came."""
        if not isinstance(self.alphabet_, Alphabet):
            return values
        words = [None if code < 0 else self.alphabet_.symbols[code] for code in values]
        if all(isinstance(word, str) and len(word) == 1 for word in words):
            return "".join(map(str, words))
        return words
