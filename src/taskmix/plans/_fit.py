"""Whether a plan fits the tasks at hand: their names, metrics and rows, and how often each is repeated.

Rows of text that a model learns to write are worth little after the fourth pass: Muennighoff et al.,
"Scaling Data-Constrained Language Models", NeurIPS 2023, Section 5. Other tasks are small and are gone
over many times as a rule, so their passes are told and not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from taskmix.plans._plan import Plan
from taskmix.tasks import WRITTEN, TaskSet

MOST_PASSES = 4  # over texts that are written


@dataclass(frozen=True, kw_only=True)
class TaskFit:
    """A task of the plan in the folder."""

    task: str
    share: float  # of all batches
    rows: int  # to train on
    passes: float | None  # over them; None where the plan's length is not known
    as_planned: bool | None  # whether the rows are those of the study; None: not known


@dataclass(frozen=True, kw_only=True)
class PlanFit:
    """Whether a plan fits, and why not."""

    tasks: tuple[TaskFit, ...]
    problems: tuple[str, ...]  # a sentence each; none where the plan fits
    warnings: tuple[str, ...]

    @property
    def fits(self) -> bool:
        return not self.problems


def check_fit(
    plan: Plan,
    tasks: TaskSet,
    *,
    contents: Mapping[str, str] | None = None,  # hashes of the rows that the plan was made of
    steps: int | None = None,  # batches; None: as many as the plan promises for
    batch_size: int | None = None,
) -> PlanFit:
    """Looks at every task of the plan; nothing is trained.

    >>> import pyarrow as pa
    >>> from taskmix.plans import Part, Shares
    >>> from taskmix.tasks import tables_as_tasks
    >>> tasks = tables_as_tasks({"a": {"train": pa.table({"x": [1.0, 2.0], "label": ["no", "yes"]})}})
    >>> part = Part(tasks=("a", "b"), scored=("a", "b"), share=1.0, division=Shares.equal(2))
    >>> check_fit(Plan(parts=(part,)), tasks).problems[0]
    'The folder should have the tasks of the plan. Found no `b` in it, which has 1 task: a.'
    """
    length = plan.length
    batches = steps if steps is not None or length is None else length.batches
    size = batch_size if batch_size is not None or length is None else length.batch_size
    known = {task.name: task for task in tasks.tasks}
    shares = plan.overall
    hashes = tasks.select([n for n in shares if n in known]).contents if contents else {}
    rows = []
    for name in [name for name in shares if name in known]:
        count = known[name].size
        seen = None if batches is None or size is None else batches * size * shares[name]
        rows.append(
            TaskFit(
                task=name,
                share=shares[name],
                rows=count,
                passes=None if seen is None or not count else seen / count,
                as_planned=contents[name] == hashes[name]
                if contents and name in contents
                else None,
            )
        )
    return PlanFit(
        tasks=tuple(rows),
        problems=tuple(_problems(plan, tasks, rows)),
        warnings=tuple(_warnings(plan, tasks, rows)),
    )


def _problems(plan: Plan, tasks: TaskSet, rows: list[TaskFit]) -> Iterator[str]:
    known = {task.name: task for task in tasks.tasks}
    missing = [name for name in plan.tasks if name not in known]
    if missing:
        many = "1 task" if len(known) == 1 else f"{len(known)} tasks"
        yield (
            f"The folder should have the tasks of the plan. Found no {_some(missing)} in it, which has "
            f"{many}: {', '.join(list(known)[:5])}{' ...' if len(known) > 5 else ''}."
        )
    for item in plan.expected:
        task = known.get(item.task)
        if task is not None and task.metric != item.metric:
            yield (
                f"`{item.task}` should be scored by {item.metric}, for which the plan promises. Found "
                f"{task.metric}. Say how the task is read as when the plan was made."
            )
    for each in rows:
        if not each.rows:
            yield f"`{each.task}` should have rows to train on. Found none."
    changed = [each.task for each in rows if each.as_planned is False]
    if changed:
        yield (
            f"The rows should be those that the plan was made of. Found others of {_some(changed)}. Ask "
            "for advice again, or train by it all the same, and expect other scores."
        )


def _warnings(plan: Plan, tasks: TaskSet, rows: list[TaskFit]) -> Iterator[str]:
    kinds = {task.name: task.kind for task in tasks.tasks}
    for each in rows:
        if kinds[each.task] in WRITTEN and each.passes is not None and each.passes > MOST_PASSES:
            yield (
                f"The plan goes {each.passes:.1f} times over the {each.rows:,} rows of `{each.task}`; "
                f"texts are worth little after {MOST_PASSES} passes."
            )
    beside = [name for name in kinds if name not in set(plan.tasks)]
    if beside:
        yield f"The plan does without {_some(beside)}."


def _some(names: list[str]) -> str:
    more = len(names) - 5
    return ", ".join(f"`{name}`" for name in names[:5]) + (f" and {more} more" if more > 0 else "")
