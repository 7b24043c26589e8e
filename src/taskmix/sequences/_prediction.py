r"""What a task's next sequence, or the rest of one, will be.

"Prediction" is a heading without text in Crawford and Pineau's draft. After a prefix the generators of
a task are mixed with weights $\theta_t(k)\,P_k(\text{prefix})$, renormalised; a whole sequence has the
probability $\sum_k \theta_t(k)\,P_k(x)$ with θ at its expectation. What a task has of its own comes on
top: of symbols its own counts, backed off to this mixture; of vectors one more generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.numerics import log_sum_exp, softmax
from taskmix.sequences._bank import Bank
from taskmix.sequences._chains import Codes
from taskmix.sequences._generator import Floats, Next, prefix_rows, safe_log, take_generators
from taskmix.sequences._normal import mixture_moments
from taskmix.sequences._own_chains import OwnChains, StepTrace, rows_at_once, trace_sequences
from taskmix.sequences._own_generators import Own, OwnGenerators
from taskmix.sequences._sequences import Sequences

_DRAWS = 100  # of a sequence until one has no unknown symbol in it


@dataclass(frozen=True, eq=False)
class LearnedParts:
    """All that predictions need."""

    bank: Bank
    parameters: Sequence[Any]
    own: Own | None = None
    unknown: int | None = None  # the code of symbols that were never seen, which nobody can write


@dataclass(frozen=True, eq=False)
class RowShares:
    """What each row is made of."""

    theta: Floats  # [row, generator]
    tasks: Codes  # [row], the place of its task; -1 where it is not known

    def select(self, rows: NDArray[np.int64]) -> RowShares:
        return RowShares(self.theta[rows], self.tasks[rows])


@dataclass(frozen=True, eq=False)
class SequencePrediction:
    """What comes after each prefix. For symbols the last probability is that the sequence ends."""

    generators: Floats  # [prefix, generator], which of them is at work
    log_prefix: Floats  # [prefix], how likely the prefix was
    probabilities: Floats | None = None  # [prefix, symbol + 1]
    mean: Floats | None = None  # [prefix, dimension]
    covariance: Floats | None = None  # [prefix, dimension, dimension]

    def select(self, rows: Any) -> SequencePrediction:
        """After some of the prefixes; after one, by its number, without the first axis."""
        some: dict[str, Any] = {
            name: None if every is None else every[rows] for name, every in vars(self).items()
        }
        return SequencePrediction(**some)


@dataclass(frozen=True, eq=False)
class Judgement:
    """How well sequences were foreseen, one number a sequence."""

    log_likelihood: Floats
    symbols: NDArray[np.int64]  # observations, and ends where these are foreseen
    correct: Floats  # next symbols foreseen rightly; NaN for vectors
    squared_error: Floats  # summed over numbers, of the next vector; NaN for symbols


def log_likelihoods(learned: LearnedParts, sequences: Sequences, shares: RowShares) -> Floats:
    """[sequence], each in its task."""
    own = learned.own
    if isinstance(own, OwnChains):
        trace = trace_sequences(learned.bank, learned.parameters, sequences)
        return own.log_likelihood(trace, sequences, shares.theta, shares.tasks)
    found, theta = _components(learned, sequences, shares)
    return log_sum_exp(found + safe_log(theta))


def log_likelihood_by_task(
    learned: LearnedParts, sequences: Sequences, shares: RowShares
) -> Floats:
    """[sequence, task], of every sequence in every one of these tasks; `shares` have a row a task."""
    own, theta, tasks = learned.own, shares.theta, shares.tasks
    if isinstance(own, OwnChains):
        trace = trace_sequences(learned.bank, learned.parameters, sequences)
        return own.log_likelihood_in(trace, sequences, theta, tasks)
    found = np.empty((len(sequences), len(tasks)))
    likelihood = learned.bank.log_likelihood(learned.parameters, learned.bank.prepare(sequences))
    for column, (row, task) in enumerate(zip(theta, tasks, strict=True)):
        every, place = np.repeat(row[None], len(sequences), axis=0), np.full(len(sequences), task)
        parts = likelihood
        if isinstance(own, OwnGenerators):
            parts, every = own.with_own(learned.bank, likelihood, sequences, every, place)
        found[:, column] = log_sum_exp(parts + safe_log(every))
    return found


def posteriors(learned: LearnedParts, sequences: Sequences, shares: RowShares) -> Floats:
    """[sequence, generator], which of the shared ones it is from."""
    found = learned.bank.log_likelihood(learned.parameters, learned.bank.prepare(sequences))
    return softmax(found + safe_log(shares.theta))


def predict_after(
    learned: LearnedParts, prefixes: Sequences, shares: RowShares
) -> SequencePrediction:
    """After each whole prefix."""
    last = prefix_rows(prefixes)[0][1:] - 1
    return _foreseen(learned, prefixes, shares).select(last)


def judge(learned: LearnedParts, sequences: Sequences, shares: RowShares) -> Judgement:
    """One pass over whole sequences, foreseeing every symbol from those before it."""
    bank = learned.bank
    correct = np.full(len(sequences), np.nan)
    error = np.full(len(sequences), np.nan)
    for rows in rows_at_once(bank, sequences):
        part = sequences.select(rows)
        ahead = _foreseen(learned, part, shares.select(rows))
        starts, places = prefix_rows(part)
        if ahead.probabilities is not None:
            guessed = ahead.probabilities.argmax(axis=1)
            target = np.full(starts[-1], part.symbols)
            target[places - 1] = part.values
            right = (guessed == target).astype(np.float64)
            if not bank.halting:
                right[starts[1:] - 1] = 0.0
            correct[rows] = np.add.reduceat(right, starts[:-1])
        else:
            assert ahead.mean is not None
            off = np.nan_to_num((part.values - ahead.mean[places - 1]) ** 2).sum(axis=1)
            error[rows] = np.add.reduceat(off, part.starts[:-1])
    found = log_likelihoods(learned, sequences, shares)
    return Judgement(found, sequences.lengths + bank.halting, correct, error)


def sample_sequence(
    learned: LearnedParts,
    prefix: Sequences,
    shares: RowShares,  # of one row
    length: int | None,
    generator: np.random.Generator,
) -> NDArray[Any]:
    """One sequence that begins with the prefix."""
    bank, own = learned.bank, learned.own
    if length is None and not bank.halting:
        raise InputError(
            "`length` should be given: these generators do not say when a sequence ends. Found none."
        )
    if isinstance(own, OwnChains) and shares.tasks[0] >= 0:
        return _sample_steps(learned, prefix, shares, length, generator)
    ahead, theta = _follow(learned, prefix, shares)
    joint = softmax(ahead.log_prefix[-1:] + safe_log(theta[-1:]))[0]
    for _ in range(_DRAWS):
        which = int(generator.choice(len(joint), p=joint))
        if which < bank.count:
            made = bank.sample(learned.parameters, which, prefix[0], length, generator)
        else:
            assert isinstance(own, OwnGenerators)
            task, kind = int(shares.tasks[0]), bank.blocks[own.block]
            made = kind.sample(own.parameters, task, prefix[0], length, generator)
        if learned.unknown is None or learned.unknown not in made[len(prefix[0]) :]:
            break
    return made


def complete_sequence(
    learned: LearnedParts, prefix: Sequences, shares: RowShares, length: int, width: int
) -> tuple[NDArray[Any], float]:
    """The most likely way on that a beam of `width` finds, and the logarithm of its probability given
    the prefix; for vectors the mean, step by step, and how likely that is."""
    if learned.bank.observes == "vectors":
        return _mean_way(learned, prefix, shares, length)
    beam: list[tuple[list[int], float]] = [(list(prefix[0]), 0.0)]
    done: list[tuple[list[int], float]] = []
    while beam and len(beam[0][0]) < length:
        values = np.array([symbol for way, _ in beam for symbol in way], np.int32)
        starts = np.arange(len(beam) + 1) * len(beam[0][0])
        many = Sequences(values, starts, prefix.symbols)
        each = shares.select(np.zeros(len(beam), np.int64))
        found = predict_after(learned, many, each).probabilities
        assert found is not None
        onward = []
        for (way, level), row in zip(beam, safe_log(found), strict=True):
            done.append((way, level + float(row[-1])))
            if learned.unknown is not None:
                row[learned.unknown] = -np.inf
            best = np.argsort(-row[:-1])[:width]
            onward += [([*way, int(symbol)], level + float(row[symbol])) for symbol in best]
        beam = sorted(onward, key=lambda each: -each[1])[:width]
        best_done = max((level for _, level in done), default=-np.inf)
        beam = [each for each in beam if each[1] > best_done]  # it can only fall from here
    way, level = max(done + beam, key=lambda each: each[1])
    return np.array(way, np.int32), level


def _mean_way(
    learned: LearnedParts, prefix: Sequences, shares: RowShares, length: int
) -> tuple[NDArray[Any], float]:
    way = prefix
    first = None
    while True:
        ahead = predict_after(learned, way, shares)
        first = float(ahead.log_prefix[0]) if first is None else first
        if way.starts[-1] >= length:
            return way[0], float(ahead.log_prefix[0]) - first
        assert ahead.mean is not None
        values = np.concatenate([way.values, ahead.mean])
        way = Sequences(values, np.array([0, len(values)]))


def _sample_steps(
    learned: LearnedParts,
    prefix: Sequences,
    shares: RowShares,
    length: int | None,
    generator: np.random.Generator,
) -> NDArray[Any]:
    """Symbol by symbol: a task's own counts belong to no generator."""
    symbols = list(prefix[0])
    while length is None or len(symbols) < length:
        way = Sequences(np.array(symbols, np.int32), np.array([0, len(symbols)]), prefix.symbols)
        found = predict_after(learned, way, shares).probabilities
        assert found is not None
        row = found[0]
        if learned.unknown is not None:
            row[learned.unknown] = 0.0
        symbol = int(generator.choice(len(row), p=row / row.sum()))
        if symbol == prefix.symbols:
            break
        symbols.append(symbol)
    return np.array(symbols, np.int32)


def _components(
    learned: LearnedParts, sequences: Sequences, shares: RowShares
) -> tuple[Floats, Floats]:
    """[sequence, generator] log-likelihoods and shares; the last is the task's own where it has one."""
    bank, own = learned.bank, learned.own
    found = bank.log_likelihood(learned.parameters, bank.prepare(sequences))
    if isinstance(own, OwnGenerators):
        return own.with_own(bank, found, sequences, shares.theta, shares.tasks)
    return found, shares.theta


def _follow(learned: LearnedParts, sequences: Sequences, shares: RowShares) -> tuple[Next, Floats]:
    """What every generator foresees after every prefix, and the shares of each row."""
    bank, own = learned.bank, learned.own
    ahead, sizes = bank.follow(learned.parameters, sequences), sequences.lengths + 1
    if not isinstance(own, OwnGenerators):
        return ahead, np.repeat(shares.theta, sizes, axis=0)
    kind = bank.blocks[own.block]
    assert ahead.mean is not None
    assert ahead.covariance is not None
    prefix, mean, covariance = (
        np.concatenate([each, each[:, :1]], axis=1)  # a place for the task's own
        for each in (ahead.log_prefix, ahead.mean, ahead.covariance)
    )
    starts = prefix_rows(sequences)[0]
    for task in np.unique(shares.tasks[shares.tasks >= 0]):
        rows = np.flatnonzero(shares.tasks == task)
        one = take_generators(own.parameters, np.array([task]))
        found = kind.follow(one, kind.prepare(sequences.select(rows)))
        assert found.mean is not None
        assert found.covariance is not None
        places = np.concatenate([np.arange(starts[row], starts[row + 1]) for row in rows])
        prefix[places, -1], mean[places, -1] = found.log_prefix[:, 0], found.mean[:, 0]
        covariance[places, -1] = found.covariance[:, 0]
    theta = own.shares(shares.theta, shares.tasks)
    return Next(prefix, None, mean, covariance), np.repeat(theta, sizes, axis=0)


def _foreseen(learned: LearnedParts, sequences: Sequences, shares: RowShares) -> SequencePrediction:
    """After every prefix."""
    ahead, theta = _follow(learned, sequences, shares)
    found, own = _mixed(ahead, theta), learned.own
    if isinstance(own, OwnGenerators):
        shared = found.generators[:, :-1]
        among = shared / np.maximum(shared.sum(axis=1, keepdims=True), 1e-300)
        return replace(found, generators=among)
    if own is None:
        return found
    assert ahead.log_probabilities is not None
    assert found.probabilities is not None
    last = prefix_rows(sequences)[0][1:] - 1
    trace = StepTrace(ahead.log_prefix, ahead.log_probabilities[last][..., -1])
    return replace(
        found,
        probabilities=own.rows(sequences, found.probabilities, shares.tasks),
        log_prefix=own.log_prefix(trace, sequences, shares.theta, shares.tasks),
    )


def _mixed(ahead: Next, theta: Floats) -> SequencePrediction:
    joint = ahead.log_prefix + safe_log(theta)
    total = log_sum_exp(joint)
    # A prefix that no generator can make leaves the task's own shares.
    possible = np.isfinite(total)[:, None]
    weights = np.where(possible, np.exp(joint - np.where(possible, total[:, None], 0.0)), theta)
    if ahead.log_probabilities is not None:
        shares = np.einsum("pk,pks->ps", weights, np.exp(ahead.log_probabilities))
        return SequencePrediction(weights, total, shares)
    assert ahead.mean is not None
    assert ahead.covariance is not None
    mean, covariance = mixture_moments(weights, ahead.mean, ahead.covariance)
    return SequencePrediction(weights, total, mean=mean, covariance=covariance)
