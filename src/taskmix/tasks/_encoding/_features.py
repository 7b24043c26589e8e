"""Texts as vectors of a pretrained encoder that stays as it is: computed once, then only looked up.

    Reimers and Gurevych, "Sentence-BERT", EMNLP 2019: one vector of the last layer's for each text; a
    pair joined as [u, v, |u - v|, u * v], as in Conneau et al., EMNLP 2017.

What a small model on top of such vectors learns in a second stands for what fine-tuning would in an
hour, which is what makes hundreds of runs on subsets of tasks affordable. A word of a sentence to be
tagged is the vector of its first piece.

Vectors are a function of the text alone, rounded to half precision, and kept in the folder `cache`
under a hash of the rows and of the encoder's files. Read back, they are mapped: processes that look
into the same file have one copy in memory between them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache as kept_for_good
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.tasks._encoding._assemble import (
    SourceSplit,
    at_least,
    distinct_tables,
    encoded_tasks,
    plain_targets,
    source_split,
)
from taskmix.tasks._encoding._cache import cached, file_hash
from taskmix.tasks._encoding._frozen import FrozenReader, ReadingPrecision
from taskmix.tasks._encoding._inputs import DenseInputs, EncodedSplit, EncodedTask, EncodedTasks
from taskmix.tasks._encoding._pooling import Pooling, check_pooling, find_pooling
from taskmix.tasks._encoding._pretrained import load_pretrained, locate
from taskmix.tasks._task import JOINED, MISSING, KeptByTable, Split, Task, TaskSet

Tell = Callable[[int, int], None]  # texts done, of how many

CACHE_VARIABLE = "TASKMIX_CACHE"
PORTION_TEXTS = 4096  # read together: fewer would make batches of less equal texts

_COLUMNS = {"text": ("text",), "pair": ("text", "text2"), "tokens": ("tokens",)}
_FILES = ("*.json", "*.txt", "*.safetensors", "*.bin", "*.model")  # that make an encoder
_vectors: KeptByTable[EncodedSplit] = KeptByTable()  # [row, text, feature], half precision
_inputs: KeptByTable[DenseInputs] = KeptByTable()
_find_pooling = kept_for_good(find_pooling)


@dataclass(frozen=True, kw_only=True)
class FeatureEncoding:
    """Texts, pairs of texts and the words of sentences as `DenseInputs`.

    Single texts and words are as wide as pairs, filled up with zeros, where a task of pairs is among
    the tasks; with `as_pairs` always, so that a model's shape does not depend on its company.

    >>> FeatureEncoding(path="bert-base-uncased", pooling="first").max_length
    128
    >>> FeatureEncoding(path="bert-base-uncased", pooling="best")
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `pooling` should be one of mean, first, last, max, or None for ...
    """

    path: str  # a folder, a GGUF file, or a name on the hub
    max_length: int = 128  # pieces, the special ones included
    pooling: Pooling | None = None  # None: as the model itself says
    as_pairs: bool = False
    precision: ReadingPrecision = "float32"  # that the encoder computes in

    def __post_init__(self) -> None:
        at_least("max_length", self.max_length, 4)
        check_pooling(self.pooling)
        if self.precision not in ("float32", "bfloat16"):
            raise OptionError(
                f"`precision` should be float32 or bfloat16. Found {self.precision!r}."
            )

    def encode(
        self, tasks: TaskSet, *, cache: Path | None = None, on_progress: Tell | None = None
    ) -> EncodedTasks:
        """The tasks as vectors; those in the folder `cache` are not computed again.

        Without a folder they are kept in that of the user, `$TASKMIX_CACHE` or `~/.cache/taskmix`:
        whoever trains on the same texts in another process should not have to read them again.
        """
        self.read(tasks, cache=cache, on_progress=on_progress)
        tables = self._tables(tasks)
        wide = self.as_pairs or any(task.inputs == "pair" for task in tasks)
        inputs = {key: self._joined(table, key.tagged, wide) for key, table in tables.items()}
        sentences = {key: _sentences(table) for key, table in tables.items() if key.tagged}

        def targets(task: Task, split_name: str) -> Tensor:
            flat = plain_targets(task, split_name)
            key = source_split(task, split_name)
            if key.tagged and split_name == "train":  # a word that no piece stands for
                flat = flat.masked_fill(self._known(tables[key], key.tagged).targets == 0, MISSING)
            return flat

        width = next(iter(inputs.values())).values.shape[1]
        return encoded_tasks(
            tasks,
            inputs,
            targets=targets,
            sentences=sentences,
            features=width,
            extra={"encoder": self.path},
        )

    def read(
        self, tasks: TaskSet, *, cache: Path | None = None, on_progress: Tell | None = None
    ) -> None:
        """Sees to it that the vectors are known here and, for other processes, in the cache."""
        unknown = [
            (key, table)
            for key, table in self._tables(tasks).items()
            if _vectors.get(table, (self._made_by, key.tagged)) is None
        ]
        if unknown:
            self._find(unknown, cache or user_cache(), on_progress)

    def unread(self, tasks: TaskSet, *, cache: Path | None = None) -> list[pa.Table]:
        """The tables whose vectors would have to be computed."""
        folder = cache or user_cache()
        return [
            table
            for key, table in self._tables(tasks).items()
            if _vectors.get(table, (self._made_by, key.tagged)) is None
            and not self._look_up(key, table, folder)
        ]

    def reader(self) -> FrozenReader:
        """The encoder, loaded."""
        dtype = torch.bfloat16 if self.precision == "bfloat16" else torch.float32
        pooling = self.pooling or _find_pooling(self.path)
        return FrozenReader(self.path, max_length=self.max_length, pooling=pooling, dtype=dtype)

    def _tables(self, tasks: TaskSet) -> dict[SourceSplit, pa.Table]:
        return distinct_tables(
            tasks,
            "FeatureEncoding",
            lambda task: task.inputs in _COLUMNS,
            advice="Use `TableEncoding` for tables.",
            needs_train=False,
        )

    @property
    def _made_by(self) -> tuple[str, int, str, str]:
        pooling = self.pooling or _find_pooling(self.path)
        return self.path, self.max_length, pooling, self.precision

    def _known(self, table: pa.Table, tagged: bool) -> EncodedSplit:
        found = _vectors.get(table, (self._made_by, tagged))
        assert found is not None
        return found

    def _joined(self, table: pa.Table, tagged: bool, wide: bool) -> DenseInputs:
        options = (self._made_by, tagged, wide)
        known = _inputs.get(table, options)
        if known is not None:
            return known
        inputs: Any = self._known(table, tagged).inputs
        return _inputs.put(table, options, DenseInputs(join(inputs.values, wide=wide)))

    def _keep(
        self, key: SourceSplit, table: pa.Table, folder: Path, build: Callable[[], EncodedTasks]
    ) -> None:
        options = repr((self._made_by[1:], key.tagged, _identity(self.path)))
        rows = TaskSet((_as_task(table),))
        found = cached(build, rows, options, folder)
        if build is not _not_kept:
            with suppress(LookupError):  # once more, from the file: mapped, not held
                found = cached(_not_kept, rows, options, folder)
        _vectors.put(table, (self._made_by, key.tagged), found[0].splits["rows"])

    def _look_up(self, key: SourceSplit, table: pa.Table, folder: Path) -> bool:
        parts = [
            _vectors.get(p, (self._made_by, key.tagged)) for p in JOINED.get(table, None) or ()
        ]
        known = [part for part in parts if part is not None]
        build = _not_kept
        if known and len(known) == len(parts):  # joined of tables that were read before
            values = torch.cat([cast("DenseInputs", part.inputs).values for part in known])
            build = partial(_as_tasks, values, torch.cat([part.targets for part in known]))
        try:
            self._keep(key, table, folder, build)
        except LookupError:
            return False
        return True

    def _find(
        self,
        tables: Sequence[tuple[SourceSplit, pa.Table]],
        folder: Path,
        on_progress: Tell | None,
    ) -> None:
        """Reads the vectors of tables from the cache, and computes those that are not there."""
        missing = [(key, table) for key, table in tables if not self._look_up(key, table, folder)]
        if not missing:
            return
        plain = [(key, table) for key, table in missing if not key.tagged]
        tagged = [(key, table) for key, table in missing if key.tagged]
        portions = list(_portions(plain))
        new = sum(len(texts) for _, texts in portions)
        done, total = 0, new + sum(table.num_rows for _, table in tagged)

        def tell(more: int) -> None:
            nonlocal done
            done += more
            if on_progress is not None:
                on_progress(done, total)

        reader = self.reader()
        places: dict[str, int] = {}
        vectors = torch.empty(new, reader.width, dtype=torch.float16)
        for some, texts in portions:
            begin = len(places)
            vectors[begin : begin + len(texts)] = reader.read_texts(texts, tell)
            places |= {text: begin + place for place, text in enumerate(texts)}
            for key, table in some:
                rows = torch.tensor([places[text] for text in texts_of(table)], dtype=torch.long)
                shape = (table.num_rows, _texts_a_row(table), vectors.shape[1])
                self._keep(key, table, folder, partial(_as_tasks, table, vectors[rows].view(shape)))
        for key, table in tagged:
            words, read = reader.read_words(table.column("tokens").to_pylist(), tell)
            has_piece = torch.from_numpy(read.astype(np.int64))
            self._keep(key, table, folder, partial(_as_tasks, table, words.unsqueeze(1), has_piece))


def _portions(
    tables: Sequence[tuple[SourceSplit, pa.Table]],
) -> Iterator[tuple[list[tuple[SourceSplit, pa.Table]], list[str]]]:
    """Tables that are read and kept one after another, each with texts that none before it has.

    Whoever is stopped while it reads has lost one portion, and not all that was read.
    """
    known: set[str] = set()
    some: list[tuple[SourceSplit, pa.Table]] = []
    texts: dict[str, None] = {}
    for key, table in tables:
        some.append((key, table))
        texts |= dict.fromkeys(text for text in texts_of(table) if text not in known)
        if len(texts) >= PORTION_TEXTS:
            yield some, list(texts)
            known |= texts.keys()
            some, texts = [], {}
    if some:
        yield some, list(texts)


def join(
    vectors: Tensor,  # [row, text, feature], one text or two
    *,
    wide: bool,
) -> Tensor:
    """[row, 4 * feature]: u and v as [u, v, |u - v|, u * v]; a single text as u, or u and zeros.

    A single text as it is stays in half precision, as it lies in the mapped file.
    """
    if vectors.shape[1] == 1:
        single = vectors[:, 0]
        return torch.nn.functional.pad(single, (0, 3 * single.shape[1])) if wide else single
    first, second = vectors[:, 0].float(), vectors[:, 1].float()
    return torch.cat([first, second, (first - second).abs(), first * second], dim=1)


def user_cache() -> Path:
    """The folder of this user for vectors that nobody gave a folder for."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    above = os.environ.get("XDG_CACHE_HOME")
    return (Path(above) if above else Path.home() / ".cache") / "taskmix"


def texts_of(table: pa.Table) -> list[str]:
    """The texts of a table, row by row; a list of words as one text.

    >>> import pyarrow as pa
    >>> texts_of(pa.table({"text": ["good", "bad"], "text2": ["fine", None]}))
    ['good', 'fine', 'bad', '']
    """
    if "tokens" in table.column_names:
        return [" ".join(words or ()) for words in table.column("tokens").to_pylist()]
    names = ("text", "text2")[: _texts_a_row(table)]
    columns = [table.column(name).to_pylist() for name in names]
    return [text or "" for row in zip(*columns, strict=True) for text in row]


def _texts_a_row(table: pa.Table) -> int:
    return 2 if "text2" in table.column_names else 1


def _sentences(table: pa.Table) -> Tensor:
    """[sentence + 1], the number of each sentence's first word."""
    lengths = [len(words or ()) for words in table.column("tokens").to_pylist()]
    return torch.tensor([0, *np.cumsum(lengths, dtype=np.int64).tolist()], dtype=torch.int64)


def _identity(path: str) -> str:
    """What tells an encoder from another one of the same name."""
    place = locate(path)
    folder = Path(place.folder)
    if place.gguf is not None:
        files = [folder / place.gguf]
    elif folder.is_dir():
        files = sorted(file for pattern in _FILES for file in folder.glob(pattern))
    else:
        return f"{path} {getattr(load_pretrained('AutoModel', path).config, '_commit_hash', None)}"
    hashes = [(file.name, _hash_of(file, *_state(file))) for file in files]
    return hashlib.sha256(repr(hashes).encode()).hexdigest()


def _state(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=256)
def _hash_of(file: Path, size: int, changed: int) -> str:
    """Of a file in this state: weights are hashed once in a process."""
    return file_hash(file)


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


def _as_tasks(table: pa.Table, vectors: Tensor, has_piece: Tensor | None = None) -> EncodedTasks:
    """What the cache keeps of a table: its vectors, and of words whether a piece stands for them."""
    targets = torch.empty(0) if has_piece is None else has_piece
    splits = {"rows": EncodedSplit(DenseInputs(vectors), targets)}
    return EncodedTasks((EncodedTask.of(_as_task(table), splits),))
