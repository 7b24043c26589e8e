"""Which law of many is chosen.

Of two laws that fit alike the shorter is the likelier, and of two that fit the data at hand alike one
may be far off beyond them. The rule, in this order:

1. A law that fails where it is asked to hold, or breaks a demand, is out. One that fails only where
   nobody asked (ten times the range of the data) is out if another law that does not fail there is not
   worse on the held-out rows. Where all that is wrong is the sign, the other has to score nearly as
   well: true laws of positive scores, a - b log n among them, do leave zero somewhere, and may be
   tied with the choice. Otherwise the data have spoken, and a warning tells.
2. So is a law whose error on the held-out rows is worse than the best one's beyond chance (three
   standard errors of the paired difference, and four nats, since the best of many is lucky too), unless
   deviations go together (`_evidence.py`): then held-out rows are off as their neighbours are.
3. Of the rest the one with the shortest description of itself, of all rows and of the left-out ranges
   is chosen. A range is told as a few rows whose scale is the best law's error there: a law twice as
   far off costs five nats, and no range costs more than that, so one odd range cannot decide alone.

The numbers were tuned on ranges left out of the train rows of two scaling-law tables and of the
balanced table of the study of multitask learning: the search ran on what remained, and the choice was
compared with the best law there. Known laws (`benchmarks/laws_recovery.py`) were to be found as often
as before.

Laws that cannot be told from it are stacked, weighted by how well they did beyond left-out ranges.

    Breiman, "Stacked Regressions", Machine Learning 24, 1996, Section 2: weights that are not negative,
    from predictions of rows that were left out. Ours sum to 1, each range counts alike whatever its
    size and its errors, and with few ranges the weights are drawn towards equal ones.

The interval is that of a mixture: the variance is the mean of the laws' own variances plus the variance
between their values, so where tied laws part ways beyond the data it says so.

A law is tied with the chosen one if its score is hardly longer and its errors beyond the left-out
ranges cannot be told from those. So is a published form (`_field_form.py`) that fits the rows and the
ranges as well, however long it is: a term with too little effect to be seen is not disproved. Of laws
that are one form with other numbers, or say the same in other words, the best stands for all. At most
twelve are named: a few places are kept for published forms, whose scores come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from taskmix.laws._complexity import LEAVES_POSITIVE, form_length
from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._field_form import is_field_form
from taskmix.laws._holding import LawVerdict
from taskmix.laws._judge import JudgedLaw
from taskmix.laws._law import Law, LawPrediction
from taskmix.laws._normal import open_key
from taskmix.laws._ranges import RangeRows, log_errors
from taskmix.numerics import student_quantile

MOST_STACKED = 6  # laws in a stack, with the chosen one
SUM_TO_ONE = 1e3  # times the size of the deviations: how strictly the weights sum to 1


@dataclass(frozen=True, eq=False)
class Stack:
    """Tied laws and their weights.

    >>> n = [1, 4, 9, 16]
    >>> laws = [fit_formula(form, {"n": n}, [2.0, 4.0, 6.0, 8.1]) for form in ("sqrt(n)", "n + 3")]
    >>> found = Stack(tuple(laws), (0.75, 0.25)).predict({"n": [10.0, 10_000.0]})
    >>> found.values.round(1), (found.high - found.low > 100)
    (array([   6.7, 2650.4]), array([False,  True]))
    """

    laws: tuple[Law, ...]
    weights: tuple[float, ...]

    def __repr__(self) -> str:
        parts = zip(self.weights, self.laws, strict=True)
        return "Stack(" + ", ".join(f"{weight:.2f} of {law.text}" for weight, law in parts) + ")"

    def predict(
        self, table: Any, *, level: float = 0.95, measurement: bool = False
    ) -> LawPrediction:
        """Values with intervals; laws that have no value somewhere are left out there."""
        found = [law.predict(table, level=level, measurement=measurement) for law in self.laws]
        values = np.array([each.values for each in found])  # [law, row]
        half = np.array([(each.high - each.low) / 2 for each in found])
        known = np.isfinite(values) & np.isfinite(half)
        shares = np.where(known, np.array(self.weights)[:, None], 0.0)
        with np.errstate(all="ignore"):
            shares = shares / shares.sum(axis=0)
            mean = np.sum(shares * np.where(known, values, 0.0), axis=0)
            quantile = np.array([student_quantile(level, law.degrees) for law in self.laws])
            within = np.where(known, half / quantile[:, None], 0.0) ** 2
            between = np.where(known, values - mean, 0.0) ** 2
            spread = quantile.max() * np.sqrt(np.sum(shares * (within + between), axis=0))
        outside = np.any([each.outside for each in found], axis=0)
        return LawPrediction(mean, mean - spread, mean + spread, outside, found[0].warning)


def stack_of(
    laws: Sequence[Law],
    deviations: Sequence[Sequence[Array]],  # [law][range][left-out row], weighted
    tied: Sequence[int],  # places, the chosen law first
) -> Stack | None:
    """The chosen law and the best of those that cannot be told from it; None where there are none."""
    if len(tied) == 1:
        return None
    weights = weigh_tied_laws([deviations[place] for place in tied[:MOST_STACKED]])
    return Stack(tuple(laws[place] for place in tied[:MOST_STACKED]), weights)


def weigh_tied_laws(
    deviations: Sequence[Sequence[Array]],  # [law][range][left-out row], weighted
) -> tuple[float, ...]:
    """[law], not negative and with sum 1.

    The deviations of a mean of laws are the mean of their deviations, so the weights are those that
    make it smallest, by non-negative least squares, drawn towards equal ones by the number of laws
    against the number of ranges.
    """
    count, ranges = len(deviations), len(deviations[0])
    if count == 1:
        return (1.0,)
    rows = []
    for place in range(ranges):
        each = np.array([law[place] for law in deviations])  # [law, row]
        scale = np.sqrt(np.median(np.mean(each**2, axis=1)) * each.shape[1])
        rows.append(each / (scale if scale > 0 else 1.0))
    design = np.concatenate(rows, axis=1).T  # [row, law]
    whole = np.vstack([design, np.full(count, SUM_TO_ONE)])
    found, _ = nnls(whole, np.append(np.zeros(len(design)), SUM_TO_ONE))
    found /= found.sum()
    towards_equal = count / (count + ranges)
    mixed = (1 - towards_equal) * found + towards_equal / count
    return tuple(float(weight) for weight in mixed)


TIED_NATS = 10.0  # of the score, within which a law may be tied with the chosen one
TIED_FIT_NATS = 2.0  # of the rows and ranges alone, for a published form
TIED_ERRORS = 2.0  # standard errors over ranges, within which its errors cannot be told from those
MOST_TIED = 12  # laws, with the chosen one; what is shown to people are the first six, and a count
PUBLISHED_PLACES = 2  # of these, for published forms with longer descriptions
SAME_LAW = 1e-3  # of the values: laws that differ by less say the same in other words


def tied_places(
    laws: Sequence[Law],
    deviations: Sequence[Sequence[Array]],  # [law][range][left-out row], weighted
    choice: LawChoice,
    points: Columns,  # where the laws should hold
) -> list[int]:
    """The chosen law first, then those tied with it, best scores first."""
    errors = np.array([log_errors(each) for each in deviations])  # [law, range]
    tied = [choice.place]
    if errors.shape[1] == 0 or not np.isfinite(errors[choice.place]).all():
        return tied
    chosen = choice.scores[choice.place]
    fits = [
        score - form_length(law.expression, law.rows, choosing=True)
        for law, score in zip(laws, choice.scores, strict=True)
    ]
    short, published = [], []
    for place in np.argsort(choice.scores).tolist():
        if not choice.fit[place] or not np.isfinite(errors[place]).all():
            continue
        if choice.scores[place] <= chosen + TIED_NATS:
            short.append(place)
        elif (
            is_field_form(laws[place].expression)
            and fits[place] <= fits[choice.place] + TIED_FIT_NATS
        ):
            published.append(place)
    for places, most in ((short, MOST_TIED - PUBLISHED_PLACES), (published, MOST_TIED)):
        for place in places:
            if (
                len(tied) < most
                and not _is_worse(errors[place] - errors[choice.place])
                and not any(_is_same(laws[place], laws[other], points) for other in tied)
            ):
                tied.append(place)
    return tied


def _is_worse(
    apart: Array,  # [range], of the logarithms of errors
) -> bool:
    # Over few ranges errors may agree by luck, so no less than what a range of so many rows tells.
    least = np.sqrt(0.5 / (ROWS_A_RANGE * len(apart)))
    error = max(float(np.std(apart) / np.sqrt(max(len(apart) - 1, 1))), float(least))
    return bool(np.mean(apart) > TIED_ERRORS * error)


def _is_same(one: Law, other: Law, points: Columns) -> bool:
    """Whether two laws are one form, or say the same in other words."""
    if open_key(one.expression) == open_key(other.expression):
        return True
    first, second = (Program(law.expression).values(points) for law in (one, other))
    with np.errstate(all="ignore"):
        apart = np.abs(first - second) / np.abs(first)
    return bool(np.median(apart) <= SAME_LAW)


BEYOND_CHANCE = 3.0  # standard errors; with fewer the law that made the rows is put out too often
MATERIAL = 4.0  # nats; the best of many laws is better than a true one by some, whatever the errors
ENOUGH_TO_JUDGE = 10  # rows; fewer cannot put a law out
ROWS_A_RANGE = 8.0  # that a range counts as: its rows are off together where a form is wrong
MOST_A_RANGE = 0.7  # nats a row: what a law can lose on one range against the best there
WRONG_SIGN_NATS = LEAVES_POSITIVE  # by which a score may be longer to keep the sign unasked


@dataclass(frozen=True, eq=False)
class LawChoice:
    """The place of the chosen law, every law's score, and who was in the running."""

    place: int
    scores: Array  # [law], nats
    fit: NDArray[np.bool_]  # [law], whether it may be chosen, or be tied with the chosen one
    warning: str = ""


def choose_law(
    judged: Sequence[JudgedLaw],
    lengths: Sequence[float],  # [law], nats of the description
    verdicts: Sequence[LawVerdict],
    ranges: Sequence[RangeRows],
    *,
    floor: float = 0.0,  # a weighted mean square below which an error is rounding
    by_rows: bool = True,  # whether held-out rows speak one by one, or their deviations go together
) -> LawChoice:
    """The rule above."""
    errors = np.array([log_errors(each.left_out, floor) for each in judged])  # [law, range]
    shares = np.array([each.share for each in ranges])
    asked = np.array([not each.asked for each in verdicts])
    unasked = asked & np.array([not each.unasked for each in verdicts])
    if not asked.any():
        place, scores, good = _shortest(judged, lengths, errors, shares, by_rows, ~asked)
        return LawChoice(place, scores, good, _all_fail(verdicts[place].asked))
    place, scores, good = _shortest(judged, lengths, errors, shares, by_rows, asked)
    tieable = good & (unasked | np.array([each.is_sign for each in verdicts]))
    if unasked[place]:
        return LawChoice(place, scores, tieable)
    if unasked.any():
        other, other_scores, other_good = _shortest(
            judged, lengths, errors, shares, by_rows, unasked
        )
        limit = WRONG_SIGN_NATS if verdicts[place].is_sign else np.inf
        if good[other] and scores[other] <= scores[place] + limit:
            return LawChoice(other, other_scores, other_good | tieable)
    return LawChoice(place, scores, good, _data_speak(verdicts[place].unasked))


def _shortest(
    judged: Sequence[JudgedLaw],
    lengths: Sequence[float],
    errors: Array,  # [law, range]
    shares: Array,  # [range]
    by_rows: bool,
    among: NDArray[np.bool_],
) -> tuple[int, Array, NDArray[np.bool_]]:
    """The best of some laws, the scores of all, and which of these are not worse on held-out rows."""
    places = np.flatnonzero(among)
    good = np.zeros(len(judged), dtype=np.bool_)
    if by_rows:
        good[places] = _not_worse([judged[place].held_out for place in places.tolist()])
    if not good.any():  # none has a value on every held-out row
        good[places] = True
    scores = np.array(lengths, dtype=np.float64)
    if len(shares):
        least = errors[good].min(axis=0)
        with np.errstate(invalid="ignore"):
            worse = np.where(np.isfinite(errors), np.maximum(errors - least, 0.0), np.inf)
        scores = scores + np.minimum(worse, MOST_A_RANGE) @ (ROWS_A_RANGE * shares)
    return int(np.argmin(np.where(good, scores, np.inf))), scores, good


def _not_worse(squares: Sequence[Array]) -> NDArray[np.bool_]:
    """[law], whether its squares are those of the best law but for chance."""
    means = np.array([np.mean(each) if np.isfinite(each).all() else np.inf for each in squares])
    best = squares[int(np.argmin(means))]
    result = np.zeros(len(squares), dtype=np.bool_)
    for place, each in enumerate(squares):
        if np.isfinite(means[place]):
            difference = each - best
            error = np.std(difference) / np.sqrt(len(difference))
            few = len(difference) < ENOUGH_TO_JUDGE
            by_chance = np.mean(difference) <= BEYOND_CHANCE * error + 1e-300
            with np.errstate(divide="ignore", invalid="ignore"):
                nats = 0.5 * len(difference) * np.log(means[place] / means.min())
            result[place] = few or by_chance or nats <= MATERIAL
    return result


def _all_fail(words: str) -> str:
    return (
        "Every law that was found is disqualified. The chosen one is the best of them: it "
        f"{_verb(words)}."
    )


def _data_speak(words: str) -> str:
    return (
        f"The chosen law {_verb(words)}, and every law without such a place describes the rows much "
        "worse. Do not use it there."
    )


def _verb(words: str) -> str:
    return words if words.startswith(("has", "falls", "rises", "grows", "is")) else f"is {words}"
