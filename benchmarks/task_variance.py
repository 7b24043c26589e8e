"""When lowering the variance between the tasks' losses buys accuracy.

    python benchmarks/task_variance.py screen --worlds 40 --out screen.jsonl
    python benchmarks/task_variance.py confirm --worlds 40 --out confirm.jsonl
    python benchmarks/task_variance.py folders --data DATA --worlds 10 --out folders.jsonl [--first 10]

Perceptrons are trained on artificial tasks (`_variance_worlds.py`) whose sizes, noise, difficulty,
number of classes, kinship, number, length of training and width of the shared layer are drawn at
random (`screen`), on chosen settings with seeds that the screen has not seen (`confirm`), and on real
tables of unequal tasks (`folders`). Every method has the same rows, first parameters and order of
batches. Prints test scores minus those of equal weights, paired by world, the mean over tasks and the
worst task's, with 95 % intervals. "by rows" weighs each loss by its task's rows, as batches in
proportion to rows would. What `--out` holds already is not done again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from _variance_folders import FOLDERS, folder_tasks
from _variance_worlds import REGIMES, random_world
from taskmix.engine import Auto, GivenTasks, Optimization, Run, finish
from taskmix.models import Perceptron
from taskmix.numerics import paired_interval
from taskmix.records import Study
from taskmix.tasks import TaskSet
from taskmix.weighting import (
    AnyWeighting,
    BanditMTL,
    Equal,
    FixedWeights,
    GroupDRO,
    Uncertainty,
)

METHODS: dict[str, AnyWeighting] = {
    "equal": Equal(),
    "bandit 0.1": BanditMTL(radius=0.1),
    "bandit 0.3": BanditMTL(radius=0.3),
    "bandit 1.2": BanditMTL(),
    "group-dro": GroupDRO(),
    "uncertainty": Uncertainty(),
}
BY_ROWS = "by rows"
ALONE = "alone"  # each task by itself, as many steps as all together take
UNSEEN = 1000  # the first seed that the screen has not seen
EVALUATIONS = 10
SEEDS = 2  # of the model, for each world


@dataclass(frozen=True, kw_only=True)
class Case:
    """Tasks, and how long and with what they are trained."""

    name: str
    seed: int
    settings: dict[str, Any]
    load: Callable[[], TaskSet]
    width: int
    steps: int


def screen_cases(worlds: int) -> Iterator[Case]:
    for seed in range(worlds):
        world = random_world(seed)
        yield Case(
            name="random",
            seed=seed,
            settings=asdict(world),
            load=lambda world=world, seed=seed: world.drawn(seed),  # type: ignore[misc]
            width=world.width,
            steps=world.steps,
        )


def confirm_cases(worlds: int) -> Iterator[Case]:
    for seed in range(UNSEEN, UNSEEN + worlds):
        for name, world in REGIMES.items():
            yield Case(
                name=name,
                seed=seed,
                settings=asdict(world),
                load=lambda world=world, seed=seed: world.drawn(seed),  # type: ignore[misc]
                width=world.width,
                steps=world.steps,
            )


def folder_cases(data: Path, names: Sequence[str], worlds: int, first: int) -> Iterator[Case]:
    for seed in range(first, first + worlds):
        for name in names:
            for steps in (100, 1000):
                yield Case(
                    name=f"{name}, {steps} steps",
                    seed=seed,
                    settings={},
                    load=lambda name=name, seed=seed: folder_tasks(data, name, seed),  # type: ignore[misc]
                    width=32,
                    steps=steps,
                )


def train_case(case: Case, methods: Sequence[str]) -> dict[str, Any]:
    """Test scores, [method][seed][task], and the variance between the losses over all steps."""
    tasks = case.load()
    sizes = [task.sizes["train"] for task in tasks]
    every = METHODS | {BY_ROWS: FixedWeights(weights=tuple(map(float, sizes)))}
    template = Run(
        label="equal",
        source=GivenTasks.of(tasks),
        architecture=Perceptron(hidden=(case.width,)),
        optimization=Optimization(learning_rate=3e-3),
        steps=case.steps,
        evaluate_every=max(case.steps // EVALUATIONS, 1),
        seed=0,
    )
    runs = {
        (name, seed): [replace(template, label=name, weighting=method, seed=seed)]
        for name, method in every.items()
        if name in methods
        for seed in range(SEEDS)
    }
    for seed in range(SEEDS):
        runs[ALONE, seed] = [
            replace(template, label=ALONE, tasks=(name,), seed=seed) for name in tasks.names
        ]
    found: dict[str, Any] = {"name": case.name, "seed": case.seed, "settings": case.settings}
    with TemporaryDirectory() as folder:
        study = Study(folder)
        finish(Auto(workers=1), [run for some in runs.values() for run in some], study)
        scores: dict[str, list[list[float]]] = {}
        variances: dict[str, list[float]] = {}
        for (name, _), some in runs.items():
            scores.setdefault(name, []).append(_test_scores(some, study))
            if name != ALONE:
                variances.setdefault(name, []).append(_variance(some[0], study))
    return found | {"scores": scores, "variance": variances}


def _test_scores(runs: Sequence[Run], study: Study) -> list[float]:
    found = []
    for run in runs:
        summary = run.folder(study).summary()
        assert summary is not None
        found += [s.value for s in summary.scores if s.split == "test" and s.metric != "loss"]
    return found


def _variance(run: Run, study: Study) -> float:
    losses = run.folder(study).steps(columns=["loss"])["loss"].to_numpy()
    return float(losses.reshape(run.steps, -1).var(axis=1).mean())


def differences(rows: Sequence[dict[str, Any]], method: str) -> list[dict[str, Any]]:
    """Mean and worst-task score minus those of equal weights, in points, over worlds."""
    told = []
    for words, of in (("mean", np.mean), ("worst", np.min)):
        ours, equal = (
            np.array([100 * of(np.mean(row["scores"][name], axis=0)) for row in rows])
            for name in (method, "equal")
        )
        found = paired_interval(ours, equal)
        told.append({"of": words, "minus_equal": found.mean, "low": found.low, "high": found.high})
    return told


def groups_of(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows by name, and those of random worlds by each of their settings as well."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["name"], []).append(row)
        if row["name"] == "random":
            for key, value in row["settings"].items():
                groups.setdefault(f"{key} = {value}", []).append(row)
    return groups


def tell(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    table = []
    for name, some in groups_of(rows).items():
        for method in (*METHODS, BY_ROWS, ALONE):
            if method == "equal" or len(some) < 2 or any(method not in r["scores"] for r in some):
                continue
            ratio = math.nan
            if method in some[0]["variance"]:
                logs = [
                    np.log(np.mean(r["variance"][method]) / np.mean(r["variance"]["equal"]))
                    for r in some
                ]
                ratio = float(np.exp(np.mean(logs)))
            told = {"case": name, "worlds": len(some), "method": method, "variance": ratio}
            table += [told | found for found in differences(some, method)]
    if as_json:
        print(json.dumps({"experiment": "task_variance", "rows": table}, indent=1))
        return
    for each in table:
        print(
            f"{each['case']:36} {each['worlds']:3} worlds  {each['method']:12} {each['of']:5} "
            f"{each['minus_equal']:6.2f} ({each['low']:6.2f} to {each['high']:6.2f})  "
            f"variance x {each['variance']:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("screen", "confirm", "folders"))
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="the first seed of the folders")
    parser.add_argument(
        "--methods", default=",".join((*METHODS, BY_ROWS)), help="some of them, with commas"
    )
    parser.add_argument("--data", type=Path, help="the folder that holds the folders")
    parser.add_argument("--only", default=",".join(FOLDERS), help="of the folders, with commas")
    parser.add_argument("--out", type=Path, required=True, help="a file of lines, one a case")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no case begins later")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.part == "screen":
        cases = screen_cases(options.worlds)
    elif options.part == "confirm":
        cases = confirm_cases(options.worlds)
    else:
        cases = folder_cases(options.data, options.only.split(","), options.worlds, options.first)
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    rows = [json.loads(line) for line in lines]
    done = {(row["name"], row["seed"]) for row in rows}
    end = time.monotonic() + 60 * options.minutes
    for case in cases:
        if time.monotonic() < end and (case.name, case.seed) not in done:
            rows.append(train_case(case, ["equal", *options.methods.split(",")]))
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    tell(rows, options.json)


if __name__ == "__main__":
    main()
