"""Tables of outcomes for `transfer_surrogates.py`: trained once, kept as CSV, never trained again.

A case is a set of tasks. Every task is trained alone, with subsets to fit surrogates to, and with other
subsets, each twice, to try them on. Subsets have several sizes, because an effect of company itself
cannot be told from subsets of one size. A line of the CSV is one target of one run.

The cases of `ASIDE` were named before anything was fitted, and are looked at once.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from _few_labels import WEAK_TARGET, FewLabels
from taskmix.engine import Fleet, Run
from taskmix.models import Perceptron
from taskmix.papers import CensusOptions, Nlp25Options
from taskmix.papers._transfer._options import TransferOptions
from taskmix.records import Study
from taskmix.tasks import FeatureEncoding
from taskmix.transfer import SubsetOutcomes, outcomes_of_target

# 24 of 51 states and 20 of 24 text tasks, listed by hand before any run and divided nearly in turns.
STATES = ("AL", "AZ", "CO", "GA", "IL", "KY", "MA", "MI", "MT", "NJ", "OH", "TX")
STATES_ASIDE = ("AR", "CA", "CT", "HI", "IN", "LA", "MD", "MN", "MS", "NY", "PA", "WV")
NLP = (
    "mnli",
    "qnli",
    "rte",
    "stsb",
    "boolq",
    "copa",
    "emoji",
    "hate",
    "offensive",
    "stance_abortion",
)
NLP_ASIDE = (
    "mrpc",
    "qqp",
    "sst2",
    "wnli",
    "cb",
    "wic",
    "emotion",
    "irony",
    "sentiment",
    "stance_atheism",
)
CASES = ("census", "nlp25", "youtube", "census aside", "nlp25 aside", "trec aside")
BATCH = 48  # runs after which lines are written


@dataclass(frozen=True, kw_only=True)
class Case:
    """Tasks, the targets among them, and the sizes of subsets."""

    name: str
    run: Run
    targets: tuple[str, ...]  # all tasks, or one
    sizes: tuple[int, ...]  # sources beside a target
    fitted: int  # runs on subsets to fit to
    tried: int  # subsets to be tried on
    alone: int = 10

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.run.load().names


def make_case(name: str, data: Path, encoder: str, cache: Path, *, quick: bool) -> Case:
    """One of `CASES`."""
    aside = name.endswith(" aside")
    kind = name.removesuffix(" aside")
    less = 6 if quick else 1
    if kind == "census":
        census = CensusOptions(
            data=data / "acs_income", states=STATES_ASIDE if aside else STATES, rows=1500, steps=300
        )
        tasks = census.states or ()
        return Case(
            name=name, run=census.template, targets=tasks, sizes=(1, 2, 3, 5, 8),
            fitted=240 // less, tried=60 // less,
        )  # fmt: skip
    if kind == "nlp25":
        nlp = Nlp25Options(
            data=data, encoder=encoder, rows=200, dev_rows=200, test_rows=20, max_length=48,
            hidden=(32,), steps=200, batch_size=16, cache=cache,
        )  # fmt: skip
        tasks = NLP_ASIDE if aside else NLP
        return Case(
            name=name, run=replace(nlp.template, tasks=tasks), targets=tasks, sizes=(1, 2, 3, 5, 7),
            fitted=200 // less, tried=50 // less,
        )  # fmt: skip
    source = FewLabels(path=str(data / "wrench" / kind), cache=cache)
    reads = FeatureEncoding(path=encoder, max_length=64, pooling="mean")
    run = TransferOptions(steps=200).run(
        "weak", source, Perceptron(hidden=(64,), one_head=True, reads=reads)
    )
    names = run.load().names
    few = len(names) < 20
    return Case(
        name=name, run=run, targets=(WEAK_TARGET,),
        sizes=(1, 2, 3, 5, 8) if few else (1, 2, 4, 8, 16, 32),
        fitted=(80 if few else 4 * len(names)) // less, tried=40 // less, alone=20 // less,
    )  # fmt: skip


def planned_runs(case: Case) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """What each run is for, the tasks it trains and its seed."""
    tasks = case.run.load().names
    for target in case.targets:
        for seed in range(case.alone):
            yield "alone", (target,), seed
    shared = len(case.targets) == len(tasks)
    free = [task for task in tasks if shared or task not in case.targets]
    generator = np.random.default_rng([0, *case.name.encode()])
    seen: set[tuple[str, ...]] = set()
    for part, count, repeats in (("fit", case.fitted, 1), ("try", case.tried, 2)):
        for number in range(count):
            size = case.sizes[number % len(case.sizes)] + shared
            members: tuple[str, ...] = ()
            for _ in range(200):  # of a small size all subsets may have been drawn
                drawn = generator.choice(len(free), size=size, replace=False)
                members = tuple(
                    task
                    for task in tasks
                    if task in case.targets * (not shared) or task in {free[i] for i in drawn}
                )
                if members not in seen:
                    break
            if members in seen:
                continue
            seen.add(members)
            for repeat in range(repeats):
                yield part, members, 1000 * (repeat + 1) + number


def train_table(case: Case, folder: Path, stop: Callable[[], bool]) -> tuple[Path, bool]:
    """Trains what the case's CSV does not have yet; whether it is whole now."""
    path = folder / f"{case.name.replace(' ', '_')}.csv"
    known = {(tasks, seed) for _, tasks, seed, _, _, _ in read_lines(path)}
    left = [each for each in planned_runs(case) if (each[1], each[2]) not in known]
    study, executor = Study(folder / "runs" / case.name.replace(" ", "_")), Fleet(workers=1)
    for begin in range(0, len(left), BATCH):
        if stop():
            return path, False
        part = left[begin : begin + BATCH]
        runs = [replace(case.run, label=role, tasks=tasks, seed=seed) for role, tasks, seed in part]
        with path.open("a", newline="") as file:
            writer = csv.writer(file)
            for (role, tasks, seed), done in zip(part, executor.run(runs, study), strict=True):
                if done.summary is None:
                    continue
                found: dict[str, dict[str, float]] = {}
                for score in done.summary.scores:
                    if score.split == "dev":
                        kind = "loss" if score.metric == "loss" else "metric"
                        found.setdefault(score.task, {})[kind] = score.value
                for target, scores in found.items():
                    if target in case.targets:
                        writer.writerow(
                            [role, "|".join(tasks), seed, target, scores["loss"], scores["metric"]]
                        )
        print(f"{case.name}: {begin + len(part)} of {len(left)} runs", flush=True)
    return path, True


def read_lines(path: Path) -> list[tuple[str, tuple[str, ...], int, str, float, float]]:
    """The lines of a table; none where there is no file yet."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            (role, tuple(tasks.split("|")), int(seed), target, float(loss), float(metric))
            for role, tasks, seed, target, loss, metric in csv.reader(file)
        ]


def tables(path: Path, outcome: str = "loss") -> dict[str, tuple[SubsetOutcomes, SubsetOutcomes]]:
    """For each target of a table the subsets to fit to, and those to be tried on."""
    lines = read_lines(path)
    tasks = list(dict.fromkeys(task for line in lines for task in line[1]))
    found = {}
    for target in dict.fromkeys(line[3] for line in lines):
        own = [line for line in lines if line[3] == target]
        both = []
        for roles in (("alone", "fit"), ("alone", "try")):
            rows = [line for line in own if line[0] in roles]
            trained = np.array([[task in line[1] for task in tasks] for line in rows])
            outcomes = np.full(trained.shape, np.nan)
            outcomes[:, tasks.index(target)] = [
                line[4 if outcome == "loss" else 5] for line in rows
            ]
            both.append(_some(trained, outcomes, tasks, target, higher_is_better=outcome != "loss"))
        found[target] = (both[0], both[1])
    return found


def _some(
    trained: np.ndarray,
    outcomes: np.ndarray,
    tasks: list[str],
    target: str,
    *,
    higher_is_better: bool,
) -> SubsetOutcomes:
    """The table of a target; a source that no held-out subset has is no error there."""
    place = tasks.index(target)
    missing = ~trained.any(axis=0)
    if not missing.any():
        return outcomes_of_target(
            trained, outcomes, tasks=tasks, target=target, higher_is_better=higher_is_better
        )
    # A row of all sources keeps the columns; it is taken out again.
    whole = np.ones((1, len(tasks)), dtype=bool)
    filled = np.full((1, len(tasks)), np.nan)
    filled[0, place] = 0.0
    table = outcomes_of_target(
        np.concatenate([trained, whole]), np.concatenate([outcomes, filled]),
        tasks=tasks, target=target, higher_is_better=higher_is_better,
    )  # fmt: skip
    return table.take(~table.subsets.all(axis=1))


def minutes_left(minutes: float) -> Callable[[], bool]:
    """Whether time is up."""
    end = time.monotonic() + 60 * minutes
    return lambda: time.monotonic() > end
