"""Which runs train together, and the parts that a fleet is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fleet_toys import RUN, SUBSETS, runs_of

from taskmix.engine import Auto, Fleet, Optimization, Run, build, fleet_pays
from taskmix.engine._fleet import _plan
from taskmix.engine._fleet._dropout import Dropout
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._layout import ParameterLayout, StackedParameters
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._optimizer import clip, slices_of
from taskmix.engine._fleet._stepper import Stepper, _Replayed
from taskmix.engine._fleet._together import Together, plan_units
from taskmix.errors import TaskmixWarning
from taskmix.models import HardSharing, Head, Perceptron, TextConvolution, Transformer, WindowBiLSTM
from taskmix.policies import (
    Exp3,
    HardProgress,
    PredictionGain,
    QuantileScaled,
    Scheduled,
    Tempered,
)
from taskmix.records import Study
from taskmix.weighting import FAMO, MGDA, BanditMTL, GroupDRO


def fleet_of(runs: list[Run]) -> StackedModels:
    nothing: Any = SimpleNamespace(resumed=None)
    return StackedModels([Member.of(n, run, build(run)[1], nothing) for n, run in enumerate(runs)])


def test_runs_join_unless_a_step_asks_for_more_than_its_losses() -> None:
    assert _plan.can_join(RUN)
    assert _plan.can_join(replace(RUN, weighting=BanditMTL()))
    drawn = replace(RUN, weighting=None)
    assert _plan.can_join(drawn)
    assert _plan.can_join(replace(drawn, policy=Tempered(temperature=2.0)))
    assert _plan.can_join(replace(drawn, reward=HardProgress()))
    for changes in (
        {"weighting": MGDA()},
        {"weighting": FAMO()},
        {"weighting": None, "policy": Exp3(exploration=0.1), "reward": HardProgress()},
        {"weighting": None, "policy": Exp3(exploration=0.1), "reward": PredictionGain()},
        {"weighting": None, "policy": Scheduled(((0, (0.5, 0.5)),))},
        {"weighting": None, "reward": PredictionGain()},
        {"architecture": Transformer(path="nowhere")},
    ):
        assert not _plan.can_join(replace(RUN, **changes))  # type: ignore[arg-type]


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


def test_one_run_left_over_goes_alone() -> None:
    units = plan_units(runs_of(), chunk=2, workers=1)
    assert [len(unit.numbers) for unit in units] == [2, 1]
    assert isinstance(units[0], Together)
    assert not isinstance(units[1], Together)


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


def test_members_are_stacked_and_taken_apart_again() -> None:
    first = HardSharing(torch.nn.Linear(3, 4), [Head(4, 2), Head(4, 3)], ["a", "b"])
    second = HardSharing(torch.nn.Linear(5, 4), [Head(4, 6)], ["c"])
    layouts = [ParameterLayout.of(model) for model in (first, second)]
    stack = StackedParameters.of(layouts, [dict(model.state_dict()) for model in (first, second)])
    shapes = {key: tuple(value.shape) for key, value in stack.tensors.items()}
    assert shapes == {
        "encoder.weight": (2, 4, 5),
        "encoder.bias": (2, 4),
        "head.0.weight": (2, 2, 6, 4),
        "head.0.bias": (2, 2, 6),
    }
    for number, model in enumerate((first, second)):
        for name, value in stack.of_member(number, layouts[number]).items():
            assert torch.equal(value, model.state_dict()[name])
    filled = sum(p.numel() for model in (first, second) for p in model.parameters())
    assert sum(int((value != 0).sum()) for value in stack.tensors.values()) == filled


def test_neighbours_with_the_same_options_are_one_slice() -> None:
    options = [Optimization(learning_rate=rate) for rate in (1.0, 1.0, 2.0, 1.0)]
    found = [(part.first, part.end, part.rate) for part in slices_of(options)]
    assert found == [(0, 2, 1.0), (2, 3, 2.0), (3, 4, 1.0)]


def test_each_members_gradients_are_clipped_by_their_own_norm() -> None:
    gradients = {"a": torch.tensor([[3.0], [0.3]]), "b": torch.tensor([[4.0], [0.4]])}
    clipped = clip(gradients, torch.tensor([1.0, 1.0]))
    torch.testing.assert_close(clipped["a"], torch.tensor([[0.6], [0.3]]))
    torch.testing.assert_close(clipped["b"], torch.tensor([[0.8], [0.4]]))


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


def test_a_fleet_says_why_runs_are_trained_one_by_one(recwarn: pytest.WarningsRecorder) -> None:
    whole = replace(RUN, architecture=Transformer(path="somewhere"))
    Auto(workers=1)._units([whole, whole], 1)
    assert not recwarn.list
    with pytest.warns(TaskmixWarning, match="one by one, because every weight of a pretrained"):
        Fleet(workers=1)._units([whole, whole], 1)
