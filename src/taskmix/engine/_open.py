"""The study that a command writes to: a folder of its own, about the tasks at hand.

One adviser, or one swarm, works on a study at a time. Its runs follow from each other or make one table,
so two of them would stand in each other's way: who comes second is told so before it has trained
anything.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from taskmix.engine._model_folder import check_model_folder
from taskmix.engine._source import DigitsSource, FolderSource, TaskSource, keep_tasks
from taskmix.errors import InputError, RecordError, RunError
from taskmix.files import (
    check_output_folder,
    check_outside,
    delete,
    holding,
    is_temporary,
    list_folder,
    make_folder,
    read_note,
)
from taskmix.records import RunFolder, Study, Subject
from taskmix.tasks import TaskSet

# What a command may have left before its first run.
BEFORE_RUNS = {"study.json", "ledger.json", "advise.json"}
LOCKS = {".study.lock", ".advise.lock", ".swarm.lock"}
RUN_LOCK = ".lock"  # all that a run has written which failed before its first step


def own_study(path: Path | str, *, lean: bool = False) -> Study:
    """The study at `path`, which is new or ours; raises before anything is trained.

    >>> from pathlib import Path
    >>> Path("holidays").mkdir()
    >>> _ = Path("holidays/photo.jpg").write_bytes(b"...")
    >>> own_study("holidays")
    Traceback (most recent call last):
    taskmix.errors.InputError: ...
    """
    check_output_folder(Path(path), is_ours=is_study, what="the study")
    return Study(path, lean=lean)


def open_study(
    path: Path | str,
    tasks: TaskSet,
    source: TaskSource,
    *,
    model: Path | None = None,  # where a trained model will be kept
) -> Study:
    """The same, and about these tasks. Nothing is written into the data.

    >>> source = DigitsSource(tasks=("parity", "half"))
    >>> study = open_study("study", source.load(), source)
    >>> study.path.exists()  # before the first run
    False
    """
    path = own_study(path).path
    data = Path(source.path) if isinstance(source, FolderSource) else None
    for place, what in ((path, "the study"), (model, "the trained model")):
        if data is not None and place is not None:
            check_outside(place, data, what=what)
    if model is not None:
        check_model_folder(model)
    _check_earlier(path, tasks)
    return Study(path, subject=Subject(contents=tasks.contents, origin=_origin(source, tasks)))


def load_for_runs(source: TaskSource) -> TaskSet:
    """The tasks as they are now, which the runs of this process are then trained on too.

    >>> load_for_runs(DigitsSource()).names[0]
    'ten_digits'
    """
    tasks = source.load()
    keep_tasks(source, tasks)
    return tasks


def _origin(source: TaskSource, tasks: TaskSet) -> str:
    """Where the tasks are from: others from there may join the study, others from elsewhere may not."""
    match source:
        case FolderSource(path=path):
            return str(Path(path).resolve() if Path(path).exists() else path)
        case DigitsSource():
            return "digits"
        case _:  # in memory, where nothing but the rows themselves says whence they come
            return f"memory {tasks.content}"


def is_study(path: Path) -> bool:
    """Whether a folder has runs of ours, or nothing but what comes before them."""
    return (path / "study.json").is_file() or _first_run(path) is not None or _is_begun(path)


def _is_begun(path: Path) -> bool:
    names = list_folder(path)
    return all(
        name in BEFORE_RUNS | LOCKS or is_temporary(Path(name)) or _is_claimed(path / name)
        for name in names
    )


def _is_claimed(path: Path) -> bool:
    """Whether a folder is that of a run which stopped before it wrote anything."""
    return path.is_dir() and list(list_folder(path)) == [RUN_LOCK]


def _first_run(path: Path) -> RunFolder | None:
    return next(Study(path).runs(), None)


def _check_earlier(path: Path, tasks: TaskSet) -> None:
    """A study of an earlier version says which tasks it is about only in its runs."""
    if (path / "study.json").exists():
        return
    run = _first_run(path)
    try:
        summary = None if run is None else run.summary()
        said = {} if summary is None else summary.specification["tasks"]
        names, content = said["names"], said["content"]
    except (RecordError, LookupError, TypeError):  # not a run on tasks, or not a sound one
        return
    if set(names) <= set(tasks.names) and tasks.select(names).content != content:
        raise InputError(
            f"`{path}` should be used for the tasks it is about. Found other rows of "
            f"{', '.join(names[:5])} than its first run was trained on. Choose another folder for "
            "these tasks; the study is as it was."
        )


@contextmanager
def working_alone(study: Path, command: str) -> Iterator[None]:
    """Holds the study for the block; raises at once where another process has the command at it.

    >>> from pathlib import Path
    >>> with working_alone(Path("study"), "advise"), working_alone(Path("study"), "advise"):
    ...     pass
    Traceback (most recent call last):
    taskmix.errors.RunError: One `advise` at a time should work on `study`. Found that process ...
    """
    is_new, lock = not study.exists(), study / f".{command}.lock"
    make_folder(study)
    with holding(lock, note=_who()) as held:
        if not held:
            raise RunError(
                f"One `{command}` at a time should work on `{study}`. Found that "
                f"{read_note(lock) or 'another process'} is at it. Wait for it, or choose another "
                "`out`.",
                arguments=("out",),
            )
        try:
            yield
        except InputError:
            if is_new:  # nothing was done, so nothing is left behind
                with contextlib.suppress(RecordError):
                    delete(study, is_ours=lambda path: path == lock)
            raise


def _who() -> str:
    since = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()}, since {since},"
