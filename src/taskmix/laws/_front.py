"""The front: what each further sign of a formula buys, and the law chosen from it (`_choose.py`).

The chosen law comes with all that its form leaves open, so that its intervals widen beyond the data.
Three things besides the constants are uncertain. Another form may be the true one: laws that are tied
with the chosen one count by how little longer their descriptions are. An exponent that was rounded to a
simple fraction may be another: the form with every exponent measured is one more rival. And all of them
may be wrong: the left-out ranges say by how much (`_discrepancy.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._choose import Stack, choose_law, stack_of, tied_places
from taskmix.laws._complexity import complexity
from taskmix.laws._discrepancy import discrepancy_rate
from taskmix.laws._evidence import Evidence, evidence_of
from taskmix.laws._expression import Expression, Number, Power
from taskmix.laws._factors import GroupFactors
from taskmix.laws._field_form import is_field_form
from taskmix.laws._fit import Fit, Observations, fit_constants
from taskmix.laws._groups import GroupedLaw, grouped_law
from taskmix.laws._holding import Holding, TargetFacts
from taskmix.laws._judge import judge_groups, judge_law
from taskmix.laws._law import Law, law_of
from taskmix.laws._noise import Noise
from taskmix.laws._normal import open_key, substitute
from taskmix.laws._pool import Describer
from taskmix.laws._ranges import Box, RangeRows, largest_rows, left_out_ranges
from taskmix.laws._rows import FrontRow, StackRow, fitted_constants, growth_words

MOST_RIVALS = 8  # beyond which a rival's description is so much longer that it hardly counts


def with_rivals(
    chosen: Law,
    rivals: Sequence[tuple[float, Law]],  # nats by which each is longer
    data: Observations,
    ranges: Sequence[RangeRows],
    without: Sequence[Expression],  # [range], the law that its other rows alone choose
    describer: Describer,
) -> Law:
    """The law with its rivals and the rate of its discrepancy."""
    found = sorted(rivals, key=lambda each: each[0])[:MOST_RIVALS]
    measured = _measured(chosen, data, describer)
    if measured is not None:
        found.append((max(measured.length - chosen.length, 0.0), measured))
    rate = discrepancy_rate(chosen.expression, data, ranges, without)
    tested = {each.of for each in ranges}
    untested = tuple(name for name in chosen.inputs if name not in tested)
    return replace(chosen, rivals=tuple(found), discrepancy=rate, untested=untested)


def _measured(law: Law, data: Observations, describer: Describer) -> Law | None:
    """The form with every exponent free; None where they are, or where it cannot be fitted."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Power) and isinstance(node.exponent, Number):
            return Power(substitute(node.base, change), Number(node.exponent.value, free=True))
        return None

    form = substitute(law.expression, change)
    if len(form.constants) == len(law.expression.constants) or len(form.constants) >= len(data):
        return None
    fit = fit_constants(form, data, tolerance=1e-9)
    if not fit.is_usable(data):
        return None
    length = describer.length(fit.expression, fit.mean_square)
    return law_of(fit, data, target=law.target, length=length, noise=law.noise, errors=law.errors)


JUDGED_LAWS = 12  # shortest descriptions that are judged, besides the best of each complexity
JUDGED_FORMS = 20  # forms whose shortest description is judged, numbers left open
JUDGED_FIELD_FORMS = 12  # the same of published forms, besides the best few with every input
JUDGED_FULL_FORMS = 3
LEAST_SAVING = 1e-3  # of the error, what a longer law has to save to be on the front


@dataclass(frozen=True, eq=False)
class Front(Sequence[Law]):
    """Laws from the shortest to the longest, each with less held-out error than the one before.

    >>> n = np.arange(1.0, 21.0)
    >>> front = LawRegressor(enough=0.99).fit({"n": n}, 3 * np.sqrt(n)).front_
    >>> [law.text for law in front][-1], front.chosen
    ('3*sqrt(n)', Law('y = 3*sqrt(n)'))
    """

    laws: tuple[Law, ...]
    place: int  # of the chosen one
    range_input: str
    held_out_rows: int
    left_out_rows: int
    ranges: tuple[str, ...] = ()  # all that were left out in turn, such as "largest n"
    warning: str = ""  # where the chosen law is disqualified
    stack: Stack | None = None  # of the chosen law and the best of those tied with it
    groups: GroupedLaw | None = None  # the chosen law in each group, where groups were named
    tied: tuple[Law, ...] = ()  # all forms that cannot be told from the chosen one, it first
    is_smooth: bool = False  # whether deviations go together, so that rows did not count one by one

    @property
    def chosen(self) -> Law:
        return self.laws[self.place]

    def __len__(self) -> int:
        return len(self.laws)

    def __getitem__(self, place: Any) -> Any:
        return self.laws[place]

    def __iter__(self) -> Iterator[Law]:
        return iter(self.laws)

    def stack_rows(self) -> list[StackRow]:
        """The laws of the stack as plain rows; none where the chosen law stands alone."""
        if self.stack is None:
            return []
        return [
            StackRow(law.text, weight, law.expression is self.chosen.expression)
            for law, weight in zip(self.stack.laws, self.stack.weights, strict=True)
        ]

    def rows(self) -> list[FrontRow]:
        """The front as plain rows."""
        return [
            FrontRow(
                complexity=law.complexity,
                formula=law.text,
                constants=fitted_constants(law.constants()),
                train_mse=law.errors.train,
                held_out_mse=law.errors.held_out,
                held_out_r2=law.errors.held_out_r2,
                left_out_mse=law.errors.left_out,
                left_out_relative=law.errors.left_out_relative,
                cross_mse=law.errors.cross,
                nats=law.length,
                chosen=law is self.chosen,
                growth=growth_words(law),
                latex=law.latex,
                ranges_mse=law.errors.ranges if np.isfinite(law.errors.ranges) else None,
                disqualified=law.disqualified or None,
            )
            for law in self.laws
        ]


def make_front(
    fits: Sequence[Fit],
    data: Observations,
    *,
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    describer: Describer,
    target: str,
    noise: Noise,
    range_input: str,
    folds: int = 0,
    holding: Holding | None = None,
    factors: GroupFactors | None = None,
    also: Sequence[Fit] = (),
) -> Front:
    """Judges the candidates and chooses; `fits` come with the shortest description first.

    With `factors` constants may be those of groups, and the laws of the front have their means; `also`
    are forms that are judged besides.
    """
    beyond = largest_rows(range_input, data.columns[range_input])
    ranges = left_out_ranges(data.columns)
    holding = holding or Holding(unasked=Box.around(data.columns))
    facts, shared = TargetFacts.of(data.target), []
    is_smooth = False
    if factors is None:
        evidence = evidence_of(fits, data, describer)
        is_smooth = evidence.smooth is not None
        if is_smooth:
            order = np.argsort(evidence.lengths(fits), kind="stable")
            fits = [fits[place] for place in order.tolist()]
        judged = [
            judge_law(fit, data, train, held_out, beyond, ranges, folds=folds)
            for fit in _candidates(fits)
            if fit.is_usable(data)
        ]
        final = [_polished(each.fit, data) for each in judged]
        nats = evidence.lengths(final)
    else:
        forms = [*_candidates(fits), *also]
        shared = judge_groups(
            forms, data, factors, train, held_out, beyond, ranges, describer, folds=folds
        )
        judged, nats = [each.judged for each in shared], [each.length for each in shared]
        final = [each.fit for each in judged]
    verdicts = [holding.verdict(fit.expression, describer.at, facts) for fit in final]
    laws = [
        replace(
            law_of(fit, data, target=target, length=length, noise=noise, errors=each.errors),
            disqualified=verdict.words,
        )
        for fit, length, each, verdict in zip(final, nats, judged, verdicts, strict=True)
    ]
    grouped = [grouped_law(each.shared, data, law) for each, law in zip(shared, laws, strict=False)]
    if grouped:
        laws = [each.common for each in grouped]
    lengths = [law.length for law in laws]
    choice = choose_law(judged, lengths, verdicts, ranges, floor=data.floor, by_rows=not is_smooth)
    points = Box.around(data.columns).points(data.columns, describer.at)
    deviations = [each.left_out for each in judged]
    tied = tied_places(laws, deviations, choice, points)
    stack = stack_of(laws, deviations, tied)
    chosen = laws[choice.place]
    if factors is None:
        rivals = [
            (float(choice.scores[place] - choice.scores[choice.place]), laws[place])
            for place in tied[1:]
        ]
        usable = [place for place, verdict in enumerate(verdicts) if not verdict.words]
        alone = [
            _chosen_without([judged[place].without[number] for place in usable], evidence, each)
            for number, each in enumerate(ranges)
        ]
        without = [chosen.expression if each is None else each.expression for each in alone]
        chosen = with_rivals(chosen, rivals, data, ranges, without, describer)
        laws[choice.place] = chosen
        if stack is not None:
            wide = [
                replace(law, discrepancy=chosen.discrepancy, untested=chosen.untested)
                for law in stack.laws
            ]
            stack = Stack(tuple(wide), stack.weights)
    kept = _undominated(laws, chosen)
    return Front(
        tuple(kept),
        kept.index(chosen),
        range_input,
        len(held_out),
        int(beyond.rows.sum()),
        tuple(each.name for each in ranges),
        choice.warning,
        stack,
        grouped[choice.place] if grouped else None,
        tuple(laws[place] for place in tied),
        is_smooth,
    )


def _polished(fit: Fit, data: Observations) -> Fit:
    """Fitted to all rows; as it was where that takes a constant to the edge of what is defined."""
    found = fit_constants(fit.expression, data, tolerance=1e-12)
    return found if found.is_usable(data) else fit


def _chosen_without(fits: Sequence[Fit], evidence: Evidence, left_out: RangeRows) -> Fit | None:
    """The shortest description of the rows that a range leaves, since the law that is chosen with the
    range in view is the better there for it.
    """
    lengths = evidence.without(left_out.rows).lengths(fits)
    best = int(np.argmin(lengths)) if lengths else 0
    return fits[best] if lengths and np.isfinite(lengths[best]) else None


def _candidates(fits: Sequence[Fit]) -> list[Fit]:
    """The shortest descriptions, of all and of each form, and of each complexity the least error."""
    best: dict[int, Fit] = {}
    for fit in fits:
        signs = complexity(fit.expression)
        if signs not in best or fit.mean_square < best[signs].mean_square:
            best[signs] = fit
    forms: dict[str, Fit] = {}
    for fit in fits:
        forms.setdefault(open_key(fit.expression), fit)
    distinct = list(forms.values())
    known = [fit for fit in distinct if is_field_form(fit.expression)][:JUDGED_FIELD_FORMS]
    most = max((len(fit.expression.variables) for fit in fits), default=0)
    full = [
        fit
        for fit in distinct
        if len(fit.expression.variables) == most and is_field_form(fit.expression)
    ]
    wanted = (
        *fits[:JUDGED_LAWS],
        *distinct[:JUDGED_FORMS],
        *known,
        *full[:JUDGED_FULL_FORMS],
        *best.values(),
    )
    return list({id(fit): fit for fit in wanted}.values())


def _undominated(laws: Sequence[Law], chosen: Law) -> list[Law]:
    """The laws that no shorter one beats on the held-out rows; the chosen one is always there."""
    kept: list[Law] = []
    least = float("inf")
    for law in sorted(laws, key=lambda law: (law.complexity, law.errors.held_out)):
        if law.errors.held_out < least * (1 - LEAST_SAVING) or law is chosen:
            kept.append(law)
            least = min(least, law.errors.held_out)
    return kept
