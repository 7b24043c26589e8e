r"""Does a surrogate tell which subsets help? F1 on held-out subsets, beside what noise allows.

A held-out subset helps where its measured loss lies below that of the target alone, and is said to
where the predicted one does. Both losses are means over seeds, so the sign itself is uncertain where
the two lie close together, and nobody can predict it: the `ceiling` is the F1 of an oracle that
knows the expected losses. The expected differences are taken to be the measured ones, shrunk towards
their mean until their variance is what is left when that of the noise is taken away; then noise of
its known size is added again and again, to every subset its own and to all of them that of the
anchor. `always` is the F1 of saying "helps" of every subset.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.transfer import SubsetOutcomes, Surrogate


@dataclass(frozen=True, kw_only=True)
class SignTest:
    """How well held-out subsets of one target were told; NaN where a figure is not defined."""

    subsets: int
    helps: float = math.nan  # F1 of "this subset helps"
    harms: float = math.nan  # F1 of "this subset harms"
    right: float = math.nan  # the share of subsets that were told
    always: float = math.nan  # F1 of "helps", said of all
    ceiling: float = math.nan  # F1 of "helps" that the noise allows
    share: float = math.nan  # of subsets that did help
    spearman: float = math.nan


def f1(truth: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Of saying yes; not defined where there is nothing to find and nothing was said."""
    below = int(truth.sum()) + int(said.sum())
    return 2 * int((truth & said).sum()) / below if below else math.nan


def sign_test(
    surrogate: Surrogate,
    held_out: SubsetOutcomes,
    *,
    generator: np.random.Generator,
    resamples: int = 500,
) -> SignTest:
    """One target; `held_out` has the runs of the target alone in it, and other subsets only."""
    from scipy.stats import spearmanr

    if len(held_out.losses) == 0:
        return SignTest(subsets=0)
    predicted = surrogate.predict(held_out.subsets)
    helped, said = held_out.losses < held_out.anchor, predicted < surrogate.anchor
    related = math.nan
    if len(predicted) > 2 and np.ptp(predicted) > 0 and np.ptp(held_out.losses) > 0:
        related = float(spearmanr(predicted, held_out.losses).statistic)
    return SignTest(
        helps=f1(helped, said),
        harms=f1(~helped, ~said),
        right=float((helped == said).mean()),
        always=f1(helped, np.ones_like(helped)),
        ceiling=oracle_f1(held_out, generator=generator, resamples=resamples),
        share=float(helped.mean()),
        spearman=related,
        subsets=len(helped),
    )


def oracle_f1(
    held_out: SubsetOutcomes, *, generator: np.random.Generator, resamples: int = 500
) -> float:
    """F1 of "helps" by one who knows the expected losses, of which these are noisy measurements."""
    differences = held_out.losses - held_out.anchor
    own = held_out.seed_variance / held_out.weights
    anchor = held_out.anchor_variance / held_out.anchor_runs
    if not (np.isfinite(own).all() and np.isfinite(anchor)):
        return math.nan
    spread = float(differences.var(ddof=1)) if len(differences) > 1 else 0.0
    kept = np.sqrt(max(1 - float(own.mean()) / spread, 0.0)) if spread > 0 else 0.0
    expected = differences.mean() + kept * (differences - differences.mean())
    shape = (resamples, len(differences))
    noise = generator.normal(size=shape) * np.sqrt(own)
    shared = generator.normal(size=(resamples, 1)) * np.sqrt(anchor)
    found = [f1(measured < 0, expected < 0) for measured in expected + noise + shared]
    known = [value for value in found if np.isfinite(value)]
    return float(np.mean(known)) if known else math.nan
