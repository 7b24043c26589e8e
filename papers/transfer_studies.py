r"""What the experiments of the transfer paper share: small runs, sources chosen by surrogates, F1.

A held-out subset helps where its measured loss lies below that of the target alone, and is said to
where the predicted one does. Both losses are means over seeds, so the sign itself is uncertain where
the two lie close together, and nobody can predict it: the `ceiling` is the F1 of an oracle that
knows the expected losses. The expected differences are taken to be the measured ones, shrunk towards
their mean until their variance is what is left when that of the noise is taken away; then noise of
its known size is added again and again, to every subset its own and to all of them that of the
anchor. `always` is the F1 of saying "helps" of every subset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr

from papers.rows import PaperRow, row
from papers.runner import Device, Flag
from taskmix.engine import Executor, Optimization, Run, TaskSource
from taskmix.errors import OptionError
from taskmix.models import Architecture
from taskmix.records import Study
from taskmix.transfer import (
    LinearSurrogate,
    SubsetDesign,
    SubsetOutcomes,
    Surrogate,
    Trial,
    TrialOutcomes,
    best_prefixes,
    choose_prefix,
    fit_linear_surrogate,
    measure_trials,
    outcomes_of_target,
)
from taskmix.weighting import Equal

PAPER_F1 = 0.80  # over all their experiments
MEASURES = ("helps", "harms", "right", "always", "ceiling", "share", "spearman")
HeldOut = Literal["design", "held out"]  # subsets of the size fitted to, or of other sizes
Prefixes = Callable[[LinearSurrogate], NDArray[np.bool_]]  # to [prefix, source]


@dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """How long runs train, and how many there are."""

    hidden: Annotated[tuple[int, ...], Flag("Widths of the network.")] = (64,)
    steps: Annotated[int, Flag("Batches of every task in a run.")] = 300
    batch_size: Annotated[int, Flag()] = 32
    learning_rate: Annotated[float | None, Flag("[the usual one]")] = None
    size: Annotated[int, Flag("Sources in a subset.")] = 3
    subsets: Annotated[int, Flag("Of each target, to learn from.")] = 150
    held_out: Annotated[int, Flag("Subsets of a target to be tried on.")] = 24
    repeats: Annotated[int, Flag("Runs of each subset that is tried on.")] = 3
    alone: Annotated[int, Flag("Runs of each target alone.")] = 10
    seeds: Annotated[int, Flag("Of the methods that are compared.")] = 5
    seed: Annotated[int, Flag("Random seed.")] = 0
    device: Device = "cpu"

    def __post_init__(self) -> None:
        if self.repeats < 2 or not 2 <= self.seeds <= self.alone:
            raise OptionError(
                "`repeats` should be 2 or more, to know the noise, and `seeds` from 2 to `alone`. "
                f"Found {self.repeats}, {self.seeds} and {self.alone}."
            )

    def run(self, label: str, source: TaskSource, architecture: Architecture) -> Run:
        """A run of all tasks of a source with equal weights."""
        return Run(
            label=label,
            source=source,
            architecture=architecture,
            optimization=Optimization(learning_rate=Optimization.usual_rate(self.learning_rate)),
            weighting=Equal(),
            steps=self.steps,
            batch_size=self.batch_size,
            device=self.device,
            seed=self.seed,
        )

    def design(self, *, held_out: bool = False) -> SubsetDesign:
        """The subsets to fit, or others to be tried on, which have repeats."""
        return SubsetDesign(
            size=self.size,
            count=self.subsets,
            repeats=self.repeats if held_out else 1,
            alone=self.alone,
            seed=self.seed + held_out,
        )


def select_sources(
    measured: TrialOutcomes,
    study: Study,
    executor: Executor,
    *,
    prefixes: Prefixes = best_prefixes,
    chosen_by: Literal["loss", "metric"] | None = None,  # on dev; None: the outcome fitted to
    ridge: float = 0.0,
    seeds: int = 3,
) -> tuple[dict[str, LinearSurrogate], dict[str, tuple[str, ...]]]:
    """A linear surrogate for each target, and its sources: the paper's γ, chosen on dev.

    Every γ keeps a prefix of the sources in the order of their effects. Some of these, the ones the
    surrogate predicts best unless said otherwise, are trained under a few seeds, and the one of the
    best dev outcome is taken.
    """
    description = replace(measured.description, outcome=chosen_by or measured.description.outcome)
    surrogates = _fit_all(measured, ridge)
    tried = {target: prefixes(surrogate) for target, surrogate in surrogates.items()}
    trials = prefix_trials(measured, prefixes, ridge=ridge, seeds=seeds)
    found = measure_trials(description, trials, study, executor)
    chosen, begin = {}, 0
    for target, members in tried.items():
        end = begin + len(members) * seeds
        column = description.tasks.index(target)
        choice = choose_prefix(
            surrogates[target],
            members,
            found.outcomes[begin:end, column].reshape(len(members), seeds),
            higher_is_better=description.higher_is_better[target],
        )
        chosen[target] = choice.selection.sources
        begin = end
    return surrogates, chosen


def prefix_trials(
    measured: TrialOutcomes, prefixes: Prefixes, *, ridge: float = 0.0, seeds: int
) -> list[Trial]:
    """Every prefix of every target under so many seeds, in this order."""
    return [
        trial
        for target, surrogate in _fit_all(measured, ridge).items()
        for member in prefixes(surrogate)
        for trial in measured.description.prefix(target, _names(surrogate, member), seeds)
    ]


def _fit_all(measured: TrialOutcomes, ridge: float) -> dict[str, LinearSurrogate]:
    return {
        target: fit_linear_surrogate(measured.table(target), ridge=ridge)
        for target in measured.description.targets
    }


def held_out_table(
    fitted: TrialOutcomes, tried: TrialOutcomes, target: str, role: HeldOut = "design"
) -> SubsetOutcomes:
    """The subsets of `tried` that the surrogate was not fitted to, with the anchor that it has."""
    description = fitted.description
    of_fitted, of_tried = fitted.rows(target, ("alone", "design")), tried.rows(target, (role,))
    trained = np.concatenate([fitted.trained[of_fitted], tried.trained[of_tried]])
    table = outcomes_of_target(
        trained,
        np.concatenate([fitted.outcomes[of_fitted], tried.outcomes[of_tried]]),
        tasks=description.tasks,
        target=target,
        higher_is_better=description.higher_is_better[target],
    )
    known = {row.tobytes() for row in fitted.table(target).subsets}
    return table.take(np.array([row.tobytes() not in known for row in table.subsets]))


def spread_prefixes(surrogate: LinearSurrogate) -> NDArray[np.bool_]:
    """Prefixes of many sizes, none to all, closer together among the small ones."""
    count = len(surrogate.sources)
    return _prefixes(surrogate, np.unique(np.rint(count * np.linspace(0, 1, 9) ** 1.5)))


def tripling_prefixes(surrogate: LinearSurrogate) -> NDArray[np.bool_]:
    """Prefixes of 0, 1, 3, 9, ... sources and of all of them: few sizes, since runs with as many tasks
    train together."""
    count = len(surrogate.sources)
    return _prefixes(surrogate, [0, *(size for size in (1, 3, 9, 27, 81) if size < count), count])


def _prefixes(surrogate: LinearSurrogate, sizes: ArrayLike) -> NDArray[np.bool_]:
    """[prefix, source], so many sources of the least effects."""
    rank = np.argsort(np.argsort(surrogate.effects, kind="stable"), kind="stable")
    return np.asarray(rank < np.asarray(sizes)[:, None])


def best_of(measured: NDArray[np.float64], *, sizes: Sequence[int]) -> int:
    """Which choice has the best mean metric on dev; of equals the one with the fewest sources."""
    means = np.round(measured.mean(axis=1), 9)
    return int(np.lexsort([np.asarray(sizes), -means])[0])


def _names(surrogate: LinearSurrogate, members: NDArray[np.bool_]) -> list[str]:
    return [surrogate.sources[place] for place in np.flatnonzero(members)]


def f1_rows(quantity: str, tests: Sequence[SignTest]) -> list[PaperRow]:
    """The mean over targets of each measure, and of F1 under the name itself."""
    rows = []
    for measure_name in MEASURES:
        values = np.array([getattr(test, measure_name) for test in tests])
        known = values[np.isfinite(values)]
        if len(known) == 0:
            continue
        name = quantity if measure_name == "helps" else f"{quantity}/{measure_name}"
        rows.append(row(name, PAPER_F1 if measure_name == "helps" else None, known))
    return rows


def cost_rows(
    experiment: str, measured: Sequence[TrialOutcomes], chosen: dict[str, tuple[str, ...]]
) -> list[PaperRow]:
    """How many runs there were, how many failed, and how many sources were chosen."""
    runs = {(trial.tasks, trial.run.seed) for each in measured for trial in each.trials}
    failed = sum(each.failed for each in measured)
    sources = [len(names) for names in chosen.values()]
    return [
        row(f"{experiment}/subset_runs", None, [len(runs)]),
        row(f"{experiment}/failed_runs", None, [failed]),
        row(f"{experiment}/sources_selected", None, sources),
    ]


def scores(
    runs: Sequence[Run], study: Study, split: str, outcome: str, *, task: str | None = None
) -> NDArray[np.float64]:
    """[run], the loss or the metric of each run's task, or of one of them; NaN where there is none."""
    found = []
    for run in runs:
        summary = study.run(run.specification()).summary()
        values = [
            score.value
            for score in (summary.scores if summary is not None else ())
            if score.split == split
            and (score.metric == "loss") == (outcome == "loss")
            and task in (None, score.task)
        ]
        found.append(values[0] if values else np.nan)
    return np.array(found)


@dataclass(frozen=True, kw_only=True)
class SignTest:
    """How well held-out subsets of one target were told; NaN where a figure is not defined."""

    subsets: int
    helps: float = math.nan  # F1 of "this subset helps"
    harms: float = math.nan  # F1 of "this subset harms"
    right: float = math.nan  # the share of subsets that were told
    always: float = math.nan  # F1 of "helps", said of all
    ceiling: float = math.nan  # F1 of "helps" that the noise allows
    share: float = math.nan  # of subsets that did help
    spearman: float = math.nan


def f1(truth: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Of saying yes; not defined where there is nothing to find and nothing was said."""
    below = int(truth.sum()) + int(said.sum())
    return 2 * int((truth & said).sum()) / below if below else math.nan


def sign_test(
    surrogate: Surrogate,
    held_out: SubsetOutcomes,
    *,
    generator: np.random.Generator,
    resamples: int = 500,
) -> SignTest:
    """One target; `held_out` has the runs of the target alone in it, and other subsets only."""
    if len(held_out.losses) == 0:
        return SignTest(subsets=0)
    predicted = surrogate.predict(held_out.subsets)
    helped, said = held_out.losses < held_out.anchor, predicted < surrogate.anchor
    related = math.nan
    if len(predicted) > 2 and np.ptp(predicted) > 0 and np.ptp(held_out.losses) > 0:
        related = float(spearmanr(predicted, held_out.losses).statistic)
    return SignTest(
        helps=f1(helped, said),
        harms=f1(~helped, ~said),
        right=float((helped == said).mean()),
        always=f1(helped, np.ones_like(helped)),
        ceiling=oracle_f1(held_out, generator=generator, resamples=resamples),
        share=float(helped.mean()),
        spearman=related,
        subsets=len(helped),
    )


def oracle_f1(
    held_out: SubsetOutcomes, *, generator: np.random.Generator, resamples: int = 500
) -> float:
    """F1 of "helps" by one who knows the expected losses, of which these are noisy measurements."""
    differences = held_out.losses - held_out.anchor
    own = held_out.seed_variance / held_out.weights
    anchor = held_out.anchor_variance / held_out.anchor_runs
    if not (np.isfinite(own).all() and np.isfinite(anchor)):
        return math.nan
    spread = float(differences.var(ddof=1)) if len(differences) > 1 else 0.0
    kept = np.sqrt(max(1 - float(own.mean()) / spread, 0.0)) if spread > 0 else 0.0
    expected = differences.mean() + kept * (differences - differences.mean())
    shape = (resamples, len(differences))
    noise = generator.normal(size=shape) * np.sqrt(own)
    shared = generator.normal(size=(resamples, 1)) * np.sqrt(anchor)
    found = [f1(measured < 0, expected < 0) for measured in expected + noise + shared]
    known = [value for value in found if np.isfinite(value)]
    return float(np.mean(known)) if known else math.nan
