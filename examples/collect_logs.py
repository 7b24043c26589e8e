"""A training loop of one's own that leaves a log, and a better division of the budget out of it.

    python examples/collect_logs.py

The batch sampler draws the tasks and logs what it drew, how likely that was, and what became of it, in
a folder that `taskmix improve` reads as well. Nothing else in the loop changes.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import TensorDataset

from taskmix.counterfactual import improve_policy, log_of_runs
from taskmix.plans import Part, Plan, Shares
from taskmix.policies import Fixed, HardProgress, Uniform
from taskmix.records import Study
from taskmix.training import PolicyBatchSampler

STEPS, SEED = 3_000, 0
NAMES = ["easy", "medium", "hard"]
SIZES = [2_000, 1_000, 500]

# Data: the sign of a sum of two numbers, of a sum of eight, and of a product of two.
torch.manual_seed(SEED)
rules = [
    lambda x: x[:, :2].sum(1) > 0,
    lambda x: x.sum(1) > 0,
    lambda x: x[:, 0] * x[:, 1] > 0,
]
parts = []
for number, (size, rule) in enumerate(zip(SIZES, rules, strict=True)):
    values = torch.randn(size, 8)
    tasks = torch.full((size,), number)
    parts.append(TensorDataset(values, rule(values).float(), tasks))


def train(policy, study, label):
    """The loop; a batch is of one task, and `observe` hears its loss."""
    torch.manual_seed(SEED)
    encoder = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU())
    heads = torch.nn.ModuleList(torch.nn.Linear(32, 1) for _ in NAMES)
    optimizer = torch.optim.Adam([*encoder.parameters(), *heads.parameters()], lr=2e-3)
    reward = HardProgress()
    # All that determines the run; `taskmix improve` pools only runs with the same reward.
    specification = {"loop": "collect_logs", "policy": policy, "reward": reward, "seed": SEED}
    run = study.run(specification)
    with run.claim() as claim:
        record = claim.writer
        described = [{"name": name, "size": size} for name, size in zip(NAMES, SIZES, strict=True)]
        record.start(
            specification=specification, seed=SEED, label=label, tasks=described, steps=STEPS
        )
        sampler = PolicyBatchSampler(
            SIZES,
            policy=policy,
            reward=reward,
            batch_size=32,
            steps=STEPS,
            generator=np.random.default_rng(SEED),
            record=record,
        )
        for (values, targets, tasks), draw in sampler.loader(parts):
            outputs = heads[int(tasks[0])](encoder(values)).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sampler.observe(loss, draw)
        record.finish(scores=[], best_step=None)
    return run


with tempfile.TemporaryDirectory() as folder:
    study = Study(Path(folder) / "study")
    first = train(Uniform(), study, "uniform")

    found = improve_policy(log_of_runs([first]))
    for note in found.notes:
        print("note:", note)
    print("entropy weight chosen from the log:", round(found.entropy, 3))
    print("shares:", dict(zip(found.tasks, found.probabilities.round(3).tolist(), strict=True)))
    gain = found.gain
    print(f"reward gained a step: {gain.value:.4f}, from {gain.low:.4f} to {gain.high:.4f}")

    shares = Shares(probabilities=tuple(found.probabilities.tolist()))
    model = Part(tasks=found.tasks, scored=found.tasks, share=1.0, division=shares)
    path = Plan(
        parts=(model,),
        evidence={"runs": [first.name], "entropy": found.entropy, "gain": float(gain.value)},
    ).save(Path(folder) / "plan.json")

    # The next run takes the plan.
    plan = Plan.load(path).for_tasks(NAMES)
    second = train(Fixed(plan.probabilities), study, "planned")
    print("steps a task:", [second.steps()["task"].to_pylist().count(name) for name in NAMES])

    # So does Hugging Face `datasets`, where it is installed.
    try:
        from datasets import Dataset, interleave_datasets
    except ImportError:
        print("datasets is not installed: `interleave_datasets(..., probabilities=...)` takes it")
    else:
        tables = [Dataset.from_dict({"task": [name] * 100}) for name in NAMES]
        mixed = interleave_datasets(tables, probabilities=list(plan.probabilities), seed=SEED)
        print("rows interleaved:", len(mixed))
