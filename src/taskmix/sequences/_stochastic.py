r"""Stochastic EM: batch after batch, for data that do not fit or never end.

    Cappé and Moulines, "On-line EM Algorithm for Latent Data Models", JRSS B 2009; Hoffman, Blei and
    Bach, "Online Learning for Latent Dirichlet Allocation", NIPS 2010.

Statistics for one sequence are averaged with the step size $\rho_i = (i + \tau)^{-\kappa}$ and counted
as those of all sequences seen so far. A step costs what its batch costs, and nothing is kept but the
parameters, their statistics and the counts of each task: how many of its sequences came from which
generator. These are what a task brings along into the next batch that has sequences of it.

In a second pass over the same data (`rest`) a task's counts of the pass before stand for its sequences
outside the batch. Finding a task's γ anew from every batch escapes poor optima, but which sequences
happen to lie together in a batch moves γ, and so φ, however small the steps become. So after `fresh`
passes γ is α plus the counts of the pass before, and stays so for a pass; φ of a sequence is then the
same in every batch, the averaged statistics tend to those of all data, and a fixed point is one of EM
over all data. Strengths are learned anew with the first batch of every pass but the first. Generators
that learn by gradients take a step on the batch alone.

`batch_states` goes over the same data in batches that are drawn anew in each pass, and yields after
every batch all that is needed to go on from there, bit for bit. The order of a pass is drawn again,
from the random generator as it was before the pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.sequences._bank import Bank
from taskmix.sequences._corpus import Corpus, gather_corpus
from taskmix.sequences._em import MixtureState, learn_alpha
from taskmix.sequences._expectation import Settling, divide_by, divide_sequences
from taskmix.sequences._generator import Floats, dense
from taskmix.sequences._restarts import draw_start
from taskmix.sequences._sequences import Sequences


@dataclass(frozen=True, kw_only=True)
class StochasticOptions:
    """Step sizes, and what is learned besides the generators."""

    delay: float = 1.0  # τ
    forgetting: float = 0.7  # κ, above one half and at most one
    learn_alpha: bool = True
    settling: Settling = field(default_factory=Settling)
    workers: int = 1
    inner: int = 5  # EM steps on the first batch, which has nothing to build on
    fresh: int = 2  # passes in which every batch finds the γ of its tasks anew

    def __post_init__(self) -> None:
        if not (0.5 < self.forgetting <= 1 and self.delay >= 0):
            raise OptionError(
                "`forgetting` should lie above 0.5 and up to 1, and `delay` at 0 or above. Found "
                f"{self.forgetting} and {self.delay}."
            )


@dataclass(frozen=True, eq=False)
class StochasticState:
    """What is known after some batches."""

    parameters: tuple[Any, ...]
    statistics: tuple[
        Any, ...
    ]  # of one sequence, on average; None for those that learn by gradients
    alpha: Floats
    counts: Mapping[Hashable, Floats]  # of each task, sequences by generator
    seen: float = 0.0  # sequences
    steps: int = 0
    bound: float = float("nan")  # of the last batch, for each of its sequences
    rest: Mapping[Hashable, Floats] = field(default_factory=dict)  # counts of the pass before
    passes: int = 0  # over the same data, that are whole


def begin(
    bank: Bank,
    corpus: Corpus,
    alpha: Floats,
    generator: np.random.Generator,
    parameters: tuple[Any, ...] | None = None,
) -> StochasticState:
    """Before the first batch, which the parameters start from unless they are given."""
    first = draw_start(bank, corpus, generator) if parameters is None else parameters
    return StochasticState(first, (), alpha, {})


def absorb(
    bank: Bank, state: StochasticState, corpus: Corpus, options: StochasticOptions
) -> StochasticState:
    """The state after one more batch of sequences that were not seen in this pass."""
    for _ in range(options.inner - 1 if state.steps == 0 else 0):
        warmed = _step(bank, state, corpus, options)
        state = replace(warmed, counts=state.counts, seen=state.seen, steps=0, statistics=())
    return _step(bank, state, corpus, options)


def next_pass(state: StochasticState) -> StochasticState:
    """Before the same data are gone through again."""
    return replace(state, rest=state.counts, counts={}, seen=0.0, passes=state.passes + 1)


def _step(
    bank: Bank, state: StochasticState, corpus: Corpus, options: StochasticOptions
) -> StochasticState:
    chunks = bank.prepare(corpus.sequences, options.workers)
    likelihood = bank.log_likelihood(state.parameters, chunks)
    settled = state.passes >= options.fresh and all(name in state.rest for name in corpus.tasks)
    learns_alpha = options.learn_alpha and bank.count > 1 and state.steps
    if settled:
        if (
            learns_alpha and not state.counts
        ):  # once a pass: what it is learned from is that of a pass
            every = np.array(list(state.rest.values()))
            state = replace(state, alpha=learn_alpha(state.alpha, state.alpha + every))
        carried = np.array([state.rest[name] for name in corpus.tasks])
        division = divide_by(corpus, likelihood, state.alpha, carried)
    else:
        carried = _carried(state, corpus)
        division = divide_sequences(
            corpus,
            likelihood,
            state.alpha + carried,
            None,
            options.settling,
            workers=options.workers,
        )
    found, _ = bank.expect(state.parameters, chunks, division.responsibility)
    rate = (state.steps + 1 + options.delay) ** -options.forgetting if state.statistics else 1.0
    seen = state.seen + corpus.total
    whole = max(seen, sum(float(counts.sum()) for counts in state.rest.values()))
    averages = tuple(
        old * (1 - rate) + new * (rate / corpus.total)
        if state.statistics and block.additive
        else new * (1 / corpus.total)
        for block, old, new in zip(bank.blocks, state.statistics or found, found, strict=True)
    )
    sums, parameters = tuple(each * whole for each in averages), state.parameters
    if bank.learns_strengths and state.passes and not state.counts:  # once a pass, as α
        parameters = bank.hold(parameters, sums)
    parameters = bank.maximise(parameters, sums)
    alpha = state.alpha
    if learns_alpha and not settled:
        alpha = (1 - rate) * alpha + rate * learn_alpha(alpha, division.gamma)
    fresh = division.gamma - (state.alpha + carried)
    counts = dict(state.counts)
    for name, row in zip(corpus.tasks, fresh, strict=True):
        counts[name] = counts[name] + row if name in counts else row
    return replace(
        state,
        parameters=parameters,
        statistics=tuple(
            dense(each) if block.additive else None
            for block, each in zip(bank.blocks, averages, strict=True)
        ),
        alpha=alpha,
        counts=counts,
        seen=seen,
        steps=state.steps + 1,
        bound=division.bound / corpus.total,
    )


def _carried(state: StochasticState, corpus: Corpus) -> Floats:
    """[task, generator], what is known of the task's sequences outside the batch."""
    carried = np.zeros((len(corpus.tasks), len(state.alpha)))
    for place, (name, size) in enumerate(zip(corpus.tasks, corpus.weight_of_tasks(), strict=True)):
        if name in state.rest:
            before = state.rest[name]
            carried[place] = before * max(0.0, 1 - size / max(before.sum(), 1e-300))
        elif name in state.counts:
            carried[place] = state.counts[name]
    return carried


@dataclass(frozen=True, eq=False)
class BatchState:
    """After a batch."""

    done: int  # batches
    learned: StochasticState
    bounds: tuple[float, ...]  # of whole passes, this one too where it is whole
    place: int  # sequences that this pass has been over
    total: float  # the bound of this pass so far
    whole: bool  # whether the pass is
    converged: bool
    shuffled: Mapping[
        str, Any
    ]  # the random generator's state before the order of this pass was drawn
    random: Mapping[str, Any]  # and now

    @property
    def bound(self) -> float | None:
        """Of the pass; None where it is not whole."""
        return self.bounds[-1] if self.whole else None

    @property
    def gamma(self) -> Floats:
        """[task, generator]"""
        return np.array([self.learned.alpha + counts for counts in self.learned.counts.values()])

    @property
    def mixture(self) -> MixtureState | None:
        """As after an E-step over all data; None where the pass is not whole."""
        if not self.whole:
            return None
        alpha, gamma = self.learned.alpha, self.gamma
        mass = gamma.sum(axis=0) - len(gamma) * alpha
        return MixtureState(
            self.learned.parameters,
            alpha,
            gamma,
            self.total,
            mass,
            len(self.bounds),
            self.converged,
        )


def batch_states(
    bank: Bank,
    sequences: Sequences,
    tasks: NDArray[Any],  # [sequence], the name of its task
    weights: Floats,  # [sequence]
    options: StochasticOptions,
    *,
    batch_size: int,
    passes: int,
    tolerance: float,  # gain of the bound, for each sequence, that ends it
    alpha: Floats,
    generator: np.random.Generator,
    parameters: tuple[Any, ...] | None = None,
    resume: BatchState | None = None,
) -> Iterator[BatchState]:
    """The state after each batch, or after each that comes after `resume`."""
    size = float(weights.sum())
    learned: StochasticState | None = None
    bounds: tuple[float, ...] = ()
    done, place, total = 0, 0, 0.0
    inside = resume if resume is not None and not resume.whole else None  # of a pass
    if resume is not None:
        if resume.converged or len(resume.bounds) >= passes:
            return
        generator.bit_generator.state = resume.random
        learned, bounds, done = resume.learned, resume.bounds, resume.done
        if resume.whole:
            learned = next_pass(learned)
    while True:
        shuffled = generator.bit_generator.state
        if inside is not None:
            generator.bit_generator.state = shuffled = inside.shuffled
            place, total = inside.place, inside.total
        coming = _drawn(sequences, tasks, weights, batch_size, generator, place)
        upcoming = next(coming, None)  # draws the order of the pass
        if inside is not None:
            generator.bit_generator.state, inside = inside.random, None
        converged = False
        while upcoming is not None:
            place, batch = upcoming
            if learned is None:
                learned = begin(bank, batch, alpha, generator, parameters)
            learned = absorb(bank, learned, batch, options)
            total += learned.bound * batch.total
            done += 1
            upcoming = next(coming, None)
            whole = upcoming is None
            if whole:
                gain = total - bounds[-1] if bounds else np.inf
                # The first pass with settled γ has a bound of another kind than the one before.
                bounds, converged = (*bounds, total), bool(gain < tolerance * size)
                converged = converged and learned.passes > options.fresh
            random = generator.bit_generator.state
            yield BatchState(
                done, learned, bounds, place, total, whole, converged, shuffled, random
            )
        if converged or len(bounds) >= passes:
            return
        assert learned is not None
        learned, place, total = next_pass(learned), 0, 0.0


def _drawn(
    sequences: Sequences,
    tasks: NDArray[Any],
    weights: Floats,
    size: int,
    generator: np.random.Generator,
    place: int,
) -> Iterator[tuple[int, Corpus]]:
    """The batches of a pass in an order that is drawn, from `place` on."""
    order = generator.permutation(len(tasks))
    for low in range(place, len(order), size):
        rows = order[low : low + size]
        batch = gather_corpus(sequences.select(rows), tasks[rows], weights[rows])
        yield low + len(rows), batch
