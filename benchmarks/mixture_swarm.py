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

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from _common import Row, report
from taskmix.engine import (
    Executed,
    Fleet,
    FolderSource,
    Observers,
    Progress,
    Run,
    choose_device,
    peak_operations,
)
from taskmix.errors import RunError
from taskmix.mixtures import SwarmOptions, domains_of_swarm, swarm_runs, train_swarm
from taskmix.models import CausalTransformer
from taskmix.numerics import paired_interval
from taskmix.plans import Plan, Shares
from taskmix.records import Study
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
EVERY = 1.0  # seconds between two notes of how far all members are
WARM = 0.25  # of what was noted is left out: compilers, first steps


@dataclass
class Meter:
    """Hears how far each member is, and notes the sum now and then."""

    steps: dict[int, int] = field(default_factory=dict)
    notes: list[tuple[float, int]] = field(default_factory=list)  # time, steps of all members

    def hear(self, progress: Progress) -> None:
        if progress.done and progress.run not in self.steps:
            return  # was done before
        self.steps[progress.run] = progress.step
        now = time.monotonic()
        if not self.notes or now - self.notes[-1][0] > EVERY:
            self.notes.append((now, sum(self.steps.values())))

    @property
    def speed(self) -> float:
        """Steps of single members a second."""
        if len(self.notes) < 3:
            return float("nan")
        (begin, first), (end, last) = self.notes[1 + int(WARM * len(self.notes))], self.notes[-1]
        return (last - first) / (end - begin) if end > begin else float("nan")

    def told(self, options: SwarmOptions) -> dict[str, Any]:
        """The speed, and what share of the device's peak the products are."""
        architecture = options.architecture()
        assert isinstance(architecture, CausalTransformer)
        done = self.speed * architecture.operations(options.batch_size)
        peak = peak_operations("cuda") if torch.cuda.is_available() else None
        return {
            "member_steps_per_second": self.speed,
            "tokens_per_second": self.speed * options.batch_size * options.context,
            "share_of_peak": None if peak is None else done / peak,
        }


def swarm(
    tasks: TaskSet, options: SwarmOptions, study: Study, executor: Fleet, device: str, out: Path
) -> Row:
    """Stage one."""
    try:
        found = train_swarm(tasks, options, study, executor=executor, device=device)
    except RunError as error:
        return {"done": False, "why": str(error)}
    for name in ("ratios.csv", "metrics.csv", "swarm.json"):
        shutil.copy(study.path / name, out / name)
    spread = np.quantile(found.table.values.mean(axis=1), [0, 0.5, 1])
    return {
        "done": True,
        "members": len(found.table),
        "failed": len(found.failed),
        "mean_bits_per_byte": dict(zip(("best", "middle", "worst"), spread.tolist(), strict=True)),
    }


def read_shares(path: Path, names: Sequence[str]) -> Floats:
    """Shares of the domains, from a plan or from a JSON object; what is not named has none."""
    document = json.loads(path.read_text())
    if "parts" in document:
        (part,) = Plan.load(path).parts
        assert isinstance(part.division, Shares)
        document = dict(zip(part.tasks, part.division.probabilities, strict=True))
    if unknown := set(document) - set(names):
        raise SystemExit(
            f"--advised should name domains of DATA. Found {', '.join(sorted(unknown))}."
        )
    shares = np.array([float(document.get(name, 0.0)) for name in names])
    return np.asarray(shares / shares.sum())


def proportional(tasks: TaskSet) -> Floats:
    texts = [task.splits["train"].inputs["text"].to_pylist() for task in tasks]
    sizes = np.array([sum(len((text or "").encode()) for text in each) for each in texts])
    return np.asarray(sizes / sizes.sum())


def runs_on(
    tasks: TaskSet,
    options: SwarmOptions,
    device: str,
    mixtures: dict[str, Floats],
    seeds: Sequence[int],
) -> list[Run]:
    """A run for each mixture and seed."""
    asked = [(name, seed) for name in mixtures for seed in seeds]
    shares = np.array([mixtures[name] for name, _ in asked])
    options = replace(options, members=len(asked), replicates=0)
    runs = swarm_runs(tasks, options, device=device, mixtures=shares)
    return [
        replace(run, label=name, seed=seed) for run, (name, seed) in zip(runs, asked, strict=True)
    ]


def scores(results: Sequence[Executed], split: str, names: Sequence[str]) -> Floats:
    """[run, domain], bits per byte."""
    found = []
    for result in results:
        assert result.summary is not None
        some = [s for s in result.summary.scores if s.split == split and s.metric != "loss"]
        by_task = {score.task: score.value for score in some}
        found.append([by_task[name] for name in names])
    return np.array(found)


def train(
    tasks: TaskSet,
    options: SwarmOptions,
    study: Study,
    executor: Fleet,
    device: str,
    advised: Floats,
    *,
    quick: bool,
) -> Row:
    """Stage two: all but the best random mixture first, which is known only then."""
    count, seeds = (3, 2) if quick else (RANDOM, SEEDS)
    drawn = np.random.default_rng(0).dirichlet(np.ones(len(tasks)), count)
    some = {f"random {number}": shares for number, shares in enumerate(drawn)}
    uniform = np.full(len(tasks), 1 / len(tasks))
    wanted = {"advised": advised, "uniform": uniform, "proportional": proportional(tasks)}
    make = partial(runs_on, tasks, options, device)
    tried, runs = make(some, [RANDOM_SEED]), make(wanted, range(seeds))
    results = executor.run([*tried, *runs], study)
    if all(result.is_done for result in results):
        dev = scores(results[:count], "dev", tasks.names).mean(axis=1)
        wanted["best random"] = drawn[dev.argmin()]
        more = make({"best random": wanted["best random"]}, range(seeds))
        results = [*results[count:], *executor.run(more, study)]
    if not all(result.is_done for result in results):
        errors = [result.error for result in results if result.error]
        done = sum(result.is_done for result in results)
        why = errors[0] if errors else f"the time is over with {done} done; run it again"
        return {"done": False, "why": why}
    values = scores(results, "test", tasks.names).reshape(len(wanted), seeds, -1)
    table = dict(zip(wanted, values, strict=True))  # each [seed, domain]
    peers = [name for name in wanted if name != "advised"]
    return {
        "done": True,
        "mixtures": {name: shares.round(5).tolist() for name, shares in wanted.items()},
        "mean_bits_per_byte": {name: float(each.mean()) for name, each in table.items()},
        "advised_minus": {
            name: difference(table["advised"], table[name], tasks.names) for name in peers
        },
    }


def difference(ours: Floats, theirs: Floats, names: Sequence[str]) -> Row:
    """The advised mixture against another, paired by seed: below 0 it is better."""
    columns = {
        "mean": (ours.mean(axis=1), theirs.mean(axis=1)),
        **{name: (ours[:, n], theirs[:, n]) for n, name in enumerate(names)},
    }
    found = {name: paired_interval(*pair, LEVEL) for name, pair in columns.items()}
    return {name: [each.mean, each.low, each.high] for name, each in found.items()}


def measure(
    quick: bool,
    device: str,
    stage: str,
    data: str,
    advised: Path | None,
    study: Path,
    out: Path,
    minutes: float,
    tokens: int | None,
    dev_bytes: int | None,
) -> list[Row]:
    if stage == "train" and advised is None:
        raise SystemExit("`train` should be given --advised, the mixture to compare with others.")
    tasks, begin, meter = FolderSource(path=data, kind="language").load(), time.monotonic(), Meter()
    how = {"checkpoints": int(stage == "swarm"), **SIZES[stage]}
    if quick:
        how |= QUICK | ({"members": 2 * len(tasks)} if stage == "swarm" else {})
    given = {"tokens": tokens, "dev_bytes": dev_bytes}
    options = SwarmOptions(**how | {name: value for name, value in given.items() if value})

    def is_over() -> bool:
        return time.monotonic() - begin > 60 * minutes

    executor = Fleet(workers=1, observers=Observers.telling(meter.hear, stop=is_over))
    here, device = Study(study / stage, lean=True), choose_device(device)
    out.mkdir(parents=True, exist_ok=True)
    if stage == "swarm":
        found = swarm(tasks, options, here, executor, device, out)
    else:
        assert advised is not None
        cut = domains_of_swarm(
            tasks, dev_bytes=options.dev_bytes, context=options.context, scored=("dev", "test")
        )
        shares = read_shares(advised, cut.names)
        found = train(cut, options, here, executor, device, shares, quick=quick)
    rows = [{"case": f"mixture_swarm {stage}", **found, **meter.told(options)}]
    (out / f"{stage}-results.json").write_text(json.dumps(rows, indent=2) + "\n")
    return rows


if __name__ == "__main__":
    build = Path("build")
    options = {
        "stage": {"choices": ("swarm", "train")},
        "data": {"help": "the folder of the domains"},
        "--advised": {"type": Path, "help": "a plan, or a JSON object of shares, for train"},
        "--study": {"type": Path, "default": build / "mixture-swarm", "help": "of the records"},
        "--out": {"type": Path, "default": build / "mixture-swarm-results"},
        "--minutes": {"type": float, "default": 8.5, "help": "after which it stops by itself"},
        "--tokens": {"type": int, "help": "bytes that a model reads"},
        "--dev-bytes": {"type": int, "help": "of a domain, to be scored on"},
    }
    report("mixture_swarm", measure, __doc__ or "", device=True, options=options)
