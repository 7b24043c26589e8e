"""Tasks drawn from known Markov chains."""

from __future__ import annotations

from typing import Any

import numpy as np


def draw_tasks(
    tasks: int, each: int, *, generators: int = 3, symbols: int = 4, seed: int = 0
) -> tuple[list[Any], list[str], Any]:
    """Sequences, the names of their tasks, and the tasks' shares."""
    generator = np.random.default_rng(seed)
    initial = generator.dirichlet(np.ones(symbols), generators)
    moves = generator.dirichlet(np.full(symbols, 0.3), (generators, symbols))
    shares = generator.dirichlet(np.full(generators, 0.3), tasks)
    sequences, names = [], []
    for task in range(tasks):
        for _ in range(each):
            kind = generator.choice(generators, p=shares[task])
            symbol = generator.choice(symbols, p=initial[kind])
            sequence = [int(symbol)]
            while generator.random() < 0.85:
                symbol = generator.choice(symbols, p=moves[kind, symbol])
                sequence.append(int(symbol))
            sequences.append(np.array(sequence))
            names.append(f"task {task}")
    return sequences, names, shares
