"""What a step of each weighting costs, ours and TorchJD's, as a multiple of a plain step.

A plain step descends the sum of the losses. All methods take their steps in turns in one process, in
TorchJD's environment, a plain step of the same model before each; times are of the CPU, medians, and
both figures are multiples of the plain steps'. Memory is what the largest of three steps takes above
a plain one, with 16 tasks and 3 million shared parameters, each method in a process of its own.

    python benchmarks/weighting.py [--quick] [--json]
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from _common import ROOT, environment, report, row
from _weighting_contest import GRADIENT_METHODS, LOSS_METHODS, MEMORY_PEERS

PEER = "TorchJD"
PACKAGES = ["torchjd[full]==0.18.0"]
MODELS = {"mlp": "perceptron", "text": "text convolution"}


def measure(quick: bool) -> list[dict[str, Any]]:
    python = environment("torchjd", PACKAGES)
    rows = []
    for kind, shown in MODELS.items():
        for tasks in (4, 16) if quick else (4, 16, 50):
            rounds = "3" if quick else "15" if tasks < 50 else "8"
            multiples = contest(python, "time", kind, str(tasks), rounds)
            rows += time_rows(f"{shown}, {tasks} tasks", multiples)
    methods = ["banditmtl", "mgda"] if quick else [*LOSS_METHODS, *GRADIENT_METHODS]
    plain = contest(python, "memory", "plain")
    for method in methods:
        ours = contest(python, "memory", f"ours/{method}") - plain
        peer = None
        if method in MEMORY_PEERS:
            peer = (contest(python, "memory", f"torchjd/{method}") - plain) / 2**20
        rows.append(row(f"memory, 16 tasks, {method}", ours / 2**20, peer, PEER, "MiB above plain"))
    return rows


def time_rows(case: str, multiples: dict[str, float]) -> list[dict[str, Any]]:
    """One row a method, in multiples of the plain step."""
    rows = []
    for name, ours in multiples.items():
        side, _, method = name.partition("/")
        if side == "ours":
            peer = multiples.get(f"torchjd/{method}")
            rows.append(row(f"{case}, {method}", ours, peer, PEER, "plain steps"))
    return rows


def contest(python: Path, *words: str) -> Any:
    """What the contest says, run by another Python with our package in sight."""
    done = subprocess.run(
        [str(python), str(ROOT / "benchmarks" / "_weighting_contest.py"), *words],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")},
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    report("weighting", measure, __doc__ or "")
