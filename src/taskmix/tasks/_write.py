"""Tasks as an ordinary task folder that `load_tasks` reads again.

Tags are written as CoNLL columns, everything else as one JSON object a row; `task.toml` names the
metric, and the labels in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from taskmix.errors import InputError, RunError
from taskmix.tasks._task import MISSING, Split, Task, TaskSet

_ROWS = 10_000  # turned into text at a time


def write_tasks(tasks: TaskSet, folder: str | Path) -> None:
    """Writes a sub-folder for each task into a folder that is new or empty.

    It is written under another name beside it and renamed at the end: whole or not there.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"The folder to write to should be new or empty. Found {folder} with something in it. "
            "Name another, or empty it."
        )
    aside = folder.with_name(f".{folder.name}.partial")
    try:
        for task in tasks:
            _write_task(task, aside / _folder_name(task.name))
        if folder.exists():
            folder.rmdir()
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside.rename(folder)
    except OSError as error:
        raise RunError(f"{folder} should be writable. Found: {error}.") from error
    finally:
        _remove(aside)


def _folder_name(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_. " else "-" for char in name).strip(". ")


def _write_task(task: Task, folder: Path) -> None:
    if task.kind == "sequences":
        raise InputError(
            f"A task to be written should have labels. Found sequences in `{task.name}`."
        )
    folder.mkdir(parents=True, exist_ok=True)
    settings = [f'metric = "{task.metric}"', f'kind = "{task.kind}"']
    if task.kind == "classification":
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
        for row, target in zip(rows, split.targets[start : start + _ROWS], strict=True):
            label: float | str | None
            if task.kind == "regression":
                label = None if np.isnan(target) else float(target)
            else:
                label = None if target == MISSING else task.labels[int(target)]
            yield json.dumps({**row, "label": label}, ensure_ascii=False) + "\n"


def _remove(folder: Path) -> None:
    if not folder.is_dir():
        return
    for child in folder.iterdir():
        if child.is_dir():
            _remove(child)
        else:
            child.unlink()
    folder.rmdir()
