"""One batch of every task a step, in a loop of one's own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler

from taskmix.errors import InputError, OptionError, RecordError
from taskmix.training import ZippedLoaders, zip_loaders


def listed(zipped: ZippedLoaders) -> list[list[Any]]:
    return [list(batches.values()) for batches in zipped]


def test_shorter_tasks_start_over_until_the_longest_ends() -> None:
    zipped = zip_loaders({"a": [1, 2, 3], "b": [10], "c": [7, 8, 9]})
    expected = [[1, 10, 7], [2, 10, 8], [3, 10, 9]]
    assert listed(zipped) == expected
    assert listed(zipped) == expected  # and again in the next loop
    assert len(zipped) == 3


def test_it_can_end_with_the_shortest_or_after_a_number_of_steps_that_go_on() -> None:
    loaders = {"a": [1, 2, 3], "b": [10, 20]}
    shortest = zip_loaders(loaders, stop="shortest")
    assert listed(shortest) == listed(shortest) == [[1, 10], [2, 20]]
    assert len(shortest) == 2
    counted = zip_loaders(loaders, steps=4)
    assert listed(counted) == [[1, 10], [2, 20], [3, 10], [1, 20]]
    assert listed(counted) == [[2, 10], [3, 20], [1, 10], [2, 20]]
    assert len(counted) == 4


def test_what_cannot_be_zipped_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="`b` should start over"):
        zip_loaders({"a": [1], "b": iter([1])})
    with pytest.raises(InputError, match="`b` should have at least one batch"):
        listed(zip_loaders({"a": [1, 2], "b": []}))
    for options in ({"stop": "never"}, {"steps": 0}):
        with pytest.raises(OptionError, match="`steps` of 1 or more"):
            zip_loaders({"a": [1]}, **options)  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="loaders for a"):
        zip_loaders({"a": [1]}).load_state_dict(zip_loaders({"b": [1]}).state_dict())


def test_each_pass_of_a_distributed_sampler_has_its_own_order() -> None:
    rows = list(range(8))
    sampler = DistributedSampler(rows, num_replicas=2, rank=0, seed=3)  # type: ignore[arg-type]
    loader = DataLoader(rows, batch_size=2, sampler=sampler)  # type: ignore[arg-type]
    zipped = zip_loaders({"long": list(range(6)), "short": loader})
    found = torch.cat([batches["short"] for batches in zipped]).tolist()
    passes = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        passes.append(list(sampler))
    assert found == [*passes[0], *passes[1], *passes[2]]
    assert passes[0] != passes[1]


def loaders(kind: str) -> dict[str, DataLoader[Any]]:
    torch.manual_seed(5)
    made = {}
    for number, (name, size) in enumerate({"a": 7, "b": 4}.items()):
        rows: Any = list(range(size))
        options: dict[str, Any] = {"shuffle": True}
        if kind == "generator":
            options["generator"] = torch.Generator().manual_seed(number)
        elif kind == "epochs":
            sampler = DistributedSampler(rows, num_replicas=1, rank=0)
            options = {"sampler": sampler}
        elif kind == "workers":
            options["num_workers"] = 1
        made[name] = DataLoader(rows, batch_size=2, **options)
    return made


def numbers(batches: dict[str, torch.Tensor]) -> list[list[int]]:
    return [batch.tolist() for batch in batches.values()]


@pytest.mark.parametrize("kind", ["global", "generator", "epochs", "workers"])
@pytest.mark.parametrize("steps", [None, 9])
def test_a_resumed_loop_gets_the_batches_that_the_first_would_have_got(
    kind: str, steps: int | None
) -> None:
    first = zip_loaders(loaders(kind), steps=steps)
    going: Iterator[dict[str, torch.Tensor]] = iter(first)
    for _ in range(3):
        next(going)
    file = io.BytesIO()
    torch.save((first.state_dict(), torch.get_rng_state()), file)
    expected = [numbers(batches) for batches in going] + [numbers(next(iter(first)))]
    file.seek(0)
    tree, random = torch.load(file, weights_only=True)
    resumed = zip_loaders(loaders(kind), steps=steps)
    torch.manual_seed(99)
    resumed.load_state_dict(tree)
    torch.set_rng_state(random)  # as a checkpoint of the loop does
    found = [numbers(batches) for batches in resumed] + [numbers(next(iter(resumed)))]
    assert found == expected


def test_a_loader_that_can_resume_itself_does() -> None:
    class Resuming:
        def __init__(self) -> None:
            self.place = 0

        def __iter__(self) -> Iterator[int]:
            while self.place < 5:
                self.place += 1
                yield self.place
            self.place = 0

        def state_dict(self) -> dict[str, int]:
            return {"place": self.place}

        def load_state_dict(self, tree: dict[str, int]) -> None:
            self.place = tree["place"]

    first = zip_loaders({"a": Resuming()})
    going = iter(first)
    next(going)
    second = zip_loaders({"a": Resuming()})
    second.load_state_dict(first.state_dict())
    assert listed(second) == [[2], [3], [4], [5]]
