r"""How large deviations are on each row: of one size, or in proportion to something.

A formula is fitted by least squares, and which rows count how much changes which formula wins. A noise
is a word for what the deviations are in proportion to: `absolute` (they have one size), `relative` (to
the value), `root` (to the root of the value, as of counts), or a power of an input, such as `n^-0.5`
(means over n runs).

The likelihood of the deviations decides. Before a law is known, a cubic polynomial of the (logarithms
of the) inputs stands in for it, and only the first two words compete, with equal numbers of parameters;
deviations from a law may also be of the other kinds, where they are much likelier then. Where inputs
were measured again and again, deviations from the means of equal rows need no law.

What rows with equal inputs differ by is noise, whatever the law. The *pure error* is the variance of
rows about the means of equal ones. A law that misses those means by more than noise explains lacks fit:
with $n$ rows, $m$ different ones and $p$ constants, $F = \frac{(S - S_e) / (m - p)}{S_e / (n - m)}$ for
the squares $S$ about the law and $S_e$ about the means has an F distribution if the law is right
(Draper and Smith, Applied Regression Analysis, 1998, Section 2.1).

Rows that lie far off get Huber's loss, with a scale chosen by the data, where they speak for it.

    Huber, "Robust Estimation of a Location Parameter", Ann. Math. Statist. 35, 1964: a deviation counts
    by its square up to $k s$ and in proportion beyond, which is likelihood for normal noise with
    exponential tails.

With $k = 1.345$ 5 % are lost if the noise is normal after all. The scale $s$ is the likeliest one.
Whether the loss is used is decided by likelihood too: the same deviations under normal noise of one
size are to be less likely by far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import erf, exp, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from taskmix.errors import OptionError
from taskmix.laws._evaluate import Array, Columns


@dataclass(frozen=True, eq=False)
class Replicates:
    """Which rows have equal inputs."""

    cells: NDArray[np.intp]  # [row], the number of its inputs among the different ones
    sizes: NDArray[np.intp]  # [cell], rows

    @classmethod
    def of(cls, columns: Columns) -> Replicates:
        table = np.column_stack(list(columns.values()))
        _, cells, sizes = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        return cls(cells.reshape(-1), sizes)

    @property
    def beyond(self) -> int:
        """Rows beyond one for each different inputs: the degrees of freedom of the pure error."""
        return len(self.cells) - len(self.sizes)

    def means(self, target: Array, weight: Array | None = None) -> Array:
        """[row], the (weighted) mean of the rows with equal inputs."""
        squares = np.ones(len(target)) if weight is None else weight**2
        total = np.bincount(self.cells, squares * target) / np.bincount(self.cells, squares)
        return np.asarray(total[self.cells])

    def stretch(self) -> Array:
        """[row], by which deviations from a mean are too small, since the row is part of it."""
        own = self.sizes[self.cells].astype(np.float64)
        return np.asarray(np.sqrt(own / np.maximum(own - 1, 1)))


@dataclass(frozen=True)
class LackOfFit:
    """The pure error, and whether a law misses more than that."""

    cells: int  # different inputs
    beyond: int  # rows beyond one for each
    deviation: float  # of one measurement, from rows with equal inputs alone
    statistic: float  # F
    probability: float  # of so large a statistic if the law is right


def lack_of_fit(
    columns: Columns,
    target: Array,
    values: Array,  # [row], of the law
    weight: Array,  # [row]
    constants: int,
    *,
    unit: float = 1.0,  # the weight of a row whose noise has the size 1
) -> LackOfFit | None:
    """The test above; None where no rows have equal inputs, or there is nothing to compare.

    With two rows at each of x = 1, 2, 3, values 1 and 3, 2 and 4, 9 and 11, and a law that says 2, 3
    and 4: S_e is 6 over 3 degrees, S - S_e is 2 (10 - 4)² = 72 over 2 with one constant.
    """
    same = Replicates.of(columns)
    rest = len(same.sizes) - constants
    if same.beyond == 0 or rest <= 0:
        return None
    pure = float(np.sum((weight * (target - same.means(target, weight))) ** 2))
    whole = float(np.sum((weight * (target - values)) ** 2))
    deviation = float(np.sqrt(pure / same.beyond)) / unit
    if not np.isfinite(whole):
        return None
    statistic = max(whole - pure, 0.0) / rest / max(pure / same.beyond, 1e-300)
    probability = float(f_distribution.sf(statistic, rest, same.beyond))
    return LackOfFit(len(same.sizes), same.beyond, deviation, statistic, probability)


BEND = 1.345  # Huber's k
HEAVY_TAILS = 10.0  # nats, by which tails have to be likelier than normal noise
SCALE_STEPS = 40  # towards the likeliest scale
_TAILED = log(sqrt(2 * pi) * erf(BEND / sqrt(2)) + 2 / BEND * exp(-(BEND**2) / 2))
_NORMAL = 0.5 * log(2 * pi)


def huber_loss(deviations: Array, bound: float) -> Array:
    """Squares up to the bound, straight lines beyond."""
    if not np.isfinite(bound):
        return np.asarray(deviations**2)
    size = np.abs(deviations)
    return np.asarray(np.where(size <= bound, deviations**2, 2 * bound * size - bound**2))


def huber_weights(deviations: Array, bound: float) -> Array:
    """What a square is multiplied by in a least-squares step: 1 up to the bound, less beyond."""
    size = np.maximum(np.abs(deviations), 1e-300)
    return np.asarray(np.minimum(1.0, bound / size))


def huber_scale(deviations: Array) -> float:
    """The likeliest s of Huber's noise: sum of psi(r / s) r / s is the number of rows."""
    scale = float(np.median(np.abs(deviations))) * 1.4826
    if scale <= 0:
        return 0.0
    for _ in range(SCALE_STEPS):
        clipped = np.clip(deviations / scale, -BEND, BEND)
        new = float(np.mean(clipped * deviations))
        if abs(new - scale) <= 1e-9 * scale:
            break
        scale = new
    return scale


def tail_evidence(deviations: Array) -> float:
    """Nats by which Huber's noise is likelier than normal noise, each with its likeliest scale."""
    rows, scale = len(deviations), huber_scale(deviations)
    if scale <= 0:
        return 0.0
    normal = rows * (log(float(np.sqrt(np.mean(deviations**2)))) + 0.5 + _NORMAL)
    losses = 0.5 * float(np.sum(huber_loss(deviations / scale, BEND)))
    return normal - (losses + rows * (log(scale) + _TAILED))


def huber_bound(deviations: Array, *, always: bool = False) -> float:
    """Where the loss bends, in the deviations' unit; infinite where nothing speaks for tails."""
    usable = np.isfinite(deviations).all() and np.any(deviations)
    if not usable or not (always or tail_evidence(deviations) > HEAVY_TAILS):
        return float("inf")
    scale = huber_scale(deviations)
    return BEND * scale if scale > 0 else float("inf")


Noise = str
PLAIN_NOISES = ("absolute", "relative", "root")
_POWER = re.compile(r"([^\W\d]\w*)\^(-?\d+(?:\.\d+)?)")
_LEAST_SIZE = 0.1  # of the typical size: rows near zero must not decide everything
ROUNDING = 1e-9  # of the largest value: deviations below it are no noise
ENOUGH_REPLICATES = 20  # rows beyond the means of equal ones, to tell the noise without a law
MUCH_LIKELIER = 6.0  # nats, for noise that is neither of one size nor in proportion to the value
EXPONENTS = tuple(step / 4 for step in range(-8, 9) if step)  # of an input, for noise


def check_noise(noise: str, names: Iterable[str]) -> None:
    """Refuses a word for noise that means nothing here."""
    found = _POWER.fullmatch(noise)
    names = list(names)
    if noise in ("auto", *PLAIN_NOISES) or (found is not None and found[1] in names):
        return
    raise OptionError(
        "`noise` should be auto, absolute, relative, root or a power of an input, such as "
        f"{names[0] if names else 'n'}^-0.5. Found {noise!r}."
    )


def noise_sizes(noise: Noise, values: Array, columns: Columns) -> Array:
    """[row], what the deviations are in proportion to; `values` are the law's."""
    if noise == "relative":
        return np.abs(values)
    if noise == "root":
        return np.sqrt(np.abs(values))
    if (found := _POWER.fullmatch(noise)) is not None and found[1] in columns:
        with np.errstate(all="ignore"):
            sizes = np.power(columns[found[1]], float(found[2]))
        return np.asarray(np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0))
    return np.ones(len(values))


def likeliest_noise(
    columns: Columns, target: Array, guess: Array | None = None, sample: Array | None = None
) -> Noise:
    """The word under which the deviations are likeliest; `guess` are a law's values if one is known."""
    counts = np.ones(len(target)) if sample is None else np.sqrt(sample)
    same = Replicates.of(columns)
    if same.beyond >= ENOUGH_REPLICATES and guess is None:
        plain = scaled = same.means(target)
        counts = counts * same.stretch()
    else:
        plain, scaled = _stand_ins(columns, target, guess)
    costs = {
        "absolute": _cost((target - plain) * counts, np.ones(len(target))),
        "relative": _cost((target - scaled) * counts, _sizes(scaled, target)),
    }
    best = "relative" if costs["relative"] < costs["absolute"] else "absolute"
    if guess is None:
        return best
    rows, deviations = len(target), (target - guess) * counts
    if np.abs(deviations).max() <= ROUNDING * np.abs(target).max():
        return best
    others = {"root": (_cost(deviations, np.sqrt(_sizes(guess, target))), MUCH_LIKELIER)}
    for name, column in columns.items():
        if np.all(column > 0) and column.max() > 2 * column.min():
            for exponent in EXPONENTS:
                cost = _cost(deviations, column**exponent)
                others[f"{name}^{exponent:g}"] = (cost, MUCH_LIKELIER + 0.5 * np.log(rows))
    word, (cost, more) = min(others.items(), key=lambda entry: rows * entry[1][0] + entry[1][1])
    return word if rows * (costs[best] - cost) > more else best


def row_weights(
    columns: Columns,
    target: Array,
    noise: Noise,
    guess: Array | None = None,
    sample: Array | None = None,  # [row], how many measurements a row is the mean of
) -> Array:
    """[row], one over each row's noise up to a common factor; `guess` is a law's values if known."""
    if noise == "auto":
        noise = likeliest_noise(columns, target, guess, sample)
    counts = 1.0 if sample is None else np.sqrt(sample)
    if noise == "absolute" or not np.any(target):
        return np.full(len(target), noise_unit(noise, target)) * counts
    if noise in PLAIN_NOISES:
        size = _sizes(_stand_ins(columns, target, guess)[1], target)
        return np.asarray((1 / size if noise == "relative" else 1 / np.sqrt(size)) * counts)
    return np.asarray(noise_unit(noise, target) / noise_sizes(noise, target, columns) * counts)


def noise_unit(noise: Noise, target: Array) -> float:
    """The weight of a row whose noise has the size 1: deviations over it are in the target's unit."""
    return 1.0 if noise in ("relative", "root") else float(1 / (np.std(target) or 1.0))


def _sizes(values: Array, target: Array) -> Array:
    return np.asarray(np.sqrt(values**2 + (_LEAST_SIZE * np.median(np.abs(target))) ** 2))


def _cost(deviations: Array, size: Array) -> float:
    """Nats a row, minus what all assumptions share; of Huber's noise where tails are heavy."""
    with np.errstate(all="ignore"):
        scaled = deviations / size
        found = float(0.5 * np.log(np.mean(scaled**2) + 1e-300) + np.mean(np.log(size)))
    if not np.isfinite(found):
        return np.inf
    evidence = tail_evidence(scaled)
    return found - (evidence / len(scaled) if evidence > HEAVY_TAILS else 0.0)


def _stand_ins(columns: Columns, target: Array, guess: Array | None) -> tuple[Array, Array]:
    """What stands for the law where deviations are of one size, and where they are in proportion."""
    if guess is not None:
        return guess, guess
    plain = _pilot(columns, target)
    if not np.all(target > 0):
        return plain, plain
    return plain, np.exp(np.clip(_pilot(columns, np.log(target)), -700, 700))


def _pilot(columns: Columns, target: Array) -> Array:
    """Values of the stand-in; [row]."""
    inputs = []
    for column in columns.values():
        scaled = np.log(column) if np.all(column > 0) else column
        inputs.append((scaled - scaled.mean()) / (scaled.std() or 1.0))
    for degree in (3, 2, 1):
        terms = [
            np.prod([inputs[i] for i in places], axis=0)
            for count in range(1, degree + 1)
            for places in combinations_with_replacement(range(len(inputs)), count)
        ]
        if 3 * (len(terms) + 1) <= len(target):
            break
    else:
        terms = []
    design = np.column_stack([np.ones(len(target)), *terms])
    solved, *_ = np.linalg.lstsq(design, target, rcond=1e-8)
    return np.asarray(design @ solved)
