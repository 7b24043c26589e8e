"""The models that are compared, and which generators each of them has: chosen on one draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from taskmix.papers._sequence_data import By, SequenceSet
from taskmix.sequences import (
    Generator,
    Multinomial,
    PooledMixture,
    SeparateModels,
    SequenceMixture,
    choose_mixture,
    compare_with_baselines,
    narrow_smoothing,
)

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
