"""Scores of tasks in which text is written, reduced batch by batch.

The scores of every piece of the vocabulary at every place of a split would fill any memory, so of
each batch only four numbers a row are kept. Of metrics over words the model first writes its answers.

A model writes by itself always the likeliest next piece, many rows at once. What was read is kept (keys
and values of every layer), so a new piece costs one piece and not the whole text. Rows end on the same
side (padding stands on the left), and are read on together until each has written its end or as many
pieces as it may.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.errors import InputError
from taskmix.models import HardSharing
from taskmix.tasks import (
    MISSING,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    SubwordInputs,
    WrittenText,
    evaluate_written,
    find_metric,
    load_pretrained,
    written_credits,
)
from taskmix.training._batches import batches_of, evaluating
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


PIECES_AT_ONCE = 1 << 14  # of the prompts in a batch, padding included: bounds what is kept of them


@runtime_checkable
class WritesText(Protocol):
    """An encoder that can continue a text.

    >>> class Counting:  # the code of a piece is the piece after it
    ...     def read_on(self, pieces, cache):
    ...         return torch.eye(9)[pieces["input_ids"][:, -1] + 1], None
    >>> isinstance(Counting(), WritesText), isinstance(torch.nn.Linear(1, 1), WritesText)
    (True, False)
    """

    def read_on(self, pieces: Mapping[str, Tensor], cache: Any) -> tuple[Tensor, Any]:
        """Reads `input_ids` [row, piece] after what is in the cache, None at the beginning.

        `attention_mask` covers all that was read, and `position_ids` the new pieces. Gives the code
        of each row's last piece, [row, feature], and the cache to go on from.
        """
        ...


@dataclass(frozen=True)
class Written:
    """What a model wrote for one row."""

    pieces: tuple[int, ...]  # without the end
    log_probability: float  # the mean over its pieces, the end included where it came


def write_answers(
    model: HardSharing,
    head: int,
    data: EncodedSplit,
    *,
    most: int,  # pieces to write, the end included
    end: int,
    context: int | None = None,  # pieces that the model can read
    precision: torch.dtype = torch.float32,
) -> list[Written]:
    """What a model writes after the prompts of a split, in the order of its rows."""
    encoder, inputs = model.encoder, data.inputs
    if not isinstance(encoder, WritesText) or not isinstance(inputs, SubwordInputs):
        raise InputError(
            "Answers should be written by a causal language model. Found "
            f"{type(encoder).__name__}, which cannot continue a text. Choose another model, or a "
            "metric of pieces such as exact_match."
        )
    assert inputs.word_starts is not None
    device = data.targets.device
    starts, lengths = inputs.offsets[:-1].cpu(), inputs.word_starts[:, 0].cpu() + 1
    found: list[Written | None] = [None] * len(data)
    autocast = torch.autocast(device.type, precision, enabled=precision != torch.float32)
    with torch.inference_mode(), autocast:
        for rows in _prompt_batches(lengths):
            width = int(lengths[rows].max())
            before = torch.arange(width) - (
                width - lengths[rows, None]
            )  # [row, place], below 0: padding
            places = (starts[rows, None] + before.clamp(min=0)).to(device)
            mask = (before >= 0).long().to(device)
            ids = inputs.ids[places].masked_fill(mask == 0, inputs.padding)
            room = most if context is None else min(most, context + 1 - width)
            written = _write(encoder, model.heads[head], ids, mask, max(room, 1), end)
            for row, each in zip(rows.tolist(), written, strict=True):
                found[row] = each
    return [each for each in found if each is not None]


def _write(
    encoder: WritesText, head: torch.nn.Module, ids: Tensor, mask: Tensor, most: int, end: int
) -> list[Written]:
    cache: Any = None
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    going = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
    totals = torch.zeros(len(ids), device=ids.device)
    columns: list[Tensor] = []
    for _ in range(most):
        batch = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        codes, cache = encoder.read_on(batch, cache)
        scores = torch.log_softmax(head(codes).float(), dim=-1)
        best, pieces = scores.max(dim=-1)
        totals += torch.where(going, best, 0.0)
        columns.append(torch.where(going, pieces, -1))  # nothing comes after the end
        going = going & (pieces != end)
        if not going.any():
            break
        ids, positions = pieces[:, None], positions[:, -1:] + 1
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
    rows = torch.stack(columns, dim=1).tolist()
    found = []
    for row, total in zip(rows, totals.tolist(), strict=True):
        kept = [piece for piece in row if piece >= 0]
        text = kept[:-1] if kept[-1] == end else kept
        found.append(Written(tuple(text), total / len(kept)))
    return found


def _prompt_batches(lengths: Tensor) -> Sequence[Tensor]:
    """Rows of like length together, so that little is padding."""
    order = torch.argsort(lengths, stable=True)
    batches, begin = [], 0
    for place, length in enumerate(lengths[order].tolist()):
        if place > begin and (place + 1 - begin) * length > PIECES_AT_ONCE:
            batches.append(order[begin:place])
            begin = place
    return [*batches, order[begin:]]
