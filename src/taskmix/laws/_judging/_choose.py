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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._forms import LEAVES_POSITIVE, Array
from taskmix.laws._judging._holding import LawVerdict
from taskmix.laws._judging._judge import JudgedLaw
from taskmix.laws._judging._ranges import RangeRows, log_errors

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
