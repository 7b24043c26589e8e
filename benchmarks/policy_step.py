"""What choosing a task costs: select and update of each policy, its reward, and the row of the log.

The peer of Exp3.S is river's Exp3 (river has no Exp3.S), which selects and updates and nothing else.
The last rows have everything a step costs, select, update, reward and log: with 8 tasks against a limit
of 50 microseconds, and with 14 as a share of a training step of a text convolution.

    python benchmarks/policy_step.py [--quick] [--json]
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from _common import (
    ROOT,
    ask,
    best_of,
    environment,
    repeated,
    report,
    row,
    started,
    stepping,
    times_in_turns,
)
from taskmix.policies import (
    AnyPolicy,
    AnyReward,
    Exp3,
    Exp3S,
    HardProgress,
    Outcome,
    PredictionGain,
    QuantileScaled,
    Uniform,
)
from taskmix.records import Study

RIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from _common import best_of, repeated
from river import bandit
arms, steps, rounds = map(int, sys.argv[2:])
policy = bandit.Exp3(gamma=0.1, seed=0)
def step():
    policy.update(policy.pull(list(range(arms))), 0.3)
print(best_of(rounds, repeated(step, steps)) / steps)
"""


def microseconds(times: int, steps: int, action: Callable[[], None]) -> float:
    """Of processor time a step, the least of several runs."""
    return 1e6 * best_of(times, repeated(action, steps)) / steps


class Stepper:
    """A policy with its reward and its log, moved one step at a time."""

    def __init__(self, policy: AnyPolicy, reward: AnyReward | None, count: int) -> None:
        self.policy, self.reward = policy, reward
        self.generator = np.random.default_rng(0)
        self.state = policy.init(np.ones(count, dtype=np.int64))
        self.reward_state = reward.init(count) if reward else None
        self.step = 0
        self.writer: Any = None
        self.told: Any = None

    def choose(self) -> None:
        choice = self.policy.select(self.state, self.generator)
        self.state = self.policy.update(self.state, Outcome(choice, 1.0, reward=0.3))

    def whole(self) -> None:
        probabilities = self.policy.probabilities(self.state)
        choice = self.policy.select(self.state, self.generator)
        loss = 1.0 + 0.1 * self.generator.random()
        outcome = Outcome(choice, loss, 1.05, 0.99 * loss)
        value = None
        if self.reward is not None:
            value, self.reward_state = self.reward.observe(
                self.reward_state, outcome, self.generator
            )
        outcome = Outcome(choice, loss, 1.05, 0.99 * loss, 1.0, value)
        self.state = self.policy.update(self.state, outcome)
        self.step += 1
        changed = self.told is None or not np.array_equal(self.told, probabilities)
        self.told = probabilities
        if self.writer is not None:
            self.writer.add_step(
                self.step,
                choice.task,
                probability=choice.probability,
                probabilities=probabilities if changed else None,
                loss=loss,
                reward=value,
                weight=None,
                seconds=0.01,
                examples=32,
            )


def whole_step(policy: AnyPolicy, reward: AnyReward, count: int, times: int) -> float:
    stepper, specification = Stepper(policy, reward, count), {"benchmark": "policy_step"}
    with (
        tempfile.TemporaryDirectory() as folder,
        Study(folder).run(specification).claim() as claim,
    ):
        names = [f"task {number}" for number in range(count)]
        stepper.writer = started(claim, specification, names, 10**9)
        taken = microseconds(times, 1000, stepper.whole)
        stepper.writer.stop()
    return taken


def river(count: int, times: int) -> float:
    python = environment("river", ["pandas"], alone=["river==0.26.1"])
    return 1e6 * float(ask(python, "-c", RIVER, ROOT / "benchmarks", count, 500, times))


def training_step(quick: bool) -> float:
    """Microseconds of processor time of a text convolution's step, one of 14 tasks."""
    import torch

    from loop_overhead import by_hand, make_tasks

    torch.set_num_threads(1)
    loop = by_hand(make_tasks(14), all_tasks=False)
    (taken,) = times_in_turns([stepping(loop, 20)], 4 if quick else 14)
    return 1e6 * float(np.median(taken)) / 20


def measure(quick: bool) -> list[dict[str, Any]]:
    times = 5 if quick else 30
    rows = []
    for name, policy in (("uniform", Uniform()), ("exp3", Exp3()), ("exp3s", Exp3S())):
        for count in (8, 14, 1000) if quick else (8, 14, 1000, 100_000):
            steps = 500 if count <= 1000 else 20
            ours = microseconds(times, steps, Stepper(policy, None, count).choose)
            peer = river(count, times) if name != "uniform" and count <= 1000 else None
            ratio = None if peer is None else peer / ours
            case = f"select_update/{name}/{count}_tasks"
            rows.append(row(case, ours, peer, "river Exp3", "microseconds", ratio=ratio))
    convolution = training_step(quick)
    for name, policy, reward in (
        ("uniform", Uniform(), HardProgress()),
        ("exp3s", Exp3S(), QuantileScaled(reward=PredictionGain())),
    ):
        for count, peer, peer_name in (
            (8, 50.0, "limit"),
            (14, convolution, "text convolution step"),
        ):
            ours = whole_step(policy, reward, count, times)
            case = f"select_update_reward_log/{name}/{count}_tasks"
            rows.append(row(case, ours, peer, peer_name, "microseconds"))
    return rows


if __name__ == "__main__":
    report("policy_step", measure, __doc__ or "")
