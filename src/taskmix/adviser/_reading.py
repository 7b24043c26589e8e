"""How many rows a frozen encoder may read inside a budget of seconds.

Heads train on vectors, and before the first run every text has to be read once. Where that would take
more than its share of the time, rows are left out: every task's splits get one largest size each, so the
small tasks stay whole and the large ones are sampled evenly. What is in the cache costs nothing, and how
fast the encoder reads is measured on some of the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taskmix.adviser._budget import Timer
from taskmix.adviser._ledger import Ledger
from taskmix.engine import Run, SampledSource, read_ahead
from taskmix.errors import OptionError, RunError
from taskmix.models import tuning_of
from taskmix.records import to_plain
from taskmix.tasks import FeatureEncoding, TaskSet, texts_of

READING_SHARE = 0.3  # of the time: the rest has to pay for a dozen ways of training and a race
TRIED_TEXTS = 64  # that the speed is measured on
FIRST_TEXTS = 4  # of these that are tried first: of a large encoder they are all
TRYING_SHARE = 0.03  # of the time, for the others
_ROWS = "rows"  # the decision in the ledger
SPLIT_SHARES = {"train": 0.6, "dev": 0.2}  # of the rows; all other splits have the rest together

ReadingProgress = Callable[[], AbstractContextManager[Callable[[int, int], None] | None]]


@dataclass(frozen=True, kw_only=True)
class RowsToRead:
    """What was decided, and in which words."""

    most: Mapping[str, int]  # rows of each task by the name of a split; empty: all of them
    words: str = ""

    def apply(self, run: Run) -> Run:
        """The run on these rows."""
        if not self.most:
            return run
        source = SampledSource(source=run.source, most=tuple(sorted(self.most.items())))
        return replace(run, source=source)


def read_texts(
    template: Run,
    ledger: Ledger,
    timer: Timer,
    reading: ReadingProgress,
    *,
    stop: Callable[[], bool],
    tell: Callable[[str], None],
) -> tuple[Run, list[str]]:
    """Has a frozen encoder read what the time allows; the words for rows that are left out."""
    if tuning_of(template.architecture) != "heads":
        return template, []
    rows = RowsToRead(most={})
    if timer.seconds is not None:
        timer.before = ledger.seconds

        def decide() -> Any:
            tell("Measuring how fast the encoder reads.")
            # What it took to get here, imports and the folder, it takes every process again.
            seconds = timer.left() - (timer.used() - timer.before)
            return to_plain(rows_to_read(template, template.load(), max(seconds, 0.0)))

        decided = ledger.decide(_ROWS, decide, seconds=timer.used())
        rows = RowsToRead(most=decided["most"], words=decided["words"])
    tell(rows.words or "Reading all texts with the encoder, once.")
    template = rows.apply(template)
    with reading() as hear:
        is_read = read_ahead([template], hear, stop=stop)
    if timer.is_over():
        raise OptionError(
            "The budget should last until the encoder has read all texts, once. The time was over "
            "before. What was read is kept: run the same command again with a larger `budget`.",
            arguments=("budget",),
        )
    if not is_read:
        raise RunError("Stopped. What was read is kept. Run the same command again to continue.")
    return template, [rows.words] if rows.words else []


def rows_to_read(run: Run, tasks: TaskSet, seconds: float) -> RowsToRead:
    """What can be read in a share of so many seconds; everything where nothing has to be read."""
    encoding = run.architecture.encoding
    if not isinstance(encoding, FeatureEncoding):
        return RowsToRead(most={})
    unread = encoding.unread(tasks, cache=getattr(run.source, "cache", None))
    texts = [text for table in unread for text in texts_of(table)]
    if not texts:
        return RowsToRead(most={})
    generator = np.random.default_rng(0)
    tried = [texts[place] for place in generator.permutation(len(texts))[:TRIED_TEXTS]]
    speed = _speed(encoding.reader().speed, tried, TRYING_SHARE * seconds)
    affordable = int(READING_SHARE * seconds * speed)
    if len(texts) <= affordable:
        return RowsToRead(most={})
    most = largest_sizes(tasks, affordable)
    shown = ", ".join(f"{most[name]:,} {name}" for name in most)
    words = (
        f"The encoder reads about {speed:,.0f} texts a second here, so that {len(texts):,} would take "
        f"{len(texts) / speed:,.0f} s: of each task at most {shown} rows are read, drawn evenly. A "
        "larger budget, a shorter `max_length` or a GPU reads more; `taskmix train --plan` reads all."
    )
    return RowsToRead(most=most, words=words)


def _speed(
    measure: Callable[[Sequence[str]], tuple[float, float]],  # pieces a second, and of a text
    texts: Sequence[str],
    seconds: float,
) -> float:
    """Texts a second: by a few, and by more of them where that takes no longer than so many seconds."""
    for count in (FIRST_TEXTS, len(texts)):
        pieces_a_second, pieces = measure(texts[:count])
        speed = pieces_a_second / pieces
        if len(texts) / speed > seconds:
            break
    return speed


def largest_sizes(tasks: TaskSet, affordable: int) -> dict[str, int]:
    """For each split the most rows that a task may have, so that no more than so many texts are read.

    What one split leaves over, because its tasks are small, goes to the next.
    """
    sizes: dict[
        str, dict[int, tuple[int, int]]
    ] = {}  # by split: rows and texts a row of each table
    for task in tasks:
        texts = 2 if task.inputs == "pair" else 1
        for name, split in task.splits.items():
            sizes.setdefault(name, {})[id(split.inputs)] = (len(split), texts)
    others = [name for name in sizes if name not in SPLIT_SHARES]
    rest = (1 - sum(SPLIT_SHARES.values())) / max(len(others), 1)
    shares = {name: SPLIT_SHARES.get(name, rest) for name in sizes}
    order = sorted(sizes, key=lambda name: (shares[name], name == "dev"))  # train is the last
    left, found = affordable, {}
    for place, name in enumerate(order):
        mine = left * shares[name] / sum(shares[each] for each in order[place:])
        found[name] = _level(list(sizes[name].values()), mine)
        left -= sum(min(rows, found[name]) * texts for rows, texts in sizes[name].values())
    return found


def _level(sizes: Sequence[tuple[int, int]], affordable: float) -> int:
    """The largest size to which tables can be cut so that all of them together are affordable."""
    low, high = 1, max((rows for rows, _ in sizes), default=1)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(rows, middle) * texts for rows, texts in sizes) <= affordable:
            low = middle
        else:
            high = middle - 1
    return low
