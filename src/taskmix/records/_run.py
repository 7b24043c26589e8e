"""One run's folder: reading it, at any time, and claiming it, to write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import RecordError
from taskmix.files import Allowance, holding, make_folder
from taskmix.records._checkpoint import (
    ATTEMPTS,
    Checkpoint,
    CheckpointEntry,
    load_best,
    load_checkpoint,
    read_checkpoint_entries,
)
from taskmix.records._credits import read_credits
from taskmix.records._damage import DamageError
from taskmix.records._labels import add_label
from taskmix.records._parts import GROUP, iter_batches, list_parts, size_of_parts
from taskmix.records._recovery import (
    SCORES_FOLDER,
    STEPS_FOLDER,
    is_untidy,
    recover,
    start_over,
    tidy,
)
from taskmix.records._state import StateTree
from taskmix.records._summary import RunSummary, read_summary
from taskmix.records._tables import SCORES, STEPS, vectors_of, with_tasks
from taskmix.records._writer import RecordWriter

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Claim:
    """What became of asking to write a run: only who has claimed it has a writer."""

    outcome: Literal["claimed", "finished", "busy"]  # busy: another writer holds it
    writer: RecordWriter | None = None


@dataclass(frozen=True)
class RunFolder:
    """A folder with the record of one run. Reading needs no lock and disturbs no writer.

    >>> folder = Study("study").run({"rate": 0.1})
    >>> folder.name
    '1b8466c9cf756166'
    >>> (folder.summary(), folder.is_finished, folder.steps().num_rows)
    (None, False, 0)
    """

    path: Path
    lean: bool = False  # of what is written to it
    label: str | None = None  # that the run is asked for under

    @property
    def name(self) -> str:
        """The hash of the run's specification."""
        return self.path.name

    def summary(self) -> RunSummary | None:
        """The run as its `run.json` has it, under the label asked for; None where it never started."""
        summary = read_summary(self.path)
        if summary is None or self.label is None:
            return summary
        return summary.under(self.label)

    def keep_label(self) -> None:
        """Adds the label that the run is asked for under to those it has, if it is another one."""
        try:
            summary = read_summary(self.path)
        except DamageError:  # then it is written anew, with this label
            summary = None
        if self.label is not None and (summary is None or self.label not in summary.labels):
            add_label(self.path, self.label)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do; a record whose `run.json` is damaged is not."""
        return self._finished() is not None

    def claim(self, *, fresh: bool = False) -> AbstractContextManager[Claim]:
        """Asks to be the run's only writer, for the length of a `with` block.

        An unfinished run, failed ones too, is taken back to its last sound checkpoint; what is left
        to do for a finished one is done. A block that ends without `finish`, `stop` or `fail` leaves
        the run as a kill would. With `fresh` a run starts over whatever there is. Whatever comes of
        it, the run keeps the label it is asked for under.
        """
        return self._claiming(fresh)

    @contextmanager
    def _claiming(self, fresh: bool) -> Iterator[Claim]:
        if not fresh and self._finished() is not None:
            self._tidy()
            self.keep_label()
            yield Claim("finished")
            return
        make_folder(self.path)
        with holding(self.path / ".lock") as held:
            if not fresh and self._finished() is not None:  # by another, since we looked
                self.keep_label()
                yield Claim("finished")
            elif not held:
                self.keep_label()
                yield Claim("busy")
            else:
                recovered = start_over(self.path) if fresh else recover(self.path)
                writer = RecordWriter(self.path, recovered, lean=self.lean)
                try:
                    yield Claim("claimed", writer)
                finally:
                    writer.close()

    def _tidy(self) -> None:
        if is_untidy(self.path):
            # On a read-only disk, say, it stays as it is: it reads as well untidied.
            with contextlib.suppress(RecordError), holding(self.path / ".lock") as held:
                finished = self._finished()  # as it is now that nobody else can change it
                if held and finished is not None:
                    tidy(self.path, finished, is_ours=False)

    def lacks_steps(self, summary: RunSummary) -> bool:
        """Whether the record of steps that a run should have is gone, or its end is."""
        if summary.lean or summary.step == 0:
            return False
        recorded = max((part.last for part in list_parts(self.path / STEPS_FOLDER)), default=0)
        return recorded < (1 if summary.kept is None else summary.kept.steps_end)

    def steps(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Every row of every step, in order; the indices of `task` are the run's task numbers."""
        names = STEPS.names if columns is None else columns
        batches = list(self._bounded(self.iter_step_batches(columns), STEPS_FOLDER))
        schema = batches[0].schema if batches else pa.schema([STEPS.field(name) for name in names])
        return pa.Table.from_batches(batches, schema=schema)

    def iter_step_batches(
        self, columns: Sequence[str] | None = None, *, rows: int = GROUP
    ) -> Iterator[pa.RecordBatch]:
        """The same in batches of at most `rows`, with no more than a few of them in memory."""
        summary = self.summary()
        if summary is not None:
            names = pa.array(summary.task_names, pa.string())
            for batch in iter_batches(self.path / STEPS_FOLDER, STEPS, columns, rows=rows):
                yield with_tasks(batch, names)

    def probabilities(self) -> NDArray[np.float64]:
        """The whole probability vector of every row of `steps`; NaN until one is known."""
        table = self.steps(["probabilities"])
        rows, vectors = vectors_of(table)
        # The vector that holds at a row is the last one given at or before it.
        places = np.searchsorted(rows, np.arange(len(table)), side="right") - 1
        whole = 8 * len(table) * vectors.shape[1]
        Allowance(self.path / STEPS_FOLDER, whole).check(whole)  # at most half of the free memory
        filled = np.full((len(table), vectors.shape[1]), np.nan)
        filled[places >= 0] = vectors[places[places >= 0]]
        return filled

    def scores(self) -> pa.Table:
        """Every score of every evaluation, in order."""
        batches = self._bounded(
            iter_batches(self.path / SCORES_FOLDER, SCORES, None), SCORES_FOLDER
        )
        return pa.Table.from_batches(batches, schema=SCORES)

    def credits(self, of: Literal["metric", "loss"] = "metric") -> dict[str, NDArray[np.float32]]:
        """What each row of `dev` adds to a task's final score, [row], with that score as its mean.

        A row without a target has NaN; a row of tags is a sentence. None of a run that is not
        finished, that is lean or of an earlier version, or that has very many rows.
        """
        summary = self.summary()
        is_finished = summary is not None and summary.status == "finished"
        found = read_credits(self.path) if is_finished else {}
        place = ("metric", "loss").index(of)
        return {task: rows[place] for task, rows in found.items() if len(rows) > place}

    def _bounded(self, batches: Iterator[pa.RecordBatch], folder: str) -> Iterator[pa.RecordBatch]:
        """The batches, as long as all of them can be held at once."""
        path = self.path / folder
        bounds, taken = Allowance(path, size_of_parts(path), is_table=True), 0
        for batch in batches:
            taken += batch.nbytes
            bounds.check(taken)
            yield batch

    def checkpoint(self) -> Checkpoint | None:
        """The newest sound checkpoint; None where there is none yet."""
        return self._first_sound(load_checkpoint)

    def best(self) -> StateTree | None:
        """The best state alone; None where none was given."""
        return self._first_sound(load_best)

    def _first_sound(self, load: Callable[[Path, CheckpointEntry], Loaded]) -> Loaded | None:
        tried: list[CheckpointEntry] | None = None
        for _ in range(ATTEMPTS):
            entries = self._entries()
            if not entries:
                return None
            failures: list[DamageError] = []
            for entry in entries:
                try:
                    return load(self.path, entry)
                except DamageError as error:
                    failures.append(error)
            if entries == tried:  # not replaced while we looked, so truly damaged
                break
            tried = entries
        raise failures[0]

    def _entries(self) -> list[CheckpointEntry]:
        finished = self._finished()
        if finished is not None:
            return [] if finished.kept is None else [finished.kept]
        entries = read_checkpoint_entries(self.path)
        if not entries:
            self.summary()  # raises where damaged: it may be a finished run's, which has no list
        return entries

    def _finished(self) -> RunSummary | None:
        try:
            summary = self.summary()
        except DamageError:  # then the checkpoint decides
            return None
        return summary if summary is not None and summary.status == "finished" else None
