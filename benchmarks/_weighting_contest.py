"""Times steps of all methods, ours and TorchJD's, in turns; `weighting.py` runs it there.

    python _weighting_contest.py time MODEL TASKS ROUNDS   # in plain steps, as JSON
    python _weighting_contest.py memory CONTESTANT         # bytes that steps take, as JSON

Models: a perceptron 128-256-256-128 with linear heads on one batch of 64 rows for all tasks; a text
convolution (24 filters of widths 3, 4 and 5, length 24) to which every task brings its own
batch of 8.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from taskmix.weighting import (
    DBMTL,
    FAMO,
    IMTLG,
    IMTLL,
    MGDA,
    MGDAUB,
    AlignedMTL,
    AnyWeighting,
    Balancer,
    BanditMTL,
    CAGrad,
    ConFIG,
    DynamicWeightAverage,
    Equal,
    ExcessMTL,
    FairGrad,
    GeometricMean,
    GradNorm,
    GradVac,
    GroupDRO,
    NashMTL,
    Needs,
    PCGrad,
    RandomWeights,
    SmoothTchebycheff,
    Tchebycheff,
    Uncertainty,
    UPGrad,
)

Step = Callable[[], None]

LOSS_METHODS: dict[str, AnyWeighting] = {
    "equal": Equal(),
    "banditmtl": BanditMTL(radius=0.3),
    "uncertainty": Uncertainty(),
    "dwa": DynamicWeightAverage(steps_per_epoch=10),
    "rlw": RandomWeights(),
    "gls": GeometricMean(),
    "tchebycheff": Tchebycheff(),
    "stch": SmoothTchebycheff(),
    "imtl_l": IMTLL(),
    "group_dro": GroupDRO(),
    "famo": FAMO(),
}
GRADIENT_METHODS: dict[str, AnyWeighting] = {
    "gradnorm": GradNorm(),
    "mgda": MGDA(),
    "mgda_ub": MGDAUB(),
    "imtl_g": IMTLG(),
    "pcgrad": PCGrad(),
    "gradvac": GradVac(),
    "cagrad": CAGrad(),
    "nash": NashMTL(),
    "aligned": AlignedMTL(),
    "upgrad": UPGrad(),
    "config": ConFIG(),
    "fairgrad": FairGrad(),
    "excess": ExcessMTL(),
    "db_mtl": DBMTL(),
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

    def __init__(self, kind: str, tasks: int, *, width: int = 256) -> None:
        torch.manual_seed(0)
        self.own_rows = kind == "text"
        self.encoder: nn.Module
        if self.own_rows:
            self.encoder = TextEncoder()
            features, rows = 72, 8
            self.inputs = [torch.randint(2_000, (rows, 24)) for _ in range(tasks)]
        else:
            self.encoder = nn.Sequential(
                nn.Linear(128, width),
                nn.ReLU(),
                nn.Linear(width, width),
                nn.ReLU(),
                nn.Linear(width, 128),
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
    made: dict[str, Callable[[Problem], Step]] = {
        name: partial(of_scalarizer, scalarizer=scalarizer, famo=name == "famo")
        for name, scalarizer in scalarizers.items()
    }
    for name, aggregator in aggregators.items():
        made[name] = partial(of_aggregator, aggregator=aggregator)
    return made


def contestants(tasks: int) -> dict[str, Callable[[Problem], Step]]:
    methods = LOSS_METHODS | GRADIENT_METHODS
    made = {f"ours/{name}": partial(ours, method=method) for name, method in methods.items()}
    return made | {f"torchjd/{name}": of for name, of in peers(tasks).items()}


def measure(kind: str, tasks: int, rounds: int) -> dict[str, float]:
    """Median CPU time of each contestant's steps over that of plain steps of the same model.

    The two alternate on the same parameters, so that neither finds them nearer in the caches.
    """
    steps = {}
    for name, of in contestants(tasks).items():
        problem = Problem(kind, tasks)
        steps[name] = plain(problem), of(problem)
    for pair in steps.values():
        for step in pair * 2:
            step()
    cheap = {f"{side}/{name}" for name in LOSS_METHODS for side in ("ours", "torchjd")}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, (plain_step, step) in steps.items():
            for _ in range(4 if name in cheap else 1):  # cheap steps differ by hundredths
                times[name].append((timed(plain_step), timed(step)))
    return {
        name: statistics.median(own for _, own in pairs) / statistics.median(p for p, _ in pairs)
        for name, pairs in times.items()
    }


def timed(step: Step) -> float:
    begin = time.process_time()
    step()
    return time.process_time() - begin


MEMORY_PEERS = ("mgda", "pcgrad", "cagrad", "nash", "upgrad", "excess")


def peak(contestant: str) -> int:
    """Bytes that three steps take at most, with 16 tasks and three million shared parameters."""
    side, _, name = contestant.partition("/")
    problem = Problem("mlp", 16, width=1_600)
    if side == "plain":
        step = plain(problem)
    elif side == "ours":
        step = ours(problem, (LOSS_METHODS | GRADIENT_METHODS)[name])
    else:
        import torchjd.aggregation as aggregation

        made = {"nash": lambda: aggregation.NashMTL(n_tasks=16), "upgrad": aggregation.UPGrad}
        made |= {"mgda": aggregation.MGDA, "pcgrad": aggregation.PCGrad}
        made |= {"cagrad": lambda: aggregation.CAGrad(c=0.4), "excess": aggregation.ExcessMTL}
        step = of_aggregator(problem, made[name]())
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    for _ in range(3):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if sys.argv[1] == "memory":
        print(json.dumps(peak(sys.argv[2])))
    else:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))


if __name__ == "__main__":
    main()
