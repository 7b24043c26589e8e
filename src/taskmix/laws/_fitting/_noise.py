"""How large deviations are on each row: of one size, or in proportion to something.

A formula is fitted by least squares, and which rows count how much changes which formula wins. A noise
is a word for what the deviations are in proportion to: `absolute` (they have one size), `relative` (to
the value), `root` (to the root of the value, as of counts), or a power of an input, such as `n^-0.5`
(means over n runs).

The likelihood of the deviations decides. Before a law is known, a cubic polynomial of the (logarithms
of the) inputs stands in for it, and only the first two words compete, with equal numbers of parameters;
deviations from a law may also be of the other kinds, where they are much likelier then. Where inputs
were measured again and again, deviations from the means of equal rows need no law.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations_with_replacement

import numpy as np

from taskmix.errors import OptionError
from taskmix.laws._fitting._outliers import HEAVY_TAILS, tail_evidence
from taskmix.laws._fitting._replicates import Replicates
from taskmix.laws._forms import Array, Columns

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
