"""docs/messy-files.md: every row of its tables is tried."""

from __future__ import annotations

from pathlib import Path

import pytest
from messy_cases import CASES, PAGE, Case, page_tables

from taskmix.errors import InputError
from taskmix.tasks import load_tasks

EVERY = [case for cases in CASES.values() for case in cases]


def lay_out(case: Case, folder: Path) -> Path:
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content() if callable(content) else content
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder / case.source


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.have)
def test_a_messy_file_is_read_or_refused_as_the_page_says(case: Case, tmp_path: Path) -> None:
    if case.needs is not None:
        pytest.importorskip(case.needs)
    source = lay_out(case, tmp_path / "tasks")
    if case.tasks is None:
        with pytest.raises(InputError) as caught:
            load_tasks(source, **case.options)
        assert case.says in str(caught.value)
        return
    tasks = load_tasks(source, **case.options)
    assert {task.name: sum(task.sizes.values()) for task in tasks} == dict(case.tasks)
    notes = " ".join(tasks.notes)
    assert case.says.lower() in notes.lower()
    if not case.says:
        assert "The file" not in notes
    assert case.labels in (None, tasks[0].labels)
    assert case.kind in (None, tasks[0].kind)
    assert case.columns in (None, tasks[0].columns)
    if case.holds is not None:
        splits = tasks[0].splits.values()
        assert case.holds in [cell for split in splits for cell in split.inputs[0].to_pylist()]


def test_the_page_has_the_tables_that_are_tried() -> None:
    _, heading, rest = PAGE.read_text(encoding="utf-8").partition("\n## ")
    assert heading + rest == f"\n{page_tables()}"
