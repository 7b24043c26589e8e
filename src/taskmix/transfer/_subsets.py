r"""Which subsets of the source tasks to train with the target.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Constructing training data".

The paper draws `count` (its $n$) subsets of one `size` (its $\alpha k$, also written $\alpha$)
uniformly from `sources` (its $k$). It numbers no equations, so its parts are cited by their
headings. Every function here returns an indicator matrix [subset, source]; none of its rows is
empty, since the runs of the target alone are asked for beside the design. No subset is drawn twice
before all have been drawn once.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError

# One or two sources have at most three subsets: no surrogate says more than training them all.
FEWEST_SOURCES = 3
# Up to so many subsets are all listed and shuffled, beyond they are drawn one by one. Another number
# gives other subsets for the same seed, so that studies under way would train theirs anew.
MOST_LISTED = 100_000


def fixed_size_subsets(
    sources: int, size: int, count: int, *, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Subsets of one size, each as likely as any other: the paper's design.

    >>> pairs = fixed_size_subsets(4, 2, 6, generator=np.random.default_rng(0))
    >>> pairs.sum(axis=0)  # there are six pairs of four, and every source is in three of them
    array([3, 3, 3, 3])
    """
    check_sources(sources)
    check_size(size, sources)
    check_count(count)
    available = comb(sources, size)
    if available <= max(MOST_LISTED, 2 * count):
        rounds = -(-count // available)
        order = np.concatenate([generator.permutation(available) for _ in range(rounds)])
        return np.asarray(_every_subset(sources, size)[order[:count]])
    drawn: dict[bytes, NDArray[np.bool_]] = {}
    while len(drawn) < count:
        row = np.zeros(sources, dtype=np.bool_)
        row[generator.choice(sources, size=size, replace=False)] = True
        drawn.setdefault(row.tobytes(), row)
    return np.stack(list(drawn.values()))


def all_size_subsets(
    sources: int,
    count: int,
    *,
    generator: np.random.Generator,
    smallest: int = 1,
    largest: int | None = None,  # all sources
) -> NDArray[np.bool_]:
    """Subsets of every size from `smallest` to `largest`, as many of each as of any other.

    A size that has fewer subsets than its part (there is one of all sources) leaves the rest of it
    to the other sizes; only when all subsets are spent do they begin again.

    >>> subsets = all_size_subsets(3, 7, generator=np.random.default_rng(0))
    >>> np.sort(subsets.sum(axis=1))  # all there are: three of one source, three pairs, and all three
    array([1, 1, 1, 2, 2, 2, 3])
    """
    check_sources(sources)
    check_count(count)
    most = sources if largest is None else largest
    check_size(smallest, sources)
    check_size(most, sources)
    if smallest > most:
        raise OptionError(
            f"`smallest` should not be above `largest`. Found {smallest} and {most}. Swap them."
        )
    sizes = list(range(smallest, most + 1))
    available = {size: comb(sources, size) for size in sizes}
    total = sum(available.values())
    rounds, rest = divmod(count, total)
    parts = dict.fromkeys(sizes, 0)
    open_sizes = list(sizes)
    while rest:
        for size in generator.permutation(open_sizes)[:rest].tolist():
            parts[size] += 1
            rest -= 1
        open_sizes = [size for size in open_sizes if parts[size] < available[size]]
    drawn = [
        fixed_size_subsets(
            sources, size, parts[size] + rounds * available[size], generator=generator
        )
        for size in sizes
        if parts[size] + rounds
    ]
    return np.asarray(generator.permutation(np.concatenate(drawn)))


def leave_one_out_subsets(sources: int) -> NDArray[np.bool_]:
    """All sources, and then all without one, each in its turn: [sources + 1, source].

    >>> leave_one_out_subsets(3).astype(int)
    array([[1, 1, 1],
           [0, 1, 1],
           [1, 0, 1],
           [1, 1, 0]])
    """
    check_sources(sources)
    return np.concatenate([np.ones((1, sources), bool), ~np.eye(sources, dtype=bool)])


def balanced_subsets(
    sources: int, size: int, count: int, *, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Subsets of one size in which no source occurs more than once more often than another.

    Subsets are drawn at random, and then sources that occur too often give their places to those
    that occur too seldom. (To take the least used sources every time would be simpler, but then
    subsets that follow each other exclude each other, and near half of the sources they say less:
    errors were a sixth larger for 50 subsets of 12 of 25.)

    >>> subsets = balanced_subsets(5, 2, 10, generator=np.random.default_rng(0))
    >>> subsets.sum(axis=0)  # ten subsets have 20 places for five sources
    array([4, 4, 4, 4, 4])
    """
    check_sources(sources)
    check_size(size, sources)
    check_count(count)
    available = comb(sources, size)
    rounds, rest = divmod(count, available)
    if rounds == 0 and (2 * count <= available or available > MOST_LISTED):
        drawn = fixed_size_subsets(sources, size, count, generator=generator)
        return _without_repeats(_use_sources_equally(drawn, generator), generator)
    every = _every_subset(sources, size)
    parts = [every] * rounds
    if 2 * rest > available:
        # What a balanced design leaves out is balanced as well, and easier to find.
        left_out = balanced_subsets(sources, size, available - rest, generator=generator)
        names = {row.tobytes() for row in left_out}
        parts.append(every[[row.tobytes() not in names for row in every]])
    elif rest:
        parts.append(balanced_subsets(sources, size, rest, generator=generator))
    return np.asarray(generator.permutation(np.concatenate(parts)))


def _use_sources_equally(
    subsets: NDArray[np.bool_], generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Every source as often as any other, up to one; new subsets where there are any."""
    held = Counter(row.tobytes() for row in subsets)
    used = subsets.sum(axis=0)
    while used.max() - used.min() > 1:
        often = generator.choice(np.flatnonzero(used == used.max()))
        seldom = generator.choice(np.flatnonzero(used == used.min()))
        places = generator.permutation(np.flatnonzero(subsets[:, often] & ~subsets[:, seldom]))
        changed = subsets[places]
        changed[:, often], changed[:, seldom] = False, True
        new = (number for number, row in enumerate(changed) if not held[row.tobytes()])
        number = next(new, 0)
        held[subsets[places[number]].tobytes()] -= 1
        held[changed[number].tobytes()] += 1
        subsets[places[number]] = changed[number]
        used[often] -= 1
        used[seldom] += 1
    return subsets


def _without_repeats(
    subsets: NDArray[np.bool_], generator: np.random.Generator
) -> NDArray[np.bool_]:
    """The same counts of every source, without repeats wherever a trade avoids them."""
    held = Counter(row.tobytes() for row in subsets)
    for place in range(len(subsets)):
        if held[subsets[place].tobytes()] == 1:
            continue
        for other in generator.permutation(len(subsets)):
            exchanged = _trade_sources(subsets[place], subsets[other], held, generator)
            if exchanged is not None:
                held.subtract([subsets[place].tobytes(), subsets[other].tobytes()])
                subsets[place], subsets[other] = exchanged
                held.update(row.tobytes() for row in exchanged)
                break
    return subsets


def _trade_sources(
    one: NDArray[np.bool_],
    other: NDArray[np.bool_],
    held: Counter[bytes],
    generator: np.random.Generator,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
    for give in generator.permutation(np.flatnonzero(one & ~other)):
        for take in generator.permutation(np.flatnonzero(other & ~one)):
            first, second = one.copy(), other.copy()
            first[[give, take]] = second[[take, give]] = False, True
            names = first.tobytes(), second.tobytes()
            if names[0] != names[1] and not any(held[name] for name in names):
                return first, second
    return None


def _every_subset(sources: int, size: int) -> NDArray[np.bool_]:
    chosen = np.array(list(combinations(range(sources), size)))
    subsets = np.zeros((len(chosen), sources), dtype=np.bool_)
    np.put_along_axis(subsets, chosen, True, axis=1)
    return subsets


def check_sources(count: int) -> None:
    """With one or two sources every subset can simply be trained."""
    if count < FEWEST_SOURCES:
        raise InputError(
            f"There should be at least {FEWEST_SOURCES} source tasks. Found {count}. With so few, "
            "train every combination and compare the scores."
        )


def check_size(size: int, sources: int) -> None:
    if not 1 <= size <= sources:
        raise OptionError(
            f"`size` should lie between 1 and the number of sources, {sources}. Found {size}."
        )


def check_count(count: int) -> None:
    if count < 1:
        raise OptionError(f"`count` should be at least 1 subset. Found {count}.")
