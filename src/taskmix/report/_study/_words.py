"""Numbers and sentences as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from taskmix.numerics import Interval
from taskmix.report._study._data import ReportData
from taskmix.report._study._scoreboard import Lead, Scoreboard

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
