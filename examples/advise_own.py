"""Advice for a model and data sets of one's own: which tasks to train together, and how much of each.

    python examples/advise_own.py

Three questions about the same handwritten digits, each with its own images, and a fourth whose
answers are random. The encoder is any module that gives a vector for each row; the heads are ours.
"""

from __future__ import annotations

import tempfile

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import Dataset

import taskmix


class Digits(Dataset[tuple[Tensor, int]]):
    """Some of the images, and what is asked of them."""

    def __init__(self, rows: slice, question: str, generator: np.random.Generator) -> None:
        images, digits = load_digits(return_X_y=True)
        self.images = torch.tensor(images[rows] / 16, dtype=torch.float32).view(-1, 1, 8, 8)
        self.answers = {
            "digit": digits[rows],
            "odd": digits[rows] % 2,
            "large": (digits[rows] > 4).astype(int),
            "random": generator.integers(2, size=len(digits[rows])),
        }[question]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return self.images[row], int(self.answers[row])


def encoder() -> nn.Module:
    """Called for each run, under its seed."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 32), nn.ReLU()
    )


def main(budget: str = "3000-steps") -> taskmix.Advised:
    generator = np.random.default_rng(0)
    tasks = {}
    for place, name in enumerate(("digit", "odd", "large", "random")):
        begin = 120 * place
        rows = (slice(begin, begin + 120), slice(800, 1200), slice(1200, 1797))
        tasks[name] = tuple(Digits(each, name, generator) for each in rows)
    with tempfile.TemporaryDirectory() as folder:
        advised = taskmix.advise(tasks, model=encoder, budget=budget, out=folder)
        print(advised)
        for part in advised.plan().parts:  # a model to train
            print(part.tasks, part.division)
        images = [tasks["odd"][2][row][0] for row in range(3)]
        print(advised.predict(images, "odd"))
    return advised


if __name__ == "__main__":
    main()
