r"""Whose sequence is it, and is it one of theirs: scores of sequences against tasks.

Three questions are told apart. *How likely is it in this task?* $\log p(x \mid t)$, which is low for
every rare symbol, whoever wrote it. *Which task is it from?* $\log P(t \mid x)$, by Bayes' rule from a
prior over tasks. *Is it this task's rather than anybody's?* the log-ratio

$$\log p(x \mid t) - \log p(x \mid \text{rest}),$$

where the rest is one of the other tasks, each as likely as the next, with what it has of its own: the
mean of $p(x \mid t')$ over $t' \ne t$. (Shared generators alone would be a poor rest: a task's own part
makes what any task writes likelier, a stranger's too, and only the task had one.) What all tasks find
surprising cancels in it, which is why it tells a stranger from the task where the likelihood cannot.

A p-value says which share of the task's own sequences scores as low (Vovk, Gammerman and Shafer,
"Algorithmic Learning in a Random World", 2005, conformal p-values): (1 + lower ones) / (1 + all). The
scores it is compared with are of sequences that were held out when their model was fitted, since those
a model has learned from look more typical than new ones. For a sequence of the task, drawn like those,
it is uniform on 1/(1 + n), ..., 1, and conservative where scores are equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError
from taskmix.numerics import log_sum_exp
from taskmix.sequences._generator import Floats, safe_log

Prior = Literal["counts", "uniform"] | Mapping[Hashable, float]
LEAST_OWN = 19  # with fewer of its own, no p-value of a task could come down to 0.05


@dataclass(frozen=True, eq=False)
class ScoreReference:
    """Scores of sequences while they were held out: what a new score is compared with.

    A task with fewer than 19 sequences of its own is compared with those of all tasks together.

    >>> reference = ScoreReference(
    ...     ("x",), np.zeros(19, int), log_ratio=np.arange(19.0), surprise=np.arange(19.0))
    >>> reference.p_values("log_ratio", np.array([-1.0, 8.5]), ["x", "x"])
    array([0.05, 0.5 ])
    """

    tasks: tuple[Hashable, ...]
    task_of: NDArray[np.int64]  # [sequence]
    log_ratio: Floats  # [sequence]
    surprise: Floats  # [sequence], for a symbol

    def p_values(
        self,
        kind: Literal["log_ratio", "surprise"],
        scores: Floats,  # [sequence]
        tasks: Sequence[Hashable],
    ) -> Floats:
        """[sequence], the share of held-out sequences of the task that are as odd or odder."""
        known = self.log_ratio if kind == "log_ratio" else -self.surprise
        asked = scores if kind == "log_ratio" else -scores
        found = np.empty(len(asked))
        pooled = np.sort(known)
        for task in dict.fromkeys(tasks):
            rows = np.array([each == task for each in tasks])
            own = self._own(task, known)
            among = pooled if own is None else own
            lower = np.searchsorted(among, asked[rows], side="right")
            found[rows] = (1 + lower) / (1 + len(among))
        return found

    def _own(self, task: Hashable, known: Floats) -> Floats | None:
        if task not in self.tasks:
            return None
        own = known[self.task_of == self.tasks.index(task)]
        return np.sort(own) if len(own) >= LEAST_OWN else None


@dataclass(frozen=True, eq=False)
class SequenceScores:
    """What is asked of sequences, each against its task; see `SequenceMixture.score_sequences`."""

    tasks: tuple[Hashable, ...]  # [sequence], against which it is scored
    log_likelihood: Floats  # in its task
    symbols: NDArray[np.int64]  # observations, and ends where these are foreseen
    log_ratio: Floats  # above 0: rather this task's than anybody's
    log_posterior: Floats  # of its task among all
    likeliest: tuple[Hashable, ...]  # the task with the highest posterior
    p_ratio: Floats | None = None  # p-values; None where the model is not calibrated
    p_surprise: Floats | None = None

    @property
    def surprise(self) -> Floats:
        """[sequence], negative log-likelihood of a symbol."""
        return np.asarray(-self.log_likelihood / np.maximum(self.symbols, 1))

    def rows(self) -> list[dict[str, object]]:
        """A row for each sequence, as `taskmix sequences score` writes it."""
        numbers: dict[str, Floats | None] = {
            "log_likelihood": self.log_likelihood,
            "surprise": self.surprise,
            "log_ratio": self.log_ratio,
            "log_posterior": self.log_posterior,
            "p_ratio": self.p_ratio,
            "p_surprise": self.p_surprise,
        }
        return [
            {
                "task": self.tasks[place],
                **{
                    name: None if values is None else float(values[place])
                    for name, values in numbers.items()
                },
                "likeliest": self.likeliest[place],
                "symbols": int(self.symbols[place]),
            }
            for place in range(len(self.tasks))
        ]


def log_prior_of_tasks(
    prior: Prior,
    tasks: Sequence[Hashable],
    counts: Floats,  # [task], sequences it was fitted to
) -> Floats:
    """[task], logarithms of a prior that sums to one."""
    if isinstance(prior, str):
        if prior not in ("counts", "uniform"):
            raise OptionError(
                f"`prior` should be counts, uniform or a number for each task. Found {prior!r}."
            )
        weights = np.asarray(counts, np.float64) if prior == "counts" else np.ones(len(tasks))
    else:
        lacking = [task for task in tasks if task not in prior]
        if lacking:
            raise InputError(
                f"`prior` should have a number for each of the {len(tasks)} tasks. Found none for "
                f"{lacking[0]!r}."
            )
        weights = np.array([float(prior[task]) for task in tasks])
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise OptionError(
            f"`prior` should be numbers that are not negative, one of them above 0. Found {prior!r}."
        )
    return safe_log(weights / weights.sum())


def log_posterior_of_tasks(log_likelihood: Floats, log_prior: Floats) -> Floats:
    """[sequence, task] by Bayes' rule; a sequence that no task can make has the prior."""
    joint = log_likelihood + log_prior
    total = log_sum_exp(joint)[:, None]
    possible = np.isfinite(total)
    return np.where(possible, joint - np.where(possible, total, 0.0), log_prior)


def log_mean_of_others(log_likelihood: Floats) -> Floats:
    """[sequence, task], of the mean of a row's other tasks; of one task alone, its own."""
    count = log_likelihood.shape[1]
    if count == 1:
        return log_likelihood
    # Sums of those before and of those after: a difference of sums would lose all but the largest.
    before = np.logaddexp.accumulate(log_likelihood, axis=1)
    after = np.logaddexp.accumulate(log_likelihood[:, ::-1], axis=1)[:, ::-1]
    nothing = np.full((len(log_likelihood), 1), -np.inf)
    others = np.logaddexp(
        np.concatenate([nothing, before[:, :-1]], axis=1),
        np.concatenate([after[:, 1:], nothing], axis=1),
    )
    return np.asarray(others - np.log(count - 1))
