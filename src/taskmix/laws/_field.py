r"""Forms that people found for the losses and scores of models, as first guesses.

- Repetition: tokens d drawn from u that differ are worth D = u (1 - exp(-k d / u)) of them, beside
  other power laws: c + A n^-a + B D^-b. Muennighoff et al., "Scaling Data-Constrained Language Models",
  NeurIPS 2023, Eq. 5, have u + u r (1 - exp(-(d/u - 1) / r)) for d above u and d below it; with k = 1 /
  (1 + r) the two differ by less than 1 / (2 r²), and ours needs no corner at d = u.
- Saturation with an exponent: c + a x^p / (x^p + s) (Hill, J. Physiol. 40, 1910; Michaelis and Menten
  with p = 1), beside other power laws.
- A break: c + a x^-p (1 + (x / s)^q)^-r, times powers of other inputs. Caballero, Gupta, Rish and
  Krueger, "Broken Neural Scaling Laws", ICLR 2023, Eq. 1 with one break.
- An interaction: c + a n^p E^q exp(r log n log E) with E = k + s. Clark et al., "Unified Scaling Laws
  for Routed Language Models", ICML 2022, Eq. 2, for experts k, with c = 0.
- A bowl: c + a (log x + p log z - m)², as of a learning rate whose best value moves with sizes, beside
  other power laws; or two, of a rate and a batch size (Li et al., "Predictable Scale: Part I, Step Law",
  2025, Section 4, for where their middles are).

Sums of power laws with a floor (Hoffmann et al., "Training Compute-Optimal Large Language Models",
2022, Eq. 10), products with a floor, mixture terms exp(k s) (Ye et al., "Data Mixing Laws", 2024, Eq.
6) and powers of a sum (Kaplan et al., 2020, Eq. 1.5) come from the other first guesses.

Inner constants (a scale, a steepness) come from grids in units of the columns' own quantiles, and
everything else is linear: coefficients as they are, exponents in logarithms. The best are then fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, permutations

import numpy as np

from taskmix.laws._evaluate import Array
from taskmix.laws._expression import ONE, Expression, Number, Variable, free
from taskmix.laws._fit import Observations
from taskmix.laws._normal import add, exp, log, multiply, negative, quotient, raise_to
from taskmix.laws._scales import PRODUCT, Scale, scaled_rows, scales_beside

KEPT_OF_SCALE = 4  # the best forms of each kind, variable and scale that are handed on
OTHER_POWER = -0.33  # where the exponents of the other inputs begin; losses fall about so
MOST_INPUTS = 4  # with more, every kind for every input takes longer than it is worth
LEAST_SPREAD = 2.0  # of an input, from the smallest to the largest value, for its bend to be seen


def field_starts(data: Observations) -> Iterator[Expression]:
    """All of the above for each input that allows it."""
    names = [name for name, column in data.columns.items() if _spreads(column)]
    if not names or len(data.columns) > MOST_INPUTS:
        return
    yield from chain(
        _repetitions(data, names),
        _saturations(data, names),
        _breaks(data, names),
        _interactions(data, names),
        _bowls(data, names),
    )


def plainest_field_forms(data: Observations) -> list[Expression]:
    """A floor with a sum and with a product of power laws of all inputs, judged in any case."""
    if not all(np.all(column > 0) for column in data.columns.values()):
        return []
    powers = [raise_to(Variable(name), free(OTHER_POWER)) for name in data.columns]
    return [add(free(1.0), *_power_laws(data, ())), add(free(1.0), multiply(free(1.0), *powers))]


def _spreads(column: Array) -> bool:
    return bool(np.all(column > 0) and column.max() >= LEAST_SPREAD * column.min())


def _power_laws(data: Observations, without: tuple[str, ...]) -> list[Expression]:
    """a x^p for each other input; the fit finds a and p."""
    return [
        multiply(free(1.0), raise_to(Variable(name), free(OTHER_POWER)))
        for name, column in data.columns.items()
        if name not in without and np.all(column > 0)
    ]


def _repetitions(data: Observations, names: list[str]) -> Iterator[Expression]:
    for total, unique in permutations(names, 2):
        ratio = data.columns[total] / data.columns[unique]
        others = _power_laws(data, (total, unique))
        # Repetition is seen where the ratio reaches the places at which the exponential bends.
        for bend in np.geomspace(max(np.median(ratio), 1e-300) / 3, ratio.max(), 4):
            passes = multiply(free(-1 / bend), quotient(Variable(total), Variable(unique)))
            worth = multiply(Variable(unique), add(ONE, negative(exp(passes))))
            for power in (-0.2, -0.4):
                term = multiply(free(1.0), raise_to(worth, free(power)))
                yield add(free(1.0), term, *others)


def _saturations(data: Observations, names: list[str]) -> Iterator[Expression]:
    for name in names:
        x, others = Variable(name), _power_laws(data, (name,))
        for middle in np.quantile(data.columns[name], [0.2, 0.5, 0.8]):
            for power in (0.5, 1.0, 2.0):
                raised = raise_to(x, free(power))
                bent = quotient(raised, add(raised, free(middle**power)))
                yield add(free(1.0), multiply(free(1.0), bent), *others)


def _breaks(data: Observations, names: list[str]) -> Iterator[Expression]:
    logs = {name: np.log(data.columns[name]) for name in names}
    for scale in (PRODUCT, *scales_beside(data)):
        for name in names:
            x = Variable(name)
            rivals = []
            for place in np.quantile(logs[name], [0.2, 0.35, 0.5, 0.65, 0.8]):
                for steepness in (0.7, 1.5, 4.0):
                    bend = np.logaddexp(0.0, steepness * (logs[name] - place))
                    turned = multiply(
                        free(float(np.exp(-steepness * place))), raise_to(x, free(steepness))
                    )
                    rivals.append((bend, add(ONE, turned)))
            yield from _products(data, scale, logs, rivals)


def _interactions(data: Observations, names: list[str]) -> Iterator[Expression]:
    logs = {name: np.log(data.columns[name]) for name in names}
    for scale in (PRODUCT, *scales_beside(data)):
        for first, second in permutations(names, 2):
            column, rivals = data.columns[second], []
            for shift in (0.0, 0.5 * column.min(), 2.0 * column.min()):
                if shift == 0.0 and first > second:
                    continue  # without a shift the two are alike
                shifted = add(Variable(second), free(shift)) if shift else Variable(second)
                both = multiply(log(Variable(first)), log(shifted))
                own = {**logs, second: np.log(column + shift)}
                rivals.append((own[first] * own[second], exp(both)))
                yield from _products(data, scale, own, rivals[-1:], {second: shifted})


def _products(
    data: Observations,
    scale: Scale,
    logs: dict[str, Array],
    rivals: list[
        tuple[Array, Expression]
    ],  # each the logarithm of a further factor, and the factor
    bases: dict[str, Expression] | None = None,  # of powers, where they are no bare inputs
) -> Iterator[Expression]:
    """Products of powers and one further factor, all exponents by regression of logarithms."""
    rows = scaled_rows(data, scale)
    if rows is None or rows.columns is not data.columns:  # rows were left out
        return
    found = []
    common = [np.ones(len(data)), *logs.values()]
    for place, (column, _) in enumerate(rivals):
        design = np.column_stack([*common, column]) * rows.weight[:, None]
        solved, *_ = np.linalg.lstsq(design, rows.wanted, rcond=1e-9)
        found.append((float(np.sum((rows.wanted - design @ solved) ** 2)), place, solved))
    for _, place, solved in sorted(found, key=lambda entry: entry[:2])[:KEPT_OF_SCALE]:
        parts = [
            raise_to((bases or {}).get(name, Variable(name)), free(float(power)))
            for name, power in zip(logs, solved[1:], strict=False)
        ]
        further = raise_to(rivals[place][1], free(float(solved[-1])))
        size = free(float(np.exp(np.clip(solved[0], -300, 300))))
        yield scale.back(multiply(size, *parts, further))


def _bowls(data: Observations, names: list[str]) -> Iterator[Expression]:
    logs = {name: np.log(data.columns[name]) for name in names}
    for rates in chain(combinations(names, 1), combinations(names, 2)):
        others = [name for name in names if name not in rates]
        each = [(other,) for other in others] if len(rates) == 1 else []
        for moving in dict.fromkeys(((), *each, tuple(others))):
            columns = [np.ones(len(data))]
            columns += [data.columns[name] ** OTHER_POWER for name in others]
            for name in rates:
                columns += [logs[name], logs[name] ** 2]
                columns += [logs[name] * logs[other] for other in moving]
            design = np.column_stack(columns) * data.weight[:, None]
            norms = np.linalg.norm(design, axis=0)
            solved, *_ = np.linalg.lstsq(design / norms, data.target * data.weight, rcond=1e-9)
            of_rates = (solved / norms)[1 + len(others) :].reshape(len(rates), -1)
            if not of_rates[:, 1].all():
                continue
            bowls = [
                _bowl(name, moving, found) for name, found in zip(rates, of_rates, strict=True)
            ]
            yield add(free(1.0), *bowls, *_power_laws(data, rates))


def _bowl(
    name: str,
    moving: tuple[str, ...],  # the inputs that its middle moves with
    solved: Array,  # coefficients of the logarithm, its square, and its products with theirs
) -> Expression:
    inside = [log(Variable(name)), free(float(solved[0] / (2 * solved[1])))]
    for other, found in zip(moving, solved[2:], strict=True):
        inside.append(multiply(free(float(found / (2 * solved[1]))), log(Variable(other))))
    return multiply(free(float(solved[1])), raise_to(add(*inside), Number(2.0)))
