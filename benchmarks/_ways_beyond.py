r"""Two ways beyond one model for all: branching at a depth, and ensembles of groups.

    Li, Zhang, Duan, Dobriban and Zhang, "Efficiently Learning Branching Networks for Multitask
    Algorithmic Reasoning" (AutoBRANE), 2025: tasks share the first layers and part into groups above.
    Li, Zhang, Wang and Zhang, "Efficient Ensemble for Fine-tuning Language Models on Multiple
    Datasets" (EnsembleLoRA), 2025: one adapter a group of tasks, combined by weights.

Here both are perceptrons on the vectors of a frozen encoder. Groups are clusters by affinity: the
score of task i in runs on random subsets that hold j, the mean over them, as both papers define it;
it is measured by training, where the papers estimate it. Groups at random are the control, and so is
an ensemble of two models of all tasks. Every way has the same number of batches in all; members of an
ensemble have half of them each. Weights of ensembles are chosen on dev.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering
from torch import Tensor, nn

from taskmix.numerics import mean_interval, paired_interval
from taskmix.tasks import EncodedTasks

GROUPS = 3
DEPTH = 3  # of the network that branches; the others have one hidden layer
WIDTH, DROPOUT, RATE, BATCH = 256, 0.5, 1e-3, 16  # those of `--tune heads`
EVALUATIONS = 6
SUBSETS, SUBSET_SIZE = 40, 4  # that affinities are measured on; each has a third of the batches
MIXES = (1e-9, 0.25, 0.5, 0.75, 1 - 1e-9)  # of the second model; the ends are one model alone

Split = tuple[Tensor, Tensor]  # vectors and classes
Logits = dict[str, dict[int, Tensor]]  # [split][task], log-probabilities of every row
Rows = list[dict[str, Split]]  # [task][split]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How many hidden layers there are, and how many of them all tasks share."""

    layers: int = 1
    shared: int = 1


class Branched(nn.Module):
    """Layers that all share, then layers of each group, then a head a task."""

    def __init__(self, rows: Rows, classes: Sequence[int], groups: Sequence[int], shape: Shape):
        super().__init__()
        self.groups = list(groups)
        features = rows[0]["train"][0].shape[1]
        widths = [features, *[WIDTH] * shape.layers]
        self.trunk = _layers(widths[: shape.shared + 1])
        self.branches = nn.ModuleList(
            _layers(widths[shape.shared :]) for _ in range(max(groups) + 1)
        )
        self.heads = nn.ModuleList(nn.Linear(WIDTH, count) for count in classes)

    def forward(self, vectors: Tensor, task: int) -> Tensor:
        found: Tensor = self.heads[task](self.branches[self.groups[task]](self.trunk(vectors)))
        return found


def _layers(widths: Sequence[int]) -> nn.Sequential:
    made: list[nn.Module] = []
    for before, after in pairwise(widths):
        made += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(DROPOUT)]
    return nn.Sequential(*made)


class Bench:
    """Trains branched networks on some tasks, and remembers what they say of dev and test rows."""

    def __init__(self, tasks: EncodedTasks, steps: int) -> None:
        self.steps = steps
        self.classes = [task.outputs for task in tasks]
        self.rows: Rows = [
            {
                name: (split.inputs.batch(torch.arange(len(split.targets))), split.targets)
                for name, split in task.splits.items()
            }
            for task in tasks
        ]
        self.all = tuple(range(len(tasks)))

    def train(
        self,
        tasks: Sequence[int],
        seed: int,
        *,
        share: float = 1.0,  # of all batches
        groups: Sequence[int] | None = None,  # [task]; None: one
        shape: Shape = Shape(),  # noqa: B008 -- frozen
    ) -> Logits:
        """What the parameters of the best dev evaluation say."""
        torch.manual_seed(seed)
        drawn = np.random.default_rng([seed, len(tasks)])
        model = Branched(self.rows, self.classes, groups or [0] * len(self.rows), shape)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        steps = max(round(self.steps * share), EVALUATIONS)
        best, found = -1.0, {}
        for step in range(1, steps + 1):
            task = int(drawn.choice(tasks))
            vectors, targets = self.rows[task]["train"]
            chosen = torch.from_numpy(drawn.integers(len(targets), size=BATCH))
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(vectors[chosen], task), targets[chosen])
            loss.backward()
            optimizer.step()
            if step % (steps // EVALUATIONS) == 0:
                now = self._answers(model, tasks)
                score = float(np.mean([self.accuracy(now, "dev", task) for task in tasks]))
                if score > best:
                    best, found = score, now
        return found

    def _answers(self, model: Branched, tasks: Sequence[int]) -> Logits:
        model.eval()
        with torch.inference_mode():
            found = {
                split: {
                    task: model(self.rows[task][split][0], task).log_softmax(dim=1)
                    for task in tasks
                }
                for split in ("dev", "test")
            }
        model.train()
        return found

    def accuracy(self, answers: Logits, split: str, task: int) -> float:
        right = answers[split][task].argmax(dim=1) == self.rows[task][split][1]
        return float(right.double().mean())

    def mean(self, answers: Logits, split: str = "test") -> float:
        return 100 * float(np.mean([self.accuracy(answers, split, task) for task in self.all]))

    def in_groups(self, groups: Sequence[int], seed: int, share: float = 1.0) -> Logits:
        """A model for each group, with its share of the batches."""
        found: Logits = {"dev": {}, "test": {}}
        for group in sorted(set(groups)):
            members = [task for task in self.all if groups[task] == group]
            part = self.train(members, seed, share=share * len(members) / len(self.all))
            for split in found:
                found[split].update(part[split])
        return found

    def combined(self, first: Logits, second: Logits) -> Logits:
        """Probabilities mixed by the one weight that has the lowest mean log-loss on dev."""

        def mixed(weight: float) -> Logits:
            return {
                split: {
                    task: torch.logaddexp(
                        first[split][task] + np.log1p(-weight),
                        second[split][task] + np.log(weight),
                    )
                    for task in self.all
                }
                for split in first
            }

        def loss(weight: float) -> float:
            dev = mixed(weight)["dev"]
            losses = [nn.functional.nll_loss(dev[t], self.rows[t]["dev"][1]) for t in self.all]
            return float(torch.stack(losses).mean())

        return mixed(min(MIXES, key=loss))

    def affinities(self, seed: int) -> NDArray[np.float64]:
        """[i, j], the mean dev log-likelihood of i in runs on subsets that hold j too."""
        generator = np.random.default_rng([seed, 3])
        count = len(self.all)
        sums, times = np.zeros((count, count)), np.zeros((count, count))
        for run in range(SUBSETS):
            subset = sorted(generator.choice(count, SUBSET_SIZE, replace=False).tolist())
            found = self.train(subset, seed * 1000 + run, share=1 / 3)["dev"]
            for i in subset:
                value = -float(nn.functional.nll_loss(found[i], self.rows[i]["dev"][1]))
                sums[i, subset] += value
                times[i, subset] += 1
        means = sums / np.maximum(times, 1)
        level = np.diag(means)[:, None]
        return np.where(times > 0, means - level, 0.0)


def clusters(affinities: NDArray[np.float64]) -> list[int]:
    """Groups of tasks with a high affinity to each other, by average linkage."""
    both = affinities + affinities.T
    distances = both.max() - both
    np.fill_diagonal(distances, 0.0)
    model: Any = AgglomerativeClustering(GROUPS, metric="precomputed", linkage="average")
    return [int(group) for group in model.fit_predict(distances)]


def compare_beyond(tasks: EncodedTasks, *, steps: int, seeds: Sequence[int]) -> None:
    """Prints the mean test accuracy of every way, and minus all together, paired by seed."""
    bench = Bench(tasks, steps)
    found: dict[str, list[float]] = {}
    for seed in seeds:
        for name, value in _ways(bench, seed).items():
            found.setdefault(name, []).append(value())
        shown = ", ".join(f"{name} {values[-1]:.1f}" for name, values in found.items())
        print(f"seed {seed}: {shown}", flush=True)
    base, deep = found["all together"], found[f"branch after {DEPTH} of {DEPTH}"]
    for name, values in found.items():
        interval = mean_interval(values)
        gain = paired_interval(values, deep if name.startswith("branch") else base)
        print(
            f"{name:34} test {interval.mean:6.2f}   minus one model {gain.mean:6.2f} "
            f"({gain.low:.2f} to {gain.high:.2f})"
        )


def _ways(bench: Bench, seed: int) -> dict[str, Callable[[], float]]:
    """Ways by name, each as what gives its test score; parts they have in common are trained once."""
    groups = clusters(bench.affinities(seed))
    random = np.random.default_rng([seed, 9]).permutation(groups).tolist()
    half, other = (bench.train(bench.all, seed + add, share=0.5) for add in (0, 500))
    ways: dict[str, Callable[[], float]] = {
        "each task alone": lambda: bench.mean(bench.in_groups(bench.all, seed)),
        "all together": lambda: bench.mean(bench.train(bench.all, seed)),
        "groups by affinity": lambda: bench.mean(bench.in_groups(groups, seed)),
        "groups at random": lambda: bench.mean(bench.in_groups(random, seed)),
        "ensemble: all, all": lambda: bench.mean(bench.combined(half, other)),
    }
    for words, some in (("by affinity", groups), ("at random", random), ("of one", bench.all)):
        ways[f"ensemble: all, groups {words}"] = lambda some=some: bench.mean(  # type: ignore[misc]
            bench.combined(half, bench.in_groups(some, seed, share=0.5))
        )
    for shared in range(DEPTH + 1):
        shape = Shape(layers=DEPTH, shared=shared)
        ways[f"branch after {shared} of {DEPTH}"] = lambda shape=shape: bench.mean(  # type: ignore[misc]
            bench.train(bench.all, seed, groups=groups, shape=shape)
        )
    shape = Shape(layers=DEPTH, shared=1)
    ways["branch after 1, at random"] = lambda: bench.mean(
        bench.train(bench.all, seed, groups=random, shape=shape)
    )
    return ways
