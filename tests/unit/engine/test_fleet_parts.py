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
    passage_runs,
    runs_of,
)
from hypothesis import given
from hypothesis import strategies as st
from test_fleet_adapters import CONFIGS, adapted
from test_fleet_learning import BY_MEMBER, STACKED, WEIGHED, WorstOrAll
from test_fleet_learning import SUBSETS as WEIGHED_SUBSETS
from torch import Tensor

from taskmix.engine import (
    Auto,
    Fleet,
    Optimization,
    Run,
    build,
    fleet_pays,
)
from taskmix.engine._fleet import _attention, _decisions, _plan, _train
from taskmix.engine._fleet._adapters import find_way
from taskmix.engine._fleet._attention import attention_for
from taskmix.engine._fleet._causal import CausalStack
from taskmix.engine._fleet._compiled import SWITCH, Compiled
from taskmix.engine._fleet._decisions import Draws
from taskmix.engine._fleet._dropout import Dropout
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._pieces import PiecePool
from taskmix.engine._fleet._pool import DensePool, Numbering
from taskmix.engine._fleet._stepper import Stepper, _Replayed
from taskmix.engine._fleet._weighing import MemberWeighing, StackedWeighing, can_be_stacked
from taskmix.engine._run import encode
from taskmix.errors import TaskmixWarning
from taskmix.models import (
    CausalEncoder,
    CausalTransformer,
    Perceptron,
    TextConvolution,
    WindowBiLSTM,
    attend,
    frozen_base,
)
from taskmix.policies import (
    HardProgress,
    QuantileScaled,
    draw_many,
)
from taskmix.records import Study
from taskmix.tasks import DenseInputs
from taskmix.training import Stream
from taskmix.weighting import (
    MGDA,
    BanditMTL,
    Equal,
    GroupDRO,
)

TINY = CausalTransformer(layers=2, width=16, attention_heads=2, context=12)
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


def test_members_that_wait_for_each_step_do_not_hold_the_others_up() -> None:
    on_the_device, on_the_host = (
        replace(RUN, weighting=each) for each in (GroupDRO(), BanditMTL())
    )
    assert _plan.family_of(on_the_device) != _plan.family_of(on_the_host)
    drawn = replace(RUN, weighting=None)
    rewarded = replace(drawn, reward=HardProgress())
    quiet, drawing = (
        replace(drawn, reward=QuantileScaled(reward=HardProgress(), reservoir=size))
        for size in (RUN.steps, RUN.steps - 1)
    )
    assert _plan.family_of(drawn) == _plan.family_of(rewarded) == _plan.family_of(quiet)
    assert _plan.family_of(drawn) != _plan.family_of(drawing)


def test_chunks_have_like_sizes_and_members_of_one_rate_side_by_side() -> None:
    runs = runs_of(subsets=[*SUBSETS, *SUBSETS])
    chunks = _plan.plan_chunks(runs, range(6), chunk=4, workers=1)
    assert [len(chunk) for chunk in chunks] == [4, 2]
    assert {1, 4} <= set(chunks[0])  # those with three tasks
    rates = [runs[number].optimization.learning_rate for number in chunks[0]]
    assert rates == sorted(rates)
    spread = _plan.plan_chunks(runs, range(6), chunk=None, workers=3)
    assert [len(chunk) for chunk in spread] == [2, 2, 2]


def test_as_many_members_as_the_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= _plan.fitting(RUN) <= _plan.MOST_MEMBERS
    monkeypatch.setattr(_plan, "MEMORY_SHARE", 1e-9)
    assert _plan.fitting(RUN) == 1


def test_larger_members_come_in_smaller_chunks() -> None:
    wide = replace(RUN, architecture=Perceptron(hidden=(256, 256)))
    assert _plan.FEWEST_MEMBERS <= _plan.fitting(wide) < _plan.fitting(RUN)


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


def test_members_that_are_done_no_longer_cost_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    take = StackedModels.take

    def watched(fleet: StackedModels, *arguments: Any) -> Any:
        sizes.append(len(fleet.members))
        return take(fleet, *arguments)

    monkeypatch.setattr(StackedModels, "take", watched)
    subsets = (*SUBSETS, ("half",), ("shuffled_ten",))
    Fleet(workers=1).run(
        runs_of(subsets=subsets, steps=80, evaluate_every=4, patience=1), Study(tmp_path)
    )
    assert sizes[0] == 5
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < _train.DROPPED_BELOW * 5


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


def test_a_method_is_asked_for_all_members_at_once_where_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(can_be_stacked(m, 3, sparse=sparse) for m in STACKED for sparse in (False, True))
    assert not any(can_be_stacked(method, 3) for method in [*BY_MEMBER, WorstOrAll()])
    built = []
    lay_out = StackedModels._lay_out

    def watched(fleet: StackedModels) -> None:
        lay_out(fleet)
        built.append(type(fleet.weighing))

    monkeypatch.setattr(StackedModels, "_lay_out", watched)
    for number, weighting in enumerate((GroupDRO(), BanditMTL(), Equal())):
        runs = runs_of(WEIGHED, WEIGHED_SUBSETS, weighting=weighting, steps=2)
        Fleet(workers=1).run(runs, Study(tmp_path / str(number)))
    # Targets are missing there, so that even equal weights depend on the step; here none is.
    Fleet(workers=1).run(runs_of(weighting=Equal(), steps=2), Study(tmp_path / "whole"))
    assert built == [StackedWeighing, MemberWeighing, StackedWeighing, type(None)]


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


class Stacked:
    """Some encoders, the same ones stacked, and rows for all of them."""

    def __init__(self, options: CausalTransformer, precision: torch.dtype = torch.float32) -> None:
        torch.manual_seed(0)
        self.encoders = [CausalEncoder(options, IDS, IDS - 1) for _ in range(MEMBERS)]
        for encoder in self.encoders:  # first weights are small, which would hide mistakes
            for parameter in encoder.parameters():
                parameter.data.mul_(5)
        self.values = torch.randint(0, IDS, (20, options.context), dtype=torch.int32)
        numbering: Any = SimpleNamespace(inputs=[DenseInputs(self.values)])
        pool = DensePool(numbering, torch.device("cpu"))
        self.stack = CausalStack(options, pool, IDS - 1, precision, 1)
        names = [name for name, _ in self.encoders[0].named_parameters()]
        self.parameters = {
            f"encoder.{name}": torch.stack(
                [encoder.get_parameter(name).detach() for encoder in self.encoders]
            ).requires_grad_()
            for name in names
        }
        self.rows = torch.randint(0, 20, (MEMBERS, 1, ROWS))
        shape = (MEMBERS, ROWS * options.context)
        self.classes = torch.randint(0, IDS - 1, shape)
        self.shares = torch.full(shape, 1 / shape[1])

    def gradients(self, losses: Tensor) -> dict[str, Tensor]:
        found = torch.autograd.grad(losses.sum(), list(self.parameters.values()))
        return dict(zip(self.parameters, found, strict=True))

    def losses(self) -> Tensor:
        return self.stack.losses(self.parameters, self.rows, self.classes, self.shares, None, 0)


def test_slots_that_read_the_same_rows_read_them_once() -> None:
    made = Stacked(TINY)
    twice = torch.tensor([0, 0, 1, 2])
    found = made.stack.losses(
        made.parameters, made.rows, made.classes[twice], made.shares[twice], twice, 0
    )
    torch.testing.assert_close(found, made.losses()[twice])


def test_rows_beyond_what_attention_takes_at_once_are_read_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Stacked(TINY)
    whole = made.losses()
    monkeypatch.setattr("taskmix.engine._fleet._causal.MOST_ROWS", 5)  # of 12
    torch.testing.assert_close(made.losses(), whole)


def double(weights: dict[str, Tensor], factor: Tensor) -> Tensor:
    return weights["a"] * factor


def test_what_cannot_be_compiled_is_called_as_it_is_and_a_warning_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> Any:
        def fail(*_: object) -> Tensor:
            raise RuntimeError("no compiler here\nand more lines")

        return fail

    monkeypatch.setattr(torch, "compile", broken)
    compiled = Compiled(double)
    weights = {"a": torch.ones(2, requires_grad=True)}
    with pytest.warns(TaskmixWarning, match="not compiled.*no compiler here$"):
        found = compiled(weights, torch.tensor(2.0))
    assert found.tolist() == [2.0, 2.0]
    assert not compiled.works
    assert compiled(weights, torch.tensor(3.0)).tolist() == [3.0, 3.0]  # and says it once


def test_only_tensors_of_the_first_shapes_are_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(function: Any, **_: object) -> Any:
        def call(weights: dict[str, Tensor], factor: Tensor) -> Tensor:
            calls.append(len(weights["a"]))
            return double(weights, factor)

        return call

    monkeypatch.setattr(torch, "compile", counted)
    compiled = Compiled(double)
    for size in (2, 2, 3):
        weights = {"a": torch.ones(size, requires_grad=True)}
        assert compiled(weights, torch.tensor(2.0)).tolist() == [2.0] * size
    assert calls == [2, 2, 2]  # the first of them was a trial
    monkeypatch.setenv(SWITCH, "0")
    assert not Compiled(double).works


def test_attention_is_plain_where_there_is_no_device_for_kernels() -> None:
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert attention_for(128, 4, 32, torch.bfloat16, cpu) is attend
    assert attention_for(128, 4, 32, torch.float32, cuda) is attend  # whose products are exact
    assert attention_for(256, 4, 32, torch.bfloat16, cuda) is attend
    assert attention_for(128, 4, 20, torch.bfloat16, cuda) is attend


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


@pytest.mark.slow
def test_the_compiled_step_is_the_plain_one() -> None:
    made = Stacked(TINY)
    plain = made.losses()
    expected = made.gradients(plain)
    made.stack._step = Compiled(made.stack._losses)
    found = made.losses()
    assert made.stack.is_compiled
    torch.testing.assert_close(found, plain, rtol=1e-5, atol=1e-6)
    for key, gradient in made.gradients(found).items():
        torch.testing.assert_close(gradient, expected[key], rtol=1e-4, atol=1e-6)


def test_memory_is_planned_by_layers_places_and_precision(tmp_path: Path) -> None:
    def needed(run: Run) -> float:
        return _plan._working_bytes(run, run.architecture.encoding.encode(run.load()))

    run = passage_runs(tmp_path)[0]
    small = CausalTransformer.of_size("1M")
    run = replace(run, architecture=small, batch_size=8, weighting=None)
    whole = needed(run)
    assert needed(replace(run, precision="bfloat16")) == whole / 2
    assert needed(replace(run, batch_size=16)) == 2 * whole
    assert needed(replace(run, weighting=Equal())) == 2 * whole  # a batch of each of two tasks
    # What the tensors of a step that are kept for the way back take, by hand: of a layer three
    # states, three projections, two turned ones, what was attended to, and 4 of the inner width.
    kept = 4 * 8 * 128 * small.layers * (9 * small.width + 4 * small.inner)
    assert kept < whole < 2 * kept


PACKED = ("bert", "distilbert", "roberta", "llama", "gpt2")  # the others read padded rows


@pytest.mark.parametrize("kind", CONFIGS)
def test_rows_are_packed_where_the_network_answers_as_to_padded_ones(
    tmp_path: Path, kind: str
) -> None:
    run = adapted(tmp_path, kind)
    pool = PiecePool(Numbering([encode(run)]), torch.device("cpu"))
    base = frozen_base(str(tmp_path / kind), torch.device("cpu"))
    assert find_way(base, pool, torch.float32).packed == (kind in PACKED)
