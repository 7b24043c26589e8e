"""Texts as vectors of a pretrained encoder that stays as it is: computed once, then only looked up.

    Reimers and Gurevych, "Sentence-BERT", EMNLP 2019: the mean of the last layer's vectors over the
    pieces of a text; a pair joined as [u, v, |u - v|, u * v], as in Conneau et al., EMNLP 2017.

What a small model on top of such vectors learns in a second stands for what fine-tuning would in an
hour, which is what makes hundreds of runs on subsets of tasks affordable. A vector has mean square 1,
so that a perceptron's first layer finds it in the range that it expects.

Vectors are a function of the text alone, rounded to half precision. They are computed on a GPU where
there is one, every different text once, shortest first, and kept in the folder `cache` under a hash
of the rows and of the encoder's files.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from safetensors import SafetensorError
from torch import Tensor

from taskmix.errors import InputError, OptionError
from taskmix.tasks._encoding._assemble import at_least, distinct_tables, encoded_tasks
from taskmix.tasks._encoding._cache import cached, file_hash
from taskmix.tasks._encoding._encoded import EncodedSplit, EncodedTask, EncodedTasks
from taskmix.tasks._encoding._inputs import DenseInputs
from taskmix.tasks._encoding._pretrained import load_pretrained
from taskmix.tasks._encoding._subwords import load_tokenizer, subword_inputs
from taskmix.tasks._kept import KeptByTable
from taskmix.tasks._task import Split, Task, TaskSet

Tell = Callable[[int, int], None]  # texts done, of how many

_COLUMNS = {"text": ("text",), "pair": ("text", "text2")}
BATCH_PIECES = 8192  # in a batch: bounds what the encoder holds at once
_FILES = ("*.json", "*.txt", "*.safetensors", "*.bin", "*.model")  # that make an encoder
_vectors: KeptByTable[Tensor] = KeptByTable()  # [row, text, feature], half precision
_inputs: KeptByTable[DenseInputs] = KeptByTable()


@dataclass(frozen=True, kw_only=True)
class FeatureEncoding:
    """Texts and pairs of texts as `DenseInputs`.

    Single texts are as wide as pairs, filled up with zeros, where a task of pairs is among the
    tasks; with `as_pairs` always, so that a model's shape does not depend on its company.

    >>> FeatureEncoding(path="bert-base-uncased", pooling="first").max_length
    128
    >>> FeatureEncoding(path="bert-base-uncased", pooling="last")
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `pooling` should be mean or first. Found 'last'.
    """

    path: str  # a folder, or a name on the hub
    max_length: int = 128  # pieces, the special ones included
    pooling: Literal["mean", "first"] = "mean"
    as_pairs: bool = False

    def __post_init__(self) -> None:
        at_least("max_length", self.max_length, 4)
        if self.pooling not in ("mean", "first"):
            raise OptionError(f"`pooling` should be mean or first. Found {self.pooling!r}.")

    def encode(
        self, tasks: TaskSet, *, cache: Path | None = None, on_progress: Tell | None = None
    ) -> EncodedTasks:
        """The tasks as vectors; those in the folder `cache` are not computed again."""
        tables = distinct_tables(
            tasks,
            "FeatureEncoding",
            lambda task: task.inputs in _COLUMNS and task.kind != "tagging",
            advice="Use `TableEncoding` for tables and `SubwordEncoding` for words to be tagged.",
            needs_train=False,
        )
        unknown = [table for table in tables.values() if _vectors.get(table, self._made_by) is None]
        if unknown:
            self._find(unknown, cache, on_progress)
        wide = self.as_pairs or any(task.inputs == "pair" for task in tasks)
        inputs = {key: self._joined(table, wide) for key, table in tables.items()}
        width = next(iter(inputs.values())).values.shape[1]
        return encoded_tasks(tasks, inputs, features=width, extra={"encoder": self.path})

    @property
    def _made_by(self) -> tuple[str, int, str]:
        return self.path, self.max_length, self.pooling

    def _joined(self, table: pa.Table, wide: bool) -> DenseInputs:
        known = _inputs.get(table, (self._made_by, wide))
        if known is not None:
            return known
        vectors = _vectors.get(table, self._made_by)
        assert vectors is not None
        return _inputs.put(table, (self._made_by, wide), DenseInputs(join(vectors, wide=wide)))

    def _find(
        self, tables: Sequence[pa.Table], cache: Path | None, on_progress: Tell | None
    ) -> None:
        """Reads the vectors of tables from the cache, and computes those that are not there."""
        options = repr((self._made_by[1:], _identity(self.path))) if cache is not None else ""

        def kept(table: pa.Table, build: Callable[[], EncodedTasks]) -> None:
            found: Any = cached(build, TaskSet((_as_task(table),)), options, cache)
            _vectors.put(table, self._made_by, found[0].splits["rows"].inputs.values)

        missing = []
        for table in tables:
            try:
                kept(table, _not_kept)
            except LookupError:
                missing.append(table)
        if not missing:
            return
        texts = dict.fromkeys(text for table in missing for text in _texts(table))
        places = {text: place for place, text in enumerate(texts)}
        vectors = self._compute(list(texts), on_progress)
        for table in missing:
            rows = torch.tensor([places[text] for text in _texts(table)], dtype=torch.long)
            shape = (table.num_rows, table.num_columns, vectors.shape[1])
            kept(table, partial(_as_tasks, vectors[rows].view(shape)))

    def _compute(self, texts: Sequence[str], on_progress: Tell | None) -> Tensor:
        """[text, feature]."""
        tokenizer, network = load_tokenizer(self.path), load_network(self.path)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        network.to(device).eval()
        width: int = network.config.hidden_size
        found = torch.zeros(len(texts), width, dtype=torch.float16)
        if not texts:
            return found
        pieces = tokenizer(
            list(texts), truncation=True, max_length=self.max_length, return_attention_mask=False
        )
        inputs = subword_inputs(pieces, tokenizer.pad_token_id or 0).to(device)
        done = 0
        with torch.inference_mode():
            for rows in _batches(inputs.offsets.diff().cpu()):
                batch = inputs.batch(rows.to(device))
                states = network(**batch).last_hidden_state
                found[rows] = self._pooled(states, batch["attention_mask"]).half().cpu()
                done += len(rows)
                if on_progress is not None:
                    on_progress(done, len(texts))
        return found

    def _pooled(self, states: Tensor, inside: Tensor) -> Tensor:
        code = states[:, 0]
        if self.pooling == "mean":
            mask = inside.unsqueeze(-1).to(states.dtype)
            code = (states * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        return torch.nn.functional.normalize(code, dim=1) * math.sqrt(code.shape[1])


def join(
    vectors: Tensor,  # [row, text, feature], one text or two
    *,
    wide: bool,
) -> Tensor:
    """[row, 4 * feature]: u and v as [u, v, |u - v|, u * v]; a single text as u, or u and zeros."""
    first = vectors[:, 0].float()
    if vectors.shape[1] == 1:
        return torch.nn.functional.pad(first, (0, 3 * first.shape[1])) if wide else first
    second = vectors[:, 1].float()
    return torch.cat([first, second, (first - second).abs(), first * second], dim=1)


def load_network(path: str) -> Any:
    """The encoder of a folder or of a name on the hub."""
    try:
        return load_pretrained("AutoModel", path)
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(
            f"`path` should be a folder with an encoder or a name on the hub. Found `{path}`: "
            f"{str(error).strip().splitlines()[0]} Save the encoder there with `save_pretrained`."
        ) from error


def _batches(
    lengths: Tensor,  # [text]
) -> Iterator[Tensor]:
    """Texts of like length together, in batches of at most `BATCH_PIECES` pieces, or of one text."""
    order = torch.argsort(lengths, stable=True)
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and (end + 1 - begin) * int(lengths[order[end]]) <= BATCH_PIECES:
            end += 1
        yield order[begin:end]
        begin = end


def _texts(table: pa.Table) -> list[str]:
    """The texts of a table, row by row."""
    columns = [table.column(name).to_pylist() for name in ("text", "text2")[: table.num_columns]]
    return [text or "" for row in zip(*columns, strict=True) for text in row]


def _identity(path: str) -> str:
    """What tells an encoder from another one of the same name."""
    folder = Path(path)
    if folder.is_dir():
        files = sorted(file for pattern in _FILES for file in folder.glob(pattern))
        hashes = [(file.name, file_hash(file)) for file in files]
        return hashlib.sha256(repr(hashes).encode()).hexdigest()
    return f"{path} {getattr(load_network(path).config, '_commit_hash', None)}"


def _not_kept() -> EncodedTasks:
    raise LookupError("not in the cache")


def _as_task(table: pa.Table) -> Task:
    """Rows without a question, for the cache, which keeps tasks."""
    return Task(
        name="rows",
        kind="sequences",
        inputs="text",
        labels=(),
        metric="log_loss",
        source="rows",
        splits={"rows": Split(table, np.empty(0))},
    )


def _as_tasks(vectors: Tensor) -> EncodedTasks:
    split = EncodedSplit(DenseInputs(vectors), torch.empty(0))
    task = EncodedTask(
        name="rows",
        kind="sequences",
        labels=(),
        metric="log_loss",
        source="rows",
        splits={"rows": split},
    )
    return EncodedTasks((task,))
