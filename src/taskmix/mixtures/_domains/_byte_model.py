r"""How well a small model of one domain's bytes predicts another domain's: cross-entropies in bits.

The model is an n-gram model of bytes with Witten-Bell smoothing: after a context $h$ that was seen
$c(h)$ times with $T(h)$ different next bytes,

$$p(b \mid h) = \frac{c(hb) + T(h)\,p(b \mid h')}{c(h) + T(h)},$$

where $h'$ is $h$ without its first byte; below the empty context every byte has probability 1/256.

    Witten and Bell, "The zero-frequency problem", IEEE Trans. on Information Theory, 1991, method C.

Texts are counted as sorted codes of `order + 1` bytes, so that a model reads all domains in one pass
over the different codes among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._table import Floats

Codes = NDArray[np.int64]
ORDER = 3  # bytes of context
UNIFORM = 1 / 256


def codes_of(text: bytes, order: int = ORDER) -> Codes:
    """Each byte with the `order` bytes before it as one number; before the text are bytes of 0."""
    data = np.frombuffer(b"\0" * order + text, dtype=np.uint8).astype(np.int64)
    length = len(text)
    codes = np.zeros(length, dtype=np.int64)
    for back in range(order + 1):
        codes += data[order - back : order - back + length] << (8 * back)
    return codes


@dataclass(frozen=True, eq=False)
class ByteModel:
    """Counts of a text, for each length of context from 0 to `order`."""

    order: int
    grams: tuple[Codes, ...]  # of each length of context: the codes seen, sorted
    counts: tuple[Floats, ...]
    contexts: tuple[Codes, ...]  # the contexts seen, sorted
    totals: tuple[Floats, ...]  # how often each was seen
    kinds: tuple[Floats, ...]  # how many different bytes followed it

    @classmethod
    def of_codes(cls, codes: Codes, order: int = ORDER) -> ByteModel:
        """The model of a text, from its `codes_of`."""
        parts = []
        grams, counts = np.unique(codes, return_counts=True)
        for length in range(order, -1, -1):
            contexts, first = np.unique(grams >> 8, return_index=True)
            totals = np.add.reduceat(counts, first) if len(first) else counts
            kinds = np.diff(np.append(first, len(grams)))
            parts.append((grams, counts.astype(float), contexts, totals.astype(float), kinds))
            if length:  # without the first byte of the context
                short, where = np.unique(grams & ((1 << (8 * length)) - 1), return_inverse=True)
                grams, counts = short, np.bincount(where, weights=counts).astype(np.int64)
        parts.reverse()
        columns = list(zip(*parts, strict=True))
        return cls(
            order, columns[0], columns[1], columns[2], columns[3],
            tuple(each.astype(float) for each in columns[4]),
        )  # fmt: skip

    def probabilities(self, codes: Codes) -> Floats:
        """[code], of its last byte after the bytes before it."""
        found = np.full(len(codes), UNIFORM)
        for length in range(self.order + 1):
            short = codes & ((1 << (8 * (length + 1))) - 1)
            seen = _look_up(self.grams[length], self.counts[length], short)
            total = _look_up(self.contexts[length], self.totals[length], short >> 8)
            kinds = _look_up(self.contexts[length], self.kinds[length], short >> 8)
            known = total > 0
            found[known] = (seen[known] + kinds[known] * found[known]) / (
                total[known] + kinds[known]
            )
        return found


def cross_entropies(
    learned: Sequence[bytes],  # [domain], the text that each model is made of
    read: Sequence[bytes],  # [domain], the text that it is to predict
    *,
    order: int = ORDER,
) -> Floats:
    """[domain that is read, domain that was learned], bits a byte."""
    spelled = [codes_of(text, order) for text in read]
    distinct = np.unique(np.concatenate(spelled)) if spelled else np.zeros(0, dtype=np.int64)
    weights = np.zeros((len(read), len(distinct)))
    for row, codes in enumerate(spelled):
        places = np.searchsorted(distinct, codes)
        weights[row] = np.bincount(places, minlength=len(distinct)) / max(len(codes), 1)
    bits = [
        -np.log2(ByteModel.of_codes(codes_of(text, order), order).probabilities(distinct))
        for text in learned
    ]
    return np.asarray(weights @ np.stack(bits, axis=1))


def _look_up(known: Codes, values: Floats, wanted: Codes) -> Floats:
    if not len(known):
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[places] == wanted, values[places], 0.0)
