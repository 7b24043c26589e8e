"""Scores of tasks in which text is written, reduced batch by batch.

The scores of every piece of the vocabulary at every place of a split would fill any memory, so of
each batch only four numbers a row are kept. Of metrics over words the model first writes its answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.models import HardSharing
from taskmix.tasks import (
    MISSING,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    WrittenText,
    evaluate_written,
    find_metric,
    load_pretrained,
    written_credits,
)
from taskmix.training._batches import batches_of, evaluating
from taskmix.training._decode import write_answers
from taskmix.training._events import Score

SCORES_AT_ONCE = 1 << 26  # of the vocabulary: a quarter of a gigabyte in float32


@dataclass(frozen=True, eq=False)
class WrittenRows:
    """Row by row, how well the pieces that were to be written were foreseen.

    >>> rows = WrittenRows(torch.tensor([2.0, 1.0]), torch.tensor([3, 1]), torch.tensor([3, 2]))
    >>> text = rows.total(torch.tensor([6, 4]))
    >>> text.right_rows, text.right_pieces, text.pieces, text.bytes
    (1, 4, 5, 10)
    """

    loss: Tensor  # [row], the sum over its pieces of minus the logarithm of their probability
    right: Tensor  # [row], pieces that were the first choice
    pieces: Tensor  # [row]

    def total(self, sizes: Tensor | None) -> WrittenText:
        """All of them together; `sizes` [row] are the bytes of what is spelled."""
        counted = self.pieces > 0
        return WrittenText(
            rows=int(counted.sum()),
            right_rows=int((counted & (self.right == self.pieces)).sum()),
            pieces=int(self.pieces.sum()),
            right_pieces=int(self.right.sum()),
            loss=float(self.loss.double().sum()),
            bytes=0 if sizes is None else int(sizes.sum()),
        )

    def credited(self, score: Score, data: EncodedSplit, text: WrittenText) -> Score:
        """The score of these rows with what each of them adds to it."""
        sizes = data.target_bytes
        of_rows = written_credits(
            score.metric,
            loss=self.loss.double().numpy(),
            right=self.right.numpy(),
            pieces=self.pieces.numpy(),
            sizes=None if sizes is None else sizes.cpu().numpy(),
            answers=text.answers,
        )
        return replace(score, credits=of_rows)


def foresee(
    scores: Callable[[Tensor], Tensor],  # of the next piece, from codes
    codes: Tensor,  # [row, place, feature]
    targets: Tensor,  # [row, place], as wide or wider
) -> WrittenRows:
    """How well pieces are foreseen from codes, so many at a time that their scores have room.

    >>> rows = foresee(torch.nn.Identity(), torch.zeros(1, 2, 4), torch.tensor([[0, 3]]))
    >>> rows.pieces.tolist(), rows.right.tolist()  # of four equal scores the first is chosen
    ([2], [1])
    >>> round(rows.loss.item(), 3)  # two times the logarithm of four
    2.773
    """
    targets = targets[:, : codes.shape[1]]
    known = targets != MISSING
    wanted, flat = targets[known], codes[known]
    losses, rights = [], []
    begin, size = 0, 1  # one piece shows how many scores there are
    while begin < len(flat):
        found = scores(flat[begin : begin + size]).float()
        aims = wanted[begin : begin + size]
        losses.append(functional.cross_entropy(found, aims, reduction="none"))
        rights.append(found.argmax(dim=-1) == aims)
        begin, size = begin + size, max(SCORES_AT_ONCE // found.shape[-1], 1)
    loss, right = torch.zeros(known.shape, device=codes.device), torch.zeros_like(targets)
    if losses:
        loss[known], right[known] = torch.cat(losses), torch.cat(rights).long()
    return WrittenRows(loss.sum(dim=1).cpu(), right.sum(dim=1).cpu(), known.sum(dim=1).cpu())


def foresee_split(
    model: HardSharing,
    head: int,
    data: EncodedSplit,
    batch_size: int,
    precision: torch.dtype = torch.float32,
) -> WrittenRows:
    """The rows of a split, in their order."""
    order, sizes = batches_of(data.inputs, batch_size)
    device = data.targets.device
    parts: list[WrittenRows] = []
    autocast = torch.autocast(device.type, precision, enabled=precision != torch.float32)
    with torch.inference_mode(), autocast:
        for rows in torch.split(order.to(device), sizes):
            codes = model.encoder(data.inputs.batch(rows))
            parts.append(foresee(model.heads[head], codes, data.targets[rows]))
    back = torch.argsort(order)
    return WrittenRows(
        torch.cat([part.loss for part in parts])[back],
        torch.cat([part.right for part in parts])[back],
        torch.cat([part.pieces for part in parts])[back],
    )


def score_written(task: EncodedTask, split: str, text: WrittenText, *, loss: bool) -> list[Score]:
    """The task's metric, and the mean loss of a piece where it is asked for.

    >>> from taskmix.tasks import EncodedTask, WrittenText
    >>> kind = {"kind": "generation", "labels": (), "metric": "exact_match"}
    >>> task = EncodedTask(name="a", source="a", splits={}, **kind)
    >>> score_written(task, "dev", WrittenText(rows=4, right_rows=3), loss=False)
    [Score(task='a', split='dev', metric='exact_match', value=0.75)]
    """
    value = float("nan") if math.isnan(text.loss) else evaluate_written(task.metric, text)
    scores = [Score(task.name, split, task.metric, value)]
    if loss:
        scores.append(Score(task.name, split, "loss", text.loss / max(text.pieces, 1)))
    return scores


def written_text(
    model: HardSharing,
    tasks: EncodedTasks,
    position: int,
    split: str,
    batch_size: int,
    precision: torch.dtype,
) -> tuple[WrittenRows, WrittenText]:
    """What the metric of a task needs to know, row by row and in all."""
    task = tasks[position]
    data = task.splits[split]
    rows = foresee_split(model, position, data, batch_size, precision)
    text = rows.total(data.target_bytes)
    if find_metric(task.metric).needs != "answers":
        return rows, text
    tokenizer = _tokenizer(str(tasks.extra["tokenizer"]))
    ours = [answer for answer, _ in answer_split(model, position, tasks, task, data, precision)]
    unwritten = (MISSING, tokenizer.eos_token_id)
    true = [[piece for piece in row if piece not in unwritten] for row in data.targets.tolist()]
    answers = tuple(zip(ours, _spelled(tokenizer, true), strict=True))
    return rows, text + WrittenText(answers=answers)


def answer_split(
    model: HardSharing,
    head: int,
    tasks: EncodedTasks,
    task: EncodedTask,
    data: EncodedSplit,
    precision: torch.dtype = torch.float32,
) -> list[tuple[str, float]]:
    """For each row the answer that a model writes, and the mean log-probability of its pieces."""
    tokenizer = _tokenizer(str(tasks.extra["tokenizer"]))
    written = write_answers(
        model,
        head,
        data,
        most=int(tasks.extra["longest_answer"][task.name]),
        end=tokenizer.eos_token_id,
        context=tasks.extra["context"],
        precision=precision,
    )
    texts = _spelled(tokenizer, [list(each.pieces) for each in written])
    return list(zip(texts, (each.log_probability for each in written), strict=True))


def written_answers(
    model: HardSharing, tasks: EncodedTasks, head: int, *, batch_size: int = 512
) -> list[dict[str, Any]]:
    """What a model writes for the prompts of one task, or how well it foresees each of its texts."""
    moved = tasks.to(next(model.parameters()).device)
    (task,) = moved
    (data,) = task.splits.values()
    with evaluating(model):
        if task.kind == "generation":
            found = answer_split(model, head, moved, task, data)
            return [{"answer": text, "log_probability": value} for text, value in found]
        rows = foresee_split(model, head, data, batch_size)
    assert data.sentences is not None
    assert data.target_bytes is not None
    bits = rows.loss.double() / math.log(2)
    ends = zip(data.sentences.tolist()[:-1], data.sentences.tolist()[1:], strict=True)
    sums = [(bits[begin:end].sum(), data.target_bytes[begin:end].sum()) for begin, end in ends]
    return [{"bits_per_byte": float(total / size)} for total, size in sums]


@lru_cache(maxsize=2)  # that of a GGUF file takes seconds to read
def _tokenizer(path: str) -> Any:
    return load_pretrained("AutoTokenizer", path)


def _spelled(tokenizer: Any, rows: list[list[int]]) -> list[str]:
    found: list[str] = tokenizer.batch_decode(rows, skip_special_tokens=True)
    return found
