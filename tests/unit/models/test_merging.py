"""Merging of models: values by hand, and brute force, entry by entry."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.models import (
    DARE,
    TIES,
    Merge,
    Merging,
    TaskArithmetic,
    WeightAverage,
    merge_states,
    task_vectors,
)

METHODS: list[Merging] = [
    WeightAverage(),
    TaskArithmetic(),
    TIES(),
    TIES(density=1.0),
    DARE(drop=0.3),
    DARE(drop=0.3, then=TIES()),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=str)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ties_by_hand(vectors: torch.Tensor, density: float) -> list[float]:
    """Algorithm 1 of the paper, one number at a time."""
    rows = [list(row) for row in vectors.tolist()]
    kept = max(round(density * len(rows[0])), 1)
    for row in rows:
        small = sorted(range(len(row)), key=lambda at: -abs(row[at]))[kept:]
        for at in small:
            row[at] = 0.0
    merged = []
    for column in zip(*rows, strict=True):
        positive = sum(value for value in column if value > 0)
        negative = -sum(value for value in column if value < 0)
        agreeing = [v for v in column if (v > 0 if positive > negative else v < 0)]
        merged.append(sum(agreeing) / len(agreeing) if agreeing else 0.0)
    return merged


@pytest.mark.parametrize("density", [0.2, 0.5, 1.0])
def test_ties_is_the_papers_algorithm_entry_by_entry(density: float) -> None:
    vectors = drawn(4, 30)
    found = TIES(density=density).combine(vectors, torch.Generator())
    torch.testing.assert_close(found, torch.tensor(ties_by_hand(vectors, density)))


def test_ties_trims_each_vector_by_its_own_magnitudes_over_all_parameters() -> None:
    # Of ten entries two stay: those of a large task do not push a small task's out.
    vectors = torch.zeros(2, 10)
    vectors[0, :3] = torch.tensor([100.0, -90.0, 80.0])
    vectors[1, 3:6] = torch.tensor([0.1, 0.3, -0.2])
    found = TIES().combine(vectors, torch.Generator())
    wanted = [100.0, -90.0, 0.0, 0.0, 0.3, -0.2, 0.0, 0.0, 0.0, 0.0]
    torch.testing.assert_close(found, torch.tensor(wanted))


def test_task_arithmetic_at_one_over_the_tasks_is_the_average() -> None:
    start = {"w": drawn(3, 2)}
    ends = [{"w": drawn(3, 2, seed=seed)} for seed in (1, 2, 3, 4)]
    vectors = task_vectors(start, ends)
    merged = merge_states(start, vectors, TaskArithmetic(), scale=1 / 4)
    average = merge_states(start, vectors, WeightAverage(), scale=1.0)
    torch.testing.assert_close(merged["w"], average["w"])
    torch.testing.assert_close(average["w"], torch.stack([end["w"] for end in ends]).mean(dim=0))


def test_what_dare_drops_is_made_up_for_on_average() -> None:
    vectors = drawn(2, 50)
    generator = torch.Generator().manual_seed(0)
    found = torch.stack([DARE(drop=0.5).combine(vectors, generator) for _ in range(4000)])
    torch.testing.assert_close(found.mean(dim=0), vectors.sum(dim=0), atol=0.15, rtol=0.0)
    one = DARE(drop=0.5, then=WeightAverage()).combine(vectors[:1], generator)
    kept = one != 0
    assert 0 < int(kept.sum()) < 50
    torch.testing.assert_close(one[kept], 2 * vectors[0][kept])


@pytest.mark.parametrize("method", [WeightAverage(), TIES(density=1.0)], ids=str)
def test_models_that_are_all_alike_are_merged_into_themselves(method: Merging) -> None:
    start, end = {"w": drawn(6)}, {"w": drawn(6, seed=1)}
    merged = merge_states(start, task_vectors(start, [end, end]), method, scale=1.0)
    torch.testing.assert_close(merged["w"], end["w"])


@every_method
def test_a_scale_of_nothing_is_the_start_and_the_inputs_stay_as_they_are(method: Merging) -> None:
    start = {"a": drawn(2, 3), "count": torch.tensor([7]), "b": drawn(4)}
    ends = [{**start, "a": drawn(2, 3, seed=s), "b": drawn(4, seed=s)} for s in (1, 2)]
    before = [value.clone() for value in start.values()]
    vectors = task_vectors(start, ends)
    copied = vectors.clone()
    merged = merge_states(start, vectors, method, scale=0.0)
    assert list(merged) == list(start)
    for name, value in start.items():
        torch.testing.assert_close(merged[name], value)
        assert merged[name].dtype == value.dtype
    assert torch.equal(vectors, copied)
    assert all(map(torch.equal, start.values(), before))


@every_method
def test_the_same_generator_gives_the_same_bits(method: Merging) -> None:
    vectors = drawn(3, 40)
    first, second = (method.combine(vectors, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, second)


def test_a_multiple_of_a_task_counts_it_that_often() -> None:
    start = {"w": torch.zeros(2)}
    vectors = task_vectors(
        start, [{"w": torch.tensor([1.0, 0.0])}, {"w": torch.tensor([0.0, 1.0])}]
    )
    merged = merge_states(start, vectors, TaskArithmetic(), scale=0.5, multiples=(2.0, 0.0))
    assert merged["w"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TIES(density=0.0), "`density`"),
        (lambda: DARE(drop=1.0), "`drop`"),
        (lambda: TaskArithmetic(scales=()), "`scales`"),
        (lambda: TaskArithmetic(scales=(float("nan"),)), "`scales`"),
        (lambda: Merge(multiples=(float("inf"),)), "`scales`"),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make()


def test_models_with_other_parameters_are_refused_in_words() -> None:
    start = {"w": torch.zeros(2)}
    for end in ({"v": torch.zeros(2)}, {"w": torch.zeros(3)}):
        with pytest.raises(ShapeError, match="same parameters"):
            task_vectors(start, [end])
    with pytest.raises(InputError, match=r"method of `taskmix\.models`"):
        Merge(method="ties")  # type: ignore[arg-type]
