"""A run that needs no model: cheap, random in its own way, and the same every time.

The fault tests load it with `runpy` and disturb it; `python records_toy.py STUDY NUMBER...` does runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from taskmix.records import RecordWriter, RunFolder, Study

TASKS = ("news", "reviews", "digits")


def specification(number: int, steps: int, every: int) -> dict[str, object]:
    return {"toy": number, "steps": steps, "every": every}


def toy(
    study: str | Path,
    number: int = 0,
    *,
    steps: int = 12,
    every: int = 4,
    pause: float = 0.0,
    fresh: bool = False,
    last_commit: bool = True,
) -> str:
    """Does the run, or what is left of it; gives the outcome of the claim."""
    described = specification(number, steps, every)
    with Study(study).run(described).claim(fresh=fresh) as claim:
        if claim.writer is not None:
            claim.writer.start(
                specification=described,
                seed=number,
                label="toy",
                tasks=[{"name": name, "sizes": {"train": 10}} for name in TASKS],
                steps=steps,
            )
            _train(claim.writer, number, steps, every, pause, last_commit)
        return claim.outcome


def _train(
    writer: RecordWriter, number: int, steps: int, every: int, pause: float, last_commit: bool
) -> None:
    generator = np.random.default_rng(number)
    parameters = torch.zeros(50)
    probabilities = np.full(len(TASKS), 1 / len(TASKS))
    best, best_step, best_score, first = None, None, -np.inf, 1
    if writer.resumed is not None:
        state = writer.resumed.state
        generator.bit_generator.state = state["generator"]
        parameters, probabilities = state["parameters"], state["probabilities"]
        best, best_step, best_score = writer.resumed.best, state["best_step"], state["best_score"]
        first = writer.resumed.step + 1
    given = None
    for step in range(first, steps + 1):
        task = int(generator.choice(len(TASKS), p=probabilities))
        parameters = parameters * 0.9 + torch.from_numpy(generator.standard_normal(50)).float()
        writer.add_step(
            step,
            task,
            probability=float(probabilities[task]),
            probabilities=None if probabilities is given else probabilities,
            loss=float(parameters.square().mean()),
            reward=float(generator.random()) if step % 2 else None,
            weight=None,
            seconds=time.monotonic(),  # the one column that may differ
            examples=32,
        )
        given = probabilities
        if step % 3 == 0:
            probabilities = generator.dirichlet(np.ones(len(TASKS)))
        if step % every == 0:
            score = float(parameters.sum())
            writer.add_scores(step, [(name, "dev", "accuracy", score) for name in TASKS])
            if score > best_score:
                best, best_step, best_score = {"parameters": parameters.clone()}, step, score
            state = {
                "generator": generator.bit_generator.state,
                "parameters": parameters,
                "probabilities": probabilities,
                "best_step": best_step,
                "best_score": best_score,
            }
            if last_commit or step < steps:
                writer.commit(step, state, best=best, best_step=best_step)
        if pause:
            time.sleep(pause)
    writer.add_scores(steps, [("news", "test", "accuracy", best_score)])
    writer.finish(
        scores=[("news", "test", "accuracy", best_score)],
        best_step=best_step,
        best=None if last_commit else best,
        row_credits={"news": generator.random(5)},
    )


def outcome(folder: RunFolder) -> dict[str, Any]:
    """All that a run should end with, whatever happened on the way."""
    summary = folder.summary()
    assert summary is not None
    best = folder.best()
    return {
        "status": (summary.status, summary.step, summary.best_step, summary.scores, summary.error),
        "steps": comparable(folder.steps()),
        "probabilities": folder.probabilities().tolist(),
        "scores": folder.scores().to_pylist(),
        "credits": {task: rows.tolist() for task, rows in folder.credits().items()},
        "best": best["parameters"].tolist() if best is not None else None,
    }


def comparable(steps: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = steps.drop_columns(["seconds"]).to_pylist()
    return rows


def must_read_right(folder: RunFolder, whole: dict[str, Any]) -> None:
    """What is there is true, at any moment: a beginning of the undisturbed run's record."""
    summary = folder.summary()
    steps, scores = comparable(folder.steps()), folder.scores().to_pylist()
    for row, true in zip(steps, whole["steps"], strict=False):  # vectors repeat where parts begin
        changed = {"probabilities": row["probabilities"] or true["probabilities"]}
        assert row | changed == true | changed
    assert folder.probabilities().tolist() == whole["probabilities"][: len(steps)]
    assert scores == whole["scores"][: len(scores)]
    checkpoint = folder.checkpoint()
    if summary is None:
        assert not steps
        assert not scores
        assert checkpoint is None
    elif summary.status == "finished":
        assert {**outcome(folder), "steps": None} == {**whole, "steps": None}
        assert len(steps) == len(whole["steps"])
    else:
        committed = checkpoint.step if checkpoint is not None else 0
        assert summary.step <= committed <= len(steps)


def main(study: str, numbers: Sequence[str]) -> None:
    for number in numbers:
        done = toy(study, int(number), steps=40, every=4, pause=0.002)
        print(number, done, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
