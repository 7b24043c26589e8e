"""What a run's folder needs before and after its writer: clean recovery, and tidying at the end.

Both are called by whoever holds the run's lock, may be killed at any moment and done again.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from taskmix.errors import RecordError
from taskmix.files import delete, remove_stale
from taskmix.records import _checkpoint, _credits
from taskmix.records._checkpoint import (
    Checkpoint,
    CheckpointEntry,
    forget_entries,
    forget_files,
    load_checkpoint,
    read_checkpoint_entries,
    write_entries,
)
from taskmix.records._damage import DamageError
from taskmix.records._parts import (
    chain_parts,
    is_part,
    list_parts,
    merge_parts,
    read_part,
    verify_parts,
)
from taskmix.records._summary import RunSummary, now, read_summary, write_summary
from taskmix.records._tables import SCORES, STEPS, Vector, last_vector

STEPS_FOLDER, SCORES_FOLDER = "steps", _credits.FOLDER


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """Where a run goes on."""

    summary: RunSummary | None = None  # None for a run that never started
    checkpoint: Checkpoint | None = None
    entries: tuple[CheckpointEntry, ...] = ()  # the newest, that of `checkpoint`, first
    vector: Vector | None = None  # the task probabilities that held then
    notes: tuple[str, ...] = ()


def recover(folder: Path) -> Recovered:
    """Takes an unfinished run back to its newest sound checkpoint, or to the start.

    Rows written after that checkpoint go: the run will write them again. A checkpoint counts only
    if its files and all rows before it are sound.
    """
    _remove_stale(folder)
    summary, entries, notes = _read(folder)
    _credits.forget_credits(folder)
    for number, entry in enumerate(entries):
        try:
            checkpoint = load_checkpoint(folder, entry)
            vector = _verify_rows(folder, entry)
        except DamageError as error:
            notes.append(str(error))
            continue
        sound = tuple(entries[number:])
        if number:
            write_entries(folder, sound)
        _cut(folder, entry.steps_end, entry.scores_end)
        forget_files(folder, sound)
        if notes:
            notes.append(f"The run goes on from its checkpoint at step {entry.step}.")
        return Recovered(
            summary=summary,
            checkpoint=checkpoint,
            entries=sound,
            vector=vector,
            notes=tuple(notes),
        )
    if notes:
        notes.append("No checkpoint is sound, so the run starts over.")
    _empty(folder)
    return Recovered(summary=summary, notes=tuple(notes))


def start_over(folder: Path) -> Recovered:
    """Empties a run, finished or not."""
    _remove_stale(folder)
    summary = None
    with contextlib.suppress(DamageError):  # then there is nothing to correct
        summary = read_summary(folder)
    if summary is not None:  # what it says is no longer so
        begun = replace(summary, status="stopped", step=0, seconds=0.0, best_step=None)
        summary = replace(begun, scores=(), kept=None, error=None, created=now())
        write_summary(folder, summary)
    _credits.forget_credits(folder)
    _empty(folder)
    return Recovered(summary=summary)


def tidy(folder: Path, summary: RunSummary, *, is_ours: bool) -> None:
    """Makes one part of a finished run's parts and deletes the files it no longer needs."""
    _remove_stale(folder)
    for name, schema in ((STEPS_FOLDER, STEPS), (SCORES_FOLDER, SCORES)):
        if not is_ours:  # another process wrote them, and nobody has looked at them since
            verify_parts(chain_parts(folder / name), schema)
        merge_parts(folder / name, schema, summary.task_names)
    forget_files(folder, () if summary.kept is None else (summary.kept,))
    forget_entries(folder)  # last: it says that this was not done


def is_untidy(folder: Path) -> bool:
    return (folder / _checkpoint.FOLDER / _checkpoint.NAME).exists()


def _remove_stale(folder: Path) -> None:
    for name in (".", STEPS_FOLDER, SCORES_FOLDER, _checkpoint.FOLDER):
        remove_stale(folder / name)


def _empty(folder: Path) -> None:
    forget_entries(folder)  # first: it says what the others mean
    forget_files(folder, ())
    _cut(folder, 0, 0)


def _read(folder: Path) -> tuple[RunSummary | None, list[CheckpointEntry], list[str]]:
    notes: list[str] = []
    summary, entries = None, []
    try:
        entries = read_checkpoint_entries(folder)
    except DamageError as error:
        notes.append(str(error))
    try:
        summary = read_summary(folder)
    except DamageError as error:
        notes.append(str(error))
    if summary is None and not entries and list_parts(folder / STEPS_FOLDER):
        # Nothing of ours leaves this behind, and the rows may be those of a finished run.
        raise RecordError(
            f"`{folder}` should have a sound `run.json` beside its rows. Found none. Restore the "
            "file from a copy, or delete the folder to run it again."
        )
    return summary, entries, notes


def _verify_rows(folder: Path, entry: CheckpointEntry) -> Vector | None:
    steps = chain_parts(folder / STEPS_FOLDER, end=entry.steps_end)
    verify_parts(steps, STEPS)
    verify_parts(chain_parts(folder / SCORES_FOLDER, end=entry.scores_end), SCORES)
    vector: Vector | None = None
    for batch in read_part(steps[-1], STEPS, ["probabilities"]) if steps else ():
        vector = last_vector(pa.Table.from_batches([batch]), vector)
    return vector


def _cut(folder: Path, steps_end: int, scores_end: int) -> None:
    for name, end in ((STEPS_FOLDER, steps_end), (SCORES_FOLDER, scores_end)):
        kept = chain_parts(folder / name, end=end)
        # From the last on, so that whoever reads meanwhile sees no gap.
        for part in reversed(list_parts(folder / name)):
            if part not in kept:
                delete(part.path, is_ours=is_part)
