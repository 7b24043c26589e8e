"""Plans that the first runs suggest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from taskmix.adviser._candidates import in_groups, together, with_shares
from taskmix.adviser._scores import Entry, comparable
from taskmix.counterfactual import improve_policy, log_of_runs
from taskmix.errors import TaskmixError
from taskmix.models import Merge, tuning_of
from taskmix.plans import Plan, Shares, Weighted
from taskmix.policies import Tempered
from taskmix.records import Study
from taskmix.tasks import Finding, TaskSet
from taskmix.transfer import TransferLessons
from taskmix.weighting import BanditMTL, Equal, FairGrad

SAME_SHARES = 0.05  # of a mean share: by less two divisions cannot be told apart in a race
FEW_TASKS = 4  # of which each is left out in turn, where nothing else says which one hurts

Entries = Mapping[str, Sequence[Entry]]  # of each candidate, by seed


def propose_candidates(
    entries: Entries,
    study: Study,
    tasks: TaskSet,
    usable: Sequence[str],  # the targets of which something was learned
    *,
    lessons: TransferLessons | None,
    findings: Sequence[Finding] = (),
    for_all: bool,  # whether all tasks are targets
    with_weightings: bool,  # whether equal weights may still be the best
) -> list[Plan]:
    """What the first runs suggest, without the tasks of which nothing was learned."""
    usable = [name for name in usable if name not in spoiled(findings)]
    if len(tasks) < 2 or not usable:
        return []
    found: list[Plan | None] = []
    sources: Sequence[str] = tasks.names
    if for_all:
        sources = usable
        if 1 < len(usable) < len(tasks):
            found.append(without(tasks.names, usable))
        if len(usable) > 1:
            found.append(tempered(tasks, usable))
        found.append(from_logs(entries, study, usable))
        found.append(apart(entries, tasks, usable))
        found.append(merged(entries))
    if lessons is not None:
        found += from_transfer(lessons, usable)
    elif 3 <= len(sources) <= FEW_TASKS:
        found += one_left_out(sources, usable, for_all=for_all)
    if len(sources) > 1 and with_weightings:
        found += weightings(sources, usable)  # of all tasks every step, as `equal` is
    return [candidate for candidate in found if candidate is not None]


def spoiled(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Tasks that no plan should train: all but the first of copies, and those that tell their labels."""
    found: list[str] = []
    for each in findings:
        if each.kind == "same task twice":
            found += each.tasks[1:]
        elif each.kind == "leak":
            found += each.tasks
    return tuple(dict.fromkeys(found))


def one_left_out(sources: Sequence[str], targets: Sequence[str], *, for_all: bool) -> list[Plan]:
    """All but one task, each in turn: of few tasks that tells which one hurts, without a study of it.

    Where all tasks are targets, the one is trained alone; beside one target it is left out.
    """
    found = []
    for name in sources:
        rest = [each for each in sources if each != name]
        if for_all:
            words = f"{name} alone, the others together"
            found.append(in_groups(f"{name} apart", words, [rest, [name]]))
        elif name not in targets:
            words = f"all but {name}, equally often"
            found.append(together(f"without {name}", words, rest, targets=targets))
    return found


def without(tasks: Sequence[str], usable: Sequence[str]) -> Plan:
    """One model for the tasks of which something was learned; the others get nothing."""
    left = [name for name in tasks if name not in usable]
    words = f"all but {', '.join(left)}, equally often"
    return together("without", words, usable)


def from_logs(entries: Entries, study: Study, usable: Sequence[str]) -> Plan | None:
    """The policy that the logs of the uniform runs teach; None where they teach no other.

    Tasks that are not usable look like hard ones, for which the reward asks for more: they are left
    out, and the shares of the others grow in proportion. Logs that cannot tell keep to equal shares,
    which are a candidate of their own.
    """
    if "uniform" not in entries or len(usable) < 2:
        return None
    runs = [run for entry in entries["uniform"] for run in entry.runs]
    try:
        log = log_of_runs([study.run(run.specification()) for run in runs])
        improved = improve_policy(log)
    except TaskmixError:  # a log too short to say anything
        return None
    shares = dict(zip(improved.tasks, improved.probabilities.tolist(), strict=True))
    kept = np.array([shares[name] for name in usable])
    if np.ptp(kept) < SAME_SHARES * kept.mean():
        return None
    words = "shares learned from the logs of the uniform runs"
    return with_shares("counterfactual", words, usable, (kept / kept.sum()).tolist())


def tempered(tasks: TaskSet, usable: Sequence[str]) -> Plan:
    """Half-way between equally often and in proportion to rows."""
    words = "shares in proportion to the root of their rows"
    shares = Shares.of(Tempered(), tasks.select(usable).sizes)
    return together("tempered", words, usable, division=shares)


def apart(entries: Entries, tasks: TaskSet, targets: Sequence[str]) -> Plan | None:
    """Tasks that do better alone than with all others stay alone; the rest share one model."""
    if "single" not in entries or "uniform" not in entries:
        return None
    better = [name for name in targets if _gain(entries, tasks, name) > 0]
    rest = [name for name in targets if name not in better]
    if not better or len(rest) < 2:
        return None
    shown = ", ".join(better)
    return in_groups("apart", f"{shown} alone, the others together", [rest, *([n] for n in better)])


def merged(entries: Entries) -> Plan | None:
    """One model made of those that were trained alone, where all began as one pretrained model.

    Nothing is trained for it: the runs are those of `single`, whose models are evaluated.
    """
    if "single" not in entries:
        return None
    alone = entries["single"][0]
    # All weights of as many models as there are tasks may not fit into memory at once.
    if len(alone.runs) < 2 or tuning_of(alone.runs[0].architecture) not in ("heads", "adapters"):
        return None
    words = "each task alone, then merged into one model by task arithmetic"
    return replace(alone.candidate, name="merged", words=words, merge=Merge())


def _gain(entries: Entries, tasks: TaskSet, name: str) -> float:
    """How much better the task does alone than with all others."""
    values = [
        np.array([comparable(tasks[name], entry.dev[name]) for entry in entries[kind]])
        for kind in ("single", "uniform")
    ]
    return float(values[0].mean() - values[1].mean())


def from_transfer(lessons: TransferLessons, usable: Sequence[str]) -> list[Plan]:
    """Without the tasks that significantly hurt the others (95 %), and in the groups that gain most."""
    if len(lessons.targets) == 1:
        return _for_one_target(lessons, usable[0])
    found = []
    harmful = [name for name in harmful_tasks(lessons) if name in usable]
    kept = [name for name in usable if name not in harmful]
    if harmful and len(kept) > 1:
        words = f"{', '.join(harmful)} alone, the others together"
        found.append(in_groups("harmful apart", words, [kept, *([name] for name in harmful)]))
    groups = [[name for name in group if name in usable] for group in lessons.groups]
    groups = [group for group in groups if group]
    if 1 < len(groups) < len(usable):
        words = "; ".join(", ".join(group) for group in groups)
        found.append(in_groups("groups", f"a model for each group: {words}", groups))
    return found


def _for_one_target(lessons: TransferLessons, target: str) -> list[Plan]:
    (lesson,) = lessons.targets
    found: list[Plan] = []
    for selection in lesson.selections:
        sources = selection.sources
        if sources and len(sources) < len(lesson.surrogate.sources):
            words = f"{target} with {', '.join(sources)}"
            name = f"with {len(sources)} of {len(lesson.surrogate.sources)}"
            plan = together(name, words, (target, *sources), targets=(target,))
            if all(plan.parts != each.parts for each in found):
                found.append(plan)
    return found


def harmful_tasks(lessons: TransferLessons) -> tuple[str, ...]:
    """Tasks that significantly hurt at least half of the others (95 %) and help none, worst first."""
    votes: dict[str, list[str]] = {}
    for lesson in lessons.targets:
        for verdict in lesson.relative:
            votes.setdefault(verdict.source, []).append(verdict.answer)
    found = [
        (answers.count("harms"), name)
        for name, answers in votes.items()
        if 2 * answers.count("harms") >= len(answers) and "helps" not in answers
    ]
    return tuple(name for _, name in sorted(found, key=lambda pair: (-pair[0], pair[1])))


def weightings(tasks: Sequence[str], targets: Sequence[str]) -> list[Plan]:
    """Equal weights, and two that weigh the losses: one by the losses, one by the gradients."""
    return [
        together(
            "equal without",
            f"{', '.join(tasks)} every step, equal weights",
            tasks,
            targets=targets,
            division=Weighted(method=Equal()),
        ),
        together(
            "bandit",
            "all tasks every step, BanditMTL's weights",
            tasks,
            targets=targets,
            division=Weighted(method=BanditMTL(radius=0.1)),
        ),
        together(
            "fairgrad",
            "all tasks every step, FairGrad's weights",
            tasks,
            targets=targets,
            division=Weighted(method=FairGrad()),
        ),
    ]
