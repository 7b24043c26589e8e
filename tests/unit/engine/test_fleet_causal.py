"""Causal transformers in a fleet: scores, losses and gradients of each member are those it has alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fleet_toys import passage_runs, side_by_side
from torch import Tensor
from torch.nn import functional

from taskmix.engine import Fleet, Here, Run
from taskmix.engine._fleet import _attention, _plan
from taskmix.engine._fleet._attention import attention_for
from taskmix.engine._fleet._causal import CausalStack, place_losses, sums_by_id
from taskmix.engine._fleet._compiled import SWITCH, Compiled
from taskmix.engine._fleet._pool import DensePool
from taskmix.errors import TaskmixWarning
from taskmix.models import CausalEncoder, CausalTransformer, attend
from taskmix.policies import Tempered
from taskmix.records import Study
from taskmix.tasks import DenseInputs
from taskmix.weighting import Equal, FixedWeights, GroupDRO

TINY = CausalTransformer(layers=2, width=16, attention_heads=2, context=12)
MEMBERS, ROWS, IDS = 3, 4, 257


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


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


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "apart"])
def test_losses_and_gradients_are_those_of_each_member_alone(tied: bool) -> None:
    made = Stacked(replace(TINY, tied=tied))
    losses = made.losses()
    gradients = made.gradients(losses)
    for place, encoder in enumerate(made.encoders):
        scores = encoder(made.values[made.rows[place, 0]])
        expected = functional.cross_entropy(scores.flatten(0, 1), made.classes[place])
        torch.testing.assert_close(losses[place], expected, rtol=1e-5, atol=1e-6)
        expected.backward()  # type: ignore[no-untyped-call]
        for name, parameter in encoder.named_parameters():
            found = gradients[f"encoder.{name}"][place]
            torch.testing.assert_close(found, parameter.grad, rtol=1e-5, atol=1e-6)


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


def test_in_lower_precision_weights_keep_gradients_of_their_own_type_and_layout() -> None:
    made = Stacked(TINY, torch.bfloat16)
    gradients = made.gradients(made.losses())
    exact = Stacked(TINY)
    expected = exact.gradients(exact.losses())
    for key, found in gradients.items():
        assert found.dtype == torch.float32
        assert found.is_contiguous()
        off = (found - expected[key]).norm() / expected[key].norm()
        assert off < 0.05, key


def test_losses_of_places_are_cross_entropies_and_so_are_their_gradients() -> None:
    scores = torch.randn(2, 3, 5, dtype=torch.float64).float().requires_grad_()
    classes = torch.tensor([[0, 1, 4], [2, 2, 3]])
    weights = torch.rand(2, 3)
    (mine,) = torch.autograd.grad((place_losses(scores, classes) * weights).sum(), scores)
    each = functional.cross_entropy(scores.transpose(1, 2), classes, reduction="none")
    torch.testing.assert_close(place_losses(scores, classes), each)
    torch.testing.assert_close(mine, torch.autograd.grad((each * weights).sum(), scores)[0])


def test_sums_by_id_are_those_of_places_added_one_by_one() -> None:
    torch.manual_seed(0)
    ids, vectors = torch.randint(0, 13, (2, 40)), torch.randn(2, 40, 3)
    expected = torch.zeros(2, 13, 3)
    for member in range(2):
        for place in range(40):
            expected[member, ids[member, place]] += vectors[member, place]
    torch.testing.assert_close(sums_by_id(ids, vectors, 13, torch.float32), expected)


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


@pytest.mark.parametrize("weighting", [Equal(), None], ids=["all", "drawn"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "apart"])
def test_members_train_as_they_do_alone(tmp_path: Path, weighting: Any, tied: bool) -> None:
    tiny = CausalTransformer(layers=2, width=16, attention_heads=2, context=16, tied=tied)
    side_by_side(passage_runs(tmp_path, architecture=tiny, weighting=weighting), tmp_path)


def test_members_have_policies_weights_and_clipping_of_their_own(tmp_path: Path) -> None:
    runs = passage_runs(tmp_path, weighting=None)
    runs = [
        replace(run, policy=policy, clip_norm=norm)
        for run, policy, norm in zip(
            runs, (Tempered(temperature=2.0), None, None), (None, 0.1, 0.5), strict=True
        )
    ]
    side_by_side(runs, tmp_path / "drawn")
    weights = ((1.0, 3.0), (1.0,), (1.0, 0.0, 2.0))
    runs = [
        replace(run, policy=None, weighting=FixedWeights(weights=given))
        for run, given in zip(runs, weights, strict=True)
    ]
    side_by_side(runs, tmp_path / "all")
    side_by_side([replace(run, weighting=GroupDRO()) for run in runs], tmp_path / "by losses")


def test_a_member_that_stops_leaves_the_others_as_they_are_alone(tmp_path: Path) -> None:
    runs = passage_runs(tmp_path, steps=40, evaluate_every=4, patience=1)
    wild = replace(runs[1].optimization, learning_rate=0.05)
    runs = [runs[0], replace(runs[1], optimization=wild), runs[2]]
    side_by_side(runs, tmp_path, tolerance=1e-4)


def test_lower_precision_is_as_near_as_it_lets_members_be(tmp_path: Path) -> None:
    runs = passage_runs(tmp_path, precision="bfloat16", steps=10)
    alone = Here(workers=1).run(runs, Study(tmp_path / "alone"))
    together = Fleet(workers=1).run(runs, Study(tmp_path / "together"))
    for solo, member in zip(alone, together, strict=True):
        assert solo.summary is not None
        assert member.summary is not None
        for mine, its in zip(member.summary.scores, solo.summary.scores, strict=True):
            assert mine.value == pytest.approx(its.value, rel=0.02)


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
