"""A policy in a training loop of one's own: three lines beside what the loop has anyway.

python examples/own_loop.py
"""

import numpy as np
import torch

from taskmix.policies import Outcome, Tempered

generator = np.random.default_rng(0)
torch.manual_seed(0)
sizes = np.array([2_000, 200, 20])
rules = torch.randn(3, 10)
data = [torch.randn(size, 10) for size in sizes]
encoder = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU())
heads = torch.nn.ModuleList(torch.nn.Linear(16, 1) for _ in sizes)
optimizer = torch.optim.Adam([*encoder.parameters(), *heads.parameters()], lr=0.01)

policy = Tempered(temperature=2.0)
state = policy.init(sizes)
counts = np.zeros(3, dtype=int)
for _ in range(300):
    choice = policy.select(state, generator)
    rows = data[choice.task][generator.integers(sizes[choice.task], size=16)]
    targets = (rows @ rules[choice.task] > 0).float()
    outputs = heads[choice.task](encoder(rows)).squeeze(1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(outputs, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = policy.update(state, Outcome(choice, loss.item()))
    counts[choice.task] += 1

print(
    "steps a task:",
    counts.tolist(),
    "probabilities:",
    policy.probabilities(state).round(3).tolist(),
)
