"""Is the advice good? On a folder of tasks: a plan, then fresh seeds of it and of what anyone would try.

`compare` asks for advice, trains the plan and four baselines with the same number of batches under
seeds the adviser has not seen, and compares their mean test scores, paired by seed; it also counts how
often the 90 % interval for the score of a task contained the later test score. `harm` adds to the
folder a copy of one task and another with shuffled labels, and asks, seed by seed, whether the adviser
names both. `stop` asks for advice twice, the second time stopped by a signal at random moments and
continued, and compares the plans. Everything after `--` goes to `taskmix advise`.

    python benchmarks/advice.py compare FOLDER [--seeds 5] [--out DIR] [--json] -- --budget 20000-steps
    python benchmarks/advice.py harm FOLDER [--seeds 10] [--out DIR] [--json] -- --budget 20000-steps
    python benchmarks/advice.py stop FOLDER [--seeds 10] [--out DIR] [--json] -- --budget 20000-steps
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from taskmix.adviser import baselines, cheap_evaluations, mean_comparable
from taskmix.engine import Auto, DigitsSource, Executed, FolderSource, Optimization, Run
from taskmix.models import choose_architecture
from taskmix.numerics import mean_interval
from taskmix.plans import Plan
from taskmix.records import Study
from taskmix.tasks import Split, Task, TaskSet, write_tasks

FRESH = 1000  # the first of the seeds that the adviser has not seen
HELD_OUT = "test"
START = 3.0  # seconds until the command listens to signals, torch being imported


def command(folder: str, out: Path, words: Sequence[str]) -> list[str]:
    own = [sys.executable, "-m", "taskmix", "advise", folder, "--out", str(out), "--json"]
    return [*own, *words]


def asked(folder: str, out: Path, words: Sequence[str]) -> dict[str, Any]:
    """What `taskmix advise` says."""
    done = subprocess.run(command(folder, out, words), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def template(folder: str, words: Sequence[str]) -> Run:
    """The run that `taskmix advise` varies, from the same options."""
    parser = argparse.ArgumentParser()
    for name in ("budget", "model", "target", "workers", "device"):
        parser.add_argument(f"--{name}")
    for name in ("vectors", "tasks"):
        parser.add_argument(f"--{name}", type=Path)
    for name, default in (("max-length", None), ("steps", None), ("batch-size", 32), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--only")
    parser.add_argument("--task-column")
    parser.add_argument("--label", action="append")
    given = parser.parse_args(words)
    names = tuple(given.only.split(",")) if given.only else None
    source = (
        DigitsSource(tasks=names)
        if folder == "digits"
        else FolderSource(
            path=folder,
            tasks=names,
            settings=given.tasks,
            task_column=given.task_column,
            label_columns=tuple(given.label) if given.label else None,
        )
    )
    architecture, _ = choose_architecture(
        given.model or "auto", source.load(), given.vectors, given.max_length
    )
    return Run(
        label="template",
        source=source,
        architecture=architecture,
        optimization=Optimization(learning_rate=given.learning_rate),
        steps=1,
        batch_size=given.batch_size,
        seed=0,
    )


def tested(results: Sequence[Executed]) -> dict[str, float]:
    """The test score of each task, by its own metric."""
    found = {}
    for result in results:
        if result.summary is None or result.outcome not in ("finished", "already finished"):
            raise SystemExit(f"A run did not finish: {result.error}")
        for score in result.summary.scores:
            if score.split == HELD_OUT and score.metric != "loss":
                found[score.task] = score.value
    return found


def compare(folder: str, words: Sequence[str], seeds: int, out: Path) -> list[dict[str, Any]]:
    begin = time.monotonic()
    advice = asked(folder, out / "advice", words)
    seconds = time.monotonic() - begin
    base = template(folder, words)
    tasks = base.load()
    plan = Plan.load(out / "advice" / "plan.json")
    batches = advice["batches_of_a_run"]
    often = cheap_evaluations(tasks, batches, base.batch_size)
    base = replace(base, steps=batches)
    plans = {"plan": plan, **{way.name: way for way in baselines(tasks, tasks.names)}}
    ways = {
        name: lambda seed, way=way: way.runs(base, seeds=[seed], evaluations=often)
        for name, way in plans.items()
    }
    runs = {
        (name, seed): make(seed)
        for name, make in ways.items()
        for seed in range(FRESH, FRESH + seeds)
    }
    flat = [run for each in runs.values() for run in each]
    results = iter(Auto().run(flat, Study(out / "fresh")))
    scores = {key: tested([next(results) for _ in each]) for key, each in runs.items()}

    judged = advice["judged"]
    means = {key: mean_comparable(tasks, found, judged) for key, found in scores.items()}
    name = Path(folder).name
    rows = [
        {"case": f"{name}: seconds of advice", "ours": seconds, "unit": "s"},
        {"case": f"{name}: chosen", "ours": advice["chosen"], "lines": advice["lines"], "unit": ""},
    ]
    own = np.array([means["plan", seed] for seed in range(FRESH, FRESH + seeds)])
    for way in list(ways)[1:]:
        theirs = np.array([means[way, seed] for seed in range(FRESH, FRESH + seeds)])
        gain = mean_interval((own - theirs).tolist())
        rows.append(
            {
                "case": f"{name}: plan less {way}",
                "ours": float(own.mean()),
                "peer": float(theirs.mean()),
                "peer_name": way,
                "difference": gain.mean,
                "low": gain.low,
                "high": gain.high,
                "unit": f"mean {HELD_OUT} score of {len(judged)} tasks",
            }
        )
    inside = [
        each["low"] <= scores["plan", seed][each["task"]] <= each["high"]
        for each in advice["expected"]
        for seed in range(FRESH, FRESH + seeds)
        if each["task"] in scores["plan", seed]
    ]
    rows.append(
        {
            "case": f"{name}: later test scores inside the 90 % interval",
            "ours": float(np.mean(inside)),
            "n": len(inside),
            "unit": "share",
        }
    )
    return rows


def spoiled(tasks: TaskSet, seed: int) -> tuple[TaskSet, str, tuple[str, str]]:
    """The tasks with a copy of one and another whose labels are shuffled; their names."""
    generator = np.random.default_rng(seed)
    one, other = (tasks[int(place)] for place in generator.permutation(len(tasks))[:2])
    copy = replace(one, name=f"{one.name} again")
    return (
        TaskSet((*tasks, copy, shuffled(other, generator))),
        f"{other.name} shuffled",
        (one.name, copy.name),
    )


def shuffled(task: Task, generator: np.random.Generator) -> Task:
    splits = {
        name: Split(split.inputs, generator.permutation(split.targets))
        for name, split in task.splits.items()
    }
    return replace(task, name=f"{task.name} shuffled", splits=splits)


def without_reading(words: Sequence[str]) -> list[str]:
    """The options that do not say how a folder is read: ours is written anew."""
    rest, kept = iter(words), []
    for word in rest:
        if word in ("--tasks", "--task-column", "--label", "--only"):
            next(rest)
        else:
            kept.append(word)
    return kept


def harm(folder: str, words: Sequence[str], seeds: int, out: Path) -> list[dict[str, Any]]:
    tasks = template(folder, words).load()
    words = without_reading(words)
    named, doubled = [], []
    for seed in range(seeds):
        found, random_task, twice = spoiled(tasks, seed)
        made = out / f"tasks-{seed}"
        if not made.exists():
            write_tasks(found, made)
        advice = asked(str(made), out / f"advice-{seed}", [*words, "--seed", str(seed)])
        trained = set(advice["plan"]["tasks"])
        named.append(random_task in advice["unlearned"] and random_task not in trained)
        doubled.append(
            any(
                each["kind"] == "same task twice" and set(twice) <= set(each["tasks"])
                for each in advice["findings"]
            )
        )
        print(f"seed {seed}: {random_task}: {named[-1]}; {twice}: {doubled[-1]}", file=sys.stderr)
    name = Path(folder).name
    return [
        {"case": f"{name}: shuffled task named, left out", "ours": sum(named), "n": seeds},
        {"case": f"{name}: duplicated task named", "ours": sum(doubled), "n": seeds},
    ]


def stop(folder: str, words: Sequence[str], times: int, out: Path) -> list[dict[str, Any]]:
    begin = time.monotonic()
    asked(folder, out / "whole", words)
    seconds = time.monotonic() - begin
    chance = np.random.default_rng()
    stops = 0
    for _ in range(times):
        running = subprocess.Popen(
            command(folder, out / "parts", words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            running.communicate(timeout=START + float(chance.uniform(0, 1.5 * seconds / times)))
            break
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            running.communicate()
            stops += 1
    asked(folder, out / "parts", words)
    whole, parts = (Plan.load(out / each / "plan.json") for each in ("whole", "parts"))
    name = Path(folder).name
    return [
        {"case": f"{name}: stopped and continued", "ours": stops, "unit": "times"},
        {"case": f"{name}: the same plan", "ours": whole == parts, "unit": ""},
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("compare", "harm", "stop"))
    parser.add_argument("folder")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/advice"))
    parser.add_argument("--json", action="store_true")
    mine, words = sys.argv[1:], []
    if "--" in mine:
        place = mine.index("--")
        mine, words = mine[:place], mine[place + 1 :]
    given = parser.parse_args(mine)
    out = given.out / f"{Path(given.folder).name}-{given.what}"
    begin = time.monotonic()
    measure, seeds = {"compare": (compare, 5), "harm": (harm, 10), "stop": (stop, 10)}[given.what]
    rows = measure(given.folder, words, given.seeds or seeds, out)
    if given.json:
        said = " ".join(["python", "benchmarks/advice.py", *sys.argv[1:]])
        seconds = time.monotonic() - begin
        found = {"experiment": "advice", "command": said, "seconds": seconds, "rows": rows}
        print(json.dumps(found, indent=2))
        return
    for each in rows:
        print("  ".join(f"{key}: {value}" for key, value in each.items()))


if __name__ == "__main__":
    main()
