"""Which runs of a study can be compared: those alike in all but tasks, shares, seed and size."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taskmix.errors import RecordError
from taskmix.mixtures._table import Floats
from taskmix.records import RunSummary, Study
from taskmix.training import best_state

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
    return float(sum(each.numel() for each in best_state(best).values())) if best else None


def kind_of(description: Any) -> str:
    """The class that a specification's entry describes."""
    return str(description.get("kind")) if isinstance(description, Mapping) else str(description)
