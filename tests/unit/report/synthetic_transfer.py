"""A `transfer.json` whose truth is plain: the first task helps, the last one harms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def transfer_document(names: Sequence[str], targets: Sequence[str] | None = None) -> dict[str, Any]:
    """Every task a target, unless some are named."""
    wanted = list(targets or names)
    return {
        "version": 1,
        "command": "taskmix transfer",
        "outcome": "loss",
        "measure": "loss",
        "split": "dev",
        "budget": "per-task",
        "steps": 100,
        "estimate": None,
        "design": {"noise": None, "pilot": None},
        "runs": 60,
        "failed": 0,
        "failures": [],
        "tasks": list(names),
        "targets": [_target(name, names) for name in wanted],
        "groups": [list(names[:-1]), [names[-1]]] if len(wanted) == len(names) else [],
    }


def _target(target: str, names: Sequence[str]) -> dict[str, Any]:
    sources = [name for name in names if name != target]
    return {
        "target": target,
        "higher_is_better": False,
        "alone": 0.8,
        "alone_runs": 10,
        "alone_deviation": 0.02,
        "subsets": 30,
        "subset_runs": 30,
        "noise": 0.03,
        "failed": 0,
        "lost": [],
        "sources": [_source(name, names) for name in sources],
        "selections": [],
        "chosen": [names[0]] if target != names[0] else [],
        "measured": None,
        "extrapolation": {
            "linear": {
                "spearman": {"value": 0.9, "low": 0.7, "high": 0.98, "n": 3},
                "r_squared": {"value": None, "low": None, "high": None, "n": 3},
            }
        },
        "held_out": [
            {
                "sources": sources[:size],
                "observed": 0.8 - 0.05 * size,
                "predicted": 0.78 - 0.04 * size,
            }
            for size in (1, 2, 3)
        ],
    }


def _source(name: str, names: Sequence[str]) -> dict[str, Any]:
    gain = {names[0]: 0.2, names[-1]: -0.15}.get(name, 0.01)
    told = abs(gain) > 0.05
    return {
        "source": name,
        "gain": gain,
        "low": gain - 0.04,
        "high": gain + 0.04,
        "p_value": 0.001 if told else 0.6,
        "verdict": "cannot tell" if not told else "helps" if gain > 0 else "harms",
        "further_subsets": None if told else 120,
        "further_single_runs": None if told else 30,
        "relative_gain": gain,
        "relative_low": gain - 0.04,
        "relative_high": gain + 0.04,
    }
