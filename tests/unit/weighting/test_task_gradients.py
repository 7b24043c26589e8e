"""Each task's own gradient: which graphs are walked together, their products, parts and order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_balancer import TASKS, Model, assert_close, batch
from torch import nn

from taskmix.weighting import (
    Balancer,
    UPGrad,
)
from taskmix.weighting._gradients import Block, TaskGradients, task_gradients
from taskmix.weighting._gramian import inner_products
from taskmix.weighting._graph import survey
from taskmix.weighting._pcgrad import visiting_order


def test_own_graphs_are_freed_as_soon_as_they_are_walked() -> None:
    model = Model()
    inputs, targets = batch()
    found = survey(model.losses([inputs] * TASKS, targets), list(model.encoder.parameters()))
    assert not found.joint
    assert survey(model.losses(inputs, targets), list(model.encoder.parameters())).joint


def test_dense_encoders_are_walked_for_all_tasks_at_once_with_the_same_result() -> None:
    torch.manual_seed(0)
    encoder = nn.Sequential(
        nn.Linear(5, 8),
        nn.LayerNorm(8),
        nn.GELU(),
        nn.Dropout(0.3),
        nn.Linear(8, 8),
        nn.SiLU(),
        nn.Linear(8, 6),
        nn.Sigmoid(),
    )
    heads = [nn.Linear(6, 2) for _ in range(TASKS)]
    parameters = list(encoder.parameters())
    inputs, targets = batch()
    torch.manual_seed(1)
    code = encoder(inputs)
    losses = [
        nn.functional.mse_loss(head(code), target)
        for head, target in zip(heads, targets, strict=True)
    ]
    found = survey(losses, parameters)
    assert len(found.batched_entries) == 1
    expected = [
        torch.cat(
            [part.flatten() for part in torch.autograd.grad(loss, parameters, retain_graph=True)]
        )
        for loss in losses
    ]
    walked = task_gradients(losses, parameters, found, starts=[None] * TASKS)
    assert_close([walked.gradients.matrix()], [torch.stack(expected)])


@pytest.mark.parametrize("kind", ["convolution", "recurrent", "penalty", "own rows"])
def test_what_cannot_be_batched_is_walked_task_by_task(kind: str) -> None:
    model = Model()
    inputs, targets = batch()
    shared = list(model.encoder.parameters())
    losses = model.losses(inputs, targets)
    if kind == "convolution":
        layer = nn.Conv1d(1, 6, 5)
        code = layer(inputs[:, None]).flatten(1)
        shared = list(layer.parameters())
    elif kind == "recurrent":
        recurrent = nn.GRU(5, 6, batch_first=True)
        code = recurrent(inputs[:, None])[0][:, 0]
        shared = list(recurrent.parameters())
    if kind in ("convolution", "recurrent"):
        losses = [
            nn.functional.mse_loss(head(code), target)
            for head, target in zip(model.heads, targets, strict=True)
        ]
    elif kind == "penalty":  # straight from loss to shared parameter, past the code
        losses[1] = losses[1] + shared[0].square().sum()
    else:
        losses = model.losses([inputs] * TASKS, targets)
    assert survey(losses, shared).batched_entries == []
    info = Balancer(UPGrad(), shared=shared).backward(losses, retain_graph=True)
    expected = torch.autograd.grad(torch.stack(losses) @ info.weights, shared)
    assert_close([p.grad for p in shared if p.grad is not None], expected)


@pytest.mark.parametrize("tasks", [3, 9])
def test_very_large_and_very_small_gradients_keep_their_products(tasks: int) -> None:
    rows = torch.randn(tasks, 50) * torch.logspace(-25, 25, tasks)[:, None]
    gradients = TaskGradients([Block(rows, list(range(tasks)), [rows.shape[1:]], [0])], tasks)
    expected = rows.double() @ rows.double().T
    torch.testing.assert_close(gradients.gramian(), expected, rtol=1e-5, atol=0.0)


@pytest.mark.parametrize("tasks", [3, 9])
def test_products_of_short_numbers_are_summed_in_longer_ones(tasks: int) -> None:
    rows = torch.randn(tasks, 50).bfloat16()
    torch.testing.assert_close(inner_products(rows), rows.float() @ rows.float().T)
    rows = torch.randn(tasks, 50)
    torch.testing.assert_close(inner_products(rows), rows @ rows.T)


def test_every_task_meets_every_other_once() -> None:
    order = visiting_order(6, np.random.default_rng(0))
    for task in range(6):
        assert sorted(order[:, task]) == [other for other in range(6) if other != task]
