"""A swarm of small models on mixtures of real domains, and whether the mixture it advises is better.

    python benchmarks/mixture_swarm.py swarm DATA --device cuda --minutes 8.5 --out RESULTS
    taskmix mix RESULTS/ratios.csv RESULTS/metrics.csv --write-plan plan.json
    python benchmarks/mixture_swarm.py train DATA --advised plan.json --device cuda --out RESULTS

The first trains a swarm (512 members of a million parameters, 20 million bytes each) and copies its
table to RESULTS. The third trains larger models (20 million parameters): the advised, the uniform and
the size-proportional mixture, 10 seeds each, and 20 random ones, of which the best by its mean dev bits
per byte is then trained with 10 seeds too. It prints the paired differences of their test bits per byte
with 90 % intervals. Random mixtures have a seed of their own: the best is not judged by its luck.

Both stop by themselves after `--minutes`, with a checkpoint in `--study`, and the same command goes on
from there. DATA has a folder for each domain, with train, dev and test files of texts. The file of
--advised is a plan, or a JSON object of domains and shares.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _mixture_meter import Meter, speed_row
from taskmix.engine import Executed, Fleet, FolderSource, Observers, Run, choose_device
from taskmix.errors import RunError
from taskmix.mixtures import SwarmOptions, domains_of_swarm, swarm_runs, train_swarm
from taskmix.numerics import paired_interval
from taskmix.plans import Plan, Shares
from taskmix.records import Study, to_plain
from taskmix.tasks import TaskSet

Floats = NDArray[np.float64]
RANDOM, SEEDS = 20, 10
RANDOM_SEED = 1000  # of the models on random mixtures, which no other has
LEVEL = 0.9
SIZES: dict[str, dict[str, Any]] = {
    "swarm": {"members": 512, "parameters": "1M", "tokens": 20_000_000, "batch_size": 8},
    "train": {"members": 2, "parameters": "20M", "tokens": 8_000_000, "batch_size": 16},
}
QUICK: dict[str, Any] = {
    "layers": 1,
    "width": 16,
    "context": 32,
    "batch_size": 4,
    "tokens": 2560,
    "dev_bytes": 512,
}


@dataclass
class Bench:
    """What both stages need."""

    tasks: TaskSet
    options: SwarmOptions
    study: Study
    device: str
    minutes: float
    random: int = RANDOM
    seeds: int = SEEDS
    begin: float = field(default_factory=time.monotonic)
    meter: Meter = field(default_factory=Meter)

    @property
    def executor(self) -> Fleet:
        def is_over() -> bool:
            return time.monotonic() - self.begin > 60 * self.minutes

        observers = Observers.telling(self.meter.hear, stop=is_over)
        return Fleet(workers=1, observers=observers)


def run_swarm(bench: Bench, out: Path) -> dict[str, Any]:
    """Stage one."""
    members = bench.options.members
    try:
        swarm = train_swarm(
            bench.tasks, bench.options, bench.study, executor=bench.executor, device=bench.device
        )
    except RunError as error:
        return {"done": False, "why": str(error), **speed_row(bench.meter, bench.options, members)}
    for name in ("ratios.csv", "metrics.csv", "swarm.json"):
        shutil.copy(bench.study.path / name, out / name)
    spread = np.quantile(swarm.table.values.mean(axis=1), [0, 0.5, 1])
    return {
        "done": True,
        "members": len(swarm.table),
        "failed": len(swarm.failed),
        "mean_bits_per_byte": dict(zip(("best", "middle", "worst"), spread.tolist(), strict=True)),
        **speed_row(bench.meter, bench.options, members),
    }


def read_shares(path: Path, names: Sequence[str]) -> Floats:
    """Shares of the domains, from a plan or from a JSON object; what is not named has none."""
    document = json.loads(path.read_text())
    if "parts" in document:
        (part,) = Plan.load(path).parts
        division = part.division
        assert isinstance(division, Shares)
        document = dict(zip(part.tasks, division.probabilities, strict=True))
    unknown = set(document) - set(names)
    if unknown:
        sys.exit(f"--advised should name domains of DATA. Found {', '.join(sorted(unknown))}.")
    shares = np.array([float(document.get(name, 0.0)) for name in names])
    return np.asarray(shares / shares.sum())


def peers(tasks: TaskSet, count: int) -> dict[str, Floats]:
    """The mixtures that need no swarm."""
    sizes = np.array([_size(tasks, name) for name in tasks.names], dtype=np.float64)
    drawn = np.random.default_rng(0).dirichlet(np.ones(len(tasks)), count)
    return {
        "uniform": np.full(len(tasks), 1 / len(tasks)),
        "proportional": sizes / sizes.sum(),
        **{f"random {number}": shares for number, shares in enumerate(drawn)},
    }


def _size(tasks: TaskSet, name: str) -> int:
    texts = tasks[name].splits["train"].inputs["text"].to_pylist()
    return sum(len((text or "").encode()) for text in texts)


def runs_on(bench: Bench, mixtures: dict[str, Floats], seeds: Sequence[int]) -> list[Run]:
    """A run for each mixture and seed."""
    names = [name for name in mixtures for _ in seeds]
    options = replace(bench.options, members=len(names), replicates=0)
    shares = np.array([mixtures[name] for name in names])
    runs = swarm_runs(bench.tasks, options, device=bench.device, mixtures=shares)
    numbers = [seed for _ in mixtures for seed in seeds]
    return [
        replace(run, label=name, seed=seed)
        for run, name, seed in zip(runs, names, numbers, strict=True)
    ]


def scores(result: Executed, split: str, names: Sequence[str]) -> Floats:
    """[domain], bits per byte."""
    assert result.summary is not None
    found = {
        s.task: s.value for s in result.summary.scores if s.split == split and s.metric != "loss"
    }
    return np.array([found[name] for name in names])


def run_training(bench: Bench, advised: Floats) -> dict[str, Any]:
    """Stage two: all but the best random mixture first, which is known only then."""
    mixtures = peers(bench.tasks, bench.random)
    names = bench.tasks.names
    some = {name: shares for name, shares in mixtures.items() if name.startswith("random")}
    wanted = {
        "advised": advised,
        "uniform": mixtures["uniform"],
        "proportional": mixtures["proportional"],
    }
    tried = runs_on(bench, some, [RANDOM_SEED])
    runs = runs_on(bench, wanted, range(bench.seeds))
    results = bench.executor.run([*tried, *runs], bench.study)
    if not all(result.is_done for result in results):
        return _unfinished(bench, [*tried, *runs], results)
    speed = speed_row(bench.meter, bench.options, len(results))
    dev = np.array([scores(result, "dev", names).mean() for result in results[: len(tried)]])
    best = tried[int(dev.argmin())].label
    wanted["best random"] = mixtures[best]
    more = runs_on(bench, {"best random": mixtures[best]}, range(bench.seeds))
    runs, found = [*runs, *more], [*results[len(tried) :], *bench.executor.run(more, bench.study)]
    done = [pair for pair in zip(runs, found, strict=True) if pair[1].is_done]
    table = {
        (name, split): np.array([scores(r, split, names) for run, r in done if run.label == name])
        for name in dict.fromkeys(run.label for run, _ in done)
        for split in ("dev", "test")
    }
    return {
        "done": len(done) == len(runs),
        "random_dev": sorted(dev.tolist()),
        "best_random": best,
        "mixtures": {
            name: dict(zip(names, np.round(shares, 5).tolist(), strict=True))
            for name, shares in wanted.items()
        },
        "mean_bits_per_byte": {
            f"{name}, {split}": float(values.mean()) for (name, split), values in table.items()
        },
        "advised_minus": [
            difference(table, peer, split, names)
            for split in ("test", "dev")
            for peer in ("uniform", "proportional", "best random")
            if (peer, split) in table
        ],
        **speed,
    }


def difference(
    table: dict[tuple[str, str], Floats], peer: str, split: str, names: Sequence[str]
) -> dict[str, Any]:
    """The advised mixture against another: below 0 it is better."""
    ours, theirs = table["advised", split], table[peer, split]  # [seed, domain]
    interval = paired_interval(ours.mean(axis=1), theirs.mean(axis=1), LEVEL)
    each = [paired_interval(ours[:, n], theirs[:, n], LEVEL) for n in range(len(names))]
    return {
        "peer": peer,
        "split": split,
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "seeds": interval.n,
        "domains": {
            name: [round(found.mean, 4), round(found.low, 4), round(found.high, 4)]
            for name, found in zip(names, each, strict=True)
        },
    }


def _unfinished(bench: Bench, runs: Sequence[Run], results: Sequence[Executed]) -> dict[str, Any]:
    errors = [result.error for result in results if result.error]
    done = sum(result.is_done for result in results)
    return {
        "done": False,
        "why": errors[0] if errors else f"stopped after {bench.minutes:g} minutes; run it again",
        "finished": f"{done} of {len(runs)}",
        **speed_row(bench.meter, bench.options, len(runs)),
    }


def make_bench(chosen: argparse.Namespace) -> Bench:
    tasks = FolderSource(path=chosen.data, kind="language").load()
    how = {**SIZES[chosen.stage], **({"checkpoints": 0} if chosen.stage == "train" else {})}
    if chosen.quick:
        how |= QUICK
        if chosen.stage == "swarm":
            how["members"] = 2 * len(tasks)
    for name in ("members", "parameters", "tokens", "batch_size", "dev_bytes", "learning_rate"):
        if getattr(chosen, name) is not None:
            how[name] = getattr(chosen, name)
    options = SwarmOptions(**{"checkpoints": 1, **how})
    scored = ("dev",) if chosen.stage == "swarm" else ("dev", "test")
    cut = domains_of_swarm(
        tasks, dev_bytes=options.dev_bytes, context=options.context, scored=scored
    )
    return Bench(
        tasks=tasks if chosen.stage == "swarm" else cut,
        options=options,
        study=Study(Path(chosen.study) / chosen.stage, lean=True),
        device=choose_device(chosen.device),
        minutes=chosen.minutes,
        random=3 if chosen.quick else RANDOM,
        seeds=2 if chosen.quick else chosen.seeds,
    )


def main() -> None:
    begin = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=("swarm", "train"))
    parser.add_argument("data", help="the folder of the domains")
    parser.add_argument(
        "--advised", type=Path, help="a plan, or a JSON object of shares, for train"
    )
    parser.add_argument("--study", default="build/mixture-swarm", help="where records are kept")
    parser.add_argument("--out", type=Path, default=Path("build/mixture-swarm-results"))
    parser.add_argument("--minutes", type=float, default=8.5, help="after which it stops by itself")
    parser.add_argument("--members", type=int)
    parser.add_argument("--parameters")
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--dev-bytes", type=int)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--quick", action="store_true", help="tiny models, in a minute on a CPU")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    if chosen.stage == "train" and chosen.advised is None:
        parser.error("train should be given --advised, the mixture to compare with others")
    bench = make_bench(chosen)
    bench.begin = begin
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.stage == "swarm":
        found = run_swarm(bench, chosen.out)
    else:
        found = run_training(bench, read_shares(chosen.advised, bench.tasks.names))
    command = "python benchmarks/mixture_swarm.py " + " ".join(sys.argv[1:])
    found = {
        "experiment": f"mixture_swarm {chosen.stage}",
        "command": command,
        "seconds": round(time.monotonic() - begin, 1),
        **found,
    }
    text = json.dumps(to_plain(found), indent=2)
    (chosen.out / f"{chosen.stage}-results.json").write_text(text + "\n")
    if chosen.json:
        print(text)
        return
    for name, value in found.items():
        print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
