"""A table with 6 % positives, a task that is known to help it and one that is known to harm it.

`taskmix simulate --positives` draws the three, another world for each seed. The metric is taken out of
what it wrote: that accuracy says nothing here is for the adviser to see.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _advice_asking import Asked, ask
from _advice_training import say
from taskmix.plans import Plan

POSITIVES = 0.06
WORDS = ("--budget", "12000-steps", "--device", "cpu")
PUT_ASIDE_FROM = 9000  # the seeds of worlds that are only looked at in the end

MEASURES = {
    "metric": "the target is scored by AUC",
    "helps": "the helping task is trained with the target",
    "harms": "the harming task is kept apart from the target",
}


def simulate(folder: Path, seed: int) -> None:
    line = [sys.executable, "-m", "taskmix", "simulate", "--positives", str(POSITIVES)]
    line += ["--seed", str(seed), "--out", str(folder)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    for path in folder.rglob("task.toml"):
        kept = [line for line in path.read_text().splitlines() if not line.startswith("metric")]
        path.write_text("\n".join(kept) + "\n")


def judged(advice: Mapping[str, Any], plan: Plan) -> dict[str, bool]:
    """What was right about the advice for the target."""
    metrics = {row["metric"] for row in advice["expected"] if row["task"] == "target"}
    beside = {name for part in plan.parts if "target" in part.scored for name in part.tasks}
    return {
        "metric": metrics == {"auc"},
        "helps": "helps" in beside,
        "harms": bool(beside) and "harms" not in beside,
    }


def imbalanced(
    words: Sequence[str],
    out: Path,
    *,
    seeds: int,
    jobs: int,
    final: bool,
    code: Path | None = None,
) -> list[dict[str, Any]]:
    """How often the advice is right, for the target alone and for all three tasks."""
    first = PUT_ASIDE_FROM if final else 0
    aims = {"for the target": ["--target", "target"], "for all three": []}

    def one(seed: int) -> dict[str, dict[str, bool]]:
        folder = out / f"tasks-{seed}"
        if not folder.exists():
            simulate(folder, seed)
        found = {}
        for place, (aim, options) in enumerate(aims.items()):
            more = [*WORDS, *words, *options, "--seed", str(seed)]
            asked: Asked = ask(str(folder), out / f"advice-{seed}-{place}", more, code=code)
            found[aim] = judged(asked.advice, asked.plan)
        say(f"seed {seed}: {found}")
        return found

    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(one, range(first, first + seeds)))
    return [
        {
            "what": "imbalanced",
            "case": f"{aim}: {said}",
            "ours": sum(each[aim][measure] for each in found),
            "n": seeds,
            "missed": [first + place for place, each in enumerate(found) if not each[aim][measure]],
        }
        for aim in aims
        for measure, said in MEASURES.items()
    ]
