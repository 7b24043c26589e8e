"""What the logs of uniform runs propose."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from taskmix.adviser import _propose
from taskmix.adviser._propose import from_logs
from taskmix.counterfactual import Log, log_from_arrays
from taskmix.plans import Shares

NAMES = ["hard", "rising", "done"]


def log_of(rates: tuple[float, float, float]) -> Log:
    generator = np.random.default_rng(0)
    tasks = generator.integers(3, size=3000)
    visits = np.eye(3)[tasks].cumsum(axis=0)[np.arange(3000), tasks]
    reached = np.array([0.2, 0.3, 0.8])[tasks] + np.array(rates)[tasks] * visits
    seen = np.clip(reached + 0.05 * generator.normal(size=3000), 0.01, 1.0)
    return log_from_arrays(tasks, 1 - seen, np.full(3000, 1 / 3), -np.log(seen), names=NAMES)


def proposed(log: Log, usable: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(_propose, "log_of_runs", lambda _: (log,))
    run = SimpleNamespace(specification=dict)
    entries: Any = {"uniform": [SimpleNamespace(runs=[run])]}
    study: Any = SimpleNamespace(run=lambda _: None)
    return from_logs(entries, study, usable)


def test_a_task_that_still_learns_is_proposed_more_often_than_a_hard_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = proposed(log_of((0.0, 4e-4, 0.0)), NAMES, monkeypatch)
    division = plan.parts[0].division
    assert isinstance(division, Shares)
    shares = dict(zip(plan.tasks, division.probabilities, strict=True))
    assert shares["rising"] > 0.4 > shares["hard"]


def test_logs_that_keep_to_equal_shares_propose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proposed(log_of((0.0, 0.0, 0.0)), NAMES, monkeypatch) is None
