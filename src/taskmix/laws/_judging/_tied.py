"""Which laws cannot be told from the chosen one: "cannot tell these forms apart" instead of one answer.

A law is tied with the chosen one if its score is hardly longer and its errors beyond the left-out
ranges cannot be told from those. So is a published form (`_field_form.py`) that fits the rows and the
ranges as well, however long it is: a term with too little effect to be seen is not disproved. Of laws
that are one form with other numbers, or say the same in other words, the best stands for all. At most
twelve are named: a few places are kept for published forms, whose scores come last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taskmix.laws._forms import Array, Columns, Program, form_length, is_field_form, open_key
from taskmix.laws._judging._choose import ROWS_A_RANGE, LawChoice
from taskmix.laws._judging._law import Law
from taskmix.laws._judging._ranges import log_errors

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
