"""What the BanditMTL experiments measure and draw: accuracy, task variance, and how far weights move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from taskmix.engine import Run
from taskmix.models import HardSharing
from taskmix.records import Study
from taskmix.tasks import EncodedTasks, TaskSet

Table = NDArray[np.float64]
POINTS = 40  # of a curve; each is the mean over a stretch of steps
WEIGHTS_OF = ("uncertainty", "gradnorm", "mgda", "bandit")  # the methods of Figures 8 and 9


def final_accuracies(study: Study, runs: Sequence[Run], names: Sequence[str], seeds: int) -> Table:
    """[seed, task], in hundredths, of the parameters with the best dev score."""
    found = np.full((seeds, len(names)), np.nan)
    for run in runs:
        summary = study.run(run.specification()).summary()
        for score in summary.scores if summary is not None else ():
            if score.split == "test" and score.metric != "loss":
                found[run.seed, names.index(score.task)] = 100.0 * score.value
    return found


@dataclass(frozen=True)
class Curves:
    """Losses and weights of the runs of one method and one seed, step by step."""

    losses: Table  # [step, task], of the batches
    weights: Table  # [step, task]; NaN where tasks are trained alone

    def task_variance(self, part: float = 1.0) -> float:
        """The mean over the last `part` of the steps of the variance between the tasks' losses."""
        first = min(int(len(self.losses) * (1 - part)), len(self.losses) - 1)
        return float(self.losses[first:].var(axis=1).mean())

    def weight_change(self) -> float:
        """By how much a task's weight changes from a step to the next, in the mean."""
        if len(self.weights) < 2:
            return float("nan")
        return float(np.abs(np.diff(self.weights, axis=0)).mean())


def curves(study: Study, runs: Sequence[Run], names: Sequence[str]) -> Curves:
    """The steps of one run, or of one run a task, side by side."""
    steps = runs[0].steps
    losses, weights = (np.full((steps, len(names)), np.nan) for _ in range(2))
    for run in runs:
        table = study.run(run.specification()).steps(columns=["step", "task", "loss", "weight"])
        places = table["step"].to_numpy() - 1
        found = pc.index_in(table["task"].cast(pa.string()), pa.array(names, pa.string()))
        columns = found.to_numpy()
        losses[places, columns] = table["loss"].to_numpy()
        weights[places, columns] = table["weight"].to_numpy()
    return Curves(losses, weights)


def rows_not_in_train(tasks: TaskSet) -> dict[str, NDArray[np.int64]]:
    """For each task the test rows whose text no task has among its train rows."""
    seen: set[str] = set()
    for task in tasks:
        seen.update(task.splits["train"].inputs.column("text").to_pylist())
    return {
        task.name: np.array(
            [
                row
                for row, text in enumerate(task.splits["test"].inputs.column("text").to_pylist())
                if text not in seen
            ],
            dtype=np.int64,
        )
        for task in tasks
    }


def accuracies_on(
    study: Study, runs: Sequence[Run], rows: dict[str, NDArray[np.int64]], seeds: int
) -> Table:
    """[seed, task], in hundredths, of the best parameters on these test rows of each task."""
    names = list(rows)
    found = np.full((seeds, len(names)), np.nan)
    for run, model, tasks in _models(study, runs):
        for name in tasks.names:
            value = accuracy(model, tasks, name, torch.from_numpy(rows[name]))
            found[run.seed, names.index(name)] = 100.0 * value
    return found


def accuracy(model: HardSharing, tasks: EncodedTasks, name: str, rows: torch.Tensor) -> float:
    """The share of right answers on some test rows of a task."""
    split = tasks[name].splits["test"]
    place = tasks.names.index(name)
    right = 0
    model.eval()
    with torch.inference_mode():
        for part in torch.split(rows.to(split.targets.device), 512):
            outputs = model(split.inputs.batch(part), place)
            right += int((outputs.argmax(dim=1) == split.targets[part]).sum())
    return right / len(rows)


def _models(study: Study, runs: Sequence[Run]) -> Iterator[tuple[Run, HardSharing, EncodedTasks]]:
    """The best model of each run; tasks that runs have in common are encoded once."""
    encoded: dict[Any, EncodedTasks] = {}
    for run in runs:
        device = torch.device(run.device)
        if run.tasks not in encoded:
            cache = getattr(run.source, "cache", None)
            tasks: EncodedTasks = run.architecture.encoding.encode(run.load(), cache=cache)
            encoded = {run.tasks: tasks.to(device)}  # one at a time: runs come task by task
        model = run.architecture.build(encoded[run.tasks])
        best = study.run(run.specification()).best()
        if best is not None:
            model.load_state_dict(best)
            yield run, model.to(device), encoded[run.tasks]


def text_figure(
    runs: Mapping[str, Sequence[Run]],  # by method
    names: tuple[str, ...],  # of the tasks
    study: Study,
) -> dict[str, Any]:
    """A Vega-Lite chart of a study that holds all runs.

    Above, the variance between the tasks' losses for each method, the mean over seeds; below, the
    weight of each task under the methods of the paper that have weights, of the first seed.
    """
    variances, weights = [], []
    for method, some in runs.items():
        by_seed = [
            curves(study, [run for run in some if run.seed == seed], names)
            for seed in sorted({run.seed for run in some})
        ]
        variances += _variance_points(method, by_seed)
        if method in WEIGHTS_OF:
            weights += _weight_points(method, by_seed[0], names)
    charts = [_variance_chart(variances)]
    if weights:
        charts.append(_weight_chart(weights))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "vconcat": charts,
        "resolve": {"scale": {"color": "independent"}},
    }


def _stretches(steps: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(steps), min(POINTS, steps))


def _variance_points(method: str, by_seed: list[Curves]) -> list[dict[str, Any]]:
    between = np.mean([each.losses.var(axis=1) for each in by_seed], axis=0)  # [step]
    return [
        {"method": method, "step": int(part[-1]) + 1, "variance": float(between[part].mean())}
        for part in _stretches(len(between))
    ]


def _weight_points(method: str, found: Curves, names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {
            "method": method,
            "task": name,
            "step": int(part[-1]) + 1,
            "weight": float(found.weights[part, place].mean()),
        }
        for part in _stretches(len(found.weights))
        for place, name in enumerate(names)
    ]


def _variance_chart(values: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "width": 620,
        "height": 300,
        "title": "variance between the tasks' losses",
        "data": {"values": values},
        "mark": {"type": "line", "tooltip": True},
        "encoding": {
            "x": {"field": "step", "type": "quantitative"},
            "y": {
                "field": "variance",
                "type": "quantitative",
                "scale": {"type": "log"},
                "axis": {"format": "~g"},
            },
            "color": {
                "field": "method",
                "type": "nominal",
                "sort": None,
                "scale": {"scheme": "tableau20"},
            },
        },
    }


def _weight_chart(values: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "title": "weight of each task's loss",
        "data": {"values": values},
        "facet": {"field": "method", "type": "nominal", "title": None, "sort": list(WEIGHTS_OF)},
        "columns": 2,
        "spec": {
            "width": 290,
            "height": 160,
            "mark": {"type": "line", "tooltip": True},
            "encoding": {
                "x": {"field": "step", "type": "quantitative"},
                "y": {"field": "weight", "type": "quantitative"},
                "color": {
                    "field": "task",
                    "type": "nominal",
                    "sort": None,
                    "scale": {"scheme": "tableau20"},
                },
            },
        },
    }
