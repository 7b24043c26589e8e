"""What a fleet is made of: families, chunks, memory, stacks, draws ahead, kernels and compiled steps."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fleet_toys import (
    RUN,
    SUBSETS,
    must_be_alike,
    runs_of,
)
from hypothesis import given
from hypothesis import strategies as st
from test_fleet_adapters import CONFIGS, adapted

from taskmix.engine import (
    Auto,
    Fleet,
    Optimization,
    Run,
    build,
    fleet_pays,
)
from taskmix.engine._fleet import _attention, _decisions, _plan
from taskmix.engine._fleet._adapters import find_way
from taskmix.engine._fleet._attention import attention_for
from taskmix.engine._fleet._decisions import Draws
from taskmix.engine._fleet._dropout import Dropout
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._pieces import PiecePool
from taskmix.engine._fleet._pool import Numbering
from taskmix.engine._fleet._stepper import Stepper, _Replayed
from taskmix.engine._run import encode
from taskmix.errors import TaskmixWarning
from taskmix.models import (
    Perceptron,
    TextConvolution,
    WindowBiLSTM,
    attend,
    frozen_base,
)
from taskmix.policies import (
    HardProgress,
    draw_many,
)
from taskmix.records import Study
from taskmix.training import Stream
from taskmix.weighting import (
    MGDA,
    BanditMTL,
    GroupDRO,
)

MEMBERS, ROWS, IDS = 3, 4, 257
SHARES = np.array([0.5, 0.0, 0.3, 0.2])
SIZES = (7, 5, 12, 3)  # rows; the last one's batches are smaller than the others'
BATCH = 4


def fleet_of(runs: list[Run]) -> StackedModels:
    nothing: Any = SimpleNamespace(resumed=None)
    return StackedModels([Member.of(n, run, build(run)[1], nothing) for n, run in enumerate(runs)])


def test_families_differ_in_what_all_members_must_share() -> None:
    same = (
        {"seed": 5},
        {"tasks": ("parity",)},
        {"label": "other"},
        {"clip_norm": 1.0},
        {"optimization": Optimization(learning_rate=0.5, weight_decay=0.1)},
    )
    for changes in same:
        assert _plan.family_of(replace(RUN, **changes)) == _plan.family_of(RUN)  # type: ignore[arg-type]
    others = (
        {"steps": 21},
        {"batch_size": 8},
        {"architecture": Perceptron(hidden=(8,))},
        {"weighting": None},
        {"weighting": GroupDRO()},
        {"weighting": BanditMTL()},
        {"evaluate_every": 5},
        {"precision": "bfloat16"},
        {"optimization": Optimization(optimizer="sgd")},
        {"optimization": Optimization(schedule="cosine")},
    )
    for changes in others:
        assert _plan.family_of(replace(RUN, **changes)) != _plan.family_of(RUN)  # type: ignore[arg-type]


def test_chunks_have_like_sizes_and_members_of_one_rate_side_by_side() -> None:
    runs = runs_of(subsets=[*SUBSETS, *SUBSETS])
    chunks = _plan.plan_chunks(runs, range(6), chunk=4, workers=1)
    assert [len(chunk) for chunk in chunks] == [4, 2]
    assert {1, 4} <= set(chunks[0])  # those with three tasks
    rates = [runs[number].optimization.learning_rate for number in chunks[0]]
    assert rates == sorted(rates)
    spread = _plan.plan_chunks(runs, range(6), chunk=None, workers=3)
    assert [len(chunk) for chunk in spread] == [2, 2, 2]


def test_the_engine_is_chosen_by_what_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fleet_pays(runs_of())
    assert fleet_pays([replace(run, architecture=WindowBiLSTM()) for run in runs_of()])
    wide = [replace(run, architecture=Perceptron(hidden=(1024,))) for run in runs_of()]
    assert not fleet_pays(wide)
    assert not fleet_pays([replace(run, architecture=TextConvolution()) for run in runs_of()])
    assert not fleet_pays([RUN])
    assert fleet_pays([replace(run, weighting=BanditMTL()) for run in runs_of()])
    assert fleet_pays(runs_of(weighting=None, reward=HardProgress()))
    assert not fleet_pays([replace(run, weighting=MGDA()) for run in runs_of()])

    taken: list[int] = []

    def watched(fleet: StackedModels, *arguments: Any) -> Any:
        taken.append(len(fleet.members))
        return take(fleet, *arguments)

    take = StackedModels.take
    monkeypatch.setattr(StackedModels, "take", watched)
    Auto(workers=1).run(runs_of(steps=2), Study(tmp_path))
    assert taken == [3, 3]


def test_hashed_dropout_depends_on_the_members_seed_alone() -> None:
    dropout = Dropout(
        encoder_rate=0.25,
        widths=(40, 40, 40),
        head_rate=0.5,
        head_width=30,
        groups=2,
        slots=3,
        rows=20,
        words=1,
    )
    (encoder, second, third), heads = dropout.hashed(torch.tensor([11, 12, 11]))
    assert not torch.equal(encoder, second)
    assert not torch.equal(second, third)
    assert heads is not None
    assert encoder.shape == (3, 40, 40)
    assert heads.shape == (9, 20, 30)
    assert torch.equal(encoder[0], encoder[2])
    assert not torch.equal(encoder[0], encoder[1])
    assert torch.equal(dropout.hashed(torch.tensor([12]))[0][0][0], encoder[1])
    assert encoder.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float((encoder > 0).float().mean()) == pytest.approx(0.75, abs=0.02)
    assert float((heads > 0).float().mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    "weighting", [RUN.weighting, None, GroupDRO()], ids=["all", "drawn", "weighed"]
)
def test_steps_that_read_a_counter_on_the_device_are_the_same_steps(
    monkeypatch: pytest.MonkeyPatch, weighting: Any
) -> None:
    """What a CUDA graph replays, taken here one by one."""

    def warm_up(replayed: _Replayed, count: int, room: int) -> None:
        for _ in range(count):
            replayed._step(room)

    monkeypatch.setattr(_Replayed, "_warm_up", warm_up)
    monkeypatch.setattr(_Replayed, "_capture", lambda *arguments: None)
    plain, counted = (fleet_of(runs_of(weighting=weighting)) for _ in range(2))
    stepper, replayed = Stepper(plain), Stepper(counted)
    replayed._replayed = _Replayed(counted, replayed._most)
    for _ in range(2):
        expected, _ = stepper.advance(7)
        found, _ = replayed.advance(7)
        np.testing.assert_array_equal(found, expected)
    for key, value in plain.parameters.tensors.items():
        assert torch.equal(value, counted.parameters.tensors[key])


def test_of_several_gpus_each_has_a_process_and_its_share_of_the_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 33, 1 << 33))
    runs = [replace(RUN, seed=seed, device="cuda") for seed in range(12)]
    units, workers = Fleet()._units(runs, None)
    assert workers == 3
    assert [len(unit.numbers) for unit in units] == [4, 4, 4]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    units, workers = Fleet()._units(runs, None)
    assert workers == 1
    assert [len(unit.numbers) for unit in units] == [12]


def test_where_memory_does_not_suffice_the_fleet_is_halved_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    take = StackedModels.take

    def cramped(fleet: StackedModels, *arguments: Any) -> Any:
        if len(fleet.members) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        sizes.append(len(fleet.members))
        return take(fleet, *arguments)

    monkeypatch.setattr(StackedModels, "take", cramped)
    runs = runs_of(subsets=[*SUBSETS, *SUBSETS[:2]])
    results = Fleet(workers=1).run(runs, Study(tmp_path / "small"), fresh=True)
    assert [result.outcome for result in results] == ["finished"] * 5
    assert set(sizes) == {1, 2}
    monkeypatch.undo()
    Fleet(workers=1).run(runs, Study(tmp_path / "large"))
    for run in runs:
        folders = (Study(tmp_path / name).run(run.specification()) for name in ("large", "small"))
        must_be_alike(*folders)


def test_a_programs_own_error_is_told_in_every_record_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(fleet: StackedModels, *arguments: Any) -> Any:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(StackedModels, "take", broken)
    with pytest.raises(ZeroDivisionError):
        Fleet(workers=1).run(runs_of(), Study(tmp_path))
    errors = {summary.error for summary in Study(tmp_path).summaries()}
    assert errors == {"ZeroDivisionError: by zero"}


def streams() -> list[Stream]:
    cpu = torch.device("cpu")
    return [
        Stream(torch.arange(size), BATCH, seed=3, number=slot, device=cpu)
        for slot, size in enumerate(SIZES)
    ]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_decisions, "BLOCK", 6)


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


def test_kernels_that_are_wrong_or_do_not_start_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> float:
        raise ImportError("no Triton here")

    monkeypatch.setattr(_attention, "share_of_plain_time", lambda *_: 0.8)
    for error, words in ((fail, "no Triton here"), (lambda *_, **__: 0.5, "off by 0.5")):
        monkeypatch.setattr(_attention, "largest_error", error)
        with pytest.warns(TaskmixWarning, match=f"not fused.*{words}"):
            found = attention_for(128, 4, 32, torch.bfloat16, torch.device("cuda"))
        assert found is attend
    monkeypatch.setattr(_attention, "largest_error", lambda *_, **__: 0.001)
    fused = attention_for(128, 4, 32, torch.bfloat16, torch.device("cuda"))
    assert fused is _attention.attend_short_rows
    monkeypatch.setattr(_attention, "share_of_plain_time", lambda *_: 3.0)
    assert attention_for(128, 4, 32, torch.bfloat16, torch.device("cuda")) is attend


@pytest.mark.parametrize(("places", "heads", "width"), [(128, 4, 32), (100, 3, 32), (24, 2, 64)])
def test_the_kernels_attend_as_plain_attention_does(places: int, heads: int, width: int) -> None:
    """On a GPU, or read line by line by Triton's interpreter (TRITON_INTERPRET=1)."""
    pytest.importorskip("triton", reason="there is no Triton here")
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if not interpreted and not torch.cuda.is_available():
        pytest.skip("there is neither a CUDA device nor TRITON_INTERPRET=1")
    kind, device = (torch.float32, "cpu") if interpreted else (torch.bfloat16, "cuda")
    off = _attention.largest_error(places, heads, width, kind, torch.device(device))
    assert off < (1e-5 if interpreted else 0.01)


PACKED = ("bert", "distilbert", "roberta", "llama", "gpt2")  # the others read padded rows


@pytest.mark.parametrize("kind", CONFIGS)
def test_rows_are_packed_where_the_network_answers_as_to_padded_ones(
    tmp_path: Path, kind: str
) -> None:
    run = adapted(tmp_path, kind)
    pool = PiecePool(Numbering([encode(run)]), torch.device("cpu"))
    base = frozen_base(str(tmp_path / kind), torch.device("cpu"))
    assert find_way(base, pool, torch.float32).packed == (kind in PACKED)
