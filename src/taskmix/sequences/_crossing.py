"""What tasks have of their own is learned from sequences that the shared generators have not seen.

Every sequence is left out of one of a few fits (`assign_folds`), which says what it foresees of it
(`foresee_left_out`); `learn_own` puts these together, and `known_own` makes the part itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from taskmix.numerics import log_sum_exp
from taskmix.sequences._chains import Codes
from taskmix.sequences._corpus import Corpus
from taskmix.sequences._generator import Floats, safe_log
from taskmix.sequences._own_chains import (
    OwnStrengths,
    count_own,
    learn_own_strengths,
    mixed_steps,
    trace_sequences,
)
from taskmix.sequences._own_generators import (
    PSEUDO,
    AdaptedStrengths,
    Own,
    adapt_generators,
    learn_weight,
    log_mixed,
)
from taskmix.sequences._prediction import LearnedParts
from taskmix.sequences._sequences import Sequences

_MANY = 2000  # sequences beyond which fewer folds do


@dataclass(frozen=True, eq=False)
class ForeseenRest:
    """What a fit says of sequences it has not seen."""

    mixed: Floats  # [sequence], log-likelihoods by the shared generators
    steps: Floats | None = None  # of symbols, [transition], step by step
    own: Floats | None = None  # of vectors, [sequence, number of pseudo-sequences], by adapted ones


def folds_for(count: int) -> int:
    """How many parts so many sequences are left out in."""
    return min(count, 5 if count <= _MANY else 3)


def assign_folds(tasks: Codes, folds: int, generator: np.random.Generator) -> Codes:
    """[sequence], so that the sequences of a task are spread over the folds."""
    fold = np.empty(len(tasks), np.int64)
    order = generator.permutation(len(tasks))
    order = order[np.argsort(tasks[order], kind="stable")]
    fold[order] = np.arange(len(tasks)) % folds
    return fold


def foresee_left_out(
    learned: LearnedParts,
    own: Sequence[Own],  # of vectors, adapted with each number of pseudo-sequences
    sequences: Sequences,
    theta: Floats,  # [sequence, generator]
    tasks: Codes,  # [sequence], -1 where its task was not seen either
) -> ForeseenRest:
    """By generators that were fitted to others."""
    bank = learned.bank
    if bank.observes == "symbols":
        trace = trace_sequences(bank, learned.parameters, sequences)
        steps, _ = mixed_steps(trace, sequences, theta, halting=bank.halting)
        found = bank.log_likelihood(learned.parameters, bank.prepare(sequences))
        return ForeseenRest(log_sum_exp(found + safe_log(theta)), steps)
    found = bank.log_likelihood(learned.parameters, bank.prepare(sequences))
    mixed = log_sum_exp(found + safe_log(theta))
    columns = []
    for each in own:
        both, _ = each.with_own(bank, found, sequences, theta, tasks)  # type: ignore[union-attr]
        columns.append(np.where(tasks >= 0, both[:, -1], mixed))
    return ForeseenRest(mixed, None, np.column_stack(columns) if columns else None)


def learn_own(
    sequences: Sequences,
    names: Sequence[Hashable],  # of the tasks
    tasks: Codes,
    weight: Floats,
    fold: Codes,
    parts: Sequence[ForeseenRest],
    order: int,
    *,
    halting: bool,
) -> tuple[OwnStrengths | AdaptedStrengths | None, Floats]:
    """How much of their own tasks have, and log-likelihoods of all sequences left out [sequence]."""
    mixed = np.empty(len(sequences))
    for number, part in enumerate(parts):
        mixed[fold == number] = part.mixed
    if parts[0].steps is not None:
        steps = _in_order(sequences, fold, [part.steps for part in parts], halting=halting)
        return learn_own_strengths(sequences, names, tasks, weight, steps, order, halting=halting)
    if parts[0].own is None:
        return None, mixed
    own = np.empty((len(sequences), parts[0].own.shape[1]))
    for number, part in enumerate(parts):
        own[fold == number] = part.own
    found = []
    for column, pseudo in enumerate(PSEUDO):
        share = learn_weight(mixed, own[:, column], weight)
        held = AdaptedStrengths(pseudo=pseudo, weight=share)
        # Each sequence with the weight that the others of its task give.
        rest = held.weights_without(own[:, column] - mixed, tasks)
        held = held.with_tasks(own[:, column] - mixed, tasks)
        found.append((held, log_mixed(mixed, own[:, column], rest)))
    return max(found, key=lambda each: float(weight @ each[1]))


def known_own(
    own: bool | OwnStrengths | AdaptedStrengths,
    corpus: Corpus,
    learned: LearnedParts,
    alpha: Floats,
    gamma: Floats,
) -> Own | None:
    """The part itself, where it is said how much; None where that is to be learned."""
    if isinstance(own, OwnStrengths) and own.held is not None:
        every = corpus.sequences.select(corpus.item)  # of each entry
        return count_own(
            every, corpus.task_of, corpus.weight, corpus.tasks, own, halting=learned.bank.halting
        )
    if isinstance(own, AdaptedStrengths):
        made = adapt_generators(
            learned.bank, learned.parameters, corpus, alpha, gamma, (own.pseudo,)
        )
        return None if made is None else made[0].weighted(own)
    return None


def _in_order(
    sequences: Sequences, fold: Codes, parts: Sequence[Floats | None], *, halting: bool
) -> Floats:
    """Steps of the parts as those of all sequences: observations first, ends last."""
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    seen = sequences.values >= 0
    owner = owner[seen]
    if halting:
        owner = np.concatenate([owner, np.flatnonzero(sequences.lengths)])
    steps = np.empty(len(owner))
    for number, part in enumerate(parts):
        steps[fold[owner] == number] = part
    return steps
