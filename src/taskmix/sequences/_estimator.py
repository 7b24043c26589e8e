"""`SequenceMixture`: the whole model as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from taskmix.errors import OptionError
from taskmix.sequences._bank import Bank, make_bank
from taskmix.sequences._corpus import gather_corpus, number_tasks
from taskmix.sequences._crossing import (
    ForeseenRest,
    assign_folds,
    folds_for,
    foresee_left_out,
    known_own,
    learn_own,
)
from taskmix.sequences._em import EMOptions, MixtureState
from taskmix.sequences._fitted import Tasks
from taskmix.sequences._generator import Floats, Generator, check_whole
from taskmix.sequences._markov import Markov
from taskmix.sequences._own_chains import OwnStrengths
from taskmix.sequences._own_generators import PSEUDO, AdaptedStrengths, Own, adapt_generators
from taskmix.sequences._restarts import FitState, fit_states, result_of
from taskmix.sequences._scoring import ScoredMixture
from taskmix.sequences._sequences import (
    Alphabet,
    Observed,
    Sequences,
    flatten_sequences,
    learn_alphabet,
)
from taskmix.sequences._stochastic import (
    BatchState,
    StochasticOptions,
    StochasticState,
    absorb,
    batch_states,
    begin,
)


class SequenceMixture(ScoredMixture):
    """Tasks as mixtures of shared sequence generators.

    `generator` is one of `Markov`, `HiddenMarkov`, `Multinomial`, `Gaussian`, `GaussianHiddenMarkov`,
    `LinearDynamics` and `Recurrent` (or your own), or a list of several kinds with a list of numbers
    as `n_generators`. With a `batch_size` it is learned by stochastic EM, in `max_iter` passes.
    `symbols` is the alphabet, or its size where symbols are codes; what occurs, if it is not given.
    `start` are parameters to begin with, as `parameters_` has them; what a generator names in its
    `fixed` stays as it is there. With `own` a task keeps something of its own beside what it shares
    (`OwnStrengths` for symbols and `AdaptedStrengths` for vectors say how much; True: learned on
    sequences held out, in a few more fits).

    After `fit`: `theta_` [task, generator] the tasks' shares, `tasks_` their names, `parameters_` of
    the generators, `alpha_`, `bounds_` of every iteration, `alphabet_`, `own_`.

    >>> model = SequenceMixture(Markov(smoothing=0.1), 2, alpha=0.1, random_state=0)
    >>> _ = model.fit(["aaa", "aa", "bb", "bbb"], ["x", "x", "y", "y"])
    >>> model.theta_.round().sum(axis=0)  # each task has a generator of its own
    array([1., 1.])
    >>> model.complete("", "x")[0], model.complete("", "y")[0]
    ('aa', 'bb')
    """

    def __init__(
        self,
        generator: Generator | Sequence[Generator] | None = None,
        n_generators: int | Sequence[int] = 8,
        *,
        alpha: float | ArrayLike = 0.5,
        learn_alpha: bool = True,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_init: int = 3,
        own: bool | OwnStrengths | AdaptedStrengths = True,
        annealing: int = 0,
        batch_size: int | None = None,
        symbols: int | Sequence[Hashable] | None = None,
        start: tuple[Any, ...] | None = None,
        n_jobs: int = 1,
        random_state: int | np.random.RandomState | None = None,
        on_state: Callable[[MixtureState], None] | None = None,
    ) -> None:
        self.generator = generator
        self.n_generators = n_generators
        self.alpha = alpha
        self.learn_alpha = learn_alpha
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.own = own
        self.annealing = annealing
        self.batch_size = batch_size
        self.symbols = symbols
        self.start = start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.on_state = on_state

    def fit(
        self,
        sequences: Any,
        tasks: Tasks | None = None,
        *,
        lengths: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn generators and shares; `tasks` names the task of each sequence."""
        for _ in self.fit_states(sequences, tasks, lengths=lengths, sample_weight=sample_weight):
            pass
        return self

    def fit_states(
        self,
        sequences: Any,
        tasks: Tasks | None = None,
        *,
        lengths: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        resume: FitState | BatchState | None = None,
    ) -> Iterator[FitState | BatchState]:
        """Fits, and gives a state after every iteration, or batch; it is fitted after the last.

        `resume` is a state of the same fit, with a `random_state` that is a number: what comes after it
        is what would have come, bit for bit.
        """
        self.own_ = self.reference_ = None
        bank, gathered = self._begin(sequences, lengths)
        names = self._named(tasks, len(gathered))
        make = self._full_states if self.batch_size is None else self._batch_states
        for state in make(bank, gathered, names, sample_weight, resume):
            if self.on_state is not None and state.mixture is not None:
                self.on_state(state.mixture)
            yield state
        self.own_ = self._own_part(gathered, names, sample_weight)

    def _full_states(
        self,
        bank: Bank,
        sequences: Sequences,
        tasks: Tasks,
        sample_weight: ArrayLike | None,
        resume: Any,
    ) -> Iterator[FitState]:
        corpus = gather_corpus(sequences, tasks, sample_weight)
        options = EMOptions(
            iterations=self.max_iter,
            tolerance=self.tol,
            learn_alpha=self.learn_alpha,
            annealing=self.annealing,
            workers=self.n_jobs,
        )
        check_whole(n_init=self.n_init)
        last = FitState() if resume is None else resume
        for last in fit_states(
            bank,
            corpus,
            options,
            alpha=self._alpha(bank),
            starts=self.n_init,
            generator=self._random(),
            parameters=self.start,
            resume=resume,
        ):
            yield last
        state, bounds = result_of(last)
        self._keep(state.parameters, state.alpha, corpus.tasks, state.gamma)
        self.bounds_, self.n_iter_, self.converged_ = bounds, state.iteration, state.converged

    def _batch_states(
        self,
        bank: Bank,
        sequences: Sequences,
        tasks: Tasks,
        sample_weight: ArrayLike | None,
        resume: Any,
    ) -> Iterator[BatchState]:
        check_whole(batch_size=self.batch_size, max_iter=self.max_iter)
        assert self.batch_size is not None
        if len(tasks) != len(sequences):
            gather_corpus(sequences, tasks)  # says so
        names = np.empty(len(tasks), object)
        names[:] = list(tasks)
        weights = np.ones(len(names)) if sample_weight is None else np.asarray(sample_weight)
        last: BatchState | None = resume
        for last in batch_states(
            bank,
            sequences,
            names,
            weights,
            self._stochastic_options(),
            batch_size=self.batch_size,
            passes=self.max_iter,
            tolerance=self.tol,
            alpha=self._alpha(bank),
            generator=self._random(),
            parameters=self.start,
            resume=resume,
        ):
            yield last
        assert last is not None
        self._take(last.learned)
        self.bounds_, self.converged_ = list(last.bounds), last.converged
        self.n_iter_ = len(last.bounds)  # passes, as `max_iter` is

    def partial_fit(
        self,
        sequences: Any,
        tasks: Tasks | None = None,
        *,
        lengths: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One step of stochastic EM on sequences that were not seen before."""
        known: StochasticState | None = getattr(self, "_stochastic", None)
        bank, gathered = self._begin(sequences, lengths, again=known is not None)
        corpus = gather_corpus(gathered, self._named(tasks, len(gathered)), sample_weight)
        if known is None:
            known = begin(bank, corpus, self._alpha(bank), self._random(), self.start)
        self._take(absorb(bank, known, corpus, self._stochastic_options()))
        return self

    def _begin(
        self, sequences: Any, lengths: ArrayLike | None, *, again: bool = False
    ) -> tuple[Bank, Sequences]:
        """The bank, and the sequences with the alphabet they are written in."""
        if again:
            return self.bank_, self._gather(sequences, lengths)
        bank = self._bank()
        if lengths is None and not isinstance(sequences, np.ndarray):
            sequences = list(sequences)
        alphabet, symbols = None, self.symbols
        if symbols is not None and not isinstance(symbols, int):
            alphabet, symbols = Alphabet(tuple(symbols)), None
        elif bank.observes == "symbols":
            alphabet = learn_alphabet([sequences] if lengths is not None else sequences)
        gathered = flatten_sequences(
            sequences, lengths, observes=bank.observes, symbols=symbols, alphabet=alphabet
        )
        self.bank_ = bank
        self.alphabet_, self.n_symbols_ = alphabet, gathered.symbols
        self.dimension_ = gathered.dimension
        self.longest_ = int(gathered.lengths.max(initial=1))
        return bank, gathered

    def _bank(self) -> Bank:
        return make_bank(Markov() if self.generator is None else self.generator, self.n_generators)

    @property
    def observes(self) -> Observed:
        """What the generators read."""
        return self._bank().observes

    @property
    def halting(self) -> bool:
        """Whether the end of a sequence is part of its probability."""
        return self._bank().halting

    def _alpha(self, bank: Bank) -> Floats:
        alpha = np.broadcast_to(np.asarray(self.alpha, np.float64), (bank.count,)).copy()
        if not (np.isfinite(alpha).all() and (alpha > 0).all()):
            raise OptionError(f"`alpha` should be above zero. Found {self.alpha!r}.")
        return alpha

    def _stochastic_options(self) -> StochasticOptions:
        return StochasticOptions(learn_alpha=self.learn_alpha, workers=self.n_jobs)

    def _take(self, state: StochasticState) -> None:
        self._stochastic = state
        gamma = np.array([state.alpha + counts for counts in state.counts.values()])
        self._keep(state.parameters, state.alpha, tuple(state.counts), gamma)
        self.n_iter_ = state.steps

    def _own_part(
        self, sequences: Sequences, tasks: Tasks, sample_weight: ArrayLike | None
    ) -> Own | None:
        """What tasks have of their own, once the generators are learned."""
        if self.own is False or len(self.tasks_) < 2:
            return None
        corpus = gather_corpus(sequences, tasks, sample_weight)
        names, codes = number_tasks(tasks)
        weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight)
        learned = self._parts()
        known = known_own(self.own, corpus, learned, self.alpha_, self.gamma_)
        if known is not None:
            return known
        fold = assign_folds(codes, folds_for(len(codes)), self._random())
        options = self.get_params(deep=False) | {"own": False, "n_init": 1, "on_state": None}
        options["symbols"] = sequences.symbols or None  # they are codes
        parts = []
        for number in range(int(fold.max(initial=0)) + 1):
            inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            if not (weight[inside] > 0).any():
                return None
            model = type(self)(**options)
            inside = inside[weight[inside] > 0]
            rows = sequences.select(inside)
            model.fit(
                rows.values, codes[inside], lengths=rows.lengths, sample_weight=weight[inside]
            )
            own = model.adapted(rows, codes[inside], weight[inside])
            parts.append(model.left_out(sequences.select(outside), codes[outside], own))
        order = self.own.order if isinstance(self.own, OwnStrengths) else OwnStrengths().order
        held, _ = learn_own(
            sequences, names, codes, weight, fold, parts, order, halting=learned.bank.halting
        )
        return None if held is None else known_own(held, corpus, learned, self.alpha_, self.gamma_)

    def adapted(self, sequences: Sequences, tasks: Tasks, weight: ArrayLike) -> list[Own]:
        """Of vectors, a task's own generators with each number of pseudo-sequences that is tried."""
        if self.bank_.observes == "symbols":
            return []
        corpus = gather_corpus(sequences, tasks, weight)
        made = adapt_generators(
            self.bank_, self.parameters_, corpus, self.alpha_, self.gamma_, PSEUDO
        )
        return [] if made is None else list(made)

    def left_out(self, sequences: Sequences, tasks: Tasks, own: list[Own]) -> ForeseenRest:
        """What this fit says of sequences it has not seen; their tasks may be unknown to it."""
        known = {name: place for place, name in enumerate(self.tasks_)}
        names = tasks.tolist() if isinstance(tasks, np.ndarray) else list(tasks)
        places = np.array([known.get(name, -1) for name in names])
        shares = np.vstack([self.theta_, self.alpha_ / self.alpha_.sum()])[places]
        return foresee_left_out(self._parts(), own, sequences, shares, places)
