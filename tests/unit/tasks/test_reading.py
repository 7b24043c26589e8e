"""What a task was taken for, as a value and in a line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from taskmix.tasks import Reading, TaskSet, load_tasks, reading_lines


def csv(path: Path, count: int = 40, *, classes: int = 2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{n},{n % 7},{n % 5 / 2},{n % classes}" for n in range(count)]
    path.write_text("\n".join(["id,x,y,label", *rows, ""]))


def test_a_task_says_what_it_was_taken_for(tmp_path: Path) -> None:
    csv(tmp_path / "a" / "train.csv")
    (task,) = load_tasks(tmp_path)
    assert task.reading == Reading(
        inputs="table",
        columns=("x", "y"),
        label="label",
        kind="classification",
        classes=2,
        metric="accuracy",
        left_out=(("id", "numbers the rows"),),
        divided=("dev is a tenth of train",),
    )
    assert reading_lines(load_tasks(tmp_path)) == (
        "Read a: table of 2 columns; 2 classes of `label`; accuracy; dev is a tenth of train; "
        "without `id` (numbers the rows)",
    )
    assert json.loads(json.dumps(task.reading.document()))["left_out"] == {"id": "numbers the rows"}


def test_tasks_that_were_read_alike_share_a_line(tmp_path: Path) -> None:
    for name in "abc":
        csv(tmp_path / name / "train.csv", classes=3 if name == "c" else 2)
    tasks = load_tasks(tmp_path)
    assert list(tasks.readings().values()) == [("a", "b"), ("c",)]
    lines = reading_lines(tasks)
    assert [line.partition(":")[0] for line in lines] == ["Read a and b", "Read c"]
    assert reading_lines(tasks.select(["a", "b"]))[0].startswith("Read all 2 tasks: table")


def test_lines_are_few_and_short(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    names = [f"a_rather_long_name_of_a_column_{n}" for n in range(9)]
    rows = [",".join(["x"] * 9 + [str(n % 2)]) for n in range(30)]
    (tmp_path / "t" / "train.csv").write_text("\n".join([",".join([*names, "label"]), *rows]))
    (task,) = load_tasks(tmp_path)
    many = TaskSet(
        tuple(
            replace(task, name=f"task{n}", reading=replace(task.reading, classes=n))
            for n in range(20)
        )
    )
    lines = reading_lines(many)
    assert len(lines) == 8
    assert lines[-1] == "... and 13 more tasks"
    long = replace(task.reading, left_out=tuple((name, "no values") for name in names))
    (line,) = reading_lines(TaskSet((replace(task, reading=long),)))
    assert len(line) == 120


def test_the_reading_is_no_part_of_the_content(tmp_path: Path) -> None:
    csv(tmp_path / "a" / "train.csv")
    (task,) = load_tasks(tmp_path)
    other = replace(task, reading=replace(task.reading, label="another"))
    assert TaskSet((other,)).content == TaskSet((task,)).content
