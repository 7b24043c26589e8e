"""The front: what each further sign of a formula buys, and the law that is chosen from it.

Of two laws that fit alike the shorter is the likelier, and of two that fit the data at hand alike one
may be far off beyond them. The rule, in this order:

1. A law whose error on the held-out rows is worse than the best one's beyond chance (three standard
   errors of the paired difference, and four nats, since the best of many is lucky too) is out.
2. So is one whose error on the left-out range, with constants fitted to the other rows, is.
3. Of the rest the one with the shortest description of itself and all rows is chosen
   (`description_length`), which weighs every deviation and every sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._fitting import Fit, Noise, Observations, fit_constants
from taskmix.laws._forms import Array, Program, complexity
from taskmix.laws._judging._law import Errors, Law, law_of
from taskmix.laws._judging._rows import FrontRow, fitted_constants, growth_words
from taskmix.laws._searching import Describer

BEYOND_CHANCE = 3.0  # standard errors; with fewer the law that made the rows is put out too often
MATERIAL = 4.0  # nats; the best of many laws is better than a true one by some, whatever the errors
ENOUGH_TO_JUDGE = 10  # rows; fewer cannot put a law out
JUDGED_LAWS = 12  # shortest descriptions that are judged, besides the best of each complexity
LEAST_SAVING = 1e-3  # of the error, what a longer law has to save to be on the front
LEFT_OUT_ABOVE = 0.9  # the quantile of an input above which its rows are left out


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

    @property
    def chosen(self) -> Law:
        return self.laws[self.place]

    def __len__(self) -> int:
        return len(self.laws)

    def __getitem__(self, place: Any) -> Any:
        return self.laws[place]

    def __iter__(self) -> Iterator[Law]:
        return iter(self.laws)

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
            )
            for law in self.laws
        ]


@dataclass(frozen=True, eq=False)
class _Judged:
    fit: Fit  # on the training rows
    errors: Errors
    held_out: Array  # [held-out row], squares of weighted deviations
    left_out: Array  # [left-out row]


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
    polish: bool = True,
) -> Front:
    """Judges the candidates and chooses; `fits` come with the shortest description first."""
    beyond = _left_out_rows(data.columns[range_input])
    judged = [
        _judge(fit, data, train, held_out, beyond, folds=folds, polish=polish)
        for fit in _candidates(fits)
    ]
    judged = [each for each in judged if each.fit.is_usable(data)]
    final = [_polished(each.fit, data) if polish else each.fit for each in judged]
    laws = [
        law_of(
            fit,
            data,
            target=target,
            length=describer.length(fit.expression, _mean_square(fit, data)),
            noise=noise,
            errors=each.errors,
        )
        for fit, each in zip(final, judged, strict=True)
    ]
    chosen = _choose(judged, laws)
    kept = _undominated(laws, chosen)
    return Front(tuple(kept), kept.index(chosen), range_input, len(held_out), int(beyond.sum()))


def _polished(fit: Fit, data: Observations) -> Fit:
    """Fitted to all rows; as it was where that takes a constant to the edge of what is defined."""
    found = fit_constants(fit.expression, data, tolerance=1e-12)
    return found if found.is_usable(data) else fit


def _mean_square(fit: Fit, data: Observations) -> float:
    return data.mean_square(Program(fit.expression).values(data.columns))


def _candidates(fits: Sequence[Fit]) -> list[Fit]:
    """The shortest descriptions and, of each complexity, the one with the least error."""
    best: dict[int, Fit] = {}
    for fit in fits:
        signs = complexity(fit.expression)
        if signs not in best or fit.mean_square < best[signs].mean_square:
            best[signs] = fit
    wanted = {id(fit): fit for fit in (*fits[:JUDGED_LAWS], *best.values())}
    return list(wanted.values())


def _left_out_rows(column: Array) -> NDArray[np.bool_]:
    """The rows with the largest values; all rows of one value go together."""
    edge = np.quantile(column, LEFT_OUT_ABOVE)
    beyond = column > edge
    return beyond if beyond.any() else column == column.max()


def _judge(
    fit: Fit,
    data: Observations,
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    beyond: NDArray[np.bool_],
    *,
    folds: int,
    polish: bool,
) -> _Judged:
    aside, far = data.rows(held_out), data.rows(np.flatnonzero(beyond))
    values = Program(fit.expression).values(aside.columns)
    deviations = values - aside.target
    refitted = fit
    if polish and (~beyond).sum() > len(fit.expression.constants):
        refitted = fit_constants(fit.expression, data.rows(np.flatnonzero(~beyond)))
    off = Program(refitted.expression).values(far.columns) - far.target
    seen = data.rows(train)
    with np.errstate(all="ignore"):
        errors = Errors(
            train=float(np.mean((Program(fit.expression).values(seen.columns) - seen.target) ** 2)),
            held_out=float(np.mean(deviations**2)),
            held_out_r2=float(1 - np.mean(deviations**2) / (np.var(aside.target) or 1.0)),
            left_out=float(np.mean(off**2)),
            left_out_relative=float(np.sqrt(np.mean((off / far.target) ** 2))),
            cross=_cross(fit, data, folds, polish=polish) if folds else float("nan"),
        )
    return _Judged(fit, errors, (aside.weight * deviations) ** 2, (far.weight * off) ** 2)


def _cross(fit: Fit, data: Observations, folds: int, *, polish: bool) -> float:
    """The mean square over folds, the constants fitted to the others each time."""
    places = np.random.default_rng(0).permutation(len(data)) % folds
    total = 0.0
    for fold in range(folds):
        rest, aside = (
            data.rows(np.flatnonzero(places != fold)),
            data.rows(np.flatnonzero(places == fold)),
        )
        fitted = fit_constants(fit.expression, rest) if polish else fit
        values = Program(fitted.expression).values(aside.columns)
        total += float(np.sum((values - aside.target) ** 2))
    return total / len(data)


def _choose(judged: Sequence[_Judged], laws: Sequence[Law]) -> Law:
    good = _not_worse([each.held_out for each in judged]) & _not_worse(
        [each.left_out for each in judged]
    )
    lengths = np.array([law.length for law in laws])
    return laws[int(np.argmin(np.where(good, lengths, np.inf)))]


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


def _undominated(laws: Sequence[Law], chosen: Law) -> list[Law]:
    """The laws that no shorter one beats on the held-out rows; the chosen one is always there."""
    kept: list[Law] = []
    least = float("inf")
    for law in sorted(laws, key=lambda law: (law.complexity, law.errors.held_out)):
        if law.errors.held_out < least * (1 - LEAST_SAVING) or law is chosen:
            kept.append(law)
            least = min(least, law.errors.held_out)
    return kept
