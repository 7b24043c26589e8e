"""Each task's own gradient: which graphs are walked together, their products, parts and order."""

from __future__ import annotations

import pytest
import torch
from test_balancer import TASKS, Model, assert_close, batch
from torch import nn

from taskmix.weighting import (
    Balancer,
    UPGrad,
)
from taskmix.weighting._gradients import task_gradients
from taskmix.weighting._graph import survey


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
