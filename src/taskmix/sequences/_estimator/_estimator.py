"""`SequenceMixture`: the whole model as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from taskmix.errors import OptionError
from taskmix.sequences._counted import Markov
from taskmix.sequences._estimator._fitted import Tasks
from taskmix.sequences._estimator._owning import OwningMixture
from taskmix.sequences._generator import Floats, Generator, check_whole
from taskmix.sequences._mixture import (
    Bank,
    BatchState,
    EMOptions,
    FitState,
    MixtureState,
    StochasticOptions,
    StochasticState,
    absorb,
    batch_states,
    begin,
    fit_states,
    make_bank,
    result_of,
    source_states,
)
from taskmix.sequences._observed import (
    Alphabet,
    Observed,
    Sequences,
    SequenceSource,
    SourceWithSample,
    flatten_sequences,
    gather_corpus,
    learn_alphabet,
)
from taskmix.sequences._own import AdaptedStrengths, OwnStrengths

STREAMED = 20_000  # sequences of a batch that is read from files, unless it is said


class SequenceMixture(OwningMixture):
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
        """Learn generators and shares; `tasks` names the task of each sequence.

        A `SequenceSource`, such as `SequenceStream`, has the tasks itself; it is learned by stochastic
        EM.
        """
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
        if isinstance(sequences, SequenceSource):
            states: Iterator[FitState | BatchState] = self._source_states(sequences, resume)
        else:
            bank, gathered = self._begin(sequences, lengths)
            names = self._named(tasks, len(gathered))
            make = self._full_states if self.batch_size is None else self._batch_states
            states = make(bank, gathered, names, sample_weight, resume)
        for state in states:
            if self.on_state is not None and state.mixture is not None:
                self.on_state(state.mixture)
            yield state
        if not isinstance(sequences, SequenceSource):
            self.own_ = self._own_part(gathered, names, sample_weight)
        elif isinstance(sequences, SourceWithSample):
            self.own_ = self._own_of_source(sequences)

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
        self._take_batches(last)

    def _source_states(self, source: SequenceSource, resume: Any) -> Iterator[BatchState]:
        """Batches that are read again in every pass, so that no pass is ever held as a whole."""
        check_whole(max_iter=self.max_iter)
        bank = self._bank()
        self.bank_, self.alphabet_ = bank, Alphabet(source.symbols)
        self.n_symbols_, self.dimension_ = len(source.symbols), 0
        self.longest_ = source.longest
        last: BatchState | None = resume
        for last in source_states(
            bank,
            source,
            self._stochastic_options(),
            batch_size=self.batch_size or STREAMED,
            passes=self.max_iter,
            tolerance=self.tol,
            alpha=self._alpha(bank),
            generator=self._random(),
            parameters=self.start,
            resume=resume,
        ):
            yield last
        self._take_batches(last)

    def _take_batches(self, last: BatchState | None) -> None:
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
