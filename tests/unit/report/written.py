"""A study that is being written, a commit at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taskmix.records import RecordWriter, Study

TASKS = ("books", "films")


@dataclass
class Writing:
    """One run at work."""

    writer: RecordWriter
    step: int = 0

    def go_on(self, steps: int, score: float) -> None:
        """Draws the second task three times as often, evaluates, and commits."""
        shares = np.array([0.25, 0.75])
        for _ in range(steps):
            task = 0 if self.step % 4 == 0 else 1
            self.step += 1
            self.writer.add_step(
                self.step,
                task,
                probability=float(shares[task]),
                probabilities=shares,
                loss=0.5,
                reward=None,
                weight=None,
                seconds=0.01,
                examples=8,
            )
        rows = [(name, "dev", "accuracy", score) for name in TASKS]
        rows += [(name, "dev", "loss", 2.0) for name in TASKS]
        rows += [(name, "test", "accuracy", 1.0) for name in TASKS]
        self.writer.add_scores(self.step, rows)
        self.writer.commit(self.step, {"x": 1}, best=None, best_step=None)


@contextmanager
def writing(
    folder: Path, *, label: str = "uniform", seed: int = 0, tasks: tuple[str, ...] = TASKS
) -> Iterator[Writing]:
    specification = {"label": label, "seed": seed}
    with Study(folder).run(specification, label=label).claim() as claim:
        assert claim.writer is not None
        described = [
            {"name": name, "kind": "classification", "metric": "accuracy"} for name in tasks
        ]
        claim.writer.start(
            specification=specification, seed=seed, label=label, tasks=described, steps=100
        )
        yield Writing(claim.writer)
