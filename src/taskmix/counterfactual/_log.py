"""Logs read in one pass: what each stage of a run earned, and how well each task did by then.

A log is cut into stages as it is read, without knowing its length: stages double in width whenever
there are twice as many as asked for. So memory stays the same for a thousand rows and for 10⁸.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.counterfactual._statistics import LogStatistics, stack
from taskmix.counterfactual._sums import sum_log
from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.records import RunFolder

if TYPE_CHECKING:
    import pyarrow as pa

STAGES = 16  # at least; halves of up to 8 stages of a policy can then be told apart


@dataclass(frozen=True, slots=True)
class Log:
    """What is kept of a run's log."""

    tasks: tuple[str, ...]
    stages: LogStatistics  # [stage, task], of the rewards
    performance: (
        LogStatistics | None
    )  # [stage, task], of exp(−loss), rewarded or not; None: no loss
    rows: int  # all of them, rewarded or not

    @property
    def total(self) -> LogStatistics:
        """[task], of the rewards of the whole run."""
        return self.stages.pooled()


def log_from_arrays(
    tasks: ArrayLike,  # [row], whole numbers from 0
    rewards: ArrayLike,  # [row], NaN where there is none
    probabilities: ArrayLike,  # [row], that the task was drawn with
    losses: ArrayLike | None = None,  # [row]
    *,
    names: Sequence[str],
    stages: int = STAGES,
    clip: float | None = None,
) -> Log:
    """A log that is in memory.

    >>> log = log_from_arrays([0, 1, 0], [np.nan, 0.0, 0.5], [0.5] * 3, names=["a", "b"])
    >>> log.rows, log.total.visits.tolist()  # the first visit of a task has no reward
    (3, [1, 1])
    """
    chosen = np.asarray(tasks)
    gained = np.asarray(rewards, dtype=np.float64)
    drawn = np.asarray(probabilities, dtype=np.float64)
    known = None if losses is None else np.asarray(losses, dtype=np.float64)
    given = [column for column in (chosen, gained, drawn, known) if column is not None]
    if len({column.shape for column in given}) > 1:
        raise ShapeError(
            "The columns of a log should have one value per row. Found shapes "
            f"{', '.join(str(column.shape) for column in given)}."
        )
    chunk = (chosen, gained, drawn, known)
    return _gather_log([chunk], names=names, stages=stages, clip=clip, rows_known=len(chosen))


def log_from_batches(
    batches: Iterable[pa.RecordBatch],
    *,
    names: Sequence[str],
    stages: int = STAGES,
    clip: float | None = None,
) -> Log:
    """A log that is streamed: batches with `task`, `probability`, `reward`, and `loss` if known.

    `task` has names (plain or as a dictionary) or the numbers of `names`. A missing reward leaves its
    row out; a missing probability is refused.

    >>> import pyarrow as pa
    >>> rows = {"task": ["b", "a"], "probability": [0.5, 0.5], "reward": [1.0, 0.0]}
    >>> log = log_from_batches([pa.RecordBatch.from_pydict(rows)], names=["a", "b"])
    >>> log.total.means.tolist()
    [0.0, 1.0]
    """
    chunks = (_columns(batch, names) for batch in batches)
    return _gather_log(chunks, names=names, stages=stages, clip=clip)


def log_of_runs(
    runs: Sequence[RunFolder], *, stages: int = STAGES, clip: float | None = None
) -> tuple[Log, ...]:
    """The logs of recorded runs that drew one task a step.

    >>> from pathlib import Path
    >>> from taskmix.records import RunFolder
    >>> log_of_runs([RunFolder(Path("nowhere"))])
    Traceback (most recent call last):
        ...
    taskmix.errors.InputError: `nowhere` should hold a run. Found no `run.json` there.
    """
    logs = []
    for run in runs:
        summary = run.summary()
        if summary is None:
            raise InputError(f"`{run.path}` should hold a run. Found no `run.json` there.")
        batches = run.iter_step_batches(["task", "probability", "reward", "loss"])
        logs.append(log_from_batches(batches, names=summary.task_names, stages=stages, clip=clip))
    return tuple(logs)


Chunk = tuple[
    NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None
]  # tasks, rewards, probabilities, losses, each [row]


def _gather_log(
    chunks: Iterable[Chunk],
    *,
    names: Sequence[str],
    stages: int,
    clip: float | None,
    rows_known: int = 0,
) -> Log:
    if stages < 1:
        raise OptionError(f"`stages` should be at least 1. Found {stages}.")
    count, rows, has_losses = len(names), 0, True
    rewards, performance = _Stages(stages, rows_known), _Stages(stages, rows_known)
    for tasks, gains, probabilities, losses in chunks:
        has_losses = has_losses and losses is not None
        for part, width in rewards.pieces(len(tasks)):
            statistics = sum_log(
                tasks[part],
                gains[part],
                probabilities[part],
                task_count=count,
                clip=clip,
                first_row=rows + part.start,
            )
            rewards.add(statistics, width)
        if has_losses and losses is not None:
            # A loss below zero (of a density) would be a performance above one.
            reached = np.exp(-np.maximum(losses, 0.0))
            for part, width in performance.pieces(len(tasks)):
                performance.add(
                    sum_log(tasks[part], reached[part], probabilities[part], task_count=count),
                    width,
                )
        rows += len(tasks)
    if rows == 0:
        raise InputError("A log should have rows. Found none: run some steps first.")
    return Log(tuple(names), rewards.all(), performance.all() if has_losses else None, rows)


class _Stages:
    """Stages of equal width that doubles when there are too many.

    Where the number of rows is known the width is at once the one that doubling would end with.
    """

    def __init__(self, wanted: int, rows_known: int) -> None:
        self._most = 2 * wanted
        self._width = 1
        while rows_known >= self._most * self._width:
            self._width *= 2
        self._filled = 0  # rows in the last stage
        self._done: list[LogStatistics] = []
        self._open: LogStatistics | None = None

    def pieces(self, rows: int) -> Iterator[tuple[slice, int]]:
        """Cuts the next rows where stages end; `add` each piece before the next is asked for."""
        begin = 0
        while begin < rows:
            width = min(self._width - self._filled, rows - begin)
            yield slice(begin, begin + width), width
            begin += width

    def add(self, statistics: LogStatistics, rows: int) -> None:
        self._open = statistics if self._open is None else self._open + statistics
        self._filled += rows
        if self._filled == self._width:
            self._done.append(self._open)
            self._open, self._filled = None, 0
        if len(self._done) == self._most:
            self._done = [a + b for a, b in zip(self._done[::2], self._done[1::2], strict=True)]
            self._width *= 2

    def all(self) -> LogStatistics:
        return stack([*self._done, self._open] if self._open is not None else self._done)


def _columns(batch: pa.RecordBatch, names: Sequence[str]) -> Chunk:
    found = batch.schema.names
    missing = [name for name in ("task", "probability", "reward") if name not in found]
    if missing:
        raise InputError(
            f"A log should have the columns `task`, `probability` and `reward`. Found no "
            f"`{missing[0]}` among {', '.join(found)}."
        )

    def numbers(name: str) -> NDArray[np.float64]:
        import pyarrow as pa

        # A missing value becomes NaN.
        column = batch.column(found.index(name)).cast(pa.float64())
        return np.asarray(column.to_numpy(zero_copy_only=False))

    losses = numbers("loss") if "loss" in found else None
    tasks = _task_numbers(batch.column(found.index("task")), names)
    return tasks, numbers("reward"), numbers("probability"), losses


def _task_numbers(column: Any, names: Sequence[str]) -> NDArray[np.int64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type):
        numbers = column
    else:
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        known = pc.index_in(column.dictionary, value_set=pa.array(names, column.dictionary.type))
        numbers = known.take(column.indices)
        if numbers.null_count > column.null_count:
            unknown = column.filter(pc.and_(numbers.is_null(), column.is_valid()))[0].as_py()
            raise InputError(
                f"The tasks of a log should be among {', '.join(names)}. Found `{unknown}`."
            )
    if numbers.null_count:
        raise InputError("Every row of a log should name its task. Found a row without one.")
    return np.asarray(numbers.to_numpy(zero_copy_only=False))
