r"""The models that are compared, and tasks drawn from known Markov chains.

Generators, and how many of them a model has, are chosen on one draw (`choose_generators`).

Every synthetic seed draws K chains and T tasks with shares from a Dirichlet distribution. After a fit
the generators are matched to the true ones by the permutation that is best for the shares (Hungarian
method); `error/theta` is the mean absolute difference of shares, `error/generators` the mean total
variation of the transition rows, each weighted by how often its symbol occurs. A task's shares cannot
be known better than its few sequences say: `error/theta_at_best` is the error of the same estimate
with the true generators.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from papers.sequence_data import By, SequenceSet
from taskmix.sequences import (
    Generator,
    Markov,
    Multinomial,
    PooledMixture,
    SeparateModels,
    SequenceMixture,
    choose_mixture,
    compare_with_baselines,
    narrow_smoothing,
)

Floats = NDArray[np.float64]
MODELS = ("shared", "per_task", "backed_off", "pooled", "pooled_mixture", "lda")
Chosen = tuple[Generator, int]  # a kind, and how many of it


def make_model(kind: str, generator: Generator, count: int, seed: int) -> Any:
    match kind:
        case "shared":
            return SequenceMixture(generator, count, random_state=seed)
        case "per_task":
            alone = SequenceMixture(generator, 1, n_init=1, own=False, random_state=seed)
            return SeparateModels(alone)
        case "backed_off":
            return SequenceMixture(generator, 1, n_init=1, random_state=seed)
        case "pooled":
            return PooledMixture(generator, 1, n_init=1, own=False, random_state=seed)
        case _:
            made = SequenceMixture if kind == "lda" else PooledMixture
            return made(generator, count, own=False, random_state=seed)


def choose_generators(chosen: SequenceSet, train: By) -> dict[str, Chosen]:
    """Generator and number of generators of each model."""
    vectors = chosen.kinds[0].observes == "vectors"
    sequences = [each for some in train.values() for each in some]
    tasks = [task for task, some in train.items() for _ in some]
    ours = choose_mixture(SequenceMixture(random_state=0), sequences, tasks, vectors=vectors).best
    found: dict[str, Chosen] = {"shared": (ours.generator, ours.generators)}
    inside = {task: each[: -max(1, len(each) // 3)] or each for task, each in train.items()}
    outside = {task: each[-max(1, len(each) // 3) :] for task, each in train.items()}
    # Smoothing of chains is learned. That of vectors is chosen: by all of them as finely as by ours,
    # and from the kind that ours has ended with, too.
    more = (ours.generator,) if vectors else ()
    single = [(generator, 1) for generator in (*chosen.kinds, *more)]
    topics = [(Multinomial(smoothing=each), count)
              for each in (3.0, 10.0, 30.0, 100.0) for count in chosen.counts]  # fmt: skip
    for kind in MODELS[1:]:
        ways: list[Chosen] = list(single)
        if kind == "pooled_mixture":
            ways = [(each, count) for each in chosen.kinds for count in (1, *chosen.counts)]
            ways += [(each, ours.generators) for each in more]
        elif kind == "lda":
            ways = [] if vectors else list(topics)

        if ways:
            found[kind] = _best_way(kind, ways, inside, outside, narrow=vectors)
    return found


def _best_way(kind: str, ways: list[Chosen], inside: By, outside: By, *, narrow: bool) -> Chosen:
    """The generator and the number of a model that foresee `outside` best."""

    def score(generator: Generator, count: int) -> float:
        figures = held_out_measures({kind: make_model(kind, generator, count, 0)}, inside, outside)
        return figures[kind]["log_likelihood"]

    scores = [score(*way) for way in ways]
    generator, count = ways[int(np.argmax(scores))]
    if narrow:
        generator = narrow_smoothing(generator, lambda each: score(each, count), known=max(scores))
    return generator, count


def held_out_measures(models: dict[str, Any], train: By, test: By) -> dict[str, dict[str, float]]:
    """Held-out figures of each model, tasks counted alike."""
    sequences = [each for some in train.values() for each in some]
    tasks = [task for task, some in train.items() for _ in some]
    held = [each for some in test.values() for each in some]
    owners = [task for task, some in test.items() for _ in some]
    first = next(iter(models.values()))
    plain = first.model if isinstance(first, SeparateModels) else first
    compared = compare_with_baselines(plain, sequences, tasks, held, owners, models=models)
    return {
        each.name: {
            "log_likelihood": float(each.log_likelihood.mean()),
            "accuracy": each.accuracy,
            "error": each.error,
            "perplexity": float(np.exp(-each.log_likelihood.mean())),
        }
        for each in compared.rows
    }


@dataclass(frozen=True, eq=False)
class KnownTasks:
    """Sequences, the task of each, and the truth."""

    sequences: list[Any]
    tasks: list[int]
    initial: Floats  # [generator, symbol]
    moves: Floats  # [generator, symbol, symbol + 1], the last is the end
    theta: Floats  # [task, generator]
    alpha: float  # of the Dirichlet they are from


def draw_known(
    *,
    generators: int,
    symbols: int,
    tasks: int,
    each: int,
    alpha: float,
    generator: np.random.Generator,
) -> KnownTasks:
    """Chains whose rows are from a sparse Dirichlet, of mean length ten."""
    initial = generator.dirichlet(np.ones(symbols), generators)
    rows = generator.dirichlet(np.full(symbols, 0.5), (generators, symbols))
    moves = np.concatenate([0.9 * rows, np.full((generators, symbols, 1), 0.1)], axis=2)
    theta = generator.dirichlet(np.full(generators, alpha), tasks)
    known = KnownTasks([], [], initial, moves, theta, alpha)
    for task in range(tasks):
        add_sequences(known, task, each, generator)
    return known


def add_sequences(known: KnownTasks, task: int, count: int, generator: np.random.Generator) -> None:
    """More sequences of a task."""
    symbols = known.initial.shape[1]
    for kind in generator.choice(known.theta.shape[1], count, p=known.theta[task]):
        symbol = int(generator.choice(symbols, p=known.initial[kind]))
        sequence = [symbol]
        while True:
            symbol = int(generator.choice(symbols + 1, p=known.moves[kind, symbol]))
            if symbol == symbols:
                break
            sequence.append(symbol)
        known.sequences.append(np.array(sequence))
        known.tasks.append(task)


def recovery(known: KnownTasks, model: SequenceMixture) -> tuple[float, float, float]:
    """Errors of shares, of generators, and of shares with the true generators."""
    order = np.argsort(np.array(model.tasks_, dtype=np.int64))
    found = model.theta_[order]
    distance = np.abs(known.theta[:, :, None] - found[:, None, :]).mean(axis=0)
    truth, ours = linear_sum_assignment(distance)
    parameters = model.parameters_[0]
    symbols = known.initial.shape[1]
    contexts = np.arange(1, symbols + 1)
    place = np.searchsorted(parameters.contexts, contexts)
    rows = parameters.probabilities[:, np.minimum(place, len(parameters.contexts) - 1)]
    visits = np.bincount(np.concatenate(known.sequences), minlength=symbols).astype(float)
    differences = 0.5 * np.abs(known.moves[truth] - rows[ours]).sum(axis=2)
    generators = float((differences * visits / visits.sum()).sum(axis=1).mean())
    best = np.abs(known.theta - _best_shares(known, model)).mean()
    return float(distance[truth, ours].mean()), generators, float(best)


def _best_shares(known: KnownTasks, model: SequenceMixture) -> Floats:
    """What the same E-step finds when it is told the generators and α."""
    told, parameters = copy(model), model.parameters_[0]
    begin = np.concatenate([known.initial, np.zeros((len(known.initial), 1))], axis=1)
    every = np.concatenate([begin[:, None], known.moves], axis=1)  # context 0 is the beginning
    true = replace(parameters, probabilities=every[:, parameters.contexts])
    told.parameters_ = (true,)
    told.alpha_ = np.full(len(known.initial), known.alpha)
    return told.transform(known.sequences, known.tasks)


def fit_known(known: KnownTasks, *, generators: int, seed: int) -> SequenceMixture:
    model = SequenceMixture(
        Markov(),
        generators,
        n_init=5,
        own=False,
        random_state=seed,
        symbols=known.initial.shape[1],
    )
    return model.fit(known.sequences, known.tasks)
