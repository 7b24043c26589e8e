r"""Entity F1 by the rules of the CoNLL script, without the script.

    Tjong Kim Sang and Buchholz, "Introduction to the CoNLL-2000 Shared Task: Chunking", CoNLL 2000,
    whose `conlleval` (version of 2004-01-26) also scored CoNLL-2002 and CoNLL-2003.

A tag is a letter and a type, parted by the first hyphen. Whether a chunk starts or ends between two
neighbouring tags depends on these two tags alone, so IOB1, IOB2, IOE1, IOE2 and IO are all read by
one pair of rules:

- a chunk **ends** after `x` where `x` is `B` or `I` and `B` or `O` follows, where `x` is `E` and
  `E`, `I` or `O` follows, and after every letter but `O` and `.` where another type follows;
- a chunk **starts** at `x` where `x` is `B` after `B`, `I` or `O`, where `x` is `I` or `E` after
  `O` or `E`, and at every letter but `O` and `.` where another type precedes;
- `[` and `]` are chunks of one token.

An `I-` without a `B-` before it therefore starts a chunk. A chunk is correct where both its ends
and its type agree. Between sentences stands an `O`. Letters that the script does not know (`S-` of
BIOES) start and end only where the type changes, as there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import ShapeError
from taskmix.tasks._task import MISSING


@dataclass(frozen=True)
class EntityCounts:
    """Chunks by type, and tokens."""

    tokens: int
    correct_tokens: int
    gold: Mapping[str, int]  # chunks in the targets
    found: Mapping[str, int]  # chunks predicted
    correct: Mapping[str, int]  # chunks predicted with both ends and type right

    @property
    def precision(self) -> float:
        """Share of the predicted chunks that are right; 0 where none is predicted."""
        return _ratio(sum(self.correct.values()), sum(self.found.values()))

    @property
    def recall(self) -> float:
        """Share of the chunks in the targets that are found; 0 where there are none."""
        return _ratio(sum(self.correct.values()), sum(self.gold.values()))

    @property
    def f1(self) -> float:
        """The harmonic mean of the two; 0 where both are 0."""
        return _harmonic_mean(self.precision, self.recall)


def entity_counts(
    predicted: NDArray[Any],  # [token], label numbers
    targets: NDArray[Any],  # [token], label numbers; `MISSING` leaves the token out
    labels: Sequence[str],
    sentences: NDArray[Any]
    | None = None,  # [sentence + 1], where each begins; None is one sentence
) -> EntityCounts:
    """Counts what the CoNLL script counts.

    >>> labels = ("O", "B-PER", "I-PER", "B-LOC")
    >>> found = entity_counts(np.array([1, 2, 0, 3]), np.array([1, 2, 0, 0]), labels)
    >>> found.precision, found.recall, round(found.f1, 4)
    (0.5, 1.0, 0.6667)
    """
    chunks = _find_chunks(predicted, targets, labels, sentences)
    rules, count = chunks.rules, len(chunks.rules.names)
    return EntityCounts(
        tokens=len(chunks.targets),
        correct_tokens=int((chunks.predicted == chunks.targets).sum()),
        gold=rules.count(np.bincount(chunks.gold_types, minlength=count)),
        found=rules.count(np.bincount(chunks.found_types, minlength=count)),
        correct=rules.count(np.bincount(chunks.right_types, minlength=count)),
    )


def sentence_chunks(
    predicted: NDArray[Any],  # [token], label numbers
    targets: NDArray[Any],  # [token], label numbers; `MISSING` leaves the token out
    labels: Sequence[str],
    sentences: NDArray[Any] | None = None,  # [sentence + 1]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[sentence] chunks that are right, and chunks in the targets and predicted ones together."""
    chunks = _find_chunks(predicted, targets, labels, sentences)
    # The boundary before each sentence; a token between two of them is of the former's sentence.
    before = chunks.offsets[:-1] + np.arange(len(chunks.offsets) - 1)

    def by_sentence(places: NDArray[np.int64]) -> NDArray[np.int64]:
        found = np.searchsorted(before, places, side="left") - 1
        return np.bincount(found, minlength=len(before)).astype(np.int64)

    return (
        by_sentence(chunks.right_places),
        by_sentence(chunks.gold_places) + by_sentence(chunks.found_places),
    )


@dataclass(frozen=True, eq=False)
class _Chunks:
    """Where the chunks of some tokens are, in the tokens with a boundary around each sentence."""

    rules: _ChunkRules
    predicted: NDArray[Any]  # [token], those with a target
    targets: NDArray[Any]
    offsets: NDArray[Any]  # [sentence + 1], of these tokens
    gold_places: NDArray[np.int64]  # [chunk], where one starts
    gold_types: NDArray[np.int64]
    found_places: NDArray[np.int64]
    found_types: NDArray[np.int64]
    right_places: NDArray[np.int64]  # [chunk], where one ends that is right
    right_types: NDArray[np.int64]


def _find_chunks(
    predicted: NDArray[Any],
    targets: NDArray[Any],
    labels: Sequence[str],
    sentences: NDArray[Any] | None,
) -> _Chunks:
    if len(predicted) != len(targets):
        raise ShapeError(
            f"`predicted` and `targets` should have one label for each token. Found "
            f"{len(predicted)} and {len(targets)}. Predict every token that has a target."
        )
    offsets = np.array([0, len(targets)]) if sentences is None else np.asarray(sentences)
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(targets):
        raise ShapeError(
            f"`sentences` should run from 0 to the number of tokens, {len(targets)}. Found "
            f"{offsets[:1].tolist()} to {offsets[-1:].tolist()}. Give offsets, the end included."
        )
    scored = targets != MISSING
    if not scored.all():
        predicted, targets = predicted[scored], targets[scored]
        offsets = keep_offsets(offsets, scored)

    rules = _chunk_rules(tuple(labels))
    gold = _with_boundaries(targets, offsets, outside=len(labels))
    guess = _with_boundaries(predicted, offsets, outside=len(labels))
    gold_types, guess_types = rules.types[gold], rules.types[guess]
    gold_ends, gold_starts = rules.between(gold)
    guess_ends, guess_starts = rules.between(guess)

    # The script opens a match where both start with one type and closes it at the next place where
    # either ends or the types part; it is a correct chunk if both end there.
    agree = gold_types[1:] == guess_types[1:]
    opened = np.concatenate([[0], np.cumsum(gold_starts & guess_starts & agree)])
    closing = np.flatnonzero(gold_ends | guess_ends | ~agree)
    open_before = np.diff(opened[closing], prepend=0) > 0
    right = closing[open_before & (gold_ends & guess_ends)[closing]]
    if opened[-1] > opened[closing].max(initial=0):  # open at the end, after letters it ignores
        right = np.append(right, len(gold) - 1)
    gold_places = np.flatnonzero(gold_starts) + 1
    found_places = np.flatnonzero(guess_starts) + 1
    return _Chunks(
        rules=rules,
        predicted=predicted,
        targets=targets,
        offsets=offsets,
        gold_places=gold_places,
        gold_types=gold_types[gold_places],
        found_places=found_places,
        found_types=guess_types[found_places],
        right_places=right,
        right_types=gold_types[right],
    )


def conlleval_report(
    predicted: NDArray[Any],  # [token], label numbers
    targets: NDArray[Any],  # [token], label numbers
    labels: Sequence[str],
    sentences: NDArray[Any] | None = None,  # [sentence + 1]
) -> str:
    """The text that the CoNLL script prints for these tags.

    The script prints the line of chunks without a type twice; here it stands once.

    >>> tags, labels = np.array([1, 0, 1]), ("O", "B-PER")
    >>> print(conlleval_report(tags, np.array([1, 0, 0]), labels))
    processed 3 tokens with 1 phrases; found: 2 phrases; correct: 1.
    accuracy:  66.67%; precision:  50.00%; recall: 100.00%; FB1:  66.67
                  PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2
    """
    counts = entity_counts(predicted, targets, labels, sentences)
    gold, found, correct = (
        sum(kind.values()) for kind in (counts.gold, counts.found, counts.correct)
    )
    lines = [
        f"processed {counts.tokens} tokens with {gold} phrases; found: {found} phrases; "
        f"correct: {correct}."
    ]
    if counts.tokens > 0:
        accuracy = 100 * counts.correct_tokens / counts.tokens
        lines.append(f"accuracy: {accuracy:6.2f}%; {_figures(correct, found, gold)}")
    for name in sorted({*counts.gold, *counts.found}):
        here = counts.found.get(name, 0)
        figures = _figures(counts.correct.get(name, 0), here, counts.gold.get(name, 0))
        lines.append(f"{name:>17}: {figures}  {here}")
    return "\n".join(lines) + "\n"


def io_to_iob2(tags: Sequence[str]) -> list[str]:
    """The IOB2 tags of one sentence that is tagged with `I-` and `O` alone.

    A `B-` opens each run of one type. Chunks of one type that touch cannot be told apart in IO, so
    they become one. Tags that begin a chunk already stay as they are.

    >>> io_to_iob2(["I-PER", "I-PER", "O", "I-LOC"])
    ['B-PER', 'I-PER', 'O', 'B-LOC']
    """
    result = []
    previous = ""
    for tag in tags:
        letter, _, kind = tag.partition("-")
        opens = letter == "I" and (previous in ("", "O") or previous.partition("-")[2] != kind)
        result.append(f"B{tag[1:]}" if opens else tag)
        previous = tag
    return result


def keep_offsets(offsets: NDArray[Any], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where sentences begin after only the `kept` tokens are left."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return np.asarray(before[offsets], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _ChunkRules:
    """What happens between two neighbouring labels; the last label stands for a sentence's end."""

    names: tuple[str, ...]  # [type]
    types: NDArray[np.int64]  # [label + 1]
    ends: NDArray[np.bool_]  # [(label + 1) * (label + 1)], the former label first
    starts: NDArray[np.bool_]  # the same

    def between(self, places: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether a chunk ends and whether one starts, between each two neighbours."""
        pairs = places[:-1] * len(self.types) + places[1:]
        return self.ends[pairs], self.starts[pairs]

    def count(self, numbers: NDArray[Any]) -> dict[str, int]:
        return {name: int(n) for name, n in zip(self.names, numbers, strict=True) if n}


@lru_cache(maxsize=64)
def _chunk_rules(labels: tuple[str, ...]) -> _ChunkRules:
    parts = [label.partition("-") for label in (*labels, "O")]
    letters = np.array([letter for letter, _, _ in parts])
    names, types = np.unique([kind for _, _, kind in parts], return_inverse=True)
    former, latter = letters[:, None], letters[None, :]
    parted = types[:, None] != types[None, :]

    def one_of(letter: NDArray[Any], these: str) -> NDArray[np.bool_]:
        return np.isin(letter, list(these))

    ends = (
        (one_of(former, "BI") & one_of(latter, "BO"))
        | (one_of(former, "E") & one_of(latter, "EIO"))
        | (~one_of(former, "O.") & parted)
        | one_of(former, "[]")
    )
    starts = (
        (one_of(former, "BIO") & one_of(latter, "B"))
        | (one_of(former, "OE") & one_of(latter, "IE"))
        | (~one_of(latter, "O.") & parted)
        | one_of(latter, "[]")
    )
    return _ChunkRules(tuple(names.tolist()), types.astype(np.int64), ends.ravel(), starts.ravel())


def _with_boundaries(
    tokens: NDArray[Any], offsets: NDArray[Any], *, outside: int
) -> NDArray[np.int64]:
    lengths = np.diff(offsets)
    padded = np.full(len(tokens) + len(lengths) + 1, outside, dtype=np.int64)
    padded[np.arange(len(tokens)) + np.repeat(np.arange(len(lengths)), lengths) + 1] = tokens
    return padded


def _figures(correct: int, found: int, gold: int) -> str:
    # Percentages before the harmonic mean, in the script's order: the same roundings.
    precision, recall = _ratio(100 * correct, found), _ratio(100 * correct, gold)
    f1 = _harmonic_mean(precision, recall)
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _harmonic_mean(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
