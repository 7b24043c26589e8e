"""Numbers and sentences as a reader wants them.

Every page explains a candidate by one sentence, where it first stands. The names are those of the
adviser's candidates and of `taskmix train --policy`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taskmix.numerics import Interval
from taskmix.report._data import ReportData, RunRow
from taskmix.report._scoreboard import Lead, Scoreboard

_LONGEST = 160  # characters of a value in a table; the full text is in the run's own record
_MOST_VALUES = 3
_MOST_ITEMS = 6
_HASH = re.compile("[0-9a-f]{32,}")


def specifications(runs: Sequence[RunRow], labels: Sequence[str]) -> dict[str, Any]:
    """Settings that all runs share and those that tell labels apart, and a whole one of each label.

    Seed and label are left out, being meant to differ.
    """
    by_label: dict[str, dict[str, dict[str, None]]] = {label: {} for label in labels}
    examples: dict[str, tuple[str, str, str]] = {}
    keys: dict[str, None] = {}
    for run in runs:
        theirs = [label for label in run.labels if label in by_label]
        if not theirs or not run.specification:
            continue
        text = json.dumps(run.specification, indent=2, ensure_ascii=False, default=str)
        for label in theirs:
            examples.setdefault(label, (label, run.name, text))
        for key, value in _flat(run.specification):
            if key not in ("seed", "label"):  # the latter in records of version 0.1
                keys[key] = None
                for label in theirs:
                    by_label[label].setdefault(key, {})[value] = None
    shared, differing = [], []
    described = [label for label in labels if by_label[label]]
    for key in keys:
        values = [tuple(by_label[label].get(key, ())) for label in described]
        if len(set(values)) == 1 and len(values[0]) == 1:
            shared.append((key, _short(values[0][0])))
        else:
            cells = tuple(_joined(tuple(by_label[label].get(key, ()))) for label in labels)
            differing.append((key, cells))
    ordered = tuple(examples[label] for label in labels if label in examples)
    return {"shared": tuple(shared), "differing": tuple(differing), "examples": ordered}


def _flat(value: Any, place: str = "") -> list[tuple[str, str]]:
    """Dotted settings with their values as text; lists stay whole."""
    if isinstance(value, Mapping) and (value or not place):
        return [
            pair
            for key, item in value.items()
            for pair in _flat(item, f"{place}.{key}" if place else str(key))
        ]
    if isinstance(value, str):
        return [(place, value)]
    if (
        isinstance(value, list)
        and value
        and all(isinstance(item, str | int | float) for item in value)
    ):
        rest = f" … ({len(value)})" if len(value) > _MOST_ITEMS else ""
        return [(place, ", ".join(map(str, value[:_MOST_ITEMS])) + rest)]
    return [(place, json.dumps(value, ensure_ascii=False, default=str))]


def _joined(values: Sequence[str]) -> str | None:
    if not values:
        return None
    if len(values) > _MOST_VALUES:
        return f"{len(values)} values"
    return " · ".join(_short(value) for value in values)


def _short(value: str) -> str:
    if _HASH.fullmatch(value):
        return f"{value[:12]}…"
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"


_ONE_MODEL = "One model for all tasks"
_BY_SIZE = f"{_ONE_MODEL}: a task is drawn in proportion to its rows, as if all files were one."
_EVERY_STEP = "Every step takes a batch of each task"
_SENTENCES = {
    "single": "Each task has a model of its own, and the batches are divided evenly among them.",
    "alone": "The task has a model of its own.",
    "uniform": f"{_ONE_MODEL}: each batch comes from one of them, all equally likely.",
    "size": _BY_SIZE,
    "proportional": _BY_SIZE,
    "tempered": f"{_ONE_MODEL}: a task is drawn in proportion to the root of its rows, between equal "
    "shares and shares by size.",
    "capped": f"{_ONE_MODEL}: a task is drawn in proportion to its rows, none counted for more than a "
    "limit, so that the largest do not drown the others.",
    "fixed": f"{_ONE_MODEL}: a task is drawn with a share that was given.",
    "scheduled": f"{_ONE_MODEL}: a task is drawn with a share that changes at given steps.",
    "exp3": f"{_ONE_MODEL}: a bandit draws the task that has earned most, and tries the others now and "
    "then.",
    "exp3s": f"{_ONE_MODEL}: a bandit draws the task that has earned most of late, as the best one may "
    "change while training goes on.",
    "equal": f"{_EVERY_STEP}, and all losses count the same.",
    "equal without": "Every step takes a batch of each task from which something was learned, and all "
    "losses count the same.",
    "without": "One model for the tasks from which something was learned, all equally likely; the "
    "others are left out.",
    "weighted": f"{_EVERY_STEP}, and a method weighs the losses.",
    "bandit": f"{_EVERY_STEP}; BanditMTL gives more weight to tasks whose losses stay high.",
    "fairgrad": f"{_EVERY_STEP}; FairGrad combines the gradients so that the gain is shared fairly.",
    "counterfactual": f"{_ONE_MODEL}: a task is drawn with the share that, by the logs of the uniform "
    "runs, would have earned most.",
    "curves": f"{_ONE_MODEL}: shares at which one more batch gains every task the same, by the learning "
    "curves of the first runs.",
    "merged": "Each task is trained alone from the same pretrained model; the models are then added "
    "into one, without training.",
}


def explain_candidate(name: str, words: str = "") -> str:
    """What a candidate does, in a sentence; `words` are what is said of it where it is not known.

    Those that were made for these tasks (groups, tasks left out) are explained by their own words only.
    """
    # Words of such a one may begin with the name of a task, so they stay as they are.
    return _SENTENCES.get(name.partition(":")[0], f"{words}." if words else "")


def explained_candidates(names: Iterable[str]) -> list[tuple[str, str]]:
    """The candidates among these names that can be explained, each with its sentence."""
    return [(name, words) for name in names if (words := explain_candidate(name))]


MINUS = "\N{MINUS SIGN}"
UNKNOWN = "\N{EN DASH}"  # in the place of a number that is not known


def decimals_for(values: Iterable[float]) -> int:
    """Places after the point for numbers of one kind: three for shares, fewer for large numbers."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return 3 if largest < 10 else 2 if largest < 100 else 1 if largest < 1000 else 0


def number(value: float, decimals: int = 3) -> str:
    """A number with a fixed number of places and a true minus sign."""
    if not math.isfinite(value):
        return UNKNOWN
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS).replace(",", "\N{THIN SPACE}")


def with_interval(interval: Interval, decimals: int = 3) -> str:
    """The mean with the ends of its interval, or alone where one seed gives none."""
    mean = number(interval.mean, decimals)
    if interval.n < 2:
        return f"{mean} (one seed)"
    return f"{mean} ({number(interval.low, decimals)} to {number(interval.high, decimals)})"


def spread_words(mean: float, low: float, high: float, decimals: int) -> str:
    """A mean with the ends of its interval, or alone where they are not known."""
    ends = ends_words(low, high, decimals)
    return f"{number(mean, decimals)} ({ends})" if ends else number(mean, decimals)


def ends_words(low: float, high: float, decimals: int) -> str:
    """The ends of an interval; nothing where they are not known."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{number(low, decimals)} to {number(high, decimals)}"


def signed(value: float, decimals: int = 3) -> str:
    """A change, with its sign."""
    text = number(value, decimals)
    return f"+{text}" if value > 0 else text


def counted(count: int, noun: str) -> str:
    """`1 run`, `30 runs`."""
    return f"{count_of(count)} {noun}{'' if count == 1 else 's'}"


def listed(words: Sequence[str], most: int = 4) -> str:
    """`a, b and c`; a long list is cut."""
    if len(words) > most:
        return f"{', '.join(words[: most - 1])} and {len(words) - most + 1} more"
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def count_of(value: float | None) -> str:
    """A number without its fraction, with its thousands apart."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{round(value):,}".replace(",", "\N{THIN SPACE}")


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever is short to read."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def headline(data: ReportData, board: Scoreboard) -> tuple[str, ...]:
    """The report in two or three sentences."""
    if not data.runs:
        return ("This study has no runs yet.",)
    seeds = f"over {len(data.seeds)} seeds" if len(data.seeds) > 1 else "with one seed"
    sentences = [
        f"{counted(len(data.runs), 'run')} on {counted(len(data.tasks), 'task')} {seeds}, "
        f"trained in {counted(len(data.labels), 'way')}: {listed(data.labels)}."
    ]
    unfinished = sum(run.status != "finished" for run in data.runs)
    lead = board.lead
    if lead is None:
        sentences.append(
            "No label has a final score on every task yet, so nothing can be compared."
        )
    else:
        sentences.append(_best(lead, board))
        sentences.append(_difference(lead, board))
    if unfinished:
        sentences.append(f"{counted(unfinished, 'run')} did not finish.")
    return tuple(sentence for sentence in sentences if sentence)


def overall_name(board: Scoreboard) -> str:
    """What the row about all tasks together is called."""
    if board.measure == "rank":
        return f"Mean rank over {counted(len(board.compared), 'task')}"
    if len(board.compared) == 1:
        return "The task"
    return f"Mean of {len(board.compared)} tasks"


def _measure(board: Scoreboard) -> str:
    split = board.overall.split if board.overall is not None else "test"
    if board.measure == "rank":
        return f"mean rank by {split} score"
    mean = "mean " if len(board.compared) > 1 else ""
    if board.higher_is_better:
        return f"{mean}{split} score"
    metrics = {row.task.metric for row in board.rows if row.task is not None}
    return f"{mean}{split} {'/'.join(sorted(metrics))} (lower is better)"


def _best(lead: Lead, board: Scoreboard) -> str:
    score = with_interval(lead.score, decimals_for([lead.score.mean]))
    if lead.next is None:
        return f"{lead.best} reaches a {_measure(board)} of {score}."
    return f"{lead.best} has the best {_measure(board)}: {score}."


def _difference(lead: Lead, board: Scoreboard) -> str:
    if lead.next is None:
        return ""
    difference = lead.difference
    if difference is None:
        return (
            f"{lead.best} and the next, {lead.next}, have no seed in common: "
            "we cannot tell whether the difference is more than chance."
        )
    decimals = decimals_for([lead.score.mean])
    if difference.mean < 0:  # a seed that only one of them has turned the order
        return (
            f"Under the seeds both have, the next, {lead.next}, is "
            f"{number(-difference.mean, decimals)} ahead: we cannot tell which of the two is better."
        )
    if difference.n < 2:
        return (
            f"The next, {lead.next}, is {number(difference.mean, decimals)} behind: with one seed "
            "we cannot tell whether that is more than chance."
        )
    size = with_interval(difference, decimals)
    if lead.is_significant:
        return f"That is {size} better than the next, {lead.next}: more than chance explains."
    advice = ""
    if lead.seeds_needed is not None:
        advice = f" About {lead.seeds_needed} seeds would tell a difference of this size."
    return (
        f"The next, {lead.next}, is {size} behind: with {difference.n} seeds we cannot tell "
        f"which of the two is better.{advice}"
    )
