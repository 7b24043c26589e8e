from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from taskmix.errors import DivergedError, InputError, OptionError
from taskmix.models import HardSharing
from taskmix.policies import SizeProportional, Uniform
from taskmix.tasks import MISSING, EncodedSplit, EncodedTasks
from taskmix.training import (
    CheckpointEvent,
    EndEvent,
    EvaluationEvent,
    Event,
    StepEvent,
    task_loss,
    train,
)
from taskmix.weighting import (
    DBMTL,
    FAMO,
    MGDA,
    MGDAUB,
    AnyWeighting,
    BanditMTL,
    DynamicWeightAverage,
    Equal,
    ExcessMTL,
    FixedWeights,
    GradNorm,
    PCGrad,
)

MakeModel = Callable[..., HardSharing]


def run(
    tasks: EncodedTasks,
    model: HardSharing,
    *,
    steps: int = 12,
    seed: int = 5,
    optimizer: torch.optim.Optimizer | None = None,
    scheduled: bool = False,
    **options: Any,
) -> Iterator[Event]:
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = None
    if scheduled:
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    return train(
        model,
        tasks,
        steps=steps,
        optimizer=optimizer,
        scheduler=scheduler,
        generator=np.random.default_rng(seed),
        batch_size=8,
        **options,
    )


def parameters(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def test_every_choice_carries_the_probability_it_was_drawn_with(
    tasks: EncodedTasks, make_model: MakeModel
) -> None:
    events = [
        event
        for event in run(tasks, make_model(tasks), policy=SizeProportional())
        if isinstance(event, StepEvent)
    ]
    expected = np.array([90, 17, 50]) / 157
    for event in events:
        assert event.probability == pytest.approx(expected[event.tasks[0]])
    np.testing.assert_allclose(events[0].probabilities, expected)
    assert all(event.probabilities is None for event in events[1:]), "unchanged is not repeated"


def test_a_step_of_a_policy_moves_the_encoder_and_the_chosen_head_alone(
    tasks: EncodedTasks, make_model: MakeModel
) -> None:
    model = make_model(tasks)
    before = copy.deepcopy(model)
    event = next(iter(run(tasks, model)))
    assert isinstance(event, StepEvent)
    for position in range(len(tasks)):
        same = all(
            torch.equal(a, b)
            for a, b in zip(
                before.heads[position].parameters(), model.heads[position].parameters(), strict=True
            )
        )
        assert same == (position != event.tasks[0])


@pytest.mark.parametrize("method", [FixedWeights(weights=(1, 3, 2)), MGDA(), MGDAUB(), GradNorm()])
def test_a_weighted_step_descends_the_weighted_sum_of_the_losses(
    tasks: EncodedTasks, make_model: MakeModel, method: AnyWeighting
) -> None:
    model = make_model(tasks, dropout=0.0)
    twin = copy.deepcopy(model)
    batches: list[torch.Tensor] = []
    watched = _watching(tasks, batches)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    event = next(iter(run(watched, model, weighting=method, optimizer=optimizer)))
    assert isinstance(event, StepEvent)
    assert event.weights is not None
    weights = torch.tensor(event.weights)
    assert float(weights.sum()) == pytest.approx(3.0)
    if isinstance(method, FixedWeights):
        assert event.weights == pytest.approx((0.5, 1.5, 1.0))

    total = torch.tensor(0.0)
    for position, (task, rows) in enumerate(zip(tasks, batches, strict=True)):
        split = task.splits["train"]
        loss = task_loss(task)(twin(split.inputs.batch(rows), position), split.targets[rows])
        total = total + weights[position] * loss
    total.backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert theirs.grad is not None
        torch.testing.assert_close(ours, theirs - 0.1 * theirs.grad)
    assert event.tasks == (0, 1, 2)
    assert event.examples == (8, 8, 8)


def _watching(tasks: EncodedTasks, seen: list[torch.Tensor]) -> EncodedTasks:
    """The same tasks, noting which rows are asked for."""

    class Watched:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __len__(self) -> int:
            return len(self.inner)

        def batch(self, rows: torch.Tensor) -> Any:
            seen.append(rows)
            return self.inner.batch(rows)

        def to(self, device: torch.device) -> Watched:
            return self

    def watch(split: EncodedSplit) -> EncodedSplit:
        return replace(split, inputs=Watched(split.inputs))

    return replace(
        tasks,
        tasks=tuple(
            replace(task, splits=task.splits | {"train": watch(task.splits["train"])})
            for task in tasks
        ),
    )


@pytest.mark.parametrize("method", [Equal(), MGDA()])
def test_tasks_that_share_their_inputs_are_encoded_once_a_step(
    tasks: EncodedTasks, make_model: MakeModel, method: AnyWeighting
) -> None:
    first = tasks[0]
    twins = EncodedTasks((first, replace(first, name="again"), tasks[2]), features=tasks.features)
    model = make_model(twins)
    calls: list[int] = []
    model.encoder.register_forward_hook(lambda module, inputs, output: calls.append(len(inputs[0])))
    event = next(iter(run(twins, model, weighting=method)))
    assert isinstance(event, StepEvent)
    assert calls == [8, 8], "two sources, two calls, three tasks"
    assert event.losses[0] != event.losses[1], "each task has its own head"


def _method_state(tasks: EncodedTasks, model: HardSharing, **options: Any) -> dict[str, Any]:
    """The weighting's state at the end of a run."""
    checkpoints = [e for e in run(tasks, model, **options) if isinstance(e, CheckpointEvent)]
    state: dict[str, Any] = checkpoints[-1].state["steps"]["weighting"]["state"]
    return state


def test_losses_after_the_step_are_of_the_same_rows_under_the_same_dropout(
    tasks: EncodedTasks, make_model: MakeModel
) -> None:
    model = make_model(tasks, dropout=0.5)
    still = torch.optim.SGD(model.parameters(), lr=0.0)
    unmoved = _method_state(tasks, model, weighting=FAMO(), optimizer=still)
    assert bool((unmoved["logits"] == 0).all()), "a model that stays where it is gains nothing"
    moved = _method_state(tasks, make_model(tasks, dropout=0.5), weighting=FAMO())
    assert bool((moved["logits"] != 0).all())


@pytest.mark.parametrize(("steps", "epochs"), [(11, 0), (12, 1), (22, 1), (23, 2)])
def test_an_epoch_is_a_pass_over_the_task_with_the_most_rows(
    tasks: EncodedTasks, make_model: MakeModel, steps: int, epochs: int
) -> None:
    # 90 rows in batches of 8: the last of a pass are in batches 12 and 23.
    state = _method_state(tasks, make_model(tasks), weighting=DynamicWeightAverage(), steps=steps)
    assert state["epochs"].tolist() == [epochs] * 3


@pytest.mark.parametrize(
    "method",
    [
        "policy",
        Equal(),
        BanditMTL(),
        FAMO(),
        DynamicWeightAverage(steps_per_epoch=2),
        GradNorm(),
        PCGrad(),
        MGDAUB(),
        ExcessMTL(),
        DBMTL(),
    ],
    ids=lambda method: method if isinstance(method, str) else type(method).__name__,
)
@pytest.mark.parametrize("stop_at", [3, 11])
def test_resuming_gives_the_same_bits_as_never_having_stopped(
    tasks: EncodedTasks, make_model: MakeModel, method: Any, stop_at: int
) -> None:
    options: dict[str, Any] = {
        "evaluate_every": 2,
        "checkpoint_every": 1,
        "scheduled": True,
        "clip_norm": 1.0,
        **({"policy": Uniform()} if method == "policy" else {"weighting": method}),
    }
    whole = make_model(tasks)
    expected = [_plain(event) for event in run(tasks, whole, **options)]

    broken = make_model(tasks)
    saved: CheckpointEvent | None = None
    seen: list[Any] = []
    for event in run(tasks, broken, **options):
        seen.append(_plain(event))
        if isinstance(event, CheckpointEvent) and event.step == stop_at:
            saved = copy.deepcopy(event)
            break
    assert saved is not None
    torch.rand(3)  # what others draw from the global generator must not matter
    fresh = make_model(tasks)
    seen += [
        _plain(event)
        for event in run(
            tasks, fresh, seed=99, resume=saved.state, resume_best=saved.best, **options
        )
    ]
    assert seen == expected
    for ours, theirs in zip(parameters(fresh), parameters(whole), strict=True):
        assert torch.equal(ours, theirs)


def _plain(event: Event) -> Any:
    """An event without its wall time and live tensors."""
    match event:
        case StepEvent():
            vector = None if event.probabilities is None else event.probabilities.tolist()
            return replace(event, seconds=0.0, probabilities=None), vector
        case CheckpointEvent():
            return event.step, event.best_step
        case _:
            return event


def test_the_model_ends_with_the_parameters_of_its_best_evaluation(
    tasks: EncodedTasks, make_model: MakeModel
) -> None:
    model = make_model(tasks)
    kept: dict[int, list[torch.Tensor]] = {}
    means: dict[int, float] = {}
    end = None
    for event in run(tasks, model, steps=20, evaluate_every=1):
        if isinstance(event, EvaluationEvent):
            kept[event.step], means[event.step] = parameters(model), event.mean
        if isinstance(event, EndEvent):
            end = event
    assert end is not None
    assert end.best_step == max(means, key=lambda step: (means[step], -step))
    assert all(map(torch.equal, parameters(model), kept[end.best_step]))
    assert {(score.task, score.split) for score in end.scores} == {
        (name, split) for name in tasks.names for split in ("dev", "test")
    }


def test_training_stops_when_the_dev_score_has_not_risen_for_patience_evaluations(
    tasks: EncodedTasks, make_model: MakeModel
) -> None:
    model = make_model(tasks)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)  # nothing ever gets better
    events = list(run(tasks, model, steps=50, evaluate_every=2, patience=3, optimizer=optimizer))
    end = events[-1]
    assert isinstance(end, EndEvent)
    assert end.stopped_early
    assert (end.step, end.best_step) == (8, 2)


def test_without_dev_scores_the_latest_parameters_are_the_best(
    tasks: EncodedTasks, make_model: MakeModel
) -> None:
    bare = replace(
        tasks, tasks=tuple(replace(task, splits={"train": task.splits["train"]}) for task in tasks)
    )
    end = list(run(bare, make_model(bare), steps=9, evaluate_every=3))[-1]
    assert isinstance(end, EndEvent)
    assert end.best_step == 9
    assert end.scores == ()


def test_a_loss_that_is_not_finite_stops_the_run_and_names_step_task_and_checkpoint(
    tasks: EncodedTasks, make_model: MakeModel
) -> None:
    model = make_model(tasks)
    events = run(tasks, model, weighting=Equal(), checkpoint_every=2)
    seen = 0
    with pytest.raises(DivergedError) as caught:
        for event in events:
            seen += isinstance(event, StepEvent)
            if seen == 3 and isinstance(event, StepEvent):
                with torch.no_grad():
                    next(model.heads[1].parameters()).fill_(math.nan)
    assert (caught.value.step, caught.value.task, caught.value.checkpoint) == (4, "small", 2)
    assert "step 4" in str(caught.value)


def test_no_checkpoint_is_given_of_parameters_that_are_not_finite(
    tasks: EncodedTasks, make_model: MakeModel
) -> None:
    model = make_model(tasks)
    optimizer = torch.optim.SGD(model.parameters(), lr=math.inf)
    with pytest.raises(DivergedError):
        for event in run(tasks, model, checkpoint_every=1, optimizer=optimizer):
            assert not isinstance(event, CheckpointEvent)


def test_rows_without_a_target_do_not_count(tasks: EncodedTasks, make_model: MakeModel) -> None:
    task = tasks[0]
    targets = task.splits["train"].targets.clone()
    targets[::2] = MISSING
    split = replace(task.splits["train"], targets=targets)
    holes = replace(tasks, tasks=(replace(task, splits=task.splits | {"train": split}),))
    outputs, wanted = torch.randn(8, 2), targets[:8]
    expected = nn.functional.cross_entropy(outputs[1::2], wanted[1::2])
    torch.testing.assert_close(task_loss(holes[0])(outputs, wanted), expected)
    assert float(task_loss(holes[0])(outputs, torch.full((8,), MISSING))) == 0.0
    batches: list[torch.Tensor] = []
    for event in run(_watching(holes, batches), make_model(holes), steps=6):
        if isinstance(event, StepEvent):
            assert math.isfinite(event.losses[0])
    assert all((targets[rows] != MISSING).all() for rows in batches[:6])


@pytest.mark.parametrize("method", [None, Equal(), MGDA()])
def test_gradients_are_clipped_to_the_norm_given(
    tasks: EncodedTasks, make_model: MakeModel, method: AnyWeighting | None
) -> None:
    model = make_model(tasks)
    before = parameters(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    next(iter(run(tasks, model, weighting=method, optimizer=optimizer, clip_norm=1e-3)))
    moved = sum(
        float((a - b).square().sum()) for a, b in zip(before, parameters(model), strict=True)
    )
    assert math.sqrt(moved) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("method", [None, BanditMTL(), MGDA(), MGDAUB()])
def test_bfloat16_autocast_trains_close_to_float32(
    tasks: EncodedTasks, make_model: MakeModel, method: AnyWeighting | None
) -> None:
    losses = []
    for precision in (torch.float32, torch.bfloat16):
        events = run(
            tasks, make_model(tasks, dropout=0.0), weighting=method, precision=precision, steps=8
        )
        losses.append([event.losses[0] for event in events if isinstance(event, StepEvent)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.05)
    assert losses[0] != losses[1]


def test_wrong_options_are_refused_in_words(tasks: EncodedTasks, make_model: MakeModel) -> None:
    model = make_model(tasks)
    with pytest.raises(OptionError, match="Found both"):
        next(iter(run(tasks, model, policy=Uniform(), weighting=Equal())))
    with pytest.raises(OptionError, match="`steps` should be 1 or more"):
        next(iter(run(tasks, model, steps=0)))
    empty = replace(tasks[0], splits={"dev": tasks[0].splits["dev"]})
    with pytest.raises(InputError, match="Found none for `large`"):
        next(iter(run(replace(tasks, tasks=(empty,)), model)))
