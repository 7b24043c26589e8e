"""A run's record as bytes, for a way that is no shared disk, and back into a folder.

Only files that a record has are taken, by names that cannot lead out of the folder. What arrives is
written so that a kill at any moment leaves a record that reads right: until its last file is there
the run counts as one that has not begun.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from taskmix.errors import RecordError
from taskmix.files import (
    free_memory,
    holding,
    list_folder,
    make_folder,
    read_plain,
    sync_folder,
    write_bytes,
)
from taskmix.records import _checkpoint, _credits, _labels
from taskmix.records._damage import DamageError
from taskmix.records._labels import add_label
from taskmix.records._recovery import SCORES_FOLDER, STEPS_FOLDER, start_over
from taskmix.records._run import RunFolder
from taskmix.records._summary import NAME, parse_summary, read_summary, write_summary

PARTS = (STEPS_FOLDER, SCORES_FOLDER, _checkpoint.FOLDER, _labels.FOLDER)
LATEST = f"{_checkpoint.FOLDER}/{_checkpoint.NAME}"
LAST = (LATEST, NAME)  # they say what the others mean
FILES = re.compile(
    rf"{re.escape(NAME)}|{re.escape(LATEST)}"
    rf"|({STEPS_FOLDER}|{SCORES_FOLDER})/part-\d+-\d+\.parquet"
    rf"|{SCORES_FOLDER}/{re.escape(_credits.NAME)}"
    rf"|{_checkpoint.FOLDER}/(state|best)-\d+(-\d+)?\.safetensors"
    rf"|{_labels.FOLDER}/{_labels.FILES.pattern}"
)


def pack_run(folder: RunFolder) -> dict[str, bytes]:
    """The files of a record that nobody is writing to at this moment; none where it never began.

    >>> study = Study("study")
    >>> with study.run({"rate": 0.1}).claim() as claim:
    ...     claim.writer.start(
    ...         specification={"rate": 0.1}, seed=7, label="fast", tasks=[{"name": "a"}], steps=1
    ...     )
    ...     claim.writer.finish(scores=[("a", "dev", "f1", 0.5)], best_step=None)
    >>> sorted(pack_run(study.run({"rate": 0.1})))
    ['run.json']
    """
    files = _pack(folder, ".", *PARTS)
    return files if NAME in files else {}


def pack_labels(folder: RunFolder) -> dict[str, bytes]:
    r"""Those of a record's files that may come after its end.

    >>> study = Study("study")
    >>> with study.run({"rate": 0.1}).claim() as claim:
    ...     claim.writer.start(
    ...         specification={"rate": 0.1}, seed=7, label="fast", tasks=[{"name": "a"}], steps=1
    ...     )
    ...     claim.writer.finish(scores=[("a", "dev", "f1", 0.5)], best_step=None)
    >>> study.run({"rate": 0.1}, label="slow").keep_label()
    >>> [data.decode() for data in pack_labels(study.run({"rate": 0.1})).values()]
    ['{"label": "slow"}\n']
    """
    return _pack(folder, _labels.FOLDER)


def _pack(folder: RunFolder, *parts: str) -> dict[str, bytes]:
    files = {}
    for part in parts:
        for name in list_folder(folder.path / part):
            file = (Path(part) / name).as_posix()
            if FILES.fullmatch(file):
                files[file] = read_plain(folder.path / file, limit=free_memory() // 2)
    return files


def unpack_run(folder: RunFolder, files: Mapping[str, bytes]) -> bool:
    """Makes packed files the run's record, unless it is finished or another process writes it.

    >>> study = Study("study")
    >>> with study.run({"rate": 0.1}).claim() as claim:
    ...     claim.writer.start(
    ...         specification={"rate": 0.1}, seed=7, label="fast", tasks=[{"name": "a"}], steps=1
    ...     )
    ...     claim.writer.finish(scores=[("a", "dev", "f1", 0.5)], best_step=None)
    >>> unpack_run(Study("copy").run({"rate": 0.1}), pack_run(study.run({"rate": 0.1})))
    True
    >>> Study("copy").run({"rate": 0.1}).is_finished
    True
    """
    for name in files:
        if not FILES.fullmatch(name):
            raise RecordError(
                f"A packed record should have files of a run. Found {name!r}. Pack it with taskmix."
            )
    if NAME not in files:
        raise RecordError(f"A packed record should have its `{NAME}`. Found none. Pack it again.")
    summary = parse_summary(files[NAME], folder.path / NAME)
    if summary.name != folder.name:
        raise RecordError(
            f"A packed record should be that of run {folder.name}. Found that of {summary.name}."
        )
    make_folder(folder.path)
    with holding(folder.path / ".lock") as held:
        if not held or folder.is_finished:
            return False
        with contextlib.suppress(DamageError):  # a label in it is nothing that is missed
            before = read_summary(folder.path)
            for label in () if before is None else before.labels:
                if label != summary.label:
                    add_label(folder.path, label)
        begun = replace(summary, status="stopped", step=0, seconds=0.0, best_step=None, error=None)
        write_summary(folder.path, replace(begun, scores=(), kept=None))
        start_over(folder.path)
        for name in files:
            if name not in LAST:
                make_folder((folder.path / name).parent)
                write_bytes(folder.path / name, files[name], sync=False)
        for part in PARTS:
            if (folder.path / part).is_dir():
                sync_folder(folder.path / part)
        for name in LAST:
            if name in files:
                write_bytes(folder.path / name, files[name])
    return True
