"""What a step of each weighting costs, ours and TorchJD's, as a multiple of a plain step.

A plain step descends the sum of the losses. All methods take their steps in turns in one process, in
TorchJD's environment, a plain step of the same model before each; times are of the CPU, medians, and
both figures are multiples of the plain steps'.

Models: a perceptron 128-256-256-128 with linear heads on one batch of 64 rows for all tasks; a text
convolution (24 filters of widths 3, 4 and 5, length 24) to which every task brings its own batch of 8.

    python benchmarks/weighting.py [--quick] [--json]
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from _common import ask, environment, report, row, times_in_turns
from taskmix import weighting
from taskmix.weighting import AnyWeighting, Balancer, Needs

Step = Callable[[], None]

LOSS_METHODS: dict[str, AnyWeighting] = {
    "equal": weighting.Equal(),
    "banditmtl": weighting.BanditMTL(radius=0.3),
    "uncertainty": weighting.Uncertainty(),
    "dwa": weighting.DynamicWeightAverage(steps_per_epoch=10),
    "rlw": weighting.RandomWeights(),
    "gls": weighting.GeometricMean(),
    "tchebycheff": weighting.Tchebycheff(),
    "stch": weighting.SmoothTchebycheff(),
    "imtl_l": weighting.IMTLL(),
    "group_dro": weighting.GroupDRO(),
    "famo": weighting.FAMO(),
}
GRADIENT_METHODS: dict[str, AnyWeighting] = {
    "gradnorm": weighting.GradNorm(),
    "mgda": weighting.MGDA(),
    "mgda_ub": weighting.MGDAUB(),
    "imtl_g": weighting.IMTLG(),
    "pcgrad": weighting.PCGrad(),
    "gradvac": weighting.GradVac(),
    "cagrad": weighting.CAGrad(),
    "nash": weighting.NashMTL(),
    "aligned": weighting.AlignedMTL(),
    "upgrad": weighting.UPGrad(),
    "config": weighting.ConFIG(),
    "fairgrad": weighting.FairGrad(),
    "excess": weighting.ExcessMTL(),
    "db_mtl": weighting.DBMTL(),
}


class TextEncoder(nn.Module):
    """Fixed word vectors, three convolutions side by side, the largest answer of each filter."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(2_000, 100).requires_grad_(False)
        self.convolutions = nn.ModuleList(nn.Conv1d(100, 24, width) for width in (3, 4, 5))

    def forward(self, ids: Tensor) -> Tensor:
        vectors = self.words(ids).transpose(1, 2)
        return torch.cat([conv(vectors).relu().amax(dim=2) for conv in self.convolutions], dim=1)


class Problem:
    """A model, its data and its optimiser; every contestant has one of its own."""

    def __init__(self, kind: str, tasks: int) -> None:
        torch.manual_seed(0)
        self.own_rows = kind == "text"
        self.encoder: nn.Module
        if self.own_rows:
            self.encoder = TextEncoder()
            features, rows = 72, 8
            self.inputs = [torch.randint(2_000, (rows, 24)) for _ in range(tasks)]
        else:
            self.encoder = nn.Sequential(
                nn.Linear(128, 256),
                nn.ReLU(),
                nn.Linear(256, 256),
                nn.ReLU(),
                nn.Linear(256, 128),
                nn.ReLU(),
            )
            features, rows = 128, 64
            self.inputs = [torch.randn(rows, 128)]
        self.heads = nn.ModuleList(nn.Linear(features, 4) for _ in range(tasks))
        self.targets = [torch.randint(4, (rows,)) for _ in range(tasks)]
        self.shared = [p for p in self.encoder.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD([*self.shared, *self.heads.parameters()], lr=1e-3)

    def codes(self) -> list[Tensor]:
        """One code for all tasks, or one for each."""
        return [self.encoder(inputs) for inputs in self.inputs]

    def losses(self, codes: list[Tensor]) -> list[Tensor]:
        each = codes if self.own_rows else codes * len(self.targets)
        return [
            nn.functional.cross_entropy(head(code), target)
            for head, code, target in zip(self.heads, each, self.targets, strict=True)
        ]


def plain(problem: Problem) -> Step:
    def step() -> None:
        problem.optimizer.zero_grad()
        total: Any = sum(problem.losses(problem.codes()))
        total.backward()
        problem.optimizer.step()

    return step


def ours(problem: Problem, method: AnyWeighting) -> Step:
    balancer = Balancer(method, shared=problem.encoder)
    by_code = Needs.REPRESENTATION in method.needs
    after = Needs.LOSSES_AFTER in method.needs

    def step() -> None:
        problem.optimizer.zero_grad()
        codes = problem.codes()
        losses = problem.losses(codes)
        balancer.backward(losses, representation=codes if by_code else None)
        problem.optimizer.step()
        if after:
            with torch.no_grad():
                balancer.after_step(problem.losses(problem.codes()))

    return step


def of_scalarizer(problem: Problem, scalarizer: Any, *, famo: bool = False) -> Step:
    own = list(scalarizer.parameters()) if not famo else []
    optimizer = torch.optim.SGD([*problem.shared, *problem.heads.parameters(), *own], lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        scalarizer(torch.stack(problem.losses(problem.codes()))).backward()
        optimizer.step()
        if famo:
            with torch.no_grad():
                scalarizer.update(torch.stack(problem.losses(problem.codes())))

    return step


def of_aggregator(problem: Problem, aggregator: Any) -> Step:
    from torchjd.autojac import jac_to_grad, mtl_backward

    def step() -> None:
        problem.optimizer.zero_grad()
        codes = problem.codes()
        mtl_backward(problem.losses(codes), features=codes)
        jac_to_grad(problem.shared, aggregator)
        problem.optimizer.step()

    return step


def peers(tasks: int) -> dict[str, Callable[[Problem], Step]]:
    """How TorchJD takes a step by each method, with the defaults of its documentation."""
    if importlib.util.find_spec("torchjd") is None:
        return {}
    import torchjd.aggregation as aggregation
    import torchjd.scalarization as scalarization

    scalarizers = {
        "uncertainty": scalarization.UW(tasks),
        "dwa": scalarization.DWA(),
        "rlw": scalarization.Random(),
        "gls": scalarization.GeometricMean(),
        "stch": scalarization.STCH(mu=0.1),
        "imtl_l": scalarization.IMTLL(tasks),
        "famo": scalarization.FAMO(tasks),
    }
    aggregators = {
        "mgda": aggregation.MGDA(),
        "imtl_g": aggregation.IMTLG(),
        "pcgrad": aggregation.PCGrad(),
        "gradvac": aggregation.GradVac(),
        "cagrad": aggregation.CAGrad(c=0.4),
        "nash": aggregation.NashMTL(n_tasks=tasks),
        "aligned": aggregation.AlignedMTL(),
        "upgrad": aggregation.UPGrad(),
        "config": aggregation.ConFIG(),
        "fairgrad": aggregation.FairGrad(alpha=2.0),
        "excess": aggregation.ExcessMTL(),
    }
    return {
        **{
            name: partial(of_scalarizer, scalarizer=scalarizer, famo=name == "famo")
            for name, scalarizer in scalarizers.items()
        },
        **{
            name: partial(of_aggregator, aggregator=aggregator)
            for name, aggregator in aggregators.items()
        },
    }


def contestants(tasks: int) -> dict[str, Callable[[Problem], Step]]:
    methods = LOSS_METHODS | GRADIENT_METHODS
    made = {f"ours/{name}": partial(ours, method=method) for name, method in methods.items()}
    return made | {f"torchjd/{name}": of for name, of in peers(tasks).items()}


def multiples_of(kind: str, tasks: int, rounds: int) -> dict[str, float]:
    """Median CPU time of each contestant's steps over that of plain steps of the same model.

    The two alternate on the same parameters, so that neither finds them nearer in the caches.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    steps = {}
    for name, of in contestants(tasks).items():
        problem = Problem(kind, tasks)
        steps[name] = plain(problem), of(problem)
    found = {}
    for name, pair in steps.items():
        times = 4 if name.partition("/")[2] in LOSS_METHODS else 1  # they differ by hundredths
        plain_seconds, own = map(statistics.median, times_in_turns(pair, times * rounds, warm=2))
        found[name] = own / plain_seconds
    return found


PEER = "TorchJD"
PACKAGES = ["torchjd[full]==0.18.0"]
MODELS = {"mlp": "perceptron", "text": "text convolution"}


def measure(quick: bool) -> list[dict[str, Any]]:
    python = environment("torchjd", PACKAGES)
    rows = []
    for kind, shown in MODELS.items():
        for tasks in (4, 16) if quick else (4, 16, 50):
            rounds = 3 if quick else 15 if tasks < 50 else 8
            multiples = ask(python, "weighting.py", "time", kind, tasks, rounds)
            rows += time_rows(f"{shown}, {tasks} tasks", multiples)
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


if __name__ == "__main__":
    if sys.argv[1:2] == ["time"]:  # in TorchJD's environment
        print(json.dumps(multiples_of(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        report("weighting", measure, __doc__ or "")
