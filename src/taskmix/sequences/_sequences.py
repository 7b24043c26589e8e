"""Ragged sequences as one flat array: symbols by their codes, or vectors of numbers.

Sequences come as a list (of strings, of lists of words, of arrays) or as one flat array with lengths.
A missing observation is NaN, None or, for symbols, -1. Where symbols are words or letters, an
`Alphabet` gives each its code; whole numbers are codes already.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, ShapeError

Observed = Literal["symbols", "vectors"]
UNKNOWN = "\ufffd"  # the last symbol of an alphabet that is open: any that was never seen
MISSING_SYMBOL = -1  # whatever looks for gaps asks for codes below 0


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences end to end. `values` are codes [observation] or numbers [observation, dimension].

    >>> found = flatten_sequences([[0, 1, 1], [1]])
    >>> len(found), found.lengths.tolist(), found[0].tolist()
    (2, [3, 1], [0, 1, 1])
    """

    values: NDArray[Any]  # int32, -1 where missing; or float64, NaN where missing
    starts: NDArray[np.int64]  # [sequence + 1]
    symbols: int = 0  # the size of the alphabet; 0 for vectors

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    @property
    def dimension(self) -> int:
        """Numbers in an observation; symbols have none."""
        return 0 if self.symbols else int(self.values.shape[1])

    @property
    def observes(self) -> Observed:
        return "symbols" if self.symbols else "vectors"

    @property
    def has_missing(self) -> bool:
        lacking = self.values < 0 if self.symbols else np.isnan(self.values)
        return bool(lacking.any())

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, place: int) -> NDArray[Any]:
        return np.asarray(self.values[self.starts[place] : self.starts[place + 1]])

    def select(self, rows: NDArray[np.int64]) -> Sequences:
        """These sequences, in this order."""
        lengths = self.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return Sequences(self.values[places], starts, self.symbols)


@dataclass(frozen=True)
class Alphabet:
    """The symbols in the order of their codes. Where `UNKNOWN` is the last, it stands for all others.

    >>> Alphabet(("a", "b")).codes(["b", "a", None]).tolist()
    [1, 0, -1]
    >>> Alphabet(("a", "b", UNKNOWN)).codes(["b", "x"]).tolist()
    [1, 2]
    """

    symbols: tuple[Hashable, ...]

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def unknown(self) -> int | None:
        """The code of all symbols that were never seen; None where these are refused."""
        return len(self.symbols) - 1 if self.symbols and self.symbols[-1] == UNKNOWN else None

    def codes(self, words: Iterable[Any]) -> NDArray[np.int32]:
        """The code of each word; None is missing, and so is a number that is NaN."""
        known = {symbol: code for code, symbol in enumerate(self.symbols)}
        other = self.unknown
        if other is not None:
            return np.array(
                [MISSING_SYMBOL if is_missing(word) else known.get(word, other) for word in words],
                np.int32,
            )
        try:
            return np.array(
                [MISSING_SYMBOL if is_missing(word) else known[word] for word in words], np.int32
            )
        except KeyError as error:
            shown = ", ".join(map(repr, self.symbols[:8])) + (", ..." if len(self) > 8 else "")
            raise InputError(
                f"Every symbol should be one of the {len(self)} that were fitted ({shown}). Found "
                f"{error.args[0]!r}. Leave the sequence out, or fit again with it."
            ) from None


def is_missing(word: Any) -> bool:
    """Whether it stands for an observation that was not made."""
    return word is None or (isinstance(word, float | np.floating) and bool(np.isnan(word)))


def learn_alphabet(sequences: Iterable[Iterable[Any]]) -> Alphabet | None:
    """The words that occur, in order, and `UNKNOWN` for all others; None where they are whole numbers,
    codes already."""
    seen: set[Hashable] = set()
    for sequence in sequences:
        if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "iufb":
            return None
        seen.update(sequence)
    words = [word for word in seen if not is_missing(word)]
    if all(isinstance(word, int | float | np.integer | np.floating) for word in words):
        return None
    words = [word for word in words if word != UNKNOWN]
    return Alphabet((*sorted(words, key=lambda word: (str(type(word)), word)), UNKNOWN))


def flatten_sequences(
    sequences: Sequence[Any] | ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    observes: Observed = "symbols",
    symbols: int | None = None,
    alphabet: Alphabet | None = None,
    allow_empty: bool = False,
) -> Sequences:
    """Sequences as one flat array, checked.

    `symbols` is the size of the alphabet, where it is known before; the largest code plus one
    otherwise. Prefixes may be empty (`allow_empty`), observed sequences may not.

    >>> flatten_sequences([[0, 2], [1]]).values.tolist()
    [0, 2, 1]
    >>> flatten_sequences([[1.5, 2.5]], observes="vectors").values.tolist()
    [[1.5], [2.5]]
    """
    parts = sequences if lengths is not None else list(sequences)  # type: ignore[arg-type]
    if lengths is None:
        sizes = np.array([len(part) for part in parts], dtype=np.int64)  # type: ignore[union-attr, arg-type]
    else:
        sizes = _checked_lengths(lengths, len(parts))  # type: ignore[arg-type]
    empty = np.flatnonzero(sizes == 0)
    if len(empty) and not allow_empty:
        raise InputError(
            "Every sequence should have at least one observation. Found none in sequence "
            f"{empty[0]}, counted from 0. Leave empty sequences out."
        )
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    flat = [parts] if lengths is not None else parts
    if observes == "vectors":
        return Sequences(_vectors(flat), starts)
    codes = _codes(flat, alphabet)
    count = len(alphabet) if alphabet is not None else symbols
    highest = int(codes.max(initial=-1))
    if count is None:
        count = max(highest + 1, 1)
    if highest >= count or codes.min(initial=0) < MISSING_SYMBOL:
        found = highest if highest >= count else int(codes.min())
        raise InputError(
            f"Symbols should be codes from 0 to {count - 1}, or -1 where missing. Found {found}. "
            "Correct it, or fit with a larger alphabet (`symbols`)."
        )
    return Sequences(codes, starts, count)


def _checked_lengths(lengths: ArrayLike, total: int) -> NDArray[np.int64]:
    sizes = np.asarray(lengths, dtype=np.int64)
    if sizes.ndim != 1 or (sizes < 0).any() or int(sizes.sum()) != total:
        raise ShapeError(
            "`lengths` should be one number a sequence that add up to the observations. Found a "
            f"sum of {int(sizes.sum())} for {total} observations."
        )
    return sizes


def _codes(parts: Any, alphabet: Alphabet | None) -> NDArray[np.int32]:
    if alphabet is not None:
        return alphabet.codes(word for part in parts for word in part)
    arrays = [_whole_numbers(part) for part in parts]
    return np.concatenate([*arrays, np.empty(0, np.int32)])


def _whole_numbers(part: Any) -> NDArray[np.int32]:
    array = np.asarray(part)
    if array.ndim != 1:
        raise ShapeError(
            f"A sequence of symbols should be one row of codes. Found shape {array.shape}. For "
            "vectors choose a generator of vectors, such as Gaussian."
        )
    if array.dtype == object:
        array = np.array([np.nan if word is None else word for word in array], dtype=np.float64)
    if array.dtype.kind == "f":
        lacking = np.isnan(array)
        codes = np.where(lacking, MISSING_SYMBOL, array).astype(np.int32)
        if not np.array_equal(codes[~lacking], array[~lacking]):
            raise InputError(
                "Symbols should be whole numbers or words. Found numbers such as "
                f"{array[~lacking][0]!r}. For vectors choose a generator such as Gaussian."
            )
        return codes
    if array.dtype.kind not in "iub":
        raise InputError(
            f"Symbols should be whole numbers here. Found {array.dtype.name}. Pass words to "
            "`SequenceMixture`, which gives them codes."
        )
    return array.astype(np.int32)


def _vectors(parts: Any) -> NDArray[np.float64]:
    arrays = [np.asarray(part, dtype=np.float64) for part in parts]
    arrays = [array[:, None] if array.ndim == 1 else array for array in arrays]
    widths = {array.shape[1] for array in arrays if array.ndim == 2 and array.shape[0]}
    if any(array.ndim != 2 for array in arrays) or len(widths) > 1:
        raise ShapeError(
            "A sequence of vectors should be [time, dimension] with one dimension for all. Found "
            f"shapes such as {arrays[0].shape} and {arrays[-1].shape}."
        )
    width = widths.pop() if widths else 1
    values = np.concatenate([*(a for a in arrays if len(a)), np.empty((0, width))])
    if np.isinf(values).any():
        raise InputError(
            "Observed numbers should be finite, or NaN where missing. Found an infinite one."
        )
    return values
