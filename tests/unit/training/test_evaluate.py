from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from taskmix.models import HardSharing
from taskmix.tasks import MISSING, DenseInputs, EncodedSplit, EncodedTask, EncodedTasks
from taskmix.training import (
    Score,
    evaluate,
    mean_margin,
    mean_score,
    predict_tags,
    score_outputs,
    task_loss,
)


def test_scores_do_not_depend_on_the_batch_size_and_leave_dropout_out(
    tasks: EncodedTasks, make_model: Callable[..., HardSharing]
) -> None:
    model = make_model(tasks)
    model.train()
    losses = [task_loss(task) for task in tasks]
    once = evaluate(model, tasks, "dev", losses=losses)
    parts = evaluate(model, tasks, "dev", losses=losses, batch_size=7)
    assert [score.value for score in once] == pytest.approx([score.value for score in parts])
    assert model.training, "left as it was found"


def test_what_rows_add_to_the_loss_has_the_loss_as_its_mean() -> None:
    generator = torch.Generator().manual_seed(0)
    words = torch.tensor([[0, 1, 2], [1, MISSING, MISSING], [MISSING, MISSING, MISSING]])
    marks = torch.tensor([[1, 0, 1], [0, 0, MISSING], [1, 1, 0]])
    cases = {
        "classification": (torch.Size([3, 3]), torch.tensor([0, 2, MISSING])),
        "regression": (torch.Size([3]), torch.tensor([0.5, 2.0, torch.nan])),
        "tagging": (torch.Size([3, 3, 3]), words),
        "multilabel": (torch.Size([3, 3]), marks),
    }
    for kind, (shape, targets) in cases.items():
        data = EncodedSplit(DenseInputs(torch.zeros(3, 1)), targets)
        metric = {"regression": "rmse", "multilabel": "micro_f1"}.get(kind, "accuracy")
        task = EncodedTask(
            name="a",
            source="a",
            kind=kind,
            labels=() if kind == "regression" else ("x", "y", "z"),
            metric=metric,
            splits={"dev": data},
        )
        outputs = torch.randn(shape, generator=generator)
        loss = task_loss(task, deviation=0.7)
        found = score_outputs(task, "dev", outputs, loss, with_credits=True)[1]
        assert found.metric == "loss"
        assert np.nanmean(found.credits) == pytest.approx(found.value, rel=1e-5), kind
        if kind in ("classification", "regression"):
            first = float(loss(outputs[:1], targets[:1]))
            assert found.credits[0] == pytest.approx(first, rel=1e-5), "the row's own"


def test_the_mean_turns_errors_round_and_takes_them_in_units_of_the_deviation() -> None:
    scores = [
        Score("a", "dev", "accuracy", 0.8),
        Score("b", "dev", "rmse", 5.0),
        Score("a", "dev", "loss", 123.0),
    ]
    assert mean_score(scores, {"b": 10.0}) == pytest.approx((0.8 - 0.5) / 2)


def test_a_score_that_is_not_defined_does_not_silence_the_others() -> None:
    scores = [Score("a", "dev", "auc", float("nan")), Score("b", "dev", "accuracy", 0.6)]
    assert mean_score(scores, {}) == 0.6


def test_sentences_of_different_lengths_are_evaluated_word_by_word() -> None:
    # Rows are sentences of 3 and 1 words; the "encoder" hands the words' class scores through.
    values = torch.zeros(2, 3 * 2)
    words = torch.tensor([[[5.0, 0], [0, 5], [0, 5]], [[5, 0], [0, 0], [0, 0]]])
    values[:] = words.reshape(2, 6)
    targets = torch.tensor([[0, 1, 0], [0, MISSING, MISSING]])
    task = EncodedTask(
        name="tags",
        kind="tagging",
        labels=("O", "X"),
        metric="accuracy",
        source="tags",
        splits={"test": EncodedSplit(DenseInputs(values), targets)},
    )

    class Reshape(torch.nn.Module):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return batch.reshape(len(batch), 3, 2)

    model = HardSharing(Reshape(), [torch.nn.Identity()], ["tags"])
    model.register_parameter("unused", torch.nn.Parameter(torch.zeros(1)))
    tasks = EncodedTasks((task,))
    (score,) = evaluate(model, tasks, "test")
    assert score.value == pytest.approx(3 / 4)
    predicted, true, sentences = predict_tags(model, tasks, "tags", "test")
    np.testing.assert_array_equal(true, [0, 1, 0, 0])
    np.testing.assert_array_equal(predicted, [0, 1, 1, 0])
    np.testing.assert_array_equal(sentences, [0, 3, 4])


def test_a_regression_loss_of_one_is_as_bad_as_answering_the_mean(tasks: EncodedTasks) -> None:
    targets = torch.tensor([40.0, 60.0])
    task = replace(tasks[0], kind="regression", labels=())
    assert float(task_loss(task, 10.0)(torch.tensor([50.0, 50.0]), targets)) == 1.0
    holes = torch.tensor([40.0, float("nan")])
    assert float(task_loss(task, 10.0)(torch.tensor([50.0, 50.0]), holes)) == 1.0


def test_a_margin_is_the_true_score_less_the_best_other() -> None:
    outputs = np.array([[2.0, 0.5, 1.0], [0.0, 1.0, 3.0], [9.0, 9.0, 9.0]])
    # 2 - 1, then 1 - 3; the row without a label does not count.
    assert mean_margin(outputs, np.array([0, 1, MISSING])) == pytest.approx(-0.5)
    assert np.isnan(mean_margin(outputs[:0], np.array([], dtype=np.int64)))
    # What a softmax takes from all classes alike changes nothing.
    assert mean_margin(outputs - 7.0, np.array([0, 1, 2])) == pytest.approx(
        mean_margin(outputs, np.array([0, 1, 2]))
    )


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "matthews"])
def test_many_classes_are_scored_batch_by_batch_with_the_same_scores(metric: str) -> None:
    rows, classes = 9000, 2000
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(rows, 4, generator=generator)
    head = torch.nn.Linear(4, classes)
    with torch.no_grad():
        targets = head(values).argmax(dim=1)
    targets[::3] = torch.randint(classes, (rows // 3,), generator=generator)
    targets[::7] = MISSING
    task = EncodedTask(
        name="a",
        kind="classification",
        labels=tuple(map(str, range(classes))),
        metric=metric,
        source="a",
        splits={"dev": EncodedSplit(DenseInputs(values), targets)},
    )
    tasks, loss = EncodedTasks((task,), features=4), task_loss(task)
    model = HardSharing(torch.nn.Identity(), [head], ["a"])
    tracemalloc.start()
    found = evaluate(model, tasks, "dev", losses=[loss], with_credits=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * rows * classes / 10
    with torch.no_grad():
        whole = score_outputs(task, "dev", head(values), loss, with_credits=True)
    assert [score.metric for score in found] == [metric, "loss"]
    assert found[0].value == whole[0].value
    np.testing.assert_array_equal(found[0].credits, whole[0].credits)
    assert found[1].value == pytest.approx(whole[1].value)
    with torch.no_grad():
        head.bias[3] = torch.nan
    assert np.isnan(evaluate(model, tasks, "dev")[0].value)
