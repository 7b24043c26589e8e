"""Merging of models: values by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.models import (
    Merge,
    Merging,
    TaskArithmetic,
    WeightAverage,
    merge_states,
    task_vectors,
)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_task_arithmetic_at_one_over_the_tasks_is_the_average() -> None:
    start = {"w": drawn(3, 2)}
    ends = [{"w": drawn(3, 2, seed=seed)} for seed in (1, 2, 3, 4)]
    vectors = task_vectors(start, ends)
    merged = merge_states(start, vectors, TaskArithmetic(), scale=1 / 4)
    average = merge_states(start, vectors, WeightAverage(), scale=1.0)
    torch.testing.assert_close(merged["w"], average["w"])
    torch.testing.assert_close(average["w"], torch.stack([end["w"] for end in ends]).mean(dim=0))


@pytest.mark.parametrize("method", [WeightAverage(), TaskArithmetic()], ids=str)
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
