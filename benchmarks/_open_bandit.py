"""Open Bandit Pipeline's side of `counterfactual.py`, run by an environment that has it.

    python _open_bandit.py FOLDER REQUEST

`FOLDER` has the log as `tasks.npy`, `rewards.npy`, `probabilities.npy` and `policies.npy`; `REQUEST` is
a JSON object. Times are of its estimators alone: the array [row, task, 1] that they take for each
policy is made before the clock starts, and timed apart.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from obp.ope import InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting


def spread(policy: np.ndarray, rows: int) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(policy[None, :, None], (rows, len(policy), 1)))


def values(folder: Path, repeats: int) -> dict[str, Any]:
    """A value for each policy; the time is the least of all."""
    log = read(folder)
    estimator = SelfNormalizedInverseProbabilityWeighting()
    found, taken, made = [], [], []
    for policy in np.load(folder / "policies.npy"):
        begin = time.process_time()
        shares = spread(policy, len(log["action"]))
        made.append(time.process_time() - begin)
        for _ in range(repeats):
            begin = time.process_time()
            value = estimator.estimate_policy_value(action_dist=shares, **log)
            taken.append(time.process_time() - begin)
        found.append(float(value))
    return {"values": found, "seconds": min(taken), "seconds_making": min(made)}


def interval(folder: Path, bootstraps: int, *, self_normalised: bool) -> dict[str, Any]:
    log = read(folder)
    shares = spread(np.load(folder / "policies.npy")[0], len(log["action"]))
    kind = SelfNormalizedInverseProbabilityWeighting
    estimator = kind() if self_normalised else InverseProbabilityWeighting()
    begin = time.process_time()
    found = estimator.estimate_interval(
        action_dist=shares, n_bootstrap_samples=bootstraps, random_state=0, **log
    )
    taken = time.process_time() - begin
    return {"bounds": bounds(found), "seconds": taken}


def intervals(folder: Path, bootstraps: int) -> dict[str, Any]:
    """An interval for each of many logs, which are the first axis."""
    logs, policy = read(folder), np.load(folder / "policies.npy")[0]
    estimator = SelfNormalizedInverseProbabilityWeighting()
    shares = spread(policy, logs["action"].shape[1])
    found = []
    for number in range(len(logs["action"])):
        log = {name: column[number] for name, column in logs.items()}
        one = estimator.estimate_interval(
            action_dist=shares, n_bootstrap_samples=bootstraps, random_state=0, **log
        )
        found.append(bounds(one))
    return {"bounds": found}


def bounds(found: dict[str, float]) -> list[float]:
    return [
        float(next(value for name, value in found.items() if side in name))
        for side in ("lower", "upper")
    ]


def read(folder: Path) -> dict[str, np.ndarray]:
    return {
        "action": np.load(folder / "tasks.npy"),
        "reward": np.load(folder / "rewards.npy"),
        "pscore": np.load(folder / "probabilities.npy"),
    }


if __name__ == "__main__":
    request = json.loads(sys.argv[2])
    answer = {"values": values, "interval": interval, "intervals": intervals}[request.pop("do")]
    print(json.dumps(answer(Path(sys.argv[1]), **request)))
