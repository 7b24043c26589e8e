"""What tasks have of their own, once the shared generators are learned.

Of sequences in memory it is learned in a few more fits, each without some of them. A source is read
again for every fit, which is too dear: there it is learned from a sample of what the generators have
seen and from sequences that neither they nor the sample have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from taskmix.sequences._estimator._crossing import (
    ForeseenRest,
    assign_folds,
    folds_for,
    foresee_left_out,
    known_own,
    learn_own,
)
from taskmix.sequences._estimator._fitted import Tasks
from taskmix.sequences._estimator._scoring import ScoredMixture
from taskmix.sequences._observed import (
    Sequences,
    SourceWithSample,
    gather_corpus,
    number_tasks,
)
from taskmix.sequences._own import (
    PSEUDO,
    AdaptedStrengths,
    Own,
    OwnChains,
    OwnStrengths,
    adapt_generators,
    count_own,
    learn_own_strengths,
)


class OwningMixture(ScoredMixture):
    """The part of its own that each task has, for `SequenceMixture`."""

    own: bool | OwnStrengths | AdaptedStrengths

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

    def _own_of_source(self, source: SourceWithSample) -> OwnChains | None:
        """From the sequences that a source holds; None where that foresees no better than none."""
        if self.own is False or len(self.tasks_) < 2:
            return None
        (counted, owners), (aside, names) = source.sample(), source.set_aside()
        places = {name: place for place, name in enumerate(self.tasks_)}
        tasks, halting = np.array([places[name] for name in owners], np.int64), self.bank_.halting
        strengths = self.own if isinstance(self.own, OwnStrengths) else OwnStrengths()
        if strengths.held is None:
            known = np.array([row for row, name in enumerate(names) if name in places], np.int64)
            if not len(known) or not len(tasks):
                return None
            aside, names = aside.select(known), [names[row] for row in known]
            part = self.left_out(aside, names, [])
            assert part.steps is not None
            codes = np.array([places[name] for name in names])
            strengths, scores = learn_own_strengths(
                aside, self.tasks_, codes, np.ones(len(codes)), part.steps, strengths.order,
                halting=halting, counted=(counted, tasks),
            )  # fmt: skip
            if scores.sum() <= part.mixed.sum():
                return None
        ones = np.ones(len(tasks))
        return count_own(counted, tasks, ones, self.tasks_, strengths, halting=halting)
