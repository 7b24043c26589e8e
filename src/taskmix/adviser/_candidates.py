"""Candidates: named plans that the adviser races.

Every candidate spends the same number of batches. Training alone is a plan of as many parts as there are
tasks; one shared model is a plan of one part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taskmix.plans import Division, Part, Plan, Shares, Weighted
from taskmix.policies import SizeProportional
from taskmix.tasks import TaskSet
from taskmix.weighting import Equal


def evaluated_rows(tasks: TaskSet, evaluations: int) -> int:
    """Rows that a run of these tasks is evaluated on, dev and test at its end included."""

    def rows(split: str) -> int:
        # Tasks that share their inputs are evaluated together.
        found = [task.splits[split].inputs for task in tasks if split in task.splits]
        return sum({id(table): table.num_rows for table in found}.values())

    return max((evaluations + 1) * rows("dev") + rows("test"), 1)


def alone(targets: Sequence[str]) -> Plan:
    """A model for each task, the batches divided evenly."""
    parts = tuple(_alone(name, 1 / len(targets)) for name in targets)
    return Plan(name="single", words="each task alone", parts=parts)


def together(
    name: str,
    words: str,
    tasks: Sequence[str],
    *,
    targets: Sequence[str] | None = None,
    division: Division | None = None,  # None: equal shares
) -> Plan:
    """One model for all."""
    part = Part(
        tasks=tuple(tasks),
        scored=tuple(tasks if targets is None else targets),
        share=1.0,
        division=division or Shares.equal(len(tasks)),
    )
    return Plan(name=name, words=words, parts=(part,))


def in_groups(name: str, words: str, groups: Sequence[Sequence[str]]) -> Plan:
    """A model for each group, tasks drawn evenly within it; every task gets the same share."""
    count = sum(len(group) for group in groups)
    parts = tuple(
        Part(
            tasks=tuple(group),
            scored=tuple(group),
            share=len(group) / count,
            division=Shares.equal(len(group)),
        )
        for group in groups
    )
    return Plan(name=name, words=words, parts=parts)


def _alone(name: str, share: float) -> Part:
    return Part(tasks=(name,), scored=(name,), share=share, division=Shares.equal(1))


def distinct(candidates: Iterable[Plan], known: Iterable[Plan] = ()) -> list[Plan]:
    """Without those that are the same as an earlier one but for their names."""
    seen = {_models(candidate) for candidate in known}
    kept = []
    for candidate in candidates:
        if (models := _models(candidate)) not in seen:
            seen.add(models)
            kept.append(candidate)
    return kept


def _models(plan: Plan) -> tuple[object, ...]:
    """What tells a plan from others: models of the same shares differ in name only."""
    parts = tuple(
        (
            part.scored,
            round(part.share, 9),
            part.division.method if isinstance(part.division, Weighted) else None,
            tuple((name, round(share, 9)) for name, share in part.probabilities.items()),
        )
        for part in plan.parts
    )
    return (plan.merge, parts)


def baselines(tasks: TaskSet, targets: Sequence[str]) -> list[Plan]:
    """What anyone would try first.

    >>> from taskmix.tasks import digits_tasks
    >>> tasks = digits_tasks()
    >>> [plan.name for plan in baselines(tasks, tasks.names)]
    ['single', 'uniform', 'size', 'equal']
    """
    found = [alone(targets)]
    if len(tasks) > 1:
        by_size = Shares.of(SizeProportional(), tasks.sizes)
        equal = Weighted(method=Equal())
        words = ("all tasks, equally often", "all tasks, in proportion to their rows")
        found += [
            together("uniform", words[0], tasks.names, targets=targets),
            together("size", words[1], tasks.names, targets=targets, division=by_size),
            together(
                "equal",
                "all tasks every step, equal weights",
                tasks.names,
                targets=targets,
                division=equal,
            ),
        ]
    return found


def with_shares(name: str, words: str, tasks: Sequence[str], shares: Sequence[float]) -> Plan:
    """One model, tasks drawn with these probabilities."""
    return together(name, words, tasks, division=Shares(probabilities=tuple(shares)))
