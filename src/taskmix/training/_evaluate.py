"""Scores of a model on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import InputError
from taskmix.models import HardSharing
from taskmix.tasks import (
    MISSING,
    WRITTEN,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    evaluate_outputs,
    find_metric,
    row_credits,
)
from taskmix.training._batches import batches_of, evaluating
from taskmix.training._events import Score
from taskmix.training._losses import LossFunction, known_targets
from taskmix.training._written import foresee, score_written, written_text

Keep = Callable[[int, Tensor, Tensor], Tensor]  # of a task's outputs for a batch of these rows
MOST_LOGITS = 1 << 24  # of a task and split that are kept at once: 64 MB
_SMALLEST_DEVIATION = 1e-12  # of targets; those that are all equal would divide by 0


def evaluate(
    model: HardSharing,
    tasks: EncodedTasks,
    split: str,
    *,
    losses: Sequence[LossFunction] | None = None,
    batch_size: int = 512,
    precision: torch.dtype = torch.float32,
    part: tuple[int, int] = (0, 1),
    with_credits: bool = False,
) -> tuple[Score, ...]:
    """The metric of each task that has the split, and its mean loss where `losses` are given.

    Inputs that several tasks share are encoded once. `part` (k, n) is the k-th of n parts of the
    work, for as many processes. Of text that is to be written, the loss is the mean over its pieces.
    With `with_credits` a score says what each row adds to it.

    >>> from taskmix.models import HardSharing
    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {"dev": (np.eye(2), ["no", "yes"])}})
    >>> model = HardSharing(torch.nn.Linear(2, 2), [torch.nn.Identity()], ["a"])
    >>> _ = torch.nn.init.zeros_(model.encoder.bias), torch.nn.init.eye_(model.encoder.weight)
    >>> evaluate(model, encoding.encode(tasks), "dev")
    (Score(task='a', split='dev', metric='accuracy', value=1.0),)
    """
    found: dict[int, list[Score]] = {}
    groups = _groups(tasks, split)[part[0] :: part[1]]

    def narrowed(position: int, outputs: Tensor, rows: Tensor) -> Tensor:
        """[row, 2], the classes in place of too many logits, and the loss of their batch."""
        if not _is_wide(tasks[position], split):
            return outputs
        found = outputs.argmax(dim=1).double().masked_fill(outputs.isnan().any(dim=1), torch.nan)
        targets = tasks[position].splits[split].targets[rows]
        loss = losses[position](outputs, targets).item() if losses is not None else 0.0
        return torch.stack([found, torch.full_like(found, loss)], dim=1)

    every = _every_output(model, tasks, groups, split, batch_size, precision, narrowed)
    for position, output in every:
        loss = losses[position] if losses is not None else None
        if _is_wide(tasks[position], split):
            output, batch_losses = output.unbind(dim=1)
            loss = _mean_loss(batch_losses) if loss is not None else None
        found[position] = score_outputs(
            tasks[position], split, output, loss, with_credits=with_credits
        )
    for position in _written_tasks(tasks, groups):
        with evaluating(model):
            rows, text = written_text(model, tasks, position, split, batch_size, precision)
        scores = score_written(tasks[position], split, text, loss=losses is not None)
        if with_credits:
            data = tasks[position].splits[split]
            scores = [rows.credited(score, data, text) for score in scores]
        found[position] = scores
    return tuple(score for position in sorted(found) for score in found[position])


def _is_wide(task: EncodedTask, split: str) -> bool:
    """Whether there are too many logits to keep, and the classes alone tell the metric."""
    count = len(task.splits[split]) * task.outputs
    of_classes = find_metric(task.metric).needs == "classes"
    return task.kind == "classification" and count > MOST_LOGITS and of_classes


def _mean_loss(batch_losses: Tensor) -> LossFunction:  # [row], that of the row's batch
    return lambda outputs, targets: batch_losses[known_targets(targets)].mean()


def evaluate_margins(
    model: HardSharing, tasks: EncodedTasks, split: str, *, batch_size: int = 512
) -> dict[str, float]:
    """The mean margin of each task with classes that has the split.

    The margin of a row (or a word) is the score of its true class minus the highest other one, in
    logarithms of probabilities: positive where the row is right, and smooth where accuracy jumps.

    >>> from taskmix.models import HardSharing
    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {"dev": (np.eye(2), ["no", "yes"])}})
    >>> model = HardSharing(torch.nn.Linear(2, 2), [torch.nn.Identity()], ["a"])
    >>> _ = torch.nn.init.zeros_(model.encoder.bias), torch.nn.init.eye_(model.encoder.weight)
    >>> evaluate_margins(model, encoding.encode(tasks), "dev")
    {'a': 1.0}
    """
    moved = tasks.to(next(model.parameters()).device)
    margins = {}
    groups = _groups(moved, split)
    for position, output in _every_output(model, moved, groups, split, batch_size, torch.float32):
        task = moved[position]
        if task.kind in ("classification", "tagging"):
            outputs, targets, _ = _flatten(output, task.splits[split])
            margins[task.name] = mean_margin(outputs, targets)
    return margins


def mean_margin(
    outputs: NDArray[np.floating],  # [row, class]
    targets: NDArray[np.generic],  # [row], class numbers; `MISSING` ones do not count
) -> float:
    """The mean over rows of the true class's score minus the best other's; NaN without rows.

    >>> outputs = np.array([[2.0, 0.5], [1.0, 4.0]])  # right by 1.5, and wrong by 3
    >>> mean_margin(outputs, np.array([0, 0]))
    -0.75
    """
    known = targets != MISSING
    scores, places = outputs[known].astype(np.float64), targets[known].astype(np.int64)
    if len(scores) == 0 or scores.shape[1] < 2:
        return float("nan")
    rows = np.arange(len(scores))
    true = scores[rows, places]
    scores[rows, places] = -np.inf
    return float((true - scores.max(axis=1)).mean())


def _groups(tasks: EncodedTasks, split: str) -> list[list[int]]:
    """The tasks that have the split, those together that share their inputs."""
    groups: dict[int, list[int]] = {}
    for position, task in enumerate(tasks):
        if split in task.splits and len(task.splits[split]):
            groups.setdefault(id(task.splits[split].inputs), []).append(position)
    return list(groups.values())


def _written_tasks(tasks: EncodedTasks, groups: Sequence[Sequence[int]]) -> list[int]:
    return [place for members in groups for place in members if tasks[place].kind in WRITTEN]


def _every_output(
    model: HardSharing,
    tasks: EncodedTasks,
    groups: Sequence[Sequence[int]],
    split: str,
    batch_size: int,
    precision: torch.dtype,
    keep: Keep | None = None,
) -> Iterator[tuple[int, Tensor]]:
    """Each task of some groups with its outputs, but for text to be written, which has too many."""
    with evaluating(model):
        for members in groups:
            if tasks[members[0]].kind not in WRITTEN:
                outputs = _outputs(model, tasks, members, split, batch_size, precision, keep)
                yield from zip(members, outputs, strict=True)


def predict_tags(
    model: HardSharing, tasks: EncodedTasks, name: str, split: str, *, batch_size: int = 512
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Predicted and true label numbers of a tagging task, word by word, and where sentences begin.

    >>> import pyarrow as pa
    >>> from taskmix.models import WindowBiLSTM
    >>> from taskmix.tasks import tables_as_tasks
    >>> rows = pa.table({"tokens": [["in", "Rome"], ["no"]], "tags": [["O", "I-LOC"], ["O"]]})
    >>> tasks = WindowBiLSTM().encoding.encode(tables_as_tasks({"a": {"train": rows, "dev": rows}}))
    >>> _, true, sentences = predict_tags(WindowBiLSTM().build(tasks), tasks, "a", "train")
    >>> true.tolist(), sentences.tolist()
    ([0, 1, 0], [0, 2, 3])
    """
    task = tasks[name]
    if split not in task.splits or task.kind != "tagging":
        raise InputError(
            f"`{name}` should be a tagging task with a split `{split}`. Found a {task.kind} task "
            f"with {', '.join(task.splits)}."
        )
    position = tasks.names.index(name)
    moved = tasks.to(next(model.parameters()).device)
    with evaluating(model):
        outputs = _outputs(model, moved, [position], split, batch_size, torch.float32)[0]
    flat, targets, sentences = _flatten(outputs.cpu(), task.splits[split])
    if sentences is None:
        sentences = np.array([0, len(targets)], dtype=np.int64)
    return flat.argmax(axis=1), targets.astype(np.int64), sentences


def outputs_of(
    model: HardSharing, tasks: EncodedTasks, head: int, *, batch_size: int = 512
) -> Tensor:
    """What a head says to the rows of one task, which need no targets.

    >>> from taskmix.models import HardSharing
    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {"rows": (np.eye(2), ["no", "yes"])}})
    >>> model = HardSharing(torch.nn.Linear(2, 2), [torch.nn.Identity()], ["a"])
    >>> _ = torch.nn.init.zeros_(model.encoder.bias), torch.nn.init.eye_(model.encoder.weight)
    >>> outputs_of(model, encoding.encode(tasks), head=0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    (task,) = tasks
    (split,) = task.splits
    alone = HardSharing(model.encoder, [model.heads[head]], tasks.names).eval()
    moved = tasks.to(next(model.parameters()).device)
    return _outputs(alone, moved, [0], split, batch_size, torch.float32)[0].cpu()


def outputs_of_split(
    model: HardSharing, tasks: EncodedTasks, name: str, split: str
) -> NDArray[np.float32]:
    """What a model says to the rows of a task's split, a word of a sentence as one row.

    >>> from taskmix.models import HardSharing
    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {"dev": (np.eye(2), ["no", "yes"])}})
    >>> model = HardSharing(torch.nn.Identity(), [torch.nn.Linear(2, 2)], ["a"])
    >>> outputs_of_split(model, encoding.encode(tasks), "a", "dev").shape
    (2, 2)
    """
    task = tasks[name]
    alone = replace(tasks, tasks=(replace(task, splits={split: task.splits[split]}),))
    found = outputs_of(model, alone, tasks.names.index(name))
    return _flatten(found, task.splits[split])[0]


def _outputs(
    model: HardSharing,
    tasks: EncodedTasks,
    members: Sequence[int],
    split: str,
    batch_size: int,
    precision: torch.dtype,
    keep: Keep | None = None,
) -> list[Tensor]:
    """What is kept of the outputs of each member task for all rows of the inputs they share."""
    data = tasks[members[0]].splits[split]
    device = data.targets.device
    parts: list[list[Tensor]] = [[] for _ in members]
    autocast = torch.autocast(device.type, precision, enabled=precision != torch.float32)
    with torch.inference_mode(), autocast:
        order, sizes = batches_of(data.inputs, batch_size)
        for rows in torch.split(order.to(device), sizes):
            code = model.encoder(data.inputs.batch(rows))
            for part, position in zip(parts, members, strict=True):
                outputs = model.heads[position](code).float()
                part.append(outputs if keep is None else keep(position, outputs, rows))
    back = torch.argsort(order).to(device)
    return [_join(part)[back] for part in parts]


def _join(parts: list[Tensor]) -> Tensor:
    if parts[0].dim() < 3:
        return torch.cat(parts)
    width = max(part.shape[1] for part in parts)  # sentences: batches differ in their widest row
    padded = [torch.nn.functional.pad(part, (0, 0, 0, width - part.shape[1])) for part in parts]
    return torch.cat(padded)


def score_outputs(
    task: EncodedTask,
    split: str,
    outputs: Tensor,
    loss: LossFunction | None,
    *,
    with_credits: bool = False,
) -> list[Score]:
    """The task's metric for the outputs of all rows of a split, and the loss where one is given.

    With `with_credits` a score says what each row adds to it.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {"dev": (np.eye(2), ["no", "yes"])}})
    >>> task = encoding.encode(tasks)["a"]
    >>> score_outputs(task, "dev", torch.tensor([[1.0, 0.0], [1.0, 0.0]]), None)
    [Score(task='a', split='dev', metric='accuracy', value=0.5)]
    """
    data = task.splits[split]
    if task.kind in WRITTEN:  # as many numbers as fit here: a small vocabulary, and few rows
        written = foresee(torch.nn.Identity(), outputs, data.targets.to(outputs.device))
        text = written.total(data.target_bytes)
        scores = score_written(task, split, text, loss=loss is not None)
        return [written.credited(s, data, text) for s in scores] if with_credits else scores
    flat, targets, sentences = _flatten(outputs, data)
    rows: dict[str, Any] = {"outputs": flat, "targets": targets}
    rows |= {"labels": task.labels, "sentences": sentences}
    value = evaluate_outputs(task.metric, **rows)
    of_rows = row_credits(task.metric, **rows) if with_credits else None
    scores = [Score(task.name, split, task.metric, value, of_rows)]
    if loss is not None and bool(known_targets(data.targets).any()):  # no target: no loss, not 0
        with torch.inference_mode():
            mean = float(loss(outputs, data.targets))
            of_rows = _loss_credits(task, mean, rows) if with_credits else None
            scores.append(Score(task.name, split, "loss", mean, of_rows))
    return scores


def _loss_credits(
    task: EncodedTask, mean: float, rows: Mapping[str, Any]
) -> NDArray[np.float64] | None:
    """What each row adds to the mean loss; None where there are too many logits to keep."""
    if task.kind == "classification" and rows["outputs"].ndim == 1:
        return None
    if task.kind != "regression":
        return row_credits("log_loss", **rows)
    errors = row_credits("rmse", **rows)  # rmse / 2 (1 + square / mean square)
    found: NDArray[np.float64] = mean * (2 * errors / (np.nanmean(errors) or 1.0) - 1)
    return found


def _flatten(
    outputs: Tensor, data: EncodedSplit
) -> tuple[NDArray[np.float32], NDArray[np.generic], NDArray[np.int64] | None]:
    """One output and one target a row or a word, and where sentences begin."""
    targets = data.targets
    sentences = data.sentences.cpu().numpy() if data.sentences is not None else None
    if outputs.dim() == 3:
        targets = targets[:, : outputs.shape[1]]
        known = targets != MISSING
        counts = known.sum(dim=1).cpu().numpy()
        sentences = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        outputs, targets = outputs[known], targets[known]
    return outputs.cpu().numpy(), targets.cpu().numpy(), sentences


def mean_score(scores: Sequence[Score], deviations: dict[str, float]) -> float:
    """One number for a model, higher is better: the mean over tasks of their metric.

    A metric that is better when lower counts with a minus, and an error in the target's unit is
    divided by the target's deviation so that no task outweighs the others by its unit.

    >>> scores = [Score("a", "dev", "accuracy", 0.5), Score("b", "dev", "rmse", 2.0)]
    >>> mean_score(scores, {"b": 4.0})  # (0.5 - 2 / 4) / 2
    0.0
    """
    values = []
    for score in scores:
        if score.metric == "loss":
            continue
        value = score.value
        if score.metric == "rmse":
            value /= max(deviations.get(score.task, 1.0), _SMALLEST_DEVIATION)
        values.append(value if find_metric(score.metric).higher_is_better else -value)
    # A metric that is not defined (one class only) says nothing, and does not silence the others.
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def scores_by_position(
    tasks: EncodedTasks, scores: Sequence[Score], deviations: Mapping[str, float]
) -> dict[int, float]:
    """Each task's dev score, higher is better, by the task's position.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({name: {"train": (np.eye(2), ["no", "yes"])} for name in "ab"})
    >>> scores = [Score("b", "dev", "accuracy", 0.75), Score("b", "dev", "loss", 0.6)]
    >>> scores_by_position(encoding.encode(tasks), scores, {})
    {1: 0.75}
    """
    places = {name: position for position, name in enumerate(tasks.names)}
    return {
        places[found.task]: mean_score([found], dict(deviations))
        for found in scores
        if found.metric != "loss"
    }
