"""On which shares of its tasks a run was trained."""

from __future__ import annotations

import numpy as np

import taskmix.policies
from taskmix.engine import undescribe
from taskmix.errors import RecordError, TaskmixError
from taskmix.policies import Unchanging
from taskmix.records import RunSummary, Study


def shares_of_run(run: RunSummary, study: Study, *, by_batches: bool) -> dict[str, float] | None:
    """Of each task of a run; None where they were drawn and nothing says how often."""
    if by_batches:
        fixed = _fixed_shares(run)
        if fixed is not None:
            return fixed
    try:
        steps = study.run_named(run.name).steps(["task", "examples"])
    except RecordError:
        return None
    if not len(steps):
        return None
    places = steps["task"].combine_chunks().indices.to_numpy()
    amounts = np.ones(len(steps)) if by_batches else steps["examples"].to_numpy()
    found = np.bincount(places, weights=amounts, minlength=len(run.tasks))
    return dict(zip(run.task_names, (found / found.sum()).tolist(), strict=True))


def _fixed_shares(run: RunSummary) -> dict[str, float] | None:
    """Where they stay the same over the run."""
    count = len(run.tasks)
    if run.specification.get("weighting") is not None or count == 1:
        return dict.fromkeys(run.task_names, 1 / count)
    try:
        policy = undescribe(run.specification.get("policy") or {}, taskmix.policies)
        if not isinstance(policy, Unchanging):
            return None
        sizes = np.array([task["sizes"]["train"] for task in run.tasks])
        shares = policy.probabilities(policy.init(sizes))  # type: ignore[attr-defined]
    except (TaskmixError, KeyError, TypeError):  # of another version, or of somebody's own
        return None
    return dict(zip(run.task_names, shares.tolist(), strict=True))
