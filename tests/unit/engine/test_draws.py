"""Draws that are decided ahead do not show: the same as one by one, and the same state after each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from taskmix.engine._fleet import _draws
from taskmix.engine._fleet._draws import Draws
from taskmix.policies import draw_many
from taskmix.training import Stream

SHARES = np.array([0.5, 0.0, 0.3, 0.2])
SIZES = (7, 5, 12, 3)  # rows; the last one's batches are smaller than the others'
BATCH = 4


def streams() -> list[Stream]:
    cpu = torch.device("cpu")
    return [
        Stream(torch.arange(size), BATCH, seed=3, number=slot, device=cpu)
        for slot, size in enumerate(SIZES)
    ]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_draws, "BLOCK", 6)


@given(counts=st.lists(st.integers(0, 15), max_size=6), ahead=st.booleans())
def test_any_calls_give_the_draws_of_one_by_one_and_leave_its_state(
    counts: list[int], ahead: bool
) -> None:
    draws = Draws(streams(), SHARES, np.random.default_rng(0), ahead=ahead)
    alone, generator = streams(), np.random.default_rng(0)
    for count in counts:
        rows = torch.full((count, BATCH), -1)
        slots = draws.take(count, rows)
        for step in range(count):
            slot = int(draw_many(SHARES, generator, 1)[0])
            taken = alone[slot].take()
            assert slots[step] == slot
            assert rows[step, : len(taken)].tolist() == taken.tolist()
            assert (rows[step, len(taken) :] == -1).all()
        assert draws.positions == [stream.position for stream in alone]
        assert draws.generator_state == generator.bit_generator.state


def test_a_state_is_gone_on_from_and_what_was_decided_ahead_is_forgotten() -> None:
    first = Draws(streams(), SHARES, np.random.default_rng(0), ahead=True)
    first.take(9, torch.full((9, BATCH), -1))
    positions, state = first.positions, first.generator_state
    expected = torch.full((20, BATCH), -1)
    slots = first.take(20, expected)
    for other in (first, Draws(streams(), SHARES, np.random.default_rng(5), ahead=True)):
        other.take(2, torch.full((2, BATCH), -1))
        other.move_to(positions, state)
        found = torch.full((20, BATCH), -1)
        np.testing.assert_array_equal(other.take(20, found), slots)
        assert torch.equal(found, expected)
