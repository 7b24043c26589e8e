r"""Which constants of a form groups share, and which each has of its own, by evidence.

A group's own constants are drawn about a mean with a variance that the groups tell. The law is
replaced by its tangent at the current constants, the linear mixed model there is solved, and so on:

    Lindstrom and Bates, "Nonlinear Mixed Effects Models for Repeated Measures Data", Biometrics 46,
    1990.

A constant is its groups' own where the marginal likelihood of the rows (groups' constants integrated
out, by the same tangent) grows by more than the price of one more variance, as BIC prices it for all
rows, which is dearer than the number of groups would make it (Delattre, Lavielle and Poursat, EJS 8,
2014). So are the noise of each group, and whether coefficients vary by factors rather than by
differences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._evaluate import Array, Columns, Program
from taskmix.laws._expression import Expression
from taskmix.laws._factors import GroupFactors, WrittenConstants, may_vary_by_factor
from taskmix.laws._fit import Observations
from taskmix.laws._mixed import SIGN_NATS, Block, MixedFit, block_moments, choose_blocks, fit_mixed
from taskmix.laws._pool import Describer

TANGENTS = 15  # at most, until the constants have settled
CHOOSING = 3  # tangents at which the blocks are chosen anew
HALVINGS = 8  # of a step that does harm
STILL = 1e-6  # relative change of the deviations, below which constants have settled
NOISE_STEPS = 3  # towards the noise of each group
NOISE_ROWS = 4.0  # that a group's own noise is drawn towards that of all by
LARGEST_SQUARE = 1e100  # of all slopes: beyond it a form is about to leave what can be computed
LEAST_NOISE = (
    1e-10  # of the mean square of the target: where laws are exact, they are known no better
)


@dataclass(frozen=True, eq=False)
class SharedFit:
    """A form over groups: means of its constants, and what varies between groups."""

    written: WrittenConstants
    factors: GroupFactors  # of the rows it was fitted to
    blocks: tuple[Block, ...]
    mixed: MixedFit
    noises: Array  # [cell], of its rows over that of all
    noise_column: str  # whose levels have a noise of their own; none where all have the same
    rows: int

    @property
    def expression(self) -> Expression:
        """With the means over groups."""
        constants = self.written.constants(self.mixed.mean)
        return self.written.expression.with_constants(constants.tolist())

    def told(self, codes: GroupFactors) -> Array:
        """[row, constant] as groups have them; what is not known of a group is at the mean."""
        found = np.repeat(self.mixed.mean[None, :], len(codes), axis=0)
        for (place, column), effect in zip(self.blocks, self.mixed.effects, strict=True):
            code = codes.codes[column]
            found[:, place] += np.where(code >= 0, effect[code], 0.0)
        return found

    def values(self, columns: Columns, codes: GroupFactors) -> Array:
        """[row], each with the constants of its group."""
        constants = self.written.constants(self.told(codes))
        return Program(self.written.expression).values(columns, list(constants.T))

    def row_noise(self, codes: GroupFactors) -> Array:
        """[row], noise over that of all; 1 for groups that were not there."""
        return np.where(codes.cell >= 0, self.noises[codes.cell], 1.0)

    def length(self, describer: Describer) -> float:
        """Nats for form, groups and rows."""
        price = 0.5 * np.log(self.rows)
        noise = 0.0
        if self.noise_column:
            counts = np.bincount(self.factors.cell, minlength=len(self.noises))
            levels = len(self.factors.levels[self.noise_column])
            noise = float(counts @ np.log(self.noises)) + (levels - 1) * price
        varying = len(self.blocks) * (price + SIGN_NATS) + self.mixed.volume
        return float(describer.length(self.expression, self.mixed.likeliest) + varying + noise)


def share_constants(
    expression: Expression, data: Observations, factors: GroupFactors, describer: Describer
) -> SharedFit | None:
    """The form with its constants shared or of each group; None where it has no value on some row."""
    first = share_shifts(expression, data, factors)
    return None if first is None else share_further(first, data, describer)


def share_shifts(
    expression: Expression, data: Observations, factors: GroupFactors
) -> SharedFit | None:
    """The same where groups differ by differences, with one noise: a first look."""
    shifts = [False] * len(expression.constants)
    return fit_shared(
        WrittenConstants.of(expression, shifts, data.columns, centred=True), data, factors
    )


def share_further(found: SharedFit, data: Observations, describer: Describer) -> SharedFit:
    """Other ways in which groups may differ, each where it makes the message shorter."""
    expression, factors = found.expression, found.factors
    own = {place for place, _ in found.blocks}
    tried = [found]
    if own - _coefficient_places(found.written):  # a shape is own: the unit of its term matters
        plain = WrittenConstants.of(
            expression, [False] * len(expression.constants), data.columns, centred=False
        )
        tried.append(fit_shared(plain, data, factors, blocks=found.blocks) or found)
    best = min(tried, key=lambda each: each.length(describer))
    varying = np.zeros(len(expression.constants), dtype=np.bool_)
    varying[sorted(own)] = True
    logs = varying & may_vary_by_factor(best.expression) & _of_one_sign(best)
    if logs.any():
        centred = not np.array_equal(best.written.back, np.eye(len(logs)))
        factored = WrittenConstants.of(
            best.expression, logs.tolist(), data.columns, centred=centred
        )
        again = fit_shared(factored, data, factors, blocks=best.blocks)
        if again is not None and again.length(describer) < best.length(describer):
            best = again
    return _with_noises(best, data, describer)


def fit_shared(
    written: WrittenConstants,
    data: Observations,
    factors: GroupFactors,
    *,
    known: SharedFit | None = None,  # whose blocks and noises are kept, and variances
    again: bool = False,  # the variances anew
    blocks: tuple[Block, ...] = (),  # to begin with, where none are known
) -> SharedFit | None:
    """Tangent after tangent, from the constants of the form on; None where it has no value."""
    mean = written.told(np.array(written.expression.constants))
    empty = MixedFit(mean, (), np.zeros(0), 1.0, 1.0, np.eye(len(mean)), 0.0)
    first = SharedFit(written, factors, (), empty, np.ones(len(factors.cells)), "", len(data))
    state = _reblocked(first, blocks)
    if known is not None:
        state = replace(known, factors=factors, rows=len(data))
    noise = state.noises[factors.cell]
    data = Observations(data.columns, data.target, data.weight / noise)
    least = LEAST_NOISE * float(np.mean((data.weight * data.target) ** 2)) + 1e-300
    everything = _all_blocks(written, factors)
    cost = np.inf
    for tangent in range(TANGENTS):
        found = _tangent(state, data)
        if found is None:
            return state if tangent else None
        moments, places = block_moments(
            *found, data, factors, state.blocks if known else everything
        )
        if known is None and tangent < CHOOSING:
            chosen = choose_blocks(moments, places, state.blocks, least)
            is_new, state = chosen != state.blocks, _reblocked(state, chosen)
        else:
            is_new = False
        columns = [places[block] for block in state.blocks]
        ratios = known.mixed.ratios if known is not None and not again else None
        solved = fit_mixed(moments, columns, least=least, ratios=ratios)
        state, before, cost = _stepped(state, solved, data)
        if not is_new and abs(before - cost) <= STILL * max(cost, least * len(data)):
            break
    return state


def _all_blocks(written: WrittenConstants, factors: GroupFactors) -> tuple[Block, ...]:
    count = len(written.by_factor)
    return tuple(product(range(count), factors.levels))


def _reblocked(state: SharedFit, blocks: tuple[Block, ...]) -> SharedFit:
    """Other blocks; those that were there keep their effects."""
    before = dict(zip(state.blocks, state.mixed.effects, strict=True))
    effects = tuple(
        before.get(block, np.zeros(len(state.factors.levels[block[1]]))) for block in blocks
    )
    return replace(state, blocks=blocks, mixed=replace(state.mixed, effects=effects))


def _tangent(state: SharedFit, data: Observations) -> tuple[Array, Array] | None:
    """Weighted slopes [row, constant] and the response [row] of the linear model at this place."""
    told = state.told(state.factors)
    constants = state.written.constants(told)
    program = Program(state.written.expression)
    values, jacobian = program.jacobian(data.columns, list(constants.T))
    with np.errstate(all="ignore"):
        inner = np.where(state.written.by_factor, constants, 1.0) * jacobian
        slopes = inner @ state.written.back
        response = data.target - values + np.einsum("nk,nk->n", slopes, told)
        slopes, response = slopes * data.weight[:, None], response * data.weight
        fits = np.sum(slopes**2) < LARGEST_SQUARE and np.sum(response**2) < LARGEST_SQUARE
    return (slopes, response) if fits else None


def _stepped(
    state: SharedFit, solved: MixedFit, data: Observations
) -> tuple[SharedFit, float, float]:
    """A step towards the solution, halved while it does harm; the cost before and after."""
    before = _cost(state, solved, data)
    share = 1.0
    for _ in range(HALVINGS):
        mean = state.mixed.mean + share * (solved.mean - state.mixed.mean)
        effects = tuple(
            old + share * (new - old)
            for old, new in zip(state.mixed.effects, solved.effects, strict=True)
        )
        trial = replace(state, mixed=replace(solved, mean=mean, effects=effects))
        cost = _cost(trial, solved, data)
        if cost <= before * (1 + 1e-12):
            return trial, before, cost
        share /= 2
    kept = replace(solved, mean=state.mixed.mean, effects=state.mixed.effects)
    return replace(state, mixed=kept), before, before


def _cost(state: SharedFit, solved: MixedFit, data: Observations) -> float:
    """Squares of the deviations, and of the effects by their variances."""
    values = state.values(data.columns, state.factors)
    with np.errstate(all="ignore"):
        total = float(np.sum((data.weight * (values - data.target)) ** 2))
    for effect, ratio in zip(state.mixed.effects, solved.ratios, strict=True):
        total += float(effect @ effect) / float(ratio)
    return total if np.isfinite(total) else np.inf


def _coefficient_places(written: WrittenConstants) -> set[int]:
    """Constants that only scale a term or stand alone: no shape depends on them."""
    return set(np.flatnonzero(may_vary_by_factor(written.expression)).tolist())


def _of_one_sign(found: SharedFit) -> NDArray[np.bool_]:
    """[constant], whether it has the same sign in every group."""
    constants = found.written.constants(found.told(found.factors))
    return np.asarray((constants > 0).all(axis=0) | (constants < 0).all(axis=0))


def _with_noises(found: SharedFit, data: Observations, describer: Describer) -> SharedFit:
    """With a noise of each level of a column, where that makes the message shorter."""
    best, price = found, 0.5 * np.log(found.rows)
    for column, levels in found.factors.levels.items():
        codes, noisy = found.factors.codes[column], found
        counts = np.bincount(codes, minlength=len(levels))
        for _ in range(NOISE_STEPS):  # the noise of a quiet group is seen where it counts for more
            values = noisy.values(data.columns, found.factors)
            squares = (data.weight * (values - data.target)) ** 2
            overall = max(float(squares.mean()), found.mixed.likeliest)
            sums = np.bincount(codes, weights=squares, minlength=len(levels))
            logs = np.log(sums / np.maximum(counts, 1) / overall + LEAST_NOISE)
            own = np.exp(0.5 * logs * counts / (counts + NOISE_ROWS))
            left = max(float(np.mean(squares / own[codes] ** 2)), 1e-300) / overall
            gain = 0.5 * found.rows * np.log(left) + counts @ np.log(own)
            if gain + (len(levels) - 1) * price >= 0:
                break
            cells = np.ones(len(found.factors.cells))
            cells[found.factors.cell] = own[codes]
            start = replace(noisy, noises=cells, noise_column=column)
            again = fit_shared(found.written, data, found.factors, known=start, again=True)
            if again is None:
                break
            noisy = again
        if noisy.length(describer) < best.length(describer):
            best = noisy
    return best
