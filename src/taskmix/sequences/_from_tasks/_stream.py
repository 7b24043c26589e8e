"""Sequences of files larger than memory: read once to know them, and again in every pass.

The first reading finds the symbols, the tasks and a name for the content, draws a sample of every
task's sequences (`_sample.py`), and keeps those that no batch has: of every `hold_out`-th, up to `kept`
to judge by and as many to learn from how much the sample counts. Later readings give batches of codes.
What is held is the alphabet, the names of the tasks, the sample and one batch.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.errors import InputError
from taskmix.sequences._from_tasks._sample import SequenceSample
from taskmix.sequences._from_tasks._splits import TaskSequences
from taskmix.sequences._from_tasks._stream_files import (
    PLACES,
    Row,
    RowColumns,
    list_files,
    open_places,
)
from taskmix.sequences._generator import check_whole
from taskmix.sequences._observed import UNKNOWN, Alphabet, Sequences, flatten_sequences

_OPEN = 128  # places that are read at once; every one is an open file
_READ = 20_000  # sequences at a time, when the symbols are looked for


@dataclass(frozen=True, eq=False)
class _Known:
    """What one reading of everything finds."""

    symbols: tuple[str, ...]
    sizes: dict[str, int]  # of each task, train sequences
    observations: int
    longest: int
    content: str
    held_out: TaskSequences
    aside: TaskSequences
    sample: SequenceSample


@dataclass(frozen=True, kw_only=True)
class SequenceStream:
    """Sequences of symbols in a file, or in a folder with a file for each task.

    Text has one sequence a line, tables (`.csv`, `.jsonl`, `.parquet`) one a row.

    >>> from pathlib import Path
    >>> Path("names").mkdir()
    >>> for task, words in {"x": "ab ba", "y": "bb ab"}.items():
    ...     _ = Path(f"names/{task}.txt").write_text(words.replace(" ", chr(10)))
    >>> stream = SequenceStream(path=Path("names"), characters=True, hold_out=0)
    >>> stream.symbols[:2], len(stream), stream.tasks  # and one for symbols that were never seen
    (('a', 'b'), 4, {'x': 2, 'y': 2})
    >>> model = SequenceMixture(Markov(), 2, batch_size=2, max_iter=2, random_state=0).fit(stream)
    >>> model.tasks_
    ('x', 'y')
    """

    path: Path
    characters: bool = False
    first_symbol_is_task: bool = False
    columns: RowColumns = field(default_factory=RowColumns)
    hold_out: int = 20  # every so many-th sequence is not learned from; 0: none
    kept: int = 5_000  # held-out sequences, at most, and as many set aside for own parts
    sampled: int = 500_000  # symbols that are held for tasks' own parts, at most; 0: no own parts

    def __post_init__(self) -> None:
        check_whole(0, hold_out=self.hold_out, kept=self.kept, sampled=self.sampled)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self._known.symbols

    @property
    def longest(self) -> int:
        return self._known.longest

    @property
    def tasks(self) -> dict[str, int]:
        """The tasks, and how many train sequences each has."""
        return self._known.sizes

    @property
    def observations(self) -> int:
        """Of all train sequences."""
        return self._known.observations

    @property
    def content(self) -> str:
        """A name for the sequences: a hash of them."""
        return self._known.content

    @property
    def held_out(self) -> TaskSequences:
        return self._known.held_out

    def __len__(self) -> int:
        return sum(self._known.sizes.values())

    def sample(self) -> tuple[Sequences, list[str]]:
        """Some train sequences of every task, drawn evenly from it."""
        return self._known.sample.sequences(self.symbols)

    def set_aside(self) -> tuple[Sequences, list[str]]:
        """Sequences that are neither learned from nor among those to judge by."""
        aside = self._known.aside
        if not aside.sequences:
            return Sequences(np.empty(0, np.int32), np.zeros(1, np.int64), len(self.symbols)), []
        found = flatten_sequences(aside.sequences, alphabet=Alphabet(self.symbols))
        return found, aside.tasks

    def batches(self, size: int) -> Iterator[tuple[Sequences, list[str]]]:
        """Train sequences as codes, with the task of each; in the same order every time."""
        check_whole(size=size)
        known = pa.array(self.symbols, pa.string())
        for rows in self._blocks(size, held_out=False):
            tasks, lists = self._cut(rows)
            codes = pc.index_in(lists.flatten(), value_set=known)
            values = codes.to_numpy(zero_copy_only=False)
            if codes.null_count:
                raise InputError(
                    f"`{self.path}` should stay as it is while it is read. Found other symbols than in "
                    "the first reading. Begin again."
                )
            starts = np.concatenate([[0], np.cumsum(_lengths(lists))])
            yield Sequences(values.astype(np.int32), starts, len(known)), tasks

    @cached_property
    def _known(self) -> _Known:
        seen: set[str] = set()
        sizes: Counter[str] = Counter()
        sample = SequenceSample(self.sampled if self.hold_out else 0)
        digest, longest, observations = hashlib.blake2b(digest_size=16), 0, 0
        how = (self.characters, self.first_symbol_is_task, self.hold_out, self.sampled)
        digest.update(repr(how).encode())
        for rows in self._blocks(_READ, held_out=False):
            tasks, lists = self._cut(rows)
            lengths = _lengths(lists)
            seen.update(pc.unique(lists.flatten()).to_pylist())
            sizes.update(tasks)
            sample.add(tasks, lists)
            longest = max(longest, int(lengths.max(initial=1)))
            observations += int(lengths.sum())
            digest.update("\n".join(str(each) for row in rows for each in row).encode())
        if not sizes:
            raise InputError(f"`{self.path}` should have sequences. Found none.")
        sample.cut()
        held, aside = self._held_out() if self.hold_out else (_none(), _none())
        seen.update(word for each in (held, aside) for words in each.sequences for word in words)
        return _Known(
            (*sorted(seen - {UNKNOWN}), UNKNOWN), dict(sorted(sizes.items())), observations, longest,
            digest.hexdigest(), held, aside, sample,
        )  # fmt: skip

    def _held_out(self) -> tuple[TaskSequences, TaskSequences]:
        """Those to judge by, and those set aside: of each task one for the one and the next for the
        other, so that few sequences are enough for both."""
        parts = (_none(), _none()) if self.sampled else (_none(),)
        count: Counter[str] = Counter()
        for rows in self._blocks(_READ, held_out=True):
            names, lists = self._cut(rows)
            for name, words in zip(names, lists.to_pylist(), strict=True):
                part = parts[count[name] % len(parts)]
                count[name] += 1
                if len(part.sequences) < self.kept:
                    part.sequences.append(words)
                    part.tasks.append(name)
            if all(len(part.sequences) >= self.kept for part in parts):
                break
        return parts[0], parts[-1] if self.sampled else _none()

    def _blocks(self, size: int, *, held_out: bool) -> Iterator[list[Row]]:
        """Rows of all places of all files in turns, more from where there is more."""
        files = [path for path in list_files(self.path) if path.stat().st_size]
        sizes = [path.stat().st_size for path in files]
        going = []
        for first in range(min(len(files), _OPEN)):  # many files: some are read one after another
            mine, bytes_ = files[first::_OPEN], sum(sizes[first::_OPEN])
            opened = _chained(mine, self.columns, places=max(1, _OPEN // len(files)))
            quota = max(1, round(size * bytes_ / sum(sizes) / max(len(opened), 1)))
            going += [(rows, quota) for rows in opened]
        block: list[Row] = []
        numbers = [0] * len(going)
        alive = list(range(len(going)))
        while alive:
            for which in list(alive):
                rows, quota = going[which]
                for _ in range(quota):
                    row = next(rows, None)
                    if row is None:
                        alive.remove(which)
                        break
                    numbers[which] += 1
                    out = bool(self.hold_out) and (which + numbers[which]) % self.hold_out == 0
                    if out == held_out:
                        block.append(row)
                    if len(block) >= size:
                        yield block
                        block = []
        if block:
            yield block

    def _cut(self, rows: list[Row]) -> tuple[list[str], Any]:
        """The tasks, and a list of symbols for each row."""
        tasks = [task for task, _ in rows]
        cells = [cell for _, cell in rows]
        odd = [cell for cell in cells if type(cell) is not type(cells[0]) or not _is_sequence(cell)]
        if odd:
            raise InputError(
                f"Every sequence of `{self.path}` should be text, or every one a list of symbols. Found "
                f"{str(odd[0])[:60]!r}. Correct that row or take it out."
            )
        if isinstance(cells[0], list):
            lists = pa.array(
                [[str(each) for each in cell] for cell in cells], pa.list_(pa.string())
            )
        else:
            from taskmix.tasks import cut_symbols

            how: Literal["words", "characters"] = "characters" if self.characters else "words"
            lists = cut_symbols(pa.chunked_array([pa.array(cells, pa.string())]), how).chunk(0)
        if self.first_symbol_is_task:
            tasks = pc.list_element(lists, 0).to_pylist()
            lists = pc.list_slice(lists, 1).cast(pa.list_(pa.string()))
        if len(lists) and int(_lengths(lists).min()) == 0:
            raise InputError(
                f"Every sequence of `{self.path}` should have at least one symbol. Found one without. "
                "Take it out."
            )
        return tasks, lists


def _chained(files: list[Path], columns: RowColumns, *, places: int) -> list[Iterator[Row]]:
    if len(files) == 1:
        return open_places(files[0], columns, min(places, PLACES))
    return [chain.from_iterable(row for file in files for row in open_places(file, columns, 1))]


def _is_sequence(cell: Any) -> bool:
    return isinstance(cell, str | list)


def _none() -> TaskSequences:
    return TaskSequences([], [])


def _lengths(lists: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    found = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.int64)
