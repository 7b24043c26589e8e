r"""Words of a text, and the vocabulary of several tasks.

A token is the first of these that fits, from left to right; white space parts tokens:

1. `n't` and `'s 'm 'd 're 've 'll`, the contractions that the Penn Treebank parts from their word,
   because word vectors and corpora that come tokenised have them so: `don't` is `do n't`;
2. a number with decimal points or commas inside: `3.14`, `1,000`;
3. a run of letters and digits, with the combining marks of their script: `mp3`, `naïve`, `தமிழ்`;
4. any other mark by itself: `-` `!` `_` `😀`.

    n't(?!\w) | '(?:s|m|d|re|ve|ll)(?!\w) | \d+(?:[.,]\d+)+
    | [^\W_]+(?:[marks]+[^\W_]*)* | [^\w\s] | _

Typographic apostrophes are read as straight ones.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Collection, Iterable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError

PADDING, UNKNOWN = 0, 1  # ids; words of a vocabulary begin at 2
_RESERVED = ("<padding>", "<unknown>")

_CONTRACTIONS = r"n't(?!\w)|'(?:s|m|d|re|ve|ll)(?!\w)"
_ASCII = re.compile(rf"{_CONTRACTIONS}|\d+(?:[.,]\d+)+|[A-Za-z0-9]+|\S")


def tokenize(text: str, *, lowercase: bool = True) -> list[str]:
    """The tokens of a text, as the head of this module describes.

    >>> tokenize("It isn't 3.5 stars!")
    ['it', 'is', "n't", '3.5', 'stars', '!']
    """
    if lowercase:
        text = text.lower()
    # Plain text has no combining marks, so a pattern twice as fast gives the same tokens.
    pattern = _ASCII if text.isascii() else _any_script()
    text = text.replace("\u2019", "'")
    if "n't" in text:
        text = text.replace("n't", " n't")
    return pattern.findall(text)


@cache
def _any_script() -> re.Pattern[str]:
    marks = "".join(chr(i) for i in range(0x10000) if unicodedata.category(chr(i))[0] == "M")
    word = rf"[^\W_]+(?:[{marks}]+[^\W_]*)*"
    return re.compile(rf"{_CONTRACTIONS}|\d+(?:[.,]\d+)+|{word}|[^\w\s]|_")


class WordNumbers(dict[str, int]):
    """Numbers words in the order in which they are met; asking for a new word adds it."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def rows(
        self, rows: Iterable[Iterable[str]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # [token], numbers; [row + 1], offsets
        """The numbers of all words of all rows, one after another, and where each row begins."""
        flat, offsets = array("q"), array("q", [0])
        for row in rows:
            flat.extend(map(self.__getitem__, row))
            offsets.append(len(flat))
        return np.array(flat, dtype=np.int64), np.array(offsets, dtype=np.int64)


def build_vocabulary(
    counts: Mapping[str, int],  # how often each word occurs in the rows to train on
    *,
    min_count: int = 2,
    max_words: int | None = 50_000,
    keep: Collection[str] = (),  # words that need no minimal count: they have a vector already
) -> tuple[str, ...]:
    """The word of each id: padding, unknown, then words from frequent to rare.

    Words that are equally frequent are in alphabetical order, so equal counts give equal ids.

    >>> from collections import Counter
    >>> build_vocabulary(Counter(["film", "film", "good", "bad"]), min_count=2)
    ('<padding>', '<unknown>', 'film')
    """
    if min_count < 1:
        raise OptionError(
            f"`min_count` should be at least 1. Found {min_count}. Words that never occur have no "
            "place in a vocabulary, unless `keep` names them."
        )
    words = [word for word, count in counts.items() if count >= min_count or word in keep]
    words.sort(key=lambda word: (-counts[word], word))
    return (*_RESERVED, *words[:max_words])


def word_ids(
    words: Iterable[str],
    vocabulary: tuple[str, ...],
) -> NDArray[np.int64]:  # [word]
    """The id of each word; unknown ones get `UNKNOWN`."""
    ids = {word: i for i, word in enumerate(vocabulary) if i > UNKNOWN}
    return np.array([ids.get(word, UNKNOWN) for word in words], dtype=np.int64)
