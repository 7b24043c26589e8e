r"""Which runs would tell tied laws apart, or make one law surer where it is asked.

    Hunter and Reiner, "Designs for Discriminating Between Two Rival Models", Technometrics 7, 1965:
    where rivals disagree most, against what a run's noise and the uncertainty of both leave open.

A run at x speaks for the chosen law f against a rival g by (f(x) − g(x))² / 2v nats on average, where v
is the variance of a measurement and of both laws there. Runs are added one by one where they bring
most, a rival counting until `ENOUGH` nats are together. Without rivals the runs are those that narrow
the law's interval most where it is asked (Fedorov, "Theory of Optimal Experiments", 1972, Section 2.9):
a run at x takes (a'Σb)² / (σ² + b'Σb) from the variance a'Σa, with a and b the derivatives there and at
x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._law import Law
from taskmix.laws._ranges import Box

ENOUGH = 3.0  # nats, odds of twenty to one
MOST_RUNS = 12  # that are proposed
VALUES = 9  # of each input that are looked at
MOST_POINTS = 20_000  # in all; with many inputs there are fewer values of each


@dataclass(frozen=True)
class NextLawRun:
    """Runs at one point."""

    at: Mapping[str, float]
    runs: int


@dataclass(frozen=True)
class NextLawRuns:
    """The runs to do next, and what they are for."""

    runs: tuple[NextLawRun, ...]
    distinguished: tuple[str, ...] = ()  # formulas of rivals that the runs would put out
    not_distinguished: tuple[str, ...] = ()  # rivals that as many runs would not
    narrower: float | None = None  # the interval after the runs, as a share of that before

    @property
    def words(self) -> str:
        """In a sentence or two."""
        places = "; ".join(
            f"{_count(run.runs)} at "
            + ", ".join(f"{name} = {value:.4g}" for name, value in run.at.items())
            for run in self.runs
        )
        if self.narrower is not None:
            return f"To make the interval {1 - self.narrower:.0%} narrower, add {places}."
        rivals = len(self.distinguished) + len(self.not_distinguished)
        words = f"Cannot distinguish {rivals + 1} forms on these rows."
        if self.distinguished:
            which = "" if not self.not_distinguished else f" {len(self.distinguished)} of"
            words += f" To distinguish{which} them, add {places}."
        if self.not_distinguished:
            words += (
                f" {len(self.not_distinguished)} would still fit as well after {MOST_RUNS} runs: "
                "they say nearly the same there."
            )
        return words


def next_law_runs(
    laws: Sequence[Law],
    box: Box,
    *,
    at: Mapping[str, float] | None = None,
    whole: Sequence[str] = (),
    most: int = MOST_RUNS,
) -> NextLawRuns | None:
    """The runs, of the chosen law (the first) and its rivals; None where none would help.

    Points are in the `box`; inputs in `whole` are whole numbers. Without rivals the law is to be surer
    `at` a point, or, where none is given, where all inputs are largest.
    """
    points = _points(laws, box, whole)
    if not points:
        return None
    if len(laws) > 1:
        return _to_distinguish(laws, points, most)
    asked = {name: high for name, (_, high) in box.ranges.items()} | dict(at or {})
    return _to_narrow(laws[0], points, asked, min(most, 3))


def _points(laws: Sequence[Law], box: Box, whole: Sequence[str]) -> dict[str, Array]:
    """A grid over the inputs of all laws; the others at their medians."""
    names = sorted({name for law in laws for name in law.inputs})
    if not names:
        return {}
    count = max(min(VALUES, int(MOST_POINTS ** (1 / len(names)))), 2)
    lines = []
    for name in names:
        line = box.line(name, count)
        lines.append(np.unique(np.round(line)) if name in whole else line)
    mesh = np.meshgrid(*lines, indexing="ij")
    rows = mesh[0].size
    typical = {name: np.full(rows, value) for name, value in laws[0].typical.items()}
    return typical | {name: axis.ravel() for name, axis in zip(names, mesh, strict=True)}


def _to_distinguish(laws: Sequence[Law], points: Columns, most: int) -> NextLawRuns:
    values, variances, noise = _said(laws, points)
    with np.errstate(all="ignore"):
        apart = (values[1:] - values[0]) ** 2 / (2 * (noise + variances[0] + variances[1:]))
    apart = np.where(np.isfinite(apart), apart, 0.0)  # [rival, point], nats a run
    picked: list[int] = []
    together = np.zeros(len(apart))
    while len(picked) < most and (together < ENOUGH).any():
        gain = (
            np.minimum(together[:, None] + apart, ENOUGH).sum(axis=0)
            - np.minimum(together, ENOUGH).sum()
        )
        best = int(np.argmax(gain))
        if not gain[best] > 1e-3:
            break
        picked.append(best)
        together = together + apart[:, best]
    told = together >= ENOUGH
    rivals = [law.text for law in laws[1:]]
    if not told.any():
        picked = []
    return NextLawRuns(
        _counted(picked, points, laws),
        tuple(text for text, is_told in zip(rivals, told, strict=True) if is_told),
        tuple(text for text, is_told in zip(rivals, told, strict=True) if not is_told),
    )


def _said(laws: Sequence[Law], points: Columns) -> tuple[Array, Array, Array]:
    """Values and variances [law, point], and the variance of a measurement [point]."""
    values, variances = [], []
    for law in laws:
        program = Program(law.expression)
        with np.errstate(all="ignore"):
            found, jacobian = program.jacobian(points, program.start)
            spread = law.constants_variance(jacobian)
        values.append(found)
        variances.append(spread)
    return (
        np.array(values),
        np.array(variances),
        laws[0].measurement_deviation(values[0], points) ** 2,
    )


def _to_narrow(
    law: Law, points: Columns, asked: Mapping[str, float], most: int
) -> NextLawRuns | None:
    program = Program(law.expression)
    if not len(program.start):
        return None
    place = {name: np.array([float(asked.get(name, law.typical[name]))]) for name in law.typical}
    _, (wanted,) = program.jacobian(place, program.start)
    with np.errstate(all="ignore"):
        values, jacobian = program.jacobian(points, program.start)
    noise = law.measurement_deviation(values, points) ** 2
    usable = np.isfinite(jacobian).all(axis=1) & np.isfinite(noise) & (noise > 0)
    covariance, picked = law.covariance.copy(), []
    before = float(law.constants_variance(wanted[None])[0])
    if not (np.isfinite(before) and before > 0 and usable.any()):
        return None
    jacobian = np.where(usable[:, None], jacobian, 0.0)
    for _ in range(most):
        moved = jacobian @ covariance  # [point, constant]
        total = noise + np.einsum("nk,nk->n", moved, jacobian)
        saved = np.where(usable, (moved @ wanted) ** 2 / total, 0.0)
        best = int(np.argmax(saved))
        picked.append(best)
        covariance = covariance - np.outer(moved[best], moved[best]) / total[best]
    after = float(np.sqrt(max(wanted @ covariance @ wanted, 0.0) / before))
    if after > 0.99:
        return None
    return NextLawRuns(_counted(picked, points, [law]), narrower=after)


def _counted(picked: Sequence[int], points: Columns, laws: Sequence[Law]) -> tuple[NextLawRun, ...]:
    names = [name for name in laws[0].ranges if any(name in law.inputs for law in laws)]
    return tuple(
        NextLawRun({name: float(points[name][place]) for name in names}, list(picked).count(place))
        for place in dict.fromkeys(picked)
    )


def _count(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"
