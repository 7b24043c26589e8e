"""Two workers (gloo): `DistributedDataParallel`, `fully_shard` and `ZeroRedundancyOptimizer`.

Each worker has half of the rows. Two are as good as one process with all of them, whose run is the
oracle here.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from taskmix.errors import InputError
from taskmix.weighting import (
    DBMTL,
    FAMO,
    MGDA,
    MGDAUB,
    AnyWeighting,
    Balancer,
    BanditMTL,
    GradNorm,
    PCGrad,
    RandomWeights,
    UPGrad,
)

TASKS, WORKERS, STEPS = 4, 2, 3
Results = list[dict[str, tuple[Tensor, Tensor]]]


@dataclass(frozen=True)
class Case:
    method: AnyWeighting
    wrapped: Literal["ddp", "fsdp", "zero"] = "ddp"
    encoders: int = 1  # of two, each serves two tasks

    @property
    def name(self) -> str:
        return f"{type(self.method).__name__} {self.wrapped} {self.encoders}"


CASES = [
    Case(BanditMTL(radius=0.2)),
    Case(FAMO()),
    Case(RandomWeights()),
    Case(UPGrad()),
    Case(PCGrad()),
    Case(GradNorm()),
    Case(MGDAUB()),
    Case(DBMTL()),
    Case(MGDA(), encoders=2),
    Case(UPGrad(), "zero"),
    Case(BanditMTL(radius=0.2), "fsdp"),
    Case(FAMO(), "fsdp"),
    Case(UPGrad(), "fsdp"),
    Case(PCGrad(), "fsdp"),
    Case(GradNorm(), "fsdp"),
    Case(MGDAUB(), "fsdp"),
    Case(MGDA(), "fsdp", encoders=2),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


class Model(nn.Module):
    def __init__(self, encoders: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(4, 6), nn.Tanh()) for _ in range(encoders)]
        self.encoder = nn.ModuleList(layers)
        self.heads = nn.ModuleList(nn.Linear(6, 1) for _ in range(TASKS))

    def forward(self, inputs: Tensor) -> list[Tensor]:
        codes = [encoder(inputs) for encoder in self.encoder]
        return [head(codes[n * len(codes) // TASKS]) for n, head in enumerate(self.heads)]


def losses_of(outputs: list[Tensor], targets: Tensor) -> list[Tensor]:
    pairs = zip(outputs, targets, strict=True)
    return [nn.functional.mse_loss(output, target) for output, target in pairs]


def batches(ranks: range) -> Iterator[tuple[Tensor, Tensor]]:
    """The rows of some workers, side by side."""
    generators = [torch.Generator().manual_seed(rank + 1) for rank in ranks]
    for _ in range(STEPS):
        inputs = [torch.randn(8, 4, generator=generator) for generator in generators]
        targets = [torch.randn(TASKS, 8, 1, generator=generator) for generator in generators]
        yield torch.cat(inputs), torch.cat(targets, dim=1)


def balancer_of(method: AnyWeighting, model: Model) -> Balancer:
    representation = model.encoder[0] if isinstance(method, MGDAUB) else None
    return Balancer(
        method, shared=model.encoder, representation=representation, average="gradients"
    )


def play(
    case: Case,
    model: Model,
    wrapped: Callable[[Tensor], list[Tensor]],
    optimizer: Any,
    ranks: range,
) -> tuple[Tensor, Tensor]:
    """The weights of each step, and the parameters in the end; the second half of a step is added."""
    balancer = balancer_of(case.method, model)
    weights = []
    for inputs, targets in batches(ranks):
        optimizer.zero_grad()
        for _ in range(2):
            info = balancer.backward(losses_of(wrapped(inputs), targets), scale=0.5)
        weights.append(info.weights)
        optimizer.step()
        with torch.no_grad():
            balancer.after_step(losses_of(wrapped(inputs), targets))
    parameters: list[Any] = [parameter.detach() for parameter in model.parameters()]
    whole = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in parameters]
    return torch.stack(weights), torch.cat([p.flatten() for p in whole])


def begin(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=WORKERS)


def flatten(model: Model) -> nn.Module:
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"))


def shard(model: Model) -> Model:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (WORKERS,))
    for layer in model.encoder:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def work(rank: int, port: int, folder: str) -> None:
    begin(rank, port)
    found: dict[str, Any] = {}
    for case in CASES:
        model = Model(case.encoders)
        ranks = range(rank, rank + 1)
        if case.wrapped == "fsdp":
            shard(model)
            optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
            found[case.name] = play(case, model, model, optimizer, ranks)
            continue
        wrapped = DistributedDataParallel(model)
        if case.wrapped == "zero":
            from torch.distributed.optim import ZeroRedundancyOptimizer

            optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
        else:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        found[case.name] = play(case, model, wrapped, optimizer, ranks)
    found["words"] = [
        refused_by_shards(DBMTL(), rank),
        refused_by_shards(UPGrad(), rank, tasks=TASKS - rank),
        refused_later(),
        refused_when_flat(MGDAUB(), rank),
        refused_when_flat(UPGrad(), rank),
    ]
    found["names"] = agreed_names(rank)
    torch.save(found, Path(folder) / f"{rank}.pt")
    distributed.destroy_process_group()


def refused_by_shards(method: AnyWeighting, rank: int, tasks: int = TASKS) -> str:
    """What is said to sharded parameters, where a worker has losses of the first `tasks` alone."""
    model = shard(Model(1))
    inputs, targets = next(batches(range(rank, rank + 1)))
    losses: list[Tensor | None] = [*losses_of(model(inputs), targets)]
    with pytest.raises(InputError) as told:
        Balancer(method, shared=model.encoder).backward(losses[:tasks] + [None] * (TASKS - tasks))
    return str(told.value)


def refused_when_flat(method: AnyWeighting, rank: int) -> str:
    """What is said to the older kind of sharding, for which weightings of losses work."""
    model = Model(1)
    balancer = balancer_of(method, model)
    wrapped = flatten(model)
    inputs, targets = next(batches(range(rank, rank + 1)))
    Balancer(BanditMTL()).backward(losses_of(wrapped(inputs), targets))
    with pytest.raises(InputError) as told:
        balancer.backward(losses_of(wrapped(inputs), targets))
    return str(told.value)


def refused_later() -> str:
    """What is said to a task that only now has a name."""
    parameter = torch.ones(2, requires_grad=True)
    balancer = Balancer(BanditMTL())
    balancer.backward({"a": parameter[0] * 1})
    with pytest.raises(InputError) as told:
        balancer.backward({"a": parameter[0] * 1, "b": parameter[1] * 2})
    return str(told.value)


def agreed_names(rank: int) -> list[str]:
    """Workers whose first batches have different tasks."""
    parameter = torch.ones(2, requires_grad=True)
    mine = {"a": parameter[0] * 1} if rank == 0 else {"b": parameter[1] * 3}
    info = Balancer(BanditMTL()).backward(mine)
    return [*info.names, *map(str, info.losses.tolist())]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("workers")
    multiprocessing.spawn(work, (free_port(), str(folder)), nprocs=WORKERS)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(WORKERS)]


@every_case
def test_two_workers_with_half_the_rows_each_are_one_with_all(results: Results, case: Case) -> None:
    (weights, parameters), (other_weights, other_parameters) = (part[case.name] for part in results)
    assert torch.equal(weights, other_weights)
    torch.testing.assert_close(parameters, other_parameters)
    model = Model(case.encoders)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expected = play(case, model, model, optimizer, range(WORKERS))
    torch.testing.assert_close(weights, expected[0], atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(parameters, expected[1], atol=1e-5, rtol=1e-4)


def test_what_cannot_be_done_by_workers_is_refused_in_words(results: Results) -> None:
    for kept, missing, later, *flat in (part["words"] for part in results):
        assert all("Found those of FullyShardedDataParallel" in words for words in flat)
        assert "Found sharded ones. UPGrad, NashMTL and others" in kept
        assert "every worker should have a loss of the same tasks" in missing
        assert "every task should be named in the first step. Found b later" in later


def test_workers_whose_first_batches_have_different_tasks_agree_on_them(results: Results) -> None:
    assert [part["names"] for part in results] == [["a", "b", "1.0", "3.0"]] * WORKERS
