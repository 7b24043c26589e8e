"""A study that never ran: learning curves from formulas, as tables and as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from taskmix.records import RecordWriter, Study
from taskmix.report import ReportData, ReportScore, RunRow, TaskRow, Trace

DIGITS = (
    "even or odd",
    "above four",
    "which digit",
    "is it zero",
    "is it one",
    "prime or not",
    "shuffled digits",
    "shuffled parity",
)
GAIN = {"single": -0.02, "uniform": 0.0, "proportional": 0.015}


@dataclass(frozen=True)
class SyntheticRun:
    """One run, step by step, as the records have it."""

    label: str
    seed: int
    tasks: tuple[str, ...]
    steps: NDArray[np.int64]  # [row]
    chosen: NDArray[np.int64]  # [row], place in `tasks`
    losses: NDArray[np.float64]  # [row]
    probabilities: NDArray[np.float64]  # [task]
    weights: NDArray[np.float64] | None  # [row]
    curves: dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]
    final: dict[str, float]

    @property
    def last_step(self) -> int:
        return int(self.steps[-1])


def task_sizes(count: int) -> list[int]:
    return [int(4000 / (1 + 0.7 * place)) + 40 for place in range(count)]


def task_names(count: int) -> list[str]:
    return list(DIGITS[:count]) if count <= len(DIGITS) else [f"task {k:02d}" for k in range(count)]


def synthetic_runs(
    names: Sequence[str],
    labels: Sequence[str] = tuple(GAIN),
    *,
    seeds: int = 3,
    steps: int = 1200,
    noise: float = 0.008,
) -> Iterator[SyntheticRun]:
    """Every label under every seed; `single` is one run a task, `weighted` trains all at once."""
    for label in labels:
        for seed in range(seeds):
            groups = [(name,) for name in names] if label == "single" else [tuple(names)]
            for group in groups:
                yield _run(names, group, label, seed, steps, noise)


def _run(
    names: Sequence[str], group: tuple[str, ...], label: str, seed: int, steps: int, noise: float
) -> SyntheticRun:
    generator = np.random.default_rng([seed, len(label), len(group), names.index(group[0])])
    sizes = np.array(task_sizes(len(names)), dtype=float)[[names.index(name) for name in group]]
    shares = sizes / sizes.sum() if label == "proportional" else np.full(len(group), 1 / len(group))
    count = max(steps // len(names), 40) if label == "single" else steps
    numbers = np.arange(1, count + 1)
    if label == "weighted":
        row_steps = np.repeat(numbers, len(group))
        chosen = np.tile(np.arange(len(group)), count)
    else:
        row_steps = numbers
        drift = np.linspace(0, 1, count)[:, None] * (np.arange(len(group)) % 3 - 1) * 0.4
        changing = shares * np.exp(drift if label == "learned" else 0 * drift)
        chosen = (
            (changing / changing.sum(1, keepdims=True)).cumsum(1) < generator.random((count, 1))
        ).sum(1)
        chosen = np.minimum(chosen, len(group) - 1)
    losses = np.empty(len(row_steps))
    seen = np.zeros(len(group))
    for row, task in enumerate(chosen):
        seen[task] += 1
        floor = 0.1 + 0.08 * (names.index(group[task]) % 6)
        hard = names.index(group[task]) >= 6 and len(names) <= len(DIGITS)
        fall = 0.95 if hard else floor + (1.4 - floor) * np.exp(-seen[task] / 60)
        losses[row] = max(0.01, fall + 0.12 * generator.standard_normal())
    every = max(1, count // 30)
    at = np.arange(every, count + 1, every)
    curves, final = {}, {}
    for place, name in enumerate(group):
        level = 0.95 - 0.05 * (names.index(name) % 6) + GAIN.get(label, 0.005)
        if len(names) <= len(DIGITS) and names.index(name) >= 6:
            level = 0.31 if names.index(name) == 6 else 0.52
        level += noise * generator.standard_normal()
        budget = at * shares[place]
        wobble = 0.6 * noise * generator.standard_normal(len(at))
        curves[name] = (at, level - 0.5 * np.exp(-budget / 25) + wobble)
        final[name] = float(level - 0.005 + 0.4 * noise * generator.standard_normal())
    weights = 1 + 0.5 * np.sin(row_steps / 150 + chosen) if label == "weighted" else None
    return SyntheticRun(
        label, seed, group, row_steps, chosen, losses, shares, weights, curves, final
    )


def synthetic_data(
    names: Sequence[str] | None = None,
    labels: Sequence[str] = tuple(GAIN),
    *,
    count: int = 8,
    points: int = 50,
    metric: str = "accuracy",
    **options: float,
) -> ReportData:
    """The tables of a report, without a record on any disk."""
    names = list(names or task_names(count))
    made = list(synthetic_runs(names, labels, **options))  # type: ignore[arg-type]
    edges = {
        label: _edges(max(run.last_step for run in made if run.label == label), points)
        for label in labels
    }
    return ReportData(
        title="digits, eight ways",
        labels=tuple(labels),
        tasks=tuple(
            TaskRow(
                name=name,
                metric=metric,
                higher_is_better=metric not in ("rmse", "log_loss"),
                kind="classification",
                inputs="table",
                classes=2,
                sizes={"train": size, "dev": size // 5, "test": size // 4},
            )
            for name, size in zip(names, task_sizes(len(names)), strict=True)
        ),
        runs=tuple(_row(run, place) for place, run in enumerate(made)),
        scores=tuple(
            ReportScore(task=task, label=run.label, seed=run.seed, split="test", value=value)
            for run in made
            for task, value in run.final.items()
        ),
        traces=tuple(_trace(run, edges[run.label]) for run in made),
        edges=edges,
        command="taskmix report taskmix-demo",
    )


def _row(run: SyntheticRun, place: int) -> RunRow:
    return RunRow(
        name=f"{place:016x}",
        label=run.label,
        seed=run.seed,
        status="finished",
        tasks=run.tasks,
        step=run.last_step,
        steps=run.last_step,
        seconds=run.last_step * 0.0016,
        best_step=int(run.last_step * 0.9),
        specification=specification(run),
        versions={"taskmix": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        updated="2026-11-15T08:30:00Z",
    )


def specification(run: SyntheticRun) -> dict[str, object]:
    return {
        "label": run.label,
        "seed": run.seed,
        "tasks": list(run.tasks),
        "policy": {"kind": "Proportional" if run.label == "proportional" else "Uniform"},
        "model": {"kind": "HardSharing", "encoder": {"kind": "Perceptron", "widths": [64, 64]}},
        "optimizer": {"kind": "Adam", "lr": 0.001},
        "steps": run.last_step,
        "batch_size": 32,
    }


def _trace(run: SyntheticRun, edges: NDArray[np.float64]) -> Trace:
    """Bin by bin and task by task, as slow as it is plain."""
    shape = (len(run.tasks), len(edges) - 1)
    losses, weights, examples = (np.full(shape, np.nan) for _ in range(3))
    for place, (begin, end) in enumerate(pairwise(edges)):
        inside = (run.steps > begin) & (run.steps <= end)
        for task in range(shape[0]):
            rows = inside & (run.chosen == task)
            examples[task, place] = 32.0 * rows.sum()
            if rows.any():
                losses[task, place] = run.losses[rows].mean()
                if run.weights is not None:
                    weights[task, place] = run.weights[rows].mean()
    drawn = run.label != "weighted"
    probabilities = run.probabilities if drawn else np.full(shape[0], np.nan)
    return Trace(
        label=run.label,
        seed=run.seed,
        tasks=run.tasks,
        losses=losses,
        weights=weights,
        examples=examples,
        probabilities=np.broadcast_to(probabilities[:, None], shape),
        scores=run.curves,
    )


def _edges(last: int, points: int) -> NDArray[np.float64]:
    """Of whole steps, so that no bin of a short run is empty."""
    return np.unique(np.round(np.linspace(0, last, min(points, last) + 1)))


def write_study(
    path: Path,
    names: Sequence[str] | None = None,
    labels: Sequence[str] = tuple(GAIN),
    *,
    count: int = 8,
    failing: Sequence[tuple[str, int]] = (),  # labels and seeds whose runs end with an error
    **options: float,
) -> Study:
    """The same runs as `synthetic_data`, as records."""
    study = Study(path)
    names = list(names or task_names(count))
    sizes = dict(zip(names, task_sizes(len(names)), strict=True))
    for run in synthetic_runs(names, labels, **options):  # type: ignore[arg-type]
        described = specification(run)
        with study.run(described).claim() as claim:
            assert claim.writer is not None
            claim.writer.start(
                specification=described,
                seed=run.seed,
                label=run.label,
                tasks=[
                    {
                        "name": name,
                        "kind": "classification",
                        "metric": "accuracy",
                        "labels": 2,
                        "sizes": {"train": sizes[name], "dev": sizes[name] // 5},
                    }
                    for name in run.tasks
                ],
                steps=run.last_step,
            )
            _write_run(claim.writer, run, fails=(run.label, run.seed) in failing)
    return study


def _write_run(writer: RecordWriter, run: SyntheticRun, *, fails: bool) -> None:
    drawn = run.label != "weighted"
    writer.add_steps(
        run.steps,
        run.chosen,
        loss=run.losses,
        seconds=0.001,
        examples=32,
        probability=run.probabilities[run.chosen] if drawn else None,
        probabilities=run.probabilities if drawn else None,
        weight=run.weights,
    )
    for task, (steps, values) in run.curves.items():
        for step, value in zip(steps.tolist(), values.tolist(), strict=True):
            writer.add_scores(step, [(task, "dev", "accuracy", value), (task, "dev", "loss", 0.5)])
    if fails:
        writer.fail("DivergedError: The loss of task `which digit` should be finite. Found nan.")
        return
    scores = [(task, "test", "accuracy", value) for task, value in run.final.items()]
    writer.finish(scores=scores, best_step=int(run.last_step * 0.9), step=run.last_step)
