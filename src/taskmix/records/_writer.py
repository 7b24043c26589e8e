"""Writes one run's record; whoever has a writer holds the run's lock."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import OptionError, RecordError, ShapeError
from taskmix.files import make_folder, sync_folder
from taskmix.records import _checkpoint
from taskmix.records._checkpoint import (
    Checkpoint,
    CheckpointEntry,
    file_names,
    forget_files,
    write_entries,
)
from taskmix.records._credits import write_credits
from taskmix.records._labels import add_label
from taskmix.records._parts import TablePart, write_part
from taskmix.records._recovery import SCORES_FOLDER, STEPS_FOLDER, Recovered, tidy
from taskmix.records._specification import describe, specification_hash
from taskmix.records._state import StateTree, StoredFile, save_state
from taskmix.records._summary import (
    FinalScore,
    RunSummary,
    installed_versions,
    now,
    version_note,
    write_summary,
)
from taskmix.records._tables import StepBuffer, bulk_rows, scores_table

ScoreRow = tuple[str, str, str, float]  # task, split, metric, value
Numbers = float | Sequence[float | None] | NDArray[Any]  # one for all rows, or one a row


_NO_CREDITS: Mapping[str, NDArray[Any]] = MappingProxyType({})
COLUMNS_AT = 64  # rows given at once: more go straight into Arrow columns


class RecordWriter:
    """Adds to a run's record what the training gives it, and makes it last at each `commit`.

    Steps are counted from 1: a commit after step n has the rows of steps 1 to n. Nothing of what is
    added is on the disk before the commit; a run that is killed goes on from the last one.

    >>> with Study("study").run({"rate": 0.1}).claim() as claim:
    ...     claim.writer.start(
    ...         specification={"rate": 0.1}, seed=7, label="fast", tasks=[{"name": "a"}], steps=1
    ...     )
    ...     claim.writer.add_steps([1], [0], loss=0.25, seconds=0.1, examples=32)
    ...     claim.writer.finish(scores=[], best_step=None)
    >>> Study("study").run({"rate": 0.1}).steps(["step", "loss"]).to_pylist()
    [{'step': 1, 'loss': 0.25}]
    """

    def __init__(self, folder: Path, recovered: Recovered, *, lean: bool = False) -> None:
        self.resumed: Checkpoint | None = recovered.checkpoint  # where to go on; None: at the start
        self.notes: list[str] = list(recovered.notes)  # what was damaged and what became of it
        self._folder = folder
        self.lean = lean  # no rows, and no weights in the end
        self._last_step = 0  # that was added
        self._before = recovered.summary
        self._entries = recovered.entries
        self._vector = recovered.vector
        self._phase: Literal["new", "running", "closed"] = "new"
        self._started = 0.0  # on the monotonic clock, minus the seconds of earlier sessions
        self._summary: RunSummary
        self._steps: StepBuffer
        self._scores: list[tuple[int, str, str, str, float]] = []
        self._task_count = 0

    def start(
        self,
        *,
        specification: Mapping[str, object],
        seed: int,
        label: str,
        tasks: Sequence[Mapping[str, object]],
        steps: int,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        """Writes `run.json`. Every task is a mapping with its `name` and whatever is worth knowing.

        A run that was asked for under another label before keeps that one, and gets this one too.
        """
        before, time_now = self._before, now()
        name = self._folder.name
        first = label if before is None else before.label
        described: Any = describe(specification)
        if specification_hash(described) != name:
            raise OptionError(
                f"`specification` should be the one that names the run, {name}. Found that of "
                f"{specification_hash(described)}. Ask the study for the run of this specification."
            )
        task_documents: Any = describe(list(tasks))
        names = [task.get("name") for task in task_documents]
        if not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
            raise OptionError(
                f"Every task should have a `name` of its own. Found {names}. Rename them."
            )
        resumed = self._entries[0] if self._entries else None
        self._summary = RunSummary(
            name=name,
            status="running",
            label=first,
            seed=seed,
            step=resumed.step if resumed else 0,
            steps=steps,
            seconds=resumed.seconds if resumed else 0.0,
            best_step=resumed.best_step if resumed else None,
            error=None,
            created=before.created if before else time_now,
            updated=time_now,
            scores=(),
            tasks=task_documents,
            versions=installed_versions() if versions is None else dict(versions),
            specification=described,
            kept=None,
            lean=self.lean,
        )
        if resumed and before and before.versions != self._summary.versions:
            self.notes.append(version_note(before.versions, self._summary.versions))
        self._task_count = len(names)
        self._steps = StepBuffer(names, self._vector)
        self._started = time.monotonic() - self._summary.seconds
        write_summary(self._folder, self._summary)
        if label != first:
            add_label(self._folder, label)
        self._phase = "running"

    def add_step(
        self,
        step: int,
        task: int,
        *,
        probability: float | None,
        probabilities: NDArray[np.float64] | None,  # [task]; None: as in the row before
        loss: float,
        reward: float | None,
        weight: float | None,
        seconds: float,
        examples: int,
        loss_after: float | None = None,
    ) -> None:
        """Adds what one step did on one task. Takes about a microsecond."""
        self._last_step = max(self._last_step, step)
        if self.lean:
            return
        if probabilities is not None:
            probabilities = self._vector_of(probabilities)
        decision = (step, task, probability, probabilities)
        self._steps.append((*decision, loss, loss_after, reward, weight, seconds, examples))

    def add_steps(
        self,
        steps: int | Sequence[int] | NDArray[np.integer[Any]],
        tasks: Sequence[int] | NDArray[np.integer[Any]],  # [row]
        *,
        loss: Numbers,
        seconds: Numbers,
        examples: Numbers,
        probability: Numbers | None = None,
        probabilities: NDArray[np.float64] | None = None,  # [task] for all rows or [row, task]
        reward: Numbers | None = None,
        weight: Numbers | None = None,
        loss_after: Numbers | None = None,
    ) -> None:
        """Adds many rows at once: all tasks of a step, or many steps."""
        self._last_step = max(self._last_step, int(np.max(steps, initial=0)))
        if self.lean:
            return
        if probabilities is not None:
            probabilities = self._vector_of(probabilities)
        columns = (probability, loss, loss_after, reward, weight, seconds, examples)
        if len(tasks) >= COLUMNS_AT:
            self._steps.add_columns(steps, tasks, probabilities, columns)
        else:
            self._steps.extend(bulk_rows(steps, tasks, probabilities, columns))

    def add_scores(self, step: int, rows: Iterable[ScoreRow]) -> None:
        """Adds the scores found after `step` steps."""
        if not self.lean:
            self._scores.extend((step, *row) for row in rows)

    def commit(
        self,
        step: int,
        state: StateTree,
        *,
        best: StateTree | None,
        best_step: int | None,
        best_changed: bool | None = None,
    ) -> None:
        """Makes everything added so far last, with a state to go on from after `step` steps.

        The best state is written where it changed; left to itself, that is where `best_step` did.
        After an error the commit can be tried again, and the one before it still counts.
        """
        self._require_running()
        if step < self._summary.step:
            raise OptionError(
                f"`step` should not be before the last commit's, {self._summary.step}. Found {step}. "
                "Commit in the order of the steps."
            )
        steps_end, scores_end = self._write_rows(step)
        checkpoints = self._folder / _checkpoint.FOLDER
        make_folder(checkpoints)
        last = self._entries[0] if self._entries else None
        best_file = last.best if last and best is not None else None
        if best_changed is None:
            best_changed = last is None or best_step is None or best_step != last.best_step
        if best is not None and (best_changed or best_file is None):
            best_file = self._save("best", step if best_step is None else best_step, best)
        state_file = self._save("state", step, state)
        self._sync_folders()
        entry = CheckpointEntry(
            step=step,
            seconds=self._seconds(),
            best_step=best_step,
            state=state_file,
            best=best_file,
            steps_end=steps_end,
            scores_end=scores_end,
        )
        entries = (entry, *self._entries)[: _checkpoint.KEPT]
        write_entries(self._folder, entries)  # from here on the commit counts
        self._entries = entries
        self._steps.clear()
        self._scores = []
        self._update(step=step, best_step=best_step, seconds=entry.seconds)
        write_summary(self._folder, self._summary, sync=False)
        forget_files(self._folder, entries)

    def finish(
        self,
        *,
        scores: Iterable[ScoreRow],
        best_step: int | None,
        step: int | None = None,
        best: StateTree | None = None,
        row_credits: Mapping[str, NDArray[Any]] = _NO_CREDITS,
    ) -> None:
        """Ends the run for good, with its final scores.

        `step` is the number of steps done where it is not that of the last row. The best state is
        kept, which is `best` where the last commit has not got it; the state to go on from goes,
        unless it is all there is. `row_credits` are [row] for each task, what the rows of `dev` add to
        its metric, or [metric or loss, row].
        """
        self._require_running()
        done = self._steps_done() if step is None else step
        steps_end, scores_end = self._write_rows(done)
        newest = self._entries[0] if self._entries and not self.lean else None
        if best is not None and not self.lean:
            make_folder(self._folder / _checkpoint.FOLDER)
            newest = CheckpointEntry(
                step=done,
                seconds=self._seconds(),
                best_step=best_step,
                state=None,
                best=self._save("best", done if best_step is None else best_step, best),
                steps_end=steps_end,
                scores_end=scores_end,
            )
        elif newest is not None and newest.best is not None:
            newest = replace(newest, state=None)
        final = tuple(FinalScore(*row) for row in scores)
        if not self.lean:
            write_credits(self._folder, row_credits)
        self._end("finished", step=done, best_step=best_step, scores=final, kept=newest)
        if self.lean and not self._entries:
            return  # nothing but `run.json` was ever written
        try:
            tidy(self._folder, self._summary, is_ours=True)
        except RecordError as error:  # the record is complete, only larger than it need be
            self.notes.append(str(error))

    def stop(self) -> None:
        """Leaves the run to be gone on with later, from its last commit."""
        self._require_running()
        self._end("stopped")

    def fail(self, error: str) -> None:
        """Says why the run ended. Its last rows are kept until it is claimed again.

        A run that has ended stays as it is, and one that never started has nothing to say it in.
        """
        if self._phase == "running":
            self._write_rows(self._steps_done())
        elif self._phase == "new" and self._before is not None:
            self._summary = self._before
        else:
            return
        self._end("failed", error=error)

    def close(self) -> None:
        """Refuses what comes after: the lock is gone."""
        self._phase = "closed"

    def _end(self, status: str, **changes: Any) -> None:
        self._sync_folders()
        if self._phase == "running":
            changes["seconds"] = self._seconds()
        self._update(status=status, **changes)
        write_summary(self._folder, self._summary)
        self._phase = "closed"

    def _update(self, **changes: Any) -> None:
        self._summary = replace(self._summary, updated=now(), **changes)

    def _write_rows(self, step: int) -> tuple[int, int]:
        """Writes the rows since the last commit and gives the new ends of the two tables."""
        newest = self._entries[0] if self._entries else None
        ends = (newest.steps_end, newest.scores_end) if newest else (0, 0)
        steps, scores = self._steps.table(), scores_table(self._scores)
        return (
            self._write_part(self._folder / STEPS_FOLDER, steps, ends[0], step),
            self._write_part(self._folder / SCORES_FOLDER, scores, ends[1], step),
        )

    def _write_part(self, folder: Path, table: pa.Table, end: int, step: int) -> int:
        if len(table) == 0:
            return end
        # Rows that come after a commit at the same step are no part of it: their part ends later.
        part = TablePart.spanning(folder, end, max(step, end + 1))
        write_part(part, table, sync=False)
        return part.last

    def _save(self, kind: str, step: int, tree: StateTree) -> StoredFile:
        used, copies = file_names(self._entries), 1
        name = f"{kind}-{step}.safetensors"
        while name in used:  # the checkpoint that needs it still counts
            copies += 1
            name = f"{kind}-{step}-{copies}.safetensors"
        return save_state(self._folder / _checkpoint.FOLDER / name, tree, sync=False)

    def _vector_of(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        copied = np.array(probabilities, dtype=np.float64)  # the caller may go on with its own
        if copied.shape[-1:] != (self._task_count,):
            raise ShapeError(
                f"`probabilities` should have one number for each of the {self._task_count} tasks. "
                f"Found the shape {copied.shape}. Give the whole vector."
            )
        return copied

    def _steps_done(self) -> int:
        return max(self._summary.step, self._last_step)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _sync_folders(self) -> None:
        """Once for all files of a commit: each call waits for the disk."""
        for name in (STEPS_FOLDER, SCORES_FOLDER, _checkpoint.FOLDER):
            if (self._folder / name).is_dir():
                sync_folder(self._folder / name)

    def _require_running(self) -> None:
        if self._phase != "running":
            raise RecordError(
                f"The record in `{self._folder}` should be running. Found it {self._phase}. Call "
                "`start` first, and nothing after `finish`, `stop`, `fail` or the end of the claim."
            )
