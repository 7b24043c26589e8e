from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from taskmix.plans import Expected, Length, Part, Plan, Shares, check_fit
from taskmix.tasks import TaskSet, tables_as_tasks


def rows(count: int) -> dict[str, pa.Table]:
    values = [float(n * n % 7) / 2 for n in range(count)]
    table = pa.table({"x": values, "label": ["a", "b"] * (count // 2)})
    return {"train": table, "dev": table.slice(0, 4)}


def tasks(**counts: int) -> TaskSet:
    return tables_as_tasks({name: rows(count) for name, count in counts.items()})


def plan(*names: str) -> Plan:
    part = Part(tasks=names, scored=names, share=1.0, division=Shares.equal(len(names)))
    return Plan(parts=(part,), length=Length(batches=10, batch_size=8))


def test_passes_are_the_rows_drawn_over_those_there_are() -> None:
    fit = check_fit(plan("a", "b"), tasks(a=20, b=80))
    assert fit.fits
    assert [each.passes for each in fit.tasks] == [2.0, 0.5]  # 40 rows of each in 10 batches of 8
    longer = check_fit(plan("a", "b"), tasks(a=20, b=80), steps=20)
    assert [each.passes for each in longer.tasks] == [4.0, 1.0]
    unknown = check_fit(replace(plan("a"), length=None), tasks(a=20))
    assert [each.passes for each in unknown.tasks] == [None]


def test_tasks_that_are_missing_or_scored_otherwise_do_not_fit() -> None:
    promised = Expected(task="a", metric="f1", value=0.5, low=0.4, high=0.6)
    fit = check_fit(replace(plan("a", "c"), expected=(promised,)), tasks(a=20, b=20))
    assert not fit.fits
    assert "no `c`" in fit.problems[0]
    assert "scored by f1" in fit.problems[1]
    assert fit.warnings == ("The plan does without `b`.",)


def test_other_rows_than_those_the_plan_was_made_of_do_not_fit() -> None:
    before, now = tasks(a=20, b=20), tasks(a=20, b=22)
    assert check_fit(plan("a", "b"), before, contents=before.contents).fits
    fit = check_fit(plan("a", "b"), now, contents=before.contents)
    assert [each.as_planned for each in fit.tasks] == [True, False]
    assert "others of `b`" in fit.problems[0]


@pytest.mark.parametrize(("batches", "warned"), [(10, False), (11, True)])
def test_texts_that_are_written_are_worth_little_after_four_passes(
    batches: int, warned: bool
) -> None:
    (task,) = tasks(a=20).tasks
    written = TaskSet((replace(task, kind="generation", labels=(), metric="exact_match"),))
    wanted = replace(plan("a"), length=Length(batches=batches, batch_size=8))
    assert bool(check_fit(wanted, written).warnings) == warned  # 4.0 passes, and 4.4
