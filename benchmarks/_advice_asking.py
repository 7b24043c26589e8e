"""Asks `taskmix advise` from outside, as a user does, of this code or of another checkout of it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskmix.engine import DigitsSource, FolderSource, Optimization, Run, choose_device
from taskmix.models import choose_architecture
from taskmix.plans import Plan

CACHE = "TASKMIX_CACHE"  # the variable of the environment for what encoders have read
# Options that say how a folder is read: not for a folder that a benchmark wrote itself.
READING = ("--tasks", "--task-column", "--label", "--only")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was said, in how many seconds, start-up included; `study` has the rest."""

    advice: dict[str, Any]
    seconds: float
    study: Path

    @property
    def plan(self) -> Plan:
        return Plan.load(self.study / "plan.json")

    @property
    def batches(self) -> int:
        """The length at which the plan makes its promise."""
        length = self.plan.length
        return int(self.advice["batches_of_a_run"] if length is None else length.batches)


def cache_of(study: Path) -> Path:
    return study.with_name(study.name + "-cache").absolute()


def command(folder: str, out: Path, words: Sequence[str]) -> list[str]:
    own = [sys.executable, "-m", "taskmix", "advise", folder, "--out", str(out), "--json"]
    return [*own, *words]


def ask(folder: str, out: Path, words: Sequence[str], *, code: Path | None = None) -> Asked:
    """What `taskmix advise` says; `code` is another checkout that is asked instead of this one.

    What was said is kept beside the study, so that the seconds of the first time are not lost when a
    benchmark goes on after a stop. What a frozen encoder has read is kept there as well: nobody is
    faster because another has read the texts before.
    """
    kept = out.with_name(out.name + "-said.json")
    if not kept.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, CACHE: str(cache_of(out))}
        if code is not None:
            environment["PYTHONPATH"] = str(code / "src")
        begin = time.monotonic()
        done = subprocess.run(
            command(folder, out, words),
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        if done.returncode:
            raise SystemExit(f"{folder}: {done.stderr[-2000:]}")
        said = {"advice": json.loads(done.stdout), "seconds": time.monotonic() - begin}
        kept.write_text(json.dumps(said), encoding="utf-8")
    said = json.loads(kept.read_text(encoding="utf-8"))
    return Asked(advice=said["advice"], seconds=said["seconds"], study=out)


def _options(words: Sequence[str]) -> argparse.Namespace:
    """Those words after `--` that decide what a run is; the others only go to the adviser."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("model", "tune", "only", "task-column"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--device", default="auto")
    for name in ("vectors", "tasks"):
        parser.add_argument(f"--{name}", type=Path)
    for name, default in (("max-length", None), ("rank", None), ("batch-size", 32)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--label", action="append")
    return parser.parse_known_args(list(words))[0]


def template(folder: str, words: Sequence[str]) -> Run:
    """The run that `taskmix advise` varies, from the same options."""
    given = _options(words)
    names = tuple(given.only.split(",")) if given.only else None
    source = (
        DigitsSource(tasks=names)
        if folder == "digits"
        else FolderSource(
            path=folder,
            tasks=names,
            settings=given.tasks,
            task_column=given.task_column,
            label=tuple(given.label) if given.label else None,
        )
    )
    device = choose_device(given.device)
    architecture, tuning = choose_architecture(
        given.model or "auto",
        source.load(),
        given.vectors,
        given.max_length,
        tune=given.tune,
        rank=given.rank,
        device=device,
    )
    rate = Optimization.usual_rate(given.learning_rate, tuning=tuning)
    return Run(
        label="template",
        source=source,
        architecture=architecture,
        optimization=Optimization(learning_rate=rate),
        steps=1,
        batch_size=given.batch_size,
        device=device,
        precision="bfloat16" if tuning == "adapters" and device.startswith("cuda") else "float32",
        seed=0,
    )


def without_reading(words: Sequence[str]) -> list[str]:
    """The words without those that say how a folder is read."""
    rest, kept = iter(words), []
    for word in rest:
        if word in READING:
            next(rest)
        else:
            kept.append(word)
    return kept
