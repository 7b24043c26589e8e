"""The finished runs of a study as a table of mixtures.

A run that draws a task a step is a mixture: its shares are those of its policy where they stay the
same, and otherwise how often each task was drawn, by the run's log. A task that a run does not train on
has a share of zero, and no score. Equal weights take a batch of every task each step: an even mixture,
but of other steps, so such runs are compared with each other alone. Under any other weighting losses
count differently, and merged models were not trained on what they know: these are left out.

Runs are comparable if they differ in nothing but their tasks, shares, seed and the size of their model.
Of sets of such runs the largest is taken, and what is left out is said in the table's notes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

import taskmix.policies
from taskmix.engine import from_spec
from taskmix.errors import InputError, RecordError, TaskmixError
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.policies import Unchanging
from taskmix.records import RunSummary, Study
from taskmix.tasks import find_metric

EVERY_TASK_EACH_STEP = "Equal"  # the one weighting whose runs are mixtures
# Of a run's specification, what two runs of one table may differ in. `architecture` counts apart.
MAY_DIFFER = {
    "architecture",
    "checkpoint_every",
    "device",
    "policy",
    "reward",
    "seed",
    "steps",  # counted as batches
    "tasks",
    "weighting",
}
NAMED = 5  # of the runs left out for one reason


def table_of_study(
    study: Study | Path | str,
    *,
    split: str = "dev",  # on which the scores are
    tasks: Sequence[str] | None = None,  # only runs on these, in this order; None: all
    by_batches: bool = True,  # False: shares of the rows that were read, by the logs
) -> MixtureTable:
    """The largest set of comparable runs: shares of tasks, and each task's score by its own metric.

    A metric has the name of its task. Sizes are numbers of parameters, where runs differ in them.

    >>> from taskmix.engine import DigitsSource, Run, execute
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> about = {"source": DigitsSource(), "architecture": Perceptron(), "steps": 2, "seed": 0}
    >>> for tasks in (("half", "loop"), ("half",)):
    ...     _ = execute(Run(label="demo", tasks=tasks, **about), Study("study"))
    >>> table = table_of_study("study")
    >>> table.shares.sum(axis=0), table.larger_is_better
    (array([1.5, 0.5]), ('half', 'loop'))
    """
    study = study if isinstance(study, Study) else Study(study)
    notes: list[str] = []
    finished = [run for run in study.summaries(note=notes.append) if run.status == "finished"]
    if not finished:
        raise InputError(
            f"A study of mixtures should have finished runs. Found none in `{study.path}`. Train some "
            "first, or check the path."
        )
    left = LeftOut()
    runs = _mixtures(finished, left)
    runs = _of_tasks(runs, tasks, left)
    runs = _of_same_rows(runs, left)
    shares = {}
    for run in runs:
        found = shares_of_run(run, study, by_batches=by_batches)
        if found is None:
            left.add("whose log of draws is gone", [run])
        else:
            shares[run.name] = found
    runs = [run for run in runs if run.name in shares]
    runs, sizes = largest_comparable(runs, study, left)
    if not runs:
        raise InputError(
            "A study of mixtures should have finished runs that draw a task each step. Found none that "
            f"can be used in `{study.path}`. {' '.join(left.words())}"
        )
    names = tuple(tasks) if tasks is not None else _in_order(runs)
    metrics = _metrics(runs)
    values = np.array([_values(run, names, metrics, split) for run in runs])
    scored = np.isfinite(values).any(axis=0)
    if not scored.any():
        raise InputError(
            f"A study of mixtures should have scores on {split}. Found none in `{study.path}`. Choose a "
            "split that its tasks have."
        )
    return MixtureTable(
        domains=names,
        metrics=tuple(name for name, is_scored in zip(names, scored, strict=True) if is_scored),
        runs=_run_names(runs),
        shares=np.array([[shares[run.name].get(name, 0.0) for name in names] for run in runs]),
        values=values[:, scored],
        sizes=sizes,
        larger_is_better=tuple(
            name
            for name, is_scored in zip(names, scored, strict=True)
            if is_scored and find_metric(metrics[name]).higher_is_better
        ),
        notes=(*notes, *left.words()),
    )


def _mixtures(runs: Sequence[RunSummary], left: LeftOut) -> list[RunSummary]:
    found, weighted, merged = [], [], []
    for run in runs:
        method = run.specification.get("weighting")
        if run.specification.get("merge") is not None:
            merged.append(run)
        elif method is not None and kind_of(method) != EVERY_TASK_EACH_STEP:
            weighted.append(run)
        else:
            found.append(run)
    left.add("with weighted losses, which are no mixtures", weighted)
    left.add("of merged models, which were not trained together", merged)
    return found


def _of_tasks(
    runs: Sequence[RunSummary], tasks: Sequence[str] | None, left: LeftOut
) -> list[RunSummary]:
    if tasks is None:
        return list(runs)
    known = {name for run in runs for name in run.task_names}
    if unknown := [name for name in tasks if name not in known]:
        raise InputError(
            f"`tasks` should be tasks of the study's runs. Found `{unknown[0]}`, and runs on "
            f"{', '.join(sorted(known)[:10])}. Check the spelling.",
            arguments=("tasks",),
        )
    left.add("on other tasks", [run for run in runs if not set(run.task_names) <= set(tasks)])
    return [run for run in runs if set(run.task_names) <= set(tasks)]


def _of_same_rows(runs: Sequence[RunSummary], left: LeftOut) -> list[RunSummary]:
    """Those whose tasks are what most runs take them for: the same rows, labels and metric."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    contents: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for run in runs:
        for task in run.tasks:
            seen[task["name"]][_rows(task)] += 1
        contents[run.task_names][_content(run)] += 1
    usual = {name: counts.most_common(1)[0][0] for name, counts in seen.items()}
    same = [
        run
        for run in runs
        if all(_rows(task) == usual[task["name"]] for task in run.tasks)
        and _content(run) == contents[run.task_names].most_common(1)[0][0]
    ]
    kept = {run.name for run in same}
    left.add("on other rows under the same names", [run for run in runs if run.name not in kept])
    return same


def _rows(task: Mapping[str, Any]) -> str:
    about = {key: task.get(key) for key in ("kind", "metric", "sizes", "labels")}
    return json.dumps(about, sort_keys=True, default=str)


def _content(run: RunSummary) -> str:
    tasks = run.specification.get("tasks")
    return str(tasks.get("content")) if isinstance(tasks, Mapping) else ""


def _in_order(runs: Sequence[RunSummary]) -> tuple[str, ...]:
    """All tasks, in the order of the run that has the most."""
    widest = sorted(runs, key=lambda run: -len(run.tasks))
    return tuple(dict.fromkeys(name for run in widest for name in run.task_names))


def _metrics(runs: Sequence[RunSummary]) -> dict[str, str]:
    return {task["name"]: task["metric"] for run in runs for task in run.tasks}


def _values(
    run: RunSummary, names: Sequence[str], metrics: Mapping[str, str], split: str
) -> list[float]:
    scores = {
        score.task: score.value
        for score in run.scores
        if score.split == split and score.metric == metrics.get(score.task)
    }
    return [scores.get(name, float("nan")) for name in names]


def _run_names(runs: Sequence[RunSummary]) -> tuple[str, ...]:
    """What people call them, where that tells them apart; otherwise their folders."""
    called = [f"{run.label}, seed {run.seed}" for run in runs]
    counts = Counter(called)
    return tuple(
        name if counts[name] == 1 else f"{name} ({run.name})"
        for name, run in zip(called, runs, strict=True)
    )


@dataclass
class LeftOut:
    """Runs that are no rows of the table, by the reason."""

    labels: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, reason: str, runs: Iterable[RunSummary]) -> None:
        for run in runs:
            self.labels[reason].append(run.label)

    def words(self) -> tuple[str, ...]:
        found = []
        for reason, labels in self.labels.items():
            counts = Counter(labels)
            named = [f"{label} ({count})" for label, count in counts.most_common(NAMED)]
            more = ", ..." if len(counts) > NAMED else ""
            runs = f"{len(labels)} run{'s' if len(labels) > 1 else ''}"
            found.append(f"Left out: {runs} {reason}: {', '.join(named)}{more}.")
        return tuple(found)


def largest_comparable(
    runs: Sequence[RunSummary], study: Study, left: LeftOut
) -> tuple[list[RunSummary], Floats | None]:
    """The largest set of runs alike in all that counts, and the sizes of their models."""
    sets: dict[str, dict[str, list[RunSummary]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        architecture = run.specification.get("architecture")
        model = json.dumps(architecture, sort_keys=True, default=str)
        sets[_alike(run, kind_of(architecture))][model].append(run)
    if not sets:
        return [], None
    by_set = {
        key: _with_sizes(models, study) if len(models) > 1 else dict.fromkeys(models)
        for key, models in sets.items()
    }
    chosen = max(sets, key=lambda key: sum(len(sets[key][model]) for model in by_set[key]))
    kept = {run.name: size for model, size in by_set[chosen].items() for run in sets[chosen][model]}
    left.add(
        "that cannot be compared (other lengths, models or tuning)",
        [run for run in runs if run.name not in kept],
    )
    found = [run for run in runs if run.name in kept]
    sizes = [kept[run.name] for run in found]
    known = [size for size in sizes if size is not None]
    return found, np.array(known, dtype=np.float64) if len(known) == len(sizes) else None


def _alike(run: RunSummary, model: str) -> str:
    """What two runs of one table have in common."""
    about = {key: value for key, value in run.specification.items() if key not in MAY_DIFFER}
    every = len(run.tasks) if run.specification.get("weighting") is not None else 1
    about |= {"model": model, "batches": run.steps * every, "every": every > 1}
    return json.dumps(about, sort_keys=True, default=str)


def _with_sizes(
    models: Mapping[str, Sequence[RunSummary]], study: Study
) -> dict[str, float | None]:
    """The models that differ in size, with their parameters; only the most used one if not known."""
    ordered = sorted(models, key=lambda model: -len(models[model]))
    found: dict[str, float | None] = {}
    for model in ordered:
        # Heads belong to tasks: the run of the most tasks has the whole model.
        widest = max(models[model], key=lambda run: (len(run.tasks), run.name))
        size = _parameters(study, widest)
        if size is not None and size not in found.values():
            found[model] = size
    if len(found) > 1 and ordered[0] in found:
        return found
    return {ordered[0]: None}


def _parameters(study: Study, run: RunSummary) -> float | None:
    try:
        best = study.run_named(run.name).best()
    except RecordError:
        return None
    # Studies of before may have several states under one name, which are no size of a model.
    sizes = [each.numel() for each in (best or {}).values() if isinstance(each, Tensor)]
    return float(sum(sizes)) if sizes else None


def kind_of(description: Any) -> str:
    """The class that a specification's entry describes."""
    return str(description.get("kind")) if isinstance(description, Mapping) else str(description)


def shares_of_run(run: RunSummary, study: Study, *, by_batches: bool) -> dict[str, float] | None:
    """Of each task of a run; None where they were drawn and nothing says how often."""
    if by_batches:
        fixed = _fixed_shares(run)
        if fixed is not None:
            return fixed
    try:
        steps = study.run_named(run.name).steps(["task", "examples"])
    except RecordError:
        return None
    if not len(steps):
        return None
    places = steps["task"].combine_chunks().indices.to_numpy()
    amounts = np.ones(len(steps)) if by_batches else steps["examples"].to_numpy()
    found = np.bincount(places, weights=amounts, minlength=len(run.tasks))
    return dict(zip(run.task_names, (found / found.sum()).tolist(), strict=True))


def _fixed_shares(run: RunSummary) -> dict[str, float] | None:
    """Where they stay the same over the run."""
    count = len(run.tasks)
    if run.specification.get("weighting") is not None or count == 1:
        return dict.fromkeys(run.task_names, 1 / count)
    try:
        policy = from_spec(run.specification.get("policy") or {}, taskmix.policies)
        if not isinstance(policy, Unchanging):
            return None
        sizes = np.array([task["sizes"]["train"] for task in run.tasks])
        shares = policy.probabilities(policy.init(sizes))  # type: ignore[attr-defined]
    except (TaskmixError, KeyError, TypeError):  # of another version, or of somebody's own
        return None
    return dict(zip(run.task_names, shares.tolist(), strict=True))
