"""Is the advice good? On a folder of tasks: a plan, then fresh seeds of it and of five plain ways.

`compare` asks for advice as a user does, and trains the plan and what anyone would try (each task alone,
equally often, in proportion to its rows, to their square root, all tasks in every step) with as many
batches, under seeds that the adviser has not seen, the same for all. A row has the plan minus the way
that is best by the mean dev score of these seeds, on test, paired by seed with a 90 % interval (over
seeds: the test rows are the same for all), or how many later test scores lie in the plan's intervals.
`harm` adds a shuffled task, a copy, one that tells its labels and one of 20 rows, and asks, seed by
seed, whether each is named. `folders` writes ten folders from $TASKMIX_DATA; five of them are put aside:
they are refused without `--final`. Everything after `--` goes to `taskmix advise`.

    python benchmarks/advice.py folders --out FOLDERS
    python benchmarks/advice.py compare FOLDER [--seeds 10] [--json] [-- WORDS]
    python benchmarks/advice.py harm FOLDER [--seeds 10] [--json] [-- WORDS]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from _advice_folders import FOLDERS, PUT_ASIDE, make_folders
from _advice_harm import KINDS, named, spoil
from taskmix.adviser import cheap_evaluations, mean_comparable
from taskmix.engine import Auto, DigitsSource, FolderSource, Optimization, Run
from taskmix.models import choose_architecture
from taskmix.numerics import paired_interval
from taskmix.plans import Part, Plan, Shares, Weighted
from taskmix.policies import SizeProportional, Tempered
from taskmix.records import Study
from taskmix.tasks import TaskSet, write_tasks
from taskmix.weighting import Equal

FRESH = 1000  # the first of the seeds that the adviser has not seen
LEVEL = 0.9
Row = dict[str, Any]


@dataclass(frozen=True)
class Scores:
    """Of one way of training, for each fresh seed: scores by split and task."""

    tasks: TaskSet
    by_seed: Sequence[Mapping[str, Mapping[str, float]]]

    def means(self, split: str, names: Sequence[str]) -> list[float]:
        return [mean_comparable(self.tasks, each[split], names) for each in self.by_seed]


def ask(folder: str, out: Path, words: Sequence[str]) -> tuple[dict[str, Any], float]:
    """What `taskmix advise` says, and its seconds, start-up included."""
    command = [sys.executable, "-m", "taskmix", "advise", folder, "--out", str(out), "--json"]
    begin = time.monotonic()
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{folder}: {done.stderr[-2000:]}")
    return json.loads(done.stdout), time.monotonic() - begin


def template(folder: str, words: Sequence[str]) -> Run:
    """The run that `taskmix advise` varies, from those of its options that decide what a run is."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", default="auto")
    parser.add_argument("--tune")
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--batch-size", type=int, default=32)
    given, _ = parser.parse_known_args(list(words))
    source = DigitsSource() if folder == "digits" else FolderSource(path=folder)
    architecture, tuning = choose_architecture(
        given.model, source.load(), None, given.max_length, tune=given.tune, device="cpu"
    )
    return Run(
        label="template",
        source=source,
        architecture=architecture,
        optimization=Optimization(learning_rate=Optimization.usual_rate(None, tuning=tuning)),
        steps=1,
        batch_size=given.batch_size,
        seed=0,
    )


def plain_ways(tasks: TaskSet) -> dict[str, Plan]:
    """Spelt out here, so that they stay as the adviser changes."""
    divisions: dict[str, Shares | Weighted] = {
        "uniform": Shares.equal(len(tasks)),
        "size": Shares.of(SizeProportional(), tasks.sizes),
        "tempered": Shares.of(Tempered(temperature=2.0), tasks.sizes),
        "equal": Weighted(method=Equal()),
    }
    alone = tuple(
        Part(tasks=(name,), scored=(name,), share=1 / len(tasks), division=Shares.equal(1))
        for name in tasks.names
    )
    together = {
        name: Part(tasks=tasks.names, scored=tasks.names, share=1.0, division=division)
        for name, division in divisions.items()
    }
    shared = {name: Plan(name=name, parts=(part,)) for name, part in together.items()}
    return {"single": Plan(name="single", parts=alone), **shared}


def train(
    ways: Mapping[str, Plan], base: Run, batches: int, seeds: int, study: Path
) -> dict[str, Scores]:
    """All at once, so that models of one kind train side by side."""
    tasks = base.load()
    often = cheap_evaluations(tasks, batches, base.batch_size)
    fresh = range(FRESH, FRESH + seeds)
    jobs = [
        (name, place, run, model.scored)
        for name, plan in ways.items()
        for place, seed in enumerate(fresh)
        for run, model in zip(
            plan.runs(replace(base, steps=batches), seeds=[seed], evaluations=often),
            plan.models,
            strict=True,
        )
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = Auto(workers=1).run([run for _, _, run, _ in jobs], Study(study))
    found: dict[str, list[dict[str, dict[str, float]]]] = {
        name: [{"dev": {}, "test": {}} for _ in fresh] for name in ways
    }
    for (name, place, _, scored), result in zip(jobs, results, strict=True):
        if not result.is_done or result.summary is None:
            raise SystemExit(f"A run of {name} did not finish: {result.error}")
        for score in result.summary.scores:
            if score.metric != "loss" and score.task in scored and score.split in ("dev", "test"):
                found[name][place][score.split][score.task] = score.value
    return {name: Scores(tasks, by_seed) for name, by_seed in found.items()}


def compare(folder: str, words: Sequence[str], seeds: int, out: Path) -> list[Row]:
    advice, seconds = ask(folder, out / "advice", words)
    plan = Plan.load(out / "advice" / "plan.json")
    batches = advice["batches_of_a_run"] if plan.length is None else plan.length.batches
    base = template(folder, words)
    tasks = base.load()
    found = train({"plan": plan} | plain_ways(tasks), base, int(batches), seeds, out / "fresh")
    names = [name for name in tasks.names if name in plan.targets]  # others have no score there
    ours = found.pop("plan")
    best = max(found, key=lambda name: float(np.mean(found[name].means("dev", names))))
    test, peer = ours.means("test", names), found[best].means("test", names)
    gain = paired_interval(test, peer, LEVEL)
    expected = [each for each in plan.expected if tasks[each.task].metric == each.metric]
    inside = [
        each.low <= scores["test"][each.task] <= each.high
        for each in expected
        for scores in ours.by_seed
    ]
    case = Path(folder).name
    return [
        {"case": f"{case}: advice", "ours": seconds, "unit": "s", "chosen": advice["chosen"]},
        {
            "case": f"{case}: mean test score",
            "ours": float(np.mean(test)),
            "peer": float(np.mean(peer)),
            "peer_name": best,
            "difference": [gain.mean, gain.low, gain.high],
            "batches": batches,
            "left_out": [name for name in tasks.names if name not in names],
        },
        {
            "case": f"{case}: later scores inside",
            "ours": float(np.mean(inside)) if inside else None,
            "n": len(inside),
        },
    ]


def harm(folder: str, words: Sequence[str], seeds: int, out: Path) -> list[Row]:
    tasks = template(folder, words).load()
    found = []
    for seed in range(seeds):
        spoiled = spoil(tasks, seed)
        made = out / f"tasks-{seed}"
        write_tasks(spoiled.tasks, made)
        advice, _ = ask(str(made), out / f"advice-{seed}", [*words, "--seed", str(seed)])
        found.append(named(advice, spoiled))
        print(f"seed {seed}: {found[-1]}", file=sys.stderr, flush=True)
    return [
        {
            "case": f"{Path(folder).name}: {kind} task named",
            "ours": sum(each[kind] for each in found),
            "n": seeds,
            "missed": [seed for seed, each in enumerate(found) if not each[kind]],
        }
        for kind in ("shuffled", *KINDS)
    ]


def refuse_put_aside(folder: str, *, final: bool) -> None:
    name = Path(folder).name
    if name in PUT_ASIDE and not final:
        raise SystemExit(
            f"{name} is put aside: nothing may be chosen by its results, so it is run once, when all is "
            "decided. Say `--final` if that is now; otherwise take "
            f"{', '.join(each for each in FOLDERS if each not in PUT_ASIDE)}."
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("folders", "compare", "harm"))
    parser.add_argument("folder", nargs="?", help="a folder of tasks, or `digits`")
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/advice"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--final", action="store_true", help="a folder put aside, once")
    parser.add_argument("--json", action="store_true")
    own = sys.argv[1:]
    words = own[own.index("--") + 1 :] if "--" in own else []
    given = parser.parse_args(own[: own.index("--")] if "--" in own else own)
    if given.what == "folders":
        for made in make_folders(given.out, Path(os.environ["TASKMIX_DATA"]), list(FOLDERS)):
            print(made)
        return
    if given.folder is None:
        parser.error(f"`{given.what}` needs a folder of tasks. Found none.")
    refuse_put_aside(given.folder, final=given.final)
    measure = compare if given.what == "compare" else harm
    out = given.out / f"{Path(given.folder).name}-{given.what}"
    rows = measure(given.folder, words, given.seeds, out)
    if given.json:
        command = " ".join(["python", "benchmarks/advice.py", *own])
        print(json.dumps({"experiment": "advice", "command": command, "rows": rows}, indent=2))
        return
    for row in rows:
        print("  ".join(f"{key}: {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
