"""Plans as version 0.1 wrote them: probabilities of all tasks, and groups and a weighting beside them.

A group is a part whose share is that of its tasks together; without groups there is one part. With a
weighting every part of several tasks is weighted. A task of probability 0 is trained on by no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taskmix.errors import InputError
from taskmix.plans._division import Division, Shares, Stage, Stages, Weighted, is_number
from taskmix.plans._json import known, listing, mapping
from taskmix.plans._plan import Expected, Part, Plan
from taskmix.weighting import AnyWeighting


def plan_of_version_1(
    document: Mapping[str, Any], read_weighting: Callable[[Mapping[str, Any]], AnyWeighting]
) -> Plan:
    """The plan that a file of version 1 stands for."""
    entries = ("tasks", "probabilities", "stages", "groups", "weighting", "expected", "evidence")
    known(document, "version", *entries)
    tasks = listing(document["tasks"])
    if not tasks or not all(isinstance(n, str) for n in tasks) or len(set(tasks)) != len(tasks):
        raise InputError(
            f"A plan's `tasks` should be names that differ, at least one. Found {tasks[:10]}."
        )
    shares = _shares("probabilities", listing(document["probabilities"]), tasks)
    stages = [
        (each["begin"], _shares(f"stages[{place}]", listing(each["probabilities"]), tasks))
        for place, each in enumerate(map(mapping, listing(document.get("stages"))))
    ]
    groups = [listing(group) for group in listing(document.get("groups"))] or [tasks]
    for name in [name for group in groups for name in group]:
        if name not in shares:
            raise InputError(
                f"A plan's groups should name its tasks. Found `{name}`, which is none of them."
            )
    weighting = document.get("weighting")
    method = None if weighting is None else read_weighting(mapping(weighting))
    total = sum(shares[name] for group in groups for name in group)
    scored: set[str] = set()
    parts = []
    for group in groups:
        members = tuple(dict.fromkeys(name for name in group if shares[name] > 0))
        if members:
            parts.append(
                Part(
                    tasks=members,
                    scored=tuple(name for name in members if name not in scored),
                    share=sum(shares[name] for name in members) / total,
                    division=_division(members, shares, stages, method),
                )
            )
            scored.update(members)
    whole = sum(part.share for part in parts)
    if not parts or abs(whole - 1) > 1e-6:
        raise InputError("A plan's groups should have each task once, with a probability above 0.")
    return Plan(
        parts=tuple(parts),
        expected=tuple(Expected(**mapping(each)) for each in listing(document.get("expected"))),
        evidence=mapping(document.get("evidence")),
    )


def _division(
    members: Sequence[str],
    shares: Mapping[str, float],
    stages: Sequence[tuple[float, Mapping[str, float]]],
    method: AnyWeighting | None,
) -> Division:
    def within(given: Mapping[str, float]) -> tuple[float, ...]:
        total = sum(given[name] for name in members)
        return tuple(given[name] / total if total else 0.0 for name in members)

    if method is not None and len(members) > 1:
        return Weighted(method=method)
    if stages:
        return Stages(
            stages=tuple(Stage(begin=begin, probabilities=within(given)) for begin, given in stages)
        )
    return Shares(probabilities=within(shares))


def _shares(where: str, probabilities: Sequence[float], tasks: Sequence[str]) -> dict[str, float]:
    fine = (
        len(probabilities) == len(tasks)
        and all(is_number(p) and p >= 0 for p in probabilities)
        and abs(sum(probabilities) - 1.0) < 1e-6
    )
    if not fine:
        raise InputError(
            f"A plan's `{where}` should be {len(tasks)} numbers from 0 up that sum to 1, one for each "
            f"task. Found {list(probabilities)[:10]}."
        )
    return dict(zip(tasks, probabilities, strict=True))
