"""Two workers (gloo) with a model in `DistributedDataParallel`."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from taskmix.weighting import (
    DBMTL,
    FAMO,
    MGDAUB,
    AnyWeighting,
    Balancer,
    BanditMTL,
    GradNorm,
    PCGrad,
    RandomWeights,
    UPGrad,
)

TASKS, WORKERS, STEPS = 3, 2, 3
METHODS: list[AnyWeighting] = [
    BanditMTL(radius=0.2),
    FAMO(),
    RandomWeights(),
    UPGrad(),
    PCGrad(),
    GradNorm(),
    MGDAUB(),
    DBMTL(),
]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
        self.heads = nn.ModuleList(nn.Linear(6, 1) for _ in range(TASKS))

    def forward(self, inputs: Tensor) -> list[Tensor]:
        code = self.encoder(inputs)
        return [head(code) for head in self.heads]


def losses_of(outputs: list[Tensor], targets: Tensor) -> list[Tensor]:
    return [
        nn.functional.mse_loss(output, target)
        for output, target in zip(outputs, targets, strict=True)
    ]


def work(rank: int, port: int, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=WORKERS)
    found = {}
    for method in METHODS:
        model = Model()
        wrapped = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
        representation = model.encoder if isinstance(method, MGDAUB) else None
        balancer = Balancer(method, shared=model.encoder, representation=representation)
        generator = torch.Generator().manual_seed(rank + 1)  # other rows in each worker
        weights = []
        for _ in range(STEPS):
            inputs = torch.randn(8, 4, generator=generator)
            targets = torch.randn(TASKS, 8, 1, generator=generator)

            optimizer.zero_grad()
            info = balancer.backward(losses_of(wrapped(inputs), targets))
            weights.append(info.weights)
            optimizer.step()
            with torch.no_grad():
                balancer.after_step(losses_of(wrapped(inputs), targets))
        parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
        found[type(method).__name__] = (torch.stack(weights), parameters)
    torch.save(found, Path(folder) / f"{rank}.pt")
    distributed.destroy_process_group()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[Tensor, Tensor]]]:
    folder = tmp_path_factory.mktemp("workers")
    multiprocessing.spawn(work, (free_port(), str(folder)), nprocs=WORKERS)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(WORKERS)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_workers_have_the_same_weights_and_the_same_parameters(
    results: list[dict[str, tuple[Tensor, Tensor]]], method: AnyWeighting
) -> None:
    name = type(method).__name__
    (weights, parameters), (other_weights, other_parameters) = (part[name] for part in results)
    assert torch.equal(weights, other_weights)
    torch.testing.assert_close(parameters, other_parameters)
    assert parameters.isfinite().all()
    assert float(weights.abs().sum(dim=1).mean()) == pytest.approx(TASKS)


def test_two_workers_with_half_the_rows_each_are_one_with_all(
    results: list[dict[str, tuple[Tensor, Tensor]]],
) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    balancer = Balancer(BanditMTL(radius=0.2))
    generators = [torch.Generator().manual_seed(rank + 1) for rank in range(WORKERS)]
    for _ in range(STEPS):
        inputs, targets = [], []
        for generator in generators:
            inputs.append(torch.randn(8, 4, generator=generator))
            targets.append(torch.randn(TASKS, 8, 1, generator=generator))
        outputs = model(torch.cat(inputs))
        whole = torch.cat(targets, dim=1)
        optimizer.zero_grad()
        balancer.backward(losses_of(outputs, whole))
        optimizer.step()
    parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.testing.assert_close(results[0]["BanditMTL"][1], parameters, atol=1e-5, rtol=1e-4)
