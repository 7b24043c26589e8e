"""What twice the batches would bring: a law fitted to the evaluations of the chosen way of training.

A run is evaluated on its way, so its record already says what fewer batches would have given. A law
of the best score so far against the batches spent, found by `taskmix.laws`, is read one doubling
beyond the data. Evaluations of one seed hang together, so what is uncertain is taken over seeds:
the law's constants are fitted to each seed alone, and Student's interval of their gains is widened
by two more causes: how far the same law, fitted to the first half of the batches, was off about the
second, and how far other laws that fit nearly as well say otherwise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from taskmix.adviser._advice import Advice
from taskmix.adviser._curves import best_so_far
from taskmix.errors import InputError
from taskmix.laws import (
    Front,
    Law,
    LawRegressor,
    SearchOptions,
    compare_formulas,
    evaluate_formula,
    fit_groups,
    parse_formula,
)
from taskmix.numerics import Interval, mean_interval
from taskmix.plans import Evaluation, FittedLaw, Outlook
from taskmix.records import Study

DOUBLING = 2.0  # times the batches: further than that no law of one decade should be trusted
LEAST_EXPLAINED = 0.5  # share of the variance: below that the law says nothing worth telling
USUAL_SHAPES = {  # shapes of learning curves, whatever the search finds
    "logarithm": "0.5 + 0.1*log(batches)",
    "root": "0.9 - 1/sqrt(batches)",
    "reciprocal": "0.9 - 1/batches",
    "square": "0.9 - 1/batches^2",
}
FEWEST_POINTS = 3  # in the first half of the batches: fewer cannot be wrong about the second
# Times the law's mean square, up to which another law fits nearly as well: with less, the interval does
# not know that laws differ, with more, laws that do not fit widen it.
NEARLY_AS_WELL = 2.0
SEARCH = SearchOptions(rounds=2, beam=2, branches=4)  # one input: more finds the same law
_CURVE = 40  # points of the law's line


def outlook(advice: Advice, candidate: str, study: Study) -> Outlook:
    """Fits a law to the evaluations of a candidate, if they are enough to say anything."""
    found = tuple(
        Evaluation(seed=entry.seed, batches=batches, score=score)
        for entry in advice.entries[candidate]
        for batches, score, _ in best_so_far(entry, advice.tasks, advice.judged, study)
    )
    try:
        law = _fit(found, advice.options.level)
    except InputError as error:
        words = f"No law could be fitted to how the score of {candidate} rises. {error}"
        return Outlook(candidate=candidate, words=words, evaluations=found)
    if law is None or not law.explained >= LEAST_EXPLAINED:
        share = "nothing" if law is None else f"{max(law.explained, 0.0):.0%}"
        words = (
            f"Batches explain {share} of how the dev scores of {candidate} differ between "
            f"{len(found)} evaluations, so no law can say what more of them would bring."
        )
        return Outlook(candidate=candidate, words=words, evaluations=found)
    return Outlook(candidate=candidate, words=_words(law), evaluations=found, law=law)


def _fit(found: tuple[Evaluation, ...], level: float) -> FittedLaw | None:
    """The law and what it says; None where the law it comes to does not depend on batches."""
    inputs = {"batches": np.array([each.batches for each in found])}
    scores = np.array([each.score for each in found])
    front = LawRegressor(SEARCH).fit(inputs, scores).front_
    law: Law = front.chosen
    if not law.inputs:
        return None
    last = float(inputs["batches"].max())
    error = _mean_square(law, inputs, scores)
    predicted, observed = _half(law, inputs, scores)
    grid = np.geomspace(float(inputs["batches"].min()), DOUBLING * last, _CURVE)
    line = law.predict({"batches": grid}).values
    gain = _gain(law, inputs, scores, [each.seed for each in found], last, level)
    others = _rivals(front, inputs, scores, NEARLY_AS_WELL * error, last)
    differing = max(abs(each - _doubled(law, last)) for each in others)
    gain = _widened(gain, math.hypot(predicted - observed, differing))
    return FittedLaw(
        formula=law.text,
        explained=1 - error / float(np.var(scores)),
        batches=last,
        more=DOUBLING * last,
        before=law.gain({"batches": last}, batches=last).before,
        gain=gain,
        predicted=predicted,
        observed=observed,
        curve=tuple(zip(grid.tolist(), line.tolist(), strict=True)),
    )


def _gain(
    law: Law,
    inputs: dict[str, NDArray[np.float64]],
    scores: NDArray[np.float64],
    seeds: list[int],
    last: float,
    level: float,
) -> Interval:
    """Of a doubling, over seeds: each with constants of its own."""
    if len(set(seeds)) < 2 or not law.expression.constants:
        return Interval(_doubled(law, last), math.nan, math.nan, len(set(seeds)), level)
    alone = fit_groups(law, inputs, scores, seeds).alone
    gains = [_doubled(each, last) for each in alone.values()]
    return mean_interval(gains, level)


def _doubled(law: Law, last: float) -> float:
    """What the law says of a doubling of the last batches."""
    return law.gain({"batches": last}, batches=DOUBLING * last).interval.mean


def _rivals(
    front: Front,
    inputs: dict[str, NDArray[np.float64]],
    scores: NDArray[np.float64],
    worst: float,  # mean square
    last: float,
) -> list[float]:
    """What laws that fit nearly as well say of a doubling: those of the front, and usual shapes."""
    found = [
        _doubled(law, last)
        for law in front.laws
        if law.inputs and _mean_square(law, inputs, scores) <= worst
    ]
    ends = {"batches": np.array([last, DOUBLING * last])}
    for shape in compare_formulas(USUAL_SHAPES, inputs, scores):
        if shape.refitted <= worst:
            before, after = evaluate_formula(parse_formula(shape.refitted_formula), ends)
            found.append(float(after - before))
    return found


def _mean_square(
    law: Law, inputs: dict[str, NDArray[np.float64]], scores: NDArray[np.float64]
) -> float:
    return float(np.mean((law.predict(inputs).values - scores) ** 2))


def _half(
    law: Law, inputs: dict[str, NDArray[np.float64]], scores: NDArray[np.float64]
) -> tuple[float, float]:
    """What the law, fitted to the first half of the batches, says of the second, and what came."""
    batches = inputs["batches"]
    last = float(batches.max())
    early = batches <= last / DOUBLING * (1 + 1e-9)
    points = len(np.unique(batches[early]))
    if points < max(FEWEST_POINTS, len(law.expression.constants) + 1):
        raise InputError(
            "A law should be tried on the second half of the batches before it is trusted beyond them. "
            f"Found {points} points in the first half, too few to fit it to. Longer runs have more."
        )
    first = fit_groups(law, inputs, scores, early.tolist()).alone["True"]
    middle = float(batches[early].max())
    predicted = first.gain({"batches": middle}, batches=last).interval.mean
    observed = float(scores[batches == last].mean() - scores[batches == middle].mean())
    return predicted, observed


def _widened(gain: Interval, error: float) -> Interval:
    half = math.hypot(gain.half_width, error)  # NaN of one seed stays NaN
    return Interval(gain.mean, gain.mean - half, gain.mean + half, gain.n, gain.level)


def _words(law: FittedLaw) -> str:
    gain = law.gain
    words = (
        f"Twice the batches, {law.more:,.0f}, should change the mean dev score by {gain.mean:+.3f}"
    )
    if math.isfinite(gain.low):
        words += f" ({gain.low:+.3f} to {gain.high:+.3f} at {gain.level:.0%})"
        words += ", which may be nothing." if not gain.excludes(0.0) else "."
    else:
        words += "; one seed gives no interval."
    return (
        f"{words} That lies outside the data, which end at {law.batches:,.0f}; fitted to the first half "
        f"alone, the law said {law.predicted:+.3f} of the second, which brought {law.observed:+.3f}."
    )
