"""How far an answer can be trusted, a sentence for each reason to and not to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taskmix.mixtures._learning._document import CarryRow, ComparedMixture, LeftOutMetric
from taskmix.mixtures._optimum import MixtureOptimum

GOOD, FAIR = 0.9, 0.7  # rank correlations out of fold: above, a ranking can be relied on
HONEST = (
    0.8,
    0.97,
)  # of 90 % intervals that held what came; outside, they are too narrow or too wide
LIKELY = 0.9  # that the advised mixture is better


def judge_trust(
    target: LeftOutMetric,
    optimum: MixtureOptimum,
    compared: Sequence[ComparedMixture],
    spread: float,
    carry: Sequence[CarryRow] | None,
) -> tuple[str, ...]:
    """The accuracy on runs not seen, the gain, the distance, what is left to win, and carry-over."""
    words = [_accuracy(target), _gain(compared), optimum.distance.words]
    if spread > 0:
        words.append(
            f"By laws that fit as well, another mixture would be better by {optimum.regret:.2g} on "
            f"average (expected regret, {100 * optimum.regret / spread:.0f} % of the spread over runs)."
        )
    if carry:
        words.append(_carry(carry))
    return tuple(words)


def _accuracy(row: LeftOutMetric) -> str:
    what = "the target" if row.name == "target" else f"`{row.name}`"
    if math.isnan(row.rank_correlation):
        return f"How well {what} is predicted cannot be told: too few runs have all that it needs."
    grade = (
        "well"
        if row.rank_correlation >= GOOD
        else "fairly"
        if row.rank_correlation >= FAIR
        else "poorly"
    )
    words = (
        f"For {len(row.runs)} runs that the law had not seen, {what} is ranked {grade} (rank "
        f"correlation {row.rank_correlation:.2f}, R² {row.r_squared:.2f})"
    )
    if not math.isnan(row.coverage):
        words += f"; {100 * row.coverage:.0f} % of its 90 % intervals hold what came"
        if row.coverage < HONEST[0]:
            words += ", so take them as too narrow"
        elif row.coverage > HONEST[1]:
            words += ", so they are rather wide"
    return f"{words}."


def _gain(compared: Sequence[ComparedMixture]) -> str:
    best = next((row for row in compared if row.name.startswith("best run")), None)
    if best is None:
        return ""
    size = f"{best.gain.value:.3g} ({best.gain.low:.3g} to {best.gain.high:.3g})"
    if best.better >= LIKELY:
        return (
            f"It is better than the {best.name} by {size}, with a probability of "
            f"{100 * best.better:.0f} %."
        )
    return (
        f"It cannot be told from the {best.name}: the gain is {size}, above 0 with a probability of "
        f"{100 * best.better:.0f} %."
    )


def _carry(carry: Sequence[CarryRow]) -> str:
    """What is known of the widest step in size: the target, and how many metrics."""
    small, large = min(row.small for row in carry), max(row.large for row in carry)
    rows = [row for row in carry if (row.small, row.large) == (small, large)]
    carried = [row for row in rows if row.verdict == "carries over"]
    words = f"Between sizes: {rows[0].words}"
    if len(rows) > 1:
        words += f" Of all {len(rows)} rankings {len(carried)} carry over that far"
        others = [f"`{row.name}`" for row in rows if row.verdict != "carries over"]
        if others:
            words += f"; it is not so, or cannot be told, for {', '.join(others[:5])}"
            words += f" and {len(others) - 5} more" if len(others) > 5 else ""
        words += "."
    return words
