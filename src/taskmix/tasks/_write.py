"""Tasks as an ordinary task folder that `load_tasks` reads again.

Tags are written as CoNLL columns, everything else as one JSON object a row; `task.toml` names the
metric, the kind, and the labels in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from taskmix.errors import InputError, RunError
from taskmix.files import check_output_folder, making_folder
from taskmix.tasks._formats._words import quoted
from taskmix.tasks._reading import WRITTEN
from taskmix.tasks._task import MISSING, Split, Task, TaskSet

_ROWS = 10_000  # turned into text at a time
_LONGEST_NAME = 255  # bytes, of a folder


def write_tasks(tasks: TaskSet, folder: str | Path) -> None:
    """Writes a sub-folder for each task into a folder that is new or empty: whole or not at all.

    >>> import pyarrow as pa
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> tasks = tables_as_tasks({"a": rows | {"dev": rows["train"]}})
    >>> write_tasks(tasks, "copy")
    >>> load_tasks("copy").content == tasks.content
    True
    """
    folder = Path(folder).absolute()
    check_new_folder(folder)
    names = _folder_names(tasks)
    try:
        with making_folder(folder) as aside:
            for task, name in zip(tasks, names, strict=True):
                _write_task(task, aside / name)
    except OSError as error:
        raise RunError(f"{folder} should be writable. Found: {error}.") from error


def check_new_folder(folder: Path) -> None:
    """Raises where tasks cannot be written to a folder: it is no new or empty one, or we stand in it.

    >>> from pathlib import Path
    >>> check_new_folder(Path("nowhere yet"))
    >>> check_new_folder(Path("."))
    Traceback (most recent call last):
        ...
    taskmix.errors.InputError: The tasks should be written into a folder of their ...
    """
    folder = folder.absolute()
    check_output_folder(folder, is_ours=lambda path: False, what="the tasks")
    if folder.is_dir() and Path.cwd().is_relative_to(folder.resolve()):
        raise InputError(
            f"The tasks should be written into a folder of their own. Found `{folder}`, in which the "
            "command was started. Name a new one."
        )


def _folder_names(tasks: TaskSet) -> list[str]:
    """A name for each task that a folder can have."""
    names: dict[str, str] = {}
    for task in tasks:
        kept = (char if char.isalnum() or char in "-_. " else "-" for char in task.name)
        name = "".join(kept).strip(". ")
        if not name or len(name.encode()) > _LONGEST_NAME or name in names:
            other = f", as has {quoted(names[name])}" if name in names else ""
            raise InputError(
                f"A task to be written should have a name that makes a folder of its own. Found "
                f"{quoted(task.name)}, which would be {quoted(name)}{other}. Rename the task."
            )
        names[name] = task.name
    return list(names)


def _write_task(task: Task, folder: Path) -> None:
    if task.kind == "sequences":
        raise InputError(
            f"A task to be written should have labels. Found sequences in `{task.name}`."
        )
    folder.mkdir()
    settings = [f'metric = "{task.metric}"', f'kind = "{task.kind}"']
    if task.kind in ("classification", "multilabel"):
        settings.append(f"labels = {json.dumps(list(task.labels), ensure_ascii=False)}")
    (folder / "task.toml").write_text("\n".join(settings) + "\n", encoding="utf-8")
    ending = "conll" if task.kind == "tagging" else "jsonl"
    for name, split in task.splits.items():
        lines = _tagged(task, split) if task.kind == "tagging" else _objects(task, split)
        with (folder / f"{name}.{ending}").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)


def _tagged(task: Task, split: Split) -> Iterator[str]:
    labels = np.array([*task.labels, "O"], dtype=object)
    words = labels[np.where(split.targets == MISSING, len(task.labels), split.targets)]
    place = 0
    for start in range(0, len(split), _ROWS):
        for tokens in split.inputs.column("tokens").slice(start, _ROWS).to_pylist():
            for token in tokens:
                yield f"{token}\t{words[place]}\n"
                place += 1
            yield "\n"


def _objects(task: Task, split: Split) -> Iterator[str]:
    for start in range(0, len(split), _ROWS):
        rows = split.inputs.slice(start, _ROWS).to_pylist()
        if task.kind in WRITTEN:
            yield from (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            continue
        for row, target in zip(rows, split.targets[start : start + _ROWS], strict=True):
            label: float | str | list[str] | None
            if task.kind == "regression":
                label = None if np.isnan(target) else float(target)
            elif task.kind == "multilabel":
                marked = [task.labels[place] for place in np.flatnonzero(target == 1)]
                label = None if (target == MISSING).all() else marked
            else:
                label = None if target == MISSING else task.labels[int(target)]
            yield json.dumps({**row, "label": label}, ensure_ascii=False) + "\n"
