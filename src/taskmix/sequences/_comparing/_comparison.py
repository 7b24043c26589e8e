"""Shared generators against what they should beat, in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from taskmix.errors import InputError
from taskmix.numerics import Interval, paired_interval
from taskmix.sequences._comparing._baselines import PooledMixture, SeparateModels, SequenceModel
from taskmix.sequences._comparing._choice import find_symbols
from taskmix.sequences._comparing._fitting import Fitting, fit_now
from taskmix.sequences._counted import Multinomial
from taskmix.sequences._estimator import Judgement, SequenceMixture, Tasks
from taskmix.sequences._generator import Floats
from taskmix.sequences._observed import number_tasks

SHARED_NAME = "shared generators"  # also names a recorded fit: another word, and it is done again


@dataclass(frozen=True, eq=False)
class Compared:
    """One model on held-out sequences.

    >>> from math import log
    >>> judgement = Judgement(
    ...     log_likelihood=np.array([-3 * log(2)]), symbols=np.array([3]), correct=np.array([2.0]),
    ...     squared_error=np.array([np.nan]))
    >>> row = Compared("shared generators", judgement, np.array([-log(2)]), None)
    >>> round(row.perplexity, 6), round(row.accuracy, 2)
    (2.0, 0.67)
    """

    name: str
    judgement: Judgement
    log_likelihood: Floats  # [task], of one observation
    gain: Interval | None  # of the shared generators over this model; None for themselves

    @property
    def perplexity(self) -> float:
        """Over all observations."""
        total = self.judgement.log_likelihood.sum() / self.judgement.symbols.sum()
        return float(np.exp(-total))

    @property
    def accuracy(self) -> float:
        """Of the next symbol; NaN for vectors."""
        return float(self.judgement.correct.sum() / self.judgement.symbols.sum())

    @property
    def error(self) -> float:
        """Root mean squared error of the next vector; NaN for symbols."""
        return float(np.sqrt(self.judgement.squared_error.sum() / self.judgement.symbols.sum()))


@dataclass(frozen=True, eq=False)
class MixtureComparison:
    """All models on the same held-out sequences; `models` are fitted.

    >>> model = SequenceMixture(Markov(), 1, own=False, n_init=1, random_state=0)
    >>> found = compare_with_baselines(model, ["aa", "bb"], ["x", "y"], ["aa"], ["x"])
    >>> found["one pooled model"].gain.mean  # over itself, with one generator
    0.0
    """

    rows: tuple[Compared, ...]
    models: dict[str, SequenceModel]

    def __getitem__(self, name: str) -> Compared:
        return next(row for row in self.rows if row.name == name)


def make_baselines(model: SequenceMixture) -> dict[str, SequenceModel]:
    """The shared generators and what they are compared with, none of them fitted."""
    options = model.get_params(deep=False)
    whole = model.n_generators
    count = sum(whole) if isinstance(whole, list | tuple) else whole
    first = options["generator"]
    one = first[0] if isinstance(first, list | tuple) else first
    single = {**options, "generator": one, "n_generators": 1, "n_init": 1, "start": None}
    single |= {"alpha": 1.0, "own": False}  # the first of no consequence
    mixed = {**options, "start": None, "own": False}
    found: dict[str, SequenceModel] = {
        SHARED_NAME: clone(model),
        "one model per task": SeparateModels(SequenceMixture(**single)),
        "one model per task, backed off": SequenceMixture(**{**single, "own": True}),
        "one pooled model": PooledMixture(**single),
        "pooled mixture": PooledMixture(**mixed),
    }
    if model.observes == "symbols" and model.halting:
        words = {**mixed, "generator": Multinomial(), "n_generators": count}
        found["plain LDA"] = SequenceMixture(**words)
    return found


def compare_with_baselines(
    model: SequenceMixture,
    sequences: Sequence[Any],
    tasks: Tasks,
    test_sequences: Sequence[Any],
    test_tasks: Tasks,
    *,
    models: Mapping[str, SequenceModel] | None = None,
    on_progress: Callable[[str], None] | None = None,
    fitting: Fitting = fit_now,
) -> MixtureComparison:
    """Fits all models on the same sequences and judges them on others of the same tasks; `models`
    that are fitted already are judged as they are. `fitting` is how: `RecordedFits` keeps what is done.

    Gains are in log-likelihood of an observation, of the first model over each other, paired by task;
    by sequence, where there is one task.

    >>> model = SequenceMixture(Markov(smoothing=0.1), 2, alpha=0.1, n_init=1, random_state=0)
    >>> found = compare_with_baselines(
    ...     model, ["aaaa"] * 4 + ["bbbb"] * 4, ["x"] * 4 + ["y"] * 4, ["aaaa", "bbbb"], ["x", "y"])
    >>> found["one pooled model"].gain.mean > 0
    True
    """
    symbols = find_symbols(sequences, model)
    candidates = make_baselines(model) if models is None else dict(models)
    names, codes = number_tasks(test_tasks)
    if len(codes) == 0:
        raise InputError("There should be held-out sequences to judge models by. Found none.")
    rows: list[Compared] = []
    for name, candidate in candidates.items():
        if on_progress is not None:
            on_progress(name)
        judged = partial(candidate.judge, test_sequences, test_tasks)
        if hasattr(candidate, "tasks_"):
            judgement = judged()
        else:
            inner = candidate.model if isinstance(candidate, SeparateModels) else candidate
            inner.set_params(symbols=symbols)
            judgement = fitting(name, candidate, sequences, tasks, judged)
        totals = np.bincount(codes, judgement.log_likelihood, len(names))
        each = totals / np.bincount(codes, judgement.symbols, len(names))
        gain = None
        if rows and len(names) == 1:
            first = rows[0].judgement
            gain = paired_interval(
                first.log_likelihood / first.symbols, judgement.log_likelihood / judgement.symbols
            )
        elif rows:
            gain = paired_interval(rows[0].log_likelihood, each)
        rows.append(Compared(name, judgement, each, gain))
    return MixtureComparison(tuple(rows), candidates)
