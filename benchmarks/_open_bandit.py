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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from obp.ope import InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting

from _common import best_of


def spread(policy: np.ndarray, rows: int) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(policy[None, :, None], (rows, len(policy), 1)))


def values(folder: Path, repeats: int) -> dict[str, Any]:
    """A value for each policy; the time is the least of all."""
    log = read(folder)
    estimator = SelfNormalizedInverseProbabilityWeighting()
    found, taken, made = [], [], []
    for policy in np.load(folder / "policies.npy"):
        rows = len(log["action"])
        made.append(best_of(1, partial(spread, policy, rows), warm=0))
        work = partial(estimator.estimate_policy_value, action_dist=spread(policy, rows), **log)
        taken.append(best_of(repeats, work, warm=0))
        found.append(float(work()))
    return {"values": found, "seconds": min(taken), "seconds_making": min(made)}


def interval(folder: Path, bootstraps: int, *, self_normalised: bool) -> dict[str, Any]:
    log = read(folder)
    shares = spread(np.load(folder / "policies.npy")[0], len(log["action"]))
    kind = SelfNormalizedInverseProbabilityWeighting
    estimator = kind() if self_normalised else InverseProbabilityWeighting()
    begin = time.process_time()
    found = bounds(estimator, bootstraps, shares, log)
    return {"bounds": found, "seconds": time.process_time() - begin}


def intervals(folder: Path, bootstraps: int) -> dict[str, Any]:
    """An interval for each of many logs, which are the first axis."""
    logs, policy = read(folder), np.load(folder / "policies.npy")[0]
    estimator = SelfNormalizedInverseProbabilityWeighting()
    shares = spread(policy, logs["action"].shape[1])
    found = []
    for number in range(len(logs["action"])):
        log = {name: column[number] for name, column in logs.items()}
        found.append(bounds(estimator, bootstraps, shares, log))
    return {"bounds": found}


def bounds(
    estimator: Any, bootstraps: int, shares: np.ndarray, log: dict[str, np.ndarray]
) -> list[float]:
    found = estimator.estimate_interval(
        action_dist=shares, n_bootstrap_samples=bootstraps, random_state=0, **log
    )
    (low,), (high,) = ([v for k, v in found.items() if side in k] for side in ("lower", "upper"))
    return [float(low), float(high)]


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
