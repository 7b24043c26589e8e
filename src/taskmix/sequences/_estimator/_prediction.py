r"""What a task's next sequence, or the rest of one, will be.

"Prediction" is a heading without text in Crawford and Pineau's draft. After a prefix the generators of
a task are mixed with weights $\theta_t(k)\,P_k(\text{prefix})$, renormalised; a whole sequence has the
probability $\sum_k \theta_t(k)\,P_k(x)$ with θ at its expectation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.numerics import log_sum_exp, softmax
from taskmix.sequences._generator import Floats, Next, prefix_rows, safe_log
from taskmix.sequences._mixture import Bank
from taskmix.sequences._normal import mixture_moments
from taskmix.sequences._observed import Sequences

_CELLS = 1 << 24  # numbers that are held at once


@dataclass(frozen=True, eq=False)
class SequencePrediction:
    """What comes after each prefix. For symbols the last probability is that the sequence ends."""

    generators: Floats  # [prefix, generator], which of them is at work
    log_prefix: Floats  # [prefix], how likely the prefix was
    probabilities: Floats | None = None  # [prefix, symbol + 1]
    mean: Floats | None = None  # [prefix, dimension]
    covariance: Floats | None = None  # [prefix, dimension, dimension]


@dataclass(frozen=True, eq=False)
class Judgement:
    """How well sequences were foreseen, one number a sequence.

    >>> model = SequenceMixture(Markov(), 1, random_state=0).fit(["ab", "ab"])
    >>> model.judge(["ab"]).correct  # a, b and the end
    array([3.])
    """

    log_likelihood: Floats
    symbols: NDArray[np.int64]  # observations, and ends where these are foreseen
    correct: Floats  # next symbols foreseen rightly; NaN for vectors
    squared_error: Floats  # summed over numbers, of the next vector; NaN for symbols


def log_likelihoods(
    bank: Bank, parameters: Sequence[Any], sequences: Sequences, theta: Floats
) -> Floats:
    """[sequence], with the shares `theta` [sequence, generator] of its task."""
    found = bank.log_likelihood(parameters, bank.prepare(sequences))
    return log_sum_exp(found + safe_log(theta))


def posteriors(
    bank: Bank, parameters: Sequence[Any], sequences: Sequences, theta: Floats
) -> Floats:
    """[sequence, generator], which one it is from."""
    found = bank.log_likelihood(parameters, bank.prepare(sequences))
    return softmax(found + safe_log(theta))


def predict_after(
    bank: Bank, parameters: Sequence[Any], prefixes: Sequences, theta: Floats
) -> SequencePrediction:
    """After each whole prefix, with the shares `theta` [prefix, generator] of its task."""
    ahead = bank.follow(parameters, prefixes)
    last = prefix_rows(prefixes)[0][1:] - 1
    return _mixed(_rows(ahead, last), theta)


def judge(bank: Bank, parameters: Sequence[Any], sequences: Sequences, theta: Floats) -> Judgement:
    """One pass over whole sequences, foreseeing every symbol from those before it."""
    correct = np.full(len(sequences), np.nan)
    error = np.full(len(sequences), np.nan)
    for rows in _parts(bank, sequences):
        part = sequences.select(rows)
        ahead = _mixed(
            bank.follow(parameters, part), np.repeat(theta[rows], part.lengths + 1, axis=0)
        )
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
    found = log_likelihoods(bank, parameters, sequences, theta)
    return Judgement(found, sequences.lengths + bank.halting, correct, error)


def sample_sequence(
    bank: Bank,
    parameters: Sequence[Any],
    prefix: Sequences,
    theta: Floats,
    length: int | None,
    generator: np.random.Generator,
) -> NDArray[Any]:
    """One sequence that begins with the prefix."""
    if length is None and not bank.halting:
        raise InputError(
            "`length` should be given: these generators do not say when a sequence ends. Found none."
        )
    shares = predict_after(bank, parameters, prefix, theta[None]).generators[0]
    which = int(generator.choice(len(shares), p=shares))
    return bank.sample(parameters, which, prefix[0], length, generator)


def complete_sequence(
    bank: Bank,
    parameters: Sequence[Any],
    prefix: Sequences,
    theta: Floats,
    length: int,
    width: int,
) -> tuple[NDArray[Any], float]:
    """The most likely way on that a beam of `width` finds, and the logarithm of its probability given
    the prefix; for vectors the mean, step by step, and how likely that is."""
    if bank.observes == "vectors":
        return _mean_way(bank, parameters, prefix, theta, length)
    beam: list[tuple[list[int], float]] = [(list(prefix[0]), 0.0)]
    done: list[tuple[list[int], float]] = []
    while beam and len(beam[0][0]) < length:
        values = np.array([symbol for way, _ in beam for symbol in way], np.int32)
        starts = np.arange(len(beam) + 1) * len(beam[0][0])
        many = Sequences(values, starts, prefix.symbols)
        shares = np.repeat(theta[None], len(beam), axis=0)
        found = predict_after(bank, parameters, many, shares).probabilities
        assert found is not None
        onward = []
        for (way, level), row in zip(beam, safe_log(found), strict=True):
            done.append((way, level + float(row[-1])))
            best = np.argsort(-row[:-1])[:width]
            onward += [([*way, int(symbol)], level + float(row[symbol])) for symbol in best]
        beam = sorted(onward, key=lambda each: -each[1])[:width]
        best_done = max((level for _, level in done), default=-np.inf)
        beam = [each for each in beam if each[1] > best_done]  # it can only fall from here
    way, level = max(done + beam, key=lambda each: each[1])
    return np.array(way, np.int32), level


def _mean_way(
    bank: Bank, parameters: Sequence[Any], prefix: Sequences, theta: Floats, length: int
) -> tuple[NDArray[Any], float]:
    way = prefix
    first = None
    while True:
        ahead = predict_after(bank, parameters, way, theta[None])
        first = float(ahead.log_prefix[0]) if first is None else first
        if way.starts[-1] >= length:
            return way[0], float(ahead.log_prefix[0]) - first
        assert ahead.mean is not None
        values = np.concatenate([way.values, ahead.mean])
        way = Sequences(values, np.array([0, len(values)]))


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


def _rows(ahead: Next, rows: NDArray[np.int64]) -> Next:
    def some(values: Floats | None) -> Floats | None:
        return None if values is None else values[rows]

    log_prefix = ahead.log_prefix[rows]
    return Next(log_prefix, some(ahead.log_probabilities), some(ahead.mean), some(ahead.covariance))


def _parts(bank: Bank, sequences: Sequences) -> Iterator[NDArray[np.int64]]:
    """Rows of sequences whose predictions can be held at once."""
    width = bank.count * max(sequences.symbols + 1, sequences.dimension**2)
    ends = np.cumsum((sequences.lengths + 1) * width)
    part = ends // _CELLS
    for number in np.unique(part):
        yield np.flatnonzero(part == number)
