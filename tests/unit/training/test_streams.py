from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as some

from taskmix.training import Stream

CPU = torch.device("cpu")


def make(rows: int, batch: int, seed: int = 0, number: int = 0) -> Stream:
    return Stream(torch.arange(rows), batch, seed=seed, number=number, device=CPU)


@given(rows=some.integers(1, 40), batch=some.integers(1, 50), passes=some.integers(1, 3))
def test_every_pass_visits_every_row_once_and_every_batch_is_full(
    rows: int, batch: int, passes: int
) -> None:
    stream = make(rows, batch)
    size = min(rows, batch)
    taken: list[int] = []
    while len(taken) < passes * rows:
        rows_taken = stream.take().tolist()
        assert len(rows_taken) == size
        taken += rows_taken
    for number in range(passes):
        assert sorted(taken[number * rows : (number + 1) * rows]) == list(range(rows))


@given(rows=some.integers(1, 30), batch=some.integers(1, 12), before=some.integers(0, 20))
def test_a_stream_moved_to_a_position_goes_on_as_the_first_would_have(
    rows: int, batch: int, before: int
) -> None:
    first, second = make(rows, batch), make(rows, batch)
    for _ in range(before):
        first.take()
    second.move_to(first.position)
    for _ in range(5):
        assert torch.equal(first.take(), second.take())


def test_a_pass_is_complete_with_the_batch_that_has_its_last_row() -> None:
    stream = Stream(torch.arange(10), 4, seed=1, number=0, device=torch.device("cpu"))
    counted = []
    for _ in range(5):
        stream.take()
        counted.append(stream.completed)
    assert counted == [0, 0, 1, 1, 2]  # 4, 8, 12, 16 and 20 rows taken
    assert len(stream) == 10


@given(
    rows=some.integers(1, 30),
    batch=some.integers(1, 40),
    counts=some.lists(some.integers(1, 9), min_size=1, max_size=4),
)
def test_many_batches_at_once_are_the_batches_one_by_one(
    rows: int, batch: int, counts: list[int]
) -> None:
    one, many = make(rows, batch, seed=3), make(rows, batch, seed=3)
    assert many.batch_size == min(rows, batch)
    for count in counts:
        expected = torch.stack([one.take() for _ in range(count)])
        assert torch.equal(many.take_many(count), expected)
        assert many.position == one.position
