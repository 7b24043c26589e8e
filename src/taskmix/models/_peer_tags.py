r"""Tags of a sentence from what is said of each of its words: the chance of each tag, given all words.

    Rabiner, Proceedings of the IEEE 77 (1989), Section III: forward and backward passes.

With $p(t_i \mid w_i)$ of a classifier for words in their windows, a sentence's tags have the weight
$\prod_i p(t_i \mid w_i) \, (p(t_i \mid t_{i-1}) / p(t_i))^a$: neighbours say what the window has not.
The classifier has seen the neighbours' words, so $a$ is chosen between 0 and 1. Where tags mark the
begin and the inside of entities, an inside that continues nothing gets nearly nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks import MISSING

WEIGHTS = (0.0, 0.5, 1.0)  # of transitions, to choose from
USUAL_WEIGHT = 0.5  # where there are no rows to choose by
FORBIDDEN = 1e-6  # instead of 0: data may break a rule that their training rows kept
_SHRINKING = 2.0  # rows' worth of "the tag before does not matter"
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TagChain:
    """How much more often than by chance a tag follows another.

    >>> chain = TagChain.fit([np.array([0, 1, 2, 0])], ("O", "B-X", "I-X"))
    >>> words = np.full((3, 3), 1 / 3)  # a classifier that knows nothing
    >>> found = chain.marginals(words, [3])
    >>> bool(found[0, 2] < 1e-3)  # no sentence begins inside an entity
    True
    """

    first: Values  # [tag]
    ratios: Values  # [tag before, tag]
    allowed: NDArray[np.bool_]  # [1 + tag before, tag], the first row for the begin of a sentence
    weight: float = 1.0

    @classmethod
    def fit(cls, sentences: Sequence[NDArray[np.int64]], labels: Sequence[str]) -> TagChain:
        """From the tags of sentences; a word without one parts them."""
        count = len(labels)
        pairs = np.zeros((count + 1, count))
        for tags in sentences:
            before, after = np.append(-1, tags[:-1]), np.asarray(tags)
            known = (before != MISSING) & (after != MISSING)
            np.add.at(pairs, (before[known] + 1, after[known]), 1)
        shares = (pairs.sum(axis=0) + 1 / count) / (pairs.sum() + 1)
        totals = pairs.sum(axis=1, keepdims=True) + _SHRINKING
        ratios = (pairs + _SHRINKING * shares) / totals / shares
        return cls(ratios[0], ratios[1:], (pairs > 0) | _continues(labels))

    def marginals(
        self,
        words: Values,  # [word, tag], probabilities
        lengths: Sequence[int],  # of the sentences
    ) -> Values:
        """[word, tag], the probabilities given the whole sentence."""
        found = np.empty_like(words)
        ends = np.cumsum(lengths)
        order = np.argsort(lengths, kind="stable")
        for some in np.array_split(order, max(1, -(-len(order) // 256))):  # of about one length
            longest = max((lengths[place] for place in some), default=0)
            if longest == 0:
                continue
            places = (ends[some] - np.asarray(lengths)[some])[:, None] + np.arange(longest)
            inside = np.arange(longest) < np.asarray(lengths)[some][:, None]
            padded = np.where(inside[..., None], words[np.where(inside, places, 0)], 1.0)
            found[places[inside]] = self._passes(padded, inside)[inside]
        return found

    def _passes(self, words: Values, inside: NDArray[np.bool_]) -> Values:
        """[sentence, word, tag] of sentences padded to one length."""
        step = np.where(self.allowed[1:], self.ratios**self.weight, FORBIDDEN)
        begin = np.where(self.allowed[0], self.first**self.weight, FORBIDDEN)
        forward, backward = np.empty_like(words), np.ones_like(words)
        now = begin * words[:, 0]
        for place in range(words.shape[1]):
            if place:
                now = (now @ step) * words[:, place]
            now = now / now.sum(axis=1, keepdims=True)
            forward[:, place] = now
        for place in range(words.shape[1] - 2, -1, -1):
            after = (backward[:, place + 1] * words[:, place + 1]) @ step.T
            after /= after.sum(axis=1, keepdims=True)
            backward[:, place] = np.where(inside[:, place + 1, None], after, 1.0)
        both = forward * backward
        return np.asarray(both / both.sum(axis=2, keepdims=True))


def _continues(labels: Sequence[str]) -> NDArray[np.bool_]:
    """[1 + tag before, tag], what may follow: where tags begin entities, an inside continues one."""
    marks = [label.partition("-") for label in labels]
    if not all(label == "O" or label[:2] in ("B-", "I-") for label in labels):
        return np.ones((len(labels) + 1, len(labels)), np.bool_)
    before = ["O"] + [label if label == "O" else label[2:] for label in labels]
    return np.array([[mark[0] != "I" or mark[2] == kind for mark in marks] for kind in before])
