from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from taskmix.engine import DigitsSource, Here, Run, build
from taskmix.errors import OptionError
from taskmix.models import HardSharing, Perceptron
from taskmix.records import Study
from taskmix.tasks import MISSING, TaskSet, held_tasks
from taskmix.training import task_loss
from taskmix.transfer import (
    SubsetDesign,
    TransferStudy,
    TrialOutcomes,
    estimate_by_gradients,
    learn,
    train_trials,
    transfer_document,
)
from taskmix.transfer._estimate import _agreement, compare_estimates
from taskmix.transfer._estimating import GradientOptions, linearise, solve_move
from taskmix.transfer._estimating._projection import SparseProjection

RUN = Run(
    label="x",
    source=DigitsSource(),
    architecture=Perceptron(hidden=(6,)),
    tasks=("half", "loop", "prime", "remainder"),
    steps=40,
    seed=0,
    batch_size=16,
)
EXACT = GradientOptions(
    dimensions=10_000, rows=30
)  # more dimensions than parameters: no projection


@given(st.integers(0, 20), st.integers(1, 5))
def test_short_vectors_are_kept_as_they_are(seed: int, rows: int) -> None:
    parts = [torch.randn(rows, 3), torch.randn(rows, 4)]
    kept = SparseProjection(dimensions=7, seed=seed)(parts)
    torch.testing.assert_close(kept, torch.cat(parts, dim=1))


def test_a_projection_keeps_inner_products_up_to_chance_and_is_the_same_each_time() -> None:
    generator = torch.Generator().manual_seed(3)
    long = torch.randn(2, 70_000, generator=generator)
    long[1] = 0.8 * long[0] + 0.6 * long[1]
    parts = [long[:, :30_000], long[:, 30_000:]]
    found = [SparseProjection(dimensions=256, seed=seed)(parts) for seed in range(60)]
    ratios = [float(short[0] @ short[1] / (long[0] @ long[1])) for short in found]
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.03)
    assert np.std(ratios) < 2 / np.sqrt(256)  # one over the root of the dimension, and some
    torch.testing.assert_close(SparseProjection(dimensions=256, seed=5)(parts), found[5])


def test_gradients_and_curvatures_are_those_of_automatic_differentiation() -> None:
    """An independent way: the loss as a function of the flat parameters, differentiated twice."""
    model, tasks = build(RUN)
    options = replace(EXACT, rows=8)
    linear = linearise(model, tasks, options, seed=0)
    for position, name in enumerate(RUN.tasks or ()):
        task, found = tasks[position], linear[position]
        rows = _drawn_rows(tasks, options.rows)[position]
        data = task.splits["train"]
        loss = task_loss(task)

        def value(
            flat: Tensor,
            position: int = position,
            rows: Tensor = rows,
            data: object = data,
            loss: object = loss,
        ) -> Tensor:
            code = torch.func.functional_call(
                model.encoder,
                _unflat(model.encoder, flat),
                (data.inputs.batch(rows),),  # type: ignore[attr-defined]
            )
            return loss(model.heads[position](code), data.targets[rows])  # type: ignore[operator, attr-defined]

        flat = torch.cat([parameter.detach().flatten() for parameter in model.encoder.parameters()])
        torch.testing.assert_close(
            found.gradient, torch.func.grad(value)(flat), atol=1e-5, rtol=1e-4, msg=name
        )
        # About a network with one hidden layer of ReLU the outputs are linear in what reaches the
        # head only in part; along the last bias, which enters linearly, curvatures are the same.
        whole = torch.func.hessian(value)(flat)
        last = slice(len(flat) - 6, None)
        torch.testing.assert_close(
            found.curvature[last, last], whole[last, last], atol=1e-5, rtol=1e-3
        )


def _drawn_rows(tasks: object, most: int) -> list[Tensor]:
    """The rows `linearise` draws with seed 0."""
    generator = np.random.default_rng(0)
    found = []
    for task in tasks:  # type: ignore[attr-defined]
        for split in ("train", "dev"):
            drawn = np.sort(generator.permutation(np.arange(len(task.splits[split])))[:most])
            if split == "train":
                found.append(torch.from_numpy(drawn))
    return found


def _unflat(module: nn.Module, flat: Tensor) -> dict[str, Tensor]:
    values, place = {}, 0
    for name, parameter in module.named_parameters():
        values[name] = flat[place : place + parameter.numel()].view_as(parameter)
        place += parameter.numel()
    return values


def test_rows_one_by_one_and_at_once_have_the_same_derivatives() -> None:
    model, tasks = build(RUN)

    class Stubborn(nn.Module):
        """An encoder that cannot be batched over rows."""

        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, batch: Tensor) -> Tensor:
            float(batch.detach().sum())  # `vmap` refuses this
            return self.inner(batch)

    stubborn = HardSharing(Stubborn(model.encoder), list(model.heads), model.names)
    for one, other in zip(
        linearise(model, tasks, EXACT, seed=0),
        linearise(stubborn, tasks, EXACT, seed=0),
        strict=True,
    ):
        torch.testing.assert_close(one.gradient, other.gradient, atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(one.curvature, other.curvature, atol=1e-6, rtol=1e-4)


def test_the_move_solves_the_penalised_quadratic_model() -> None:
    model, tasks = build(RUN)
    linear = linearise(model, tasks, replace(EXACT, dimensions=32), seed=0)
    move = solve_move(linear, [0, 2], 0.1).double()
    scale = sum(float(task.curvature.trace()) for task in linear) / 32
    residual = 0.1 * scale * move
    for place in (0, 2):
        residual += linear[place].gradient.double() + linear[place].curvature.double() @ move
    torch.testing.assert_close(residual, torch.zeros(32, dtype=torch.float64), atol=1e-5, rtol=0.0)
    # Nothing to gain where the penalty forbids every move.
    assert float(solve_move(linear, [0, 2], 1e9).abs().max()) < 1e-6


def study_of(targets: tuple[str, ...], **changes: object) -> TransferStudy:
    names = DigitsSource().load().names
    template = replace(RUN, tasks=names, steps=160)
    design = SubsetDesign(count=24, alone=4, held_out=8)
    return TransferStudy(template=template, targets=targets or names, design=design, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", ["loss", "metric", "margin"])
def test_estimates_have_the_form_of_trained_outcomes(outcome: str, tmp_path: Path) -> None:
    study = Study(tmp_path)
    asked = study_of((), outcome=outcome)
    options = GradientOptions(dimensions=64, rows=40)
    measured = estimate_by_gradients(asked, study, executor=Here(workers=1), options=options)
    assert np.isfinite(measured.outcomes[measured.trained]).all()
    assert len(list(study.runs())) == 2  # nothing but the models on all tasks
    lessons = learn(measured, study)
    assert lessons.matrix is not None
    assert measured.estimate == "gradients"
    again = estimate_by_gradients(asked, study, executor=Here(workers=1), options=options)
    np.testing.assert_array_equal(measured.outcomes, again.outcomes)


def test_estimates_are_compared_with_what_training_gives(tmp_path: Path) -> None:
    study = Study(tmp_path)
    asked = study_of(("loop",))
    asked = replace(
        asked,
        template=replace(asked.template, steps=8, tasks=asked.tasks[3:]),
        design=replace(asked.design, count=6, alone=2, held_out=4),
    )
    options = GradientOptions(dimensions=32, rows=20)
    estimated = estimate_by_gradients(asked, study, executor=Here(workers=1), options=options)
    trained = train_trials(asked, study, executor=Here(workers=1))
    comparison = compare_estimates(estimated, trained, study)
    (row,) = comparison.targets
    assert row.subsets == 6 + 4
    assert -1 <= row.spearman <= 1
    assert comparison.ratio > 0
    same = compare_estimates(trained, trained, study)
    assert same.targets[0].spearman == pytest.approx(1.0)
    assert same.targets[0].same_sign == 1.0


def test_a_target_whose_models_disagree_is_not_told_of(tmp_path: Path) -> None:
    study = Study(tmp_path)
    asked = study_of(())
    options = GradientOptions(dimensions=32, rows=20)
    measured = estimate_by_gradients(asked, study, executor=Here(workers=1), options=options)
    assert measured.agreement is not None
    assert set(measured.agreement) == set(asked.targets)
    assert all(-1 <= rank <= 1 for rank in measured.agreement.values())
    one = estimate_by_gradients(
        asked, study, executor=Here(workers=1), options=replace(options, models=1)
    )
    assert one.agreement is None  # nothing to compare a single model with
    known = dict.fromkeys(asked.targets, 0.9) | {"loop": 0.1}
    document = transfer_document(learn(replace(measured, agreement=known), study), command="x")
    assert document.refused == ("loop",)
    told = {row.target: {source.verdict for source in row.sources} for row in document.targets}
    assert told["loop"] == {"cannot tell"}
    trusted = transfer_document(learn(replace(measured, agreement=None), study), command="x")
    for row in trusted.targets:
        if row.target != "loop":
            assert told[row.target] == {source.verdict for source in row.sources}


def test_the_same_model_twice_agrees_with_itself(tmp_path: Path) -> None:
    asked = study_of(("half",))
    model, tasks = build(asked.template)
    options = GradientOptions(dimensions=32, rows=20)
    linear = linearise(model, tasks, options, seed=0)
    trials = (*asked.alone()[:1], *asked.subsets(24))
    empty = TrialOutcomes(
        description=asked,
        trials=trials,
        outcomes=np.zeros((len(trials), len(asked.tasks))),
        errors=(None,) * len(trials),
    )
    assert _agreement(empty, [linear, linear], options)["half"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "options", [{"dimensions": 0}, {"rows": 0}, {"ridge": 0.0}, {"share": 1.5}, {"models": 0}]
)
def test_options_that_cannot_be_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        GradientOptions(**options)  # type: ignore[arg-type]


def test_gradients_and_curvatures_of_label_sets_are_those_of_automatic_differentiation() -> None:
    """Of a linear encoder the outputs are linear in the parameters, so the curvature is the Hessian."""
    generator = np.random.default_rng(0)
    marks = (generator.random((12, 3)) < 0.4).astype(np.int8)
    rows = (generator.normal(size=(12, 4)).astype(np.float32), marks.copy())
    tasks, encoding = held_tasks({"sets": {"train": rows, "dev": rows}})
    marks[3], marks[5, 1] = MISSING, MISSING
    splits = {name: replace(split, targets=marks) for name, split in tasks[0].splits.items()}
    encoded = encoding.encode(TaskSet((replace(tasks[0], splits=splits),)))
    torch.manual_seed(0)
    model = HardSharing(nn.Linear(4, 5), [nn.Linear(5, 3)], ["sets"])
    (linear,) = linearise(model, encoded, EXACT, seed=0)
    data = encoded["sets"].splits["train"]
    loss = task_loss(encoded["sets"])

    def value(flat: Tensor) -> Tensor:
        codes = torch.func.functional_call(
            model.encoder, _unflat(model.encoder, flat), (data.inputs.batch(torch.arange(12)),)
        )
        return loss(model.heads[0](codes), data.targets)

    flat = torch.cat([parameter.detach().flatten() for parameter in model.encoder.parameters()])
    gradient = torch.func.grad(value)(flat)
    torch.testing.assert_close(linear.gradient, gradient, atol=1e-6, rtol=1e-4)
    hessian = torch.func.hessian(value)(flat)
    torch.testing.assert_close(linear.curvature, hessian, atol=1e-6, rtol=1e-3)
    nowhere = torch.zeros_like(flat)
    assert linear.outcome(nowhere, "loss") == pytest.approx(value(flat).item(), abs=1e-6)
    assert linear.outcome(-0.1 * gradient, "loss") < linear.outcome(nowhere, "loss")
    assert 0 <= linear.outcome(nowhere, "metric") <= 1
