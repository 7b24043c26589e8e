"""Scores of text that a model writes: of its pieces, and of its words.

    Rajpurkar et al., "SQuAD", EMNLP 2016: F1 over the words of an answer, in lower case and without
    punctuation and articles.
    Lin, "ROUGE", 2004, Section 3: the longest common subsequence of words, here with equal weight
    for precision and recall, as in common use.

What is counted over pieces needs no decoding: with the true answer before it, a model is asked for
every next piece. Where all of them are its first choice, the end included, it would have written
just that answer by itself, which makes `exact_match` exact.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WORD = re.compile(r"\w+")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, kw_only=True)
class WrittenText:
    """What came of the rows of a split, added up; `+` joins that of two parts."""

    rows: int = 0
    right_rows: int = 0  # in which every piece was the model's first choice
    pieces: int = 0
    right_pieces: int = 0
    loss: float = 0.0  # the sum over pieces of minus the logarithm of their probability, in nats
    bytes: int = 0  # of the text that the pieces spell, as UTF-8
    answers: tuple[tuple[str, str], ...] = ()  # the model's and the true ones, where it wrote some

    def __add__(self, other: WrittenText) -> WrittenText:
        return WrittenText(
            rows=self.rows + other.rows,
            right_rows=self.right_rows + other.right_rows,
            pieces=self.pieces + other.pieces,
            right_pieces=self.right_pieces + other.right_pieces,
            loss=self.loss + other.loss,
            bytes=self.bytes + other.bytes,
            answers=self.answers + other.answers,
        )


OF_TEXT: Mapping[str, Callable[[WrittenText], float]] = MappingProxyType(
    {
        "exact_match": lambda text: _share(text.right_rows, text.rows),
        "token_accuracy": lambda text: _share(text.right_pieces, text.pieces),
        "bits_per_byte": lambda text: _share(text.loss / math.log(2), text.bytes),
        "word_f1": lambda text: _mean([_word_f1(found, true) for found, true in text.answers]),
        "rouge_l": lambda text: _mean([_rouge_l(found, true) for found, true in text.answers]),
    }
)


def _share(part: float, whole: int) -> float:
    return float(part / whole) if whole else float("nan")


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _word_f1(found: str, true: str) -> float:
    ours, theirs = _answer_words(found), _answer_words(true)
    return _f_measure(sum((Counter(ours) & Counter(theirs)).values()), len(ours), len(theirs))


def _answer_words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _rouge_l(found: str, true: str) -> float:
    ours, theirs = _WORD.findall(found.lower()), _WORD.findall(true.lower())
    return _f_measure(_common_subsequence(ours, theirs), len(ours), len(theirs))


def _f_measure(common: int, ours: int, theirs: int) -> float:
    """Of nothing and nothing 1: an answer without words was asked for and given."""
    return 2 * common / (ours + theirs) if ours + theirs else 1.0


def _common_subsequence(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """How many words the longest list has that is in both, in order but not in one piece."""
    before = [0] * (len(theirs) + 1)
    for word in ours:
        row = [0]
        for place, other in enumerate(theirs):
            row.append(before[place] + 1 if word == other else max(before[place + 1], row[place]))
        before = row
    return before[-1]
