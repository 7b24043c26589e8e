r"""What a generator of sequences is: a distribution over whole sequences, K of a kind at once.

    Crawford and Pineau, "Multitask and Transfer Learning via Mixtures of Shared Sequence
    Generators" (draft), "Topics as Sequence Generators", Eqs. 14 and 15.

A generator is a frozen options object; its parameters are a frozen dataclass of arrays whose first
axis is the generator (`take_generators` and `put_generators` rely on it; a field marked `shared` has
no such axis). The M-step (Eq. 15) is weighted maximum likelihood, or its mode under a prior:
`log_prior` is what the prior adds to the bound, so that the sum never falls.

To write one of your own, see docs/sequences.md, and run it through tests/conformance.

Below are what generators share: checks of options, sums over sequences that lie end to end, and numba.
`_hidden_kernels` and `_mixture_kernels` import numba; nothing but `compiled` imports them. Without numba
every caller has a way in plain NumPy that gives the same results more slowly.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError
from taskmix.sequences._sequences import Observed, Sequences

Floats = NDArray[np.float64]
Parameters = TypeVar("Parameters")
SHARED = {"shared": True}  # metadata of a field that all generators of a block have in common


@dataclass(frozen=True, eq=False)
class Next:
    """What may follow after each prefix, by each generator. A row is a prefix.

    `log_prefix` is the probability that a sequence begins so. For symbols the last of the
    `log_probabilities` is the end of the sequence, impossible where a generator does not halt. For
    vectors there are a mean and a covariance; that a sequence ends is not modelled.
    """

    log_prefix: Floats  # [prefix, generator]
    log_probabilities: Floats | None = None  # [prefix, generator, symbol + 1]
    mean: Floats | None = None  # [prefix, generator, dimension]
    covariance: Floats | None = None  # [prefix, generator, dimension, dimension]


@dataclass(frozen=True, eq=False)
class ExpectedStatistics:
    """The E-step inside a generator."""

    statistics: Any  # can be added, and multiplied by a number
    log_likelihood: Floats | None = None  # [sequence, generator], where it comes at no cost


class Generator(Protocol):
    """K generators of one kind. `prepared` is what `prepare` made of the sequences, once."""

    @property
    def observes(self) -> Observed: ...

    @property
    def halting(self) -> bool:
        """Whether the end of a sequence is part of its probability."""
        ...

    @property
    def additive(self) -> bool:
        """Whether the sum of two statistics is that of the data together (not so for gradients)."""
        ...

    def prepare(self, sequences: Sequences) -> Any: ...

    def start(self, prepared: Any, weights: Floats, generator: np.random.Generator) -> Any:
        """Parameters to begin with, where `weights` [sequence, generator] divide the sequences."""
        ...

    def log_likelihood(self, parameters: Any, prepared: Any) -> Floats:
        """[sequence, generator]"""
        ...

    def expect(self, parameters: Any, prepared: Any, weights: Floats) -> ExpectedStatistics:
        """Weighted statistics; a weight of zero costs nothing where work can be saved."""
        ...

    def maximise(self, parameters: Any, statistics: Any) -> Any:
        """Parameters that explain the weighted data at least as well as `parameters`."""
        ...

    def log_prior(self, parameters: Any) -> Floats:
        """[generator]"""
        ...

    def follow(self, parameters: Any, prepared: Any) -> Next:
        """After every prefix of every sequence, from the empty one to the whole: length + 1 rows."""
        ...

    def sample(
        self,
        parameters: Any,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        """A sequence of generator `which` that begins with `prefix`, with the prefix in it.

        `length` is its whole length, or the largest where the generator halts by itself.
        """
        ...


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over sequences, as arrays: the base of what most generators gather."""

    def __add__(self, other: Any) -> Any:
        return type(self)(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )

    def __mul__(self, factor: float) -> Any:
        return type(self)(*(getattr(self, each.name) * factor for each in fields(self)))


def take_generators(parameters: Parameters, rows: NDArray[np.int64]) -> Parameters:
    """The parameters of these generators.

    >>> found = HiddenMarkovParameters(
    ...     initial=np.ones((3, 1)), transition=np.full((3, 1, 1), 0.9), halting=np.full((3, 1), 0.1),
    ...     emission=np.full((3, 1, 2), 0.5), common=np.full(2, 0.5))
    >>> take_generators(found, np.array([0, 2])).initial.shape
    (2, 1)
    """
    own = {name: getattr(parameters, name)[rows] for name in own_fields(parameters)}
    return replace(parameters, **own)  # type: ignore[type-var]


def take_statistics(
    statistics: Any,
    rows: NDArray[np.int64] | None,
    change: Callable[[Floats], Floats] | None = None,
) -> Any:
    """The statistics of these generators (None: of all), each array changed; the first axis of every
    array is the generator, in statistics within statistics as well."""
    found = {}
    for each in fields(statistics):
        value = getattr(statistics, each.name)
        if is_dataclass(value):
            found[each.name] = take_statistics(value, rows, change)
        else:
            taken = value if rows is None else value[rows]
            found[each.name] = taken if change is None else change(taken)
    return type(statistics)(**found)


def put_generators(
    parameters: Parameters, rows: NDArray[np.int64], others: Parameters
) -> Parameters:
    """`parameters` with those of some generators replaced.

    >>> ones = HiddenMarkovParameters(
    ...     initial=np.ones((2, 1)), transition=np.full((2, 1, 1), 0.9), halting=np.full((2, 1), 0.1),
    ...     emission=np.full((2, 1, 2), 0.5), common=np.full(2, 0.5))
    >>> other = HiddenMarkovParameters(
    ...     initial=np.ones((1, 1)), transition=np.full((1, 1, 1), 0.5), halting=np.full((1, 1), 0.5),
    ...     emission=np.full((1, 1, 2), 0.5), common=np.full(2, 0.5))
    >>> put_generators(ones, np.array([1]), other).halting.ravel()
    array([0.1, 0.5])
    """
    changed = {}
    for name in own_fields(parameters):
        changed[name] = getattr(parameters, name).copy()
        changed[name][rows] = getattr(others, name)
    return replace(parameters, **changed)  # type: ignore[type-var]


def dense(value: Any) -> Any:
    """Parameters or statistics whose arrays lie as they do when they are read from a file.

    Sums are taken in the order in which numbers lie, so a view would give other last bits than its copy.
    """
    if isinstance(value, np.ndarray):
        return np.asarray(value, order="C")
    if isinstance(value, tuple):
        return tuple(dense(each) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        found = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        new = {name: dense(part) for name, part in found.items()}
        changed = {name: part for name, part in new.items() if part is not found[name]}
        return replace(value, **changed) if changed else value
    return value


def keep_fixed(old: Parameters, new: Parameters, fixed: tuple[str, ...]) -> Parameters:
    """`new`, where what is fixed stays as it was."""
    return replace(new, **{name: getattr(old, name) for name in fixed}) if fixed else new  # type: ignore[type-var]


def own_fields(parameters: Any) -> list[str]:
    return [each.name for each in fields(parameters) if not each.metadata.get("shared")]


def check_whole(least: int = 1, **given: Any) -> None:
    """Each of these is a whole number of at least so much."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise OptionError(
                f"`{name}` should be a whole number of at least {least}. Found {value!r}."
            )


def check_amount(**given: float) -> None:
    """Each of these is a number that is not negative."""
    for name, value in given.items():
        if not 0 <= value < float("inf"):
            raise OptionError(f"`{name}` should be a number of at least 0. Found {value!r}.")


def check_fixed(fixed: Sequence[str], names: Collection[str]) -> None:
    """Parameters that are not to be learned are named as they are called."""
    if isinstance(fixed, str) or not set(fixed) <= set(names):
        raise OptionError(
            f"`fixed` should have names of parameters: {', '.join(names)}. Found {fixed!r}."
        )


def check_observes(generator: object, wanted: Observed, sequences: Sequences) -> None:
    if sequences.observes != wanted:
        raise InputError(
            f"{type(generator).__name__} should be given sequences of {wanted}. Found sequences of "
            f"{sequences.observes}. Choose a generator of {sequences.observes}."
        )


def check_complete(generator: object, sequences: Sequences) -> None:
    """For generators that say nothing of sequences with gaps."""
    if sequences.has_missing:
        raise InputError(
            f"{type(generator).__name__} should be given every observation: it has no model for "
            "missing ones. Found some missing. Choose HiddenMarkov or Recurrent, or cut the "
            "sequences at the gaps."
        )


def prefix_rows(sequences: Sequences) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the prefixes of each sequence begin among all [sequence + 1], and, for each prefix that is
    not empty, its row [observation]."""
    starts = sequences.starts + np.arange(len(sequences.starts))
    rows = np.arange(len(sequences.values)) + 1
    return starts, rows + np.repeat(np.arange(len(sequences)), sequences.lengths)


def running_totals(values: Floats, sequences: Sequences) -> Floats:
    """[prefix, ...], sums over the observations [observation, ...] of each prefix.

    >>> running_totals(np.array([1.0, 2.0, 5.0]), flatten_sequences([[0, 0], [0]]))
    array([0., 1., 3., 0., 5.])
    """
    starts, rows = prefix_rows(sequences)
    spread = np.zeros((starts[-1], *values.shape[1:]))
    spread[rows] = values
    total = np.cumsum(spread, axis=0)
    first = starts[:-1]
    return np.asarray(total - np.repeat(total[first], np.diff(starts), axis=0))


def sums_by_sequence(values: Floats, sequences: Sequences) -> Floats:
    """[sequence, ...], sums over the observations of each sequence, none of which is empty.

    >>> sums_by_sequence(np.array([1.0, 2.0, 5.0]), flatten_sequences([[0, 0], [0]]))
    array([3., 5.])
    """
    return np.asarray(np.add.reduceat(values, sequences.starts[:-1], axis=0))


def normalised(counts: Floats, otherwise: Floats) -> Floats:
    """Shares along the last axis; `otherwise` where there is nothing to share out."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), otherwise)


def safe_log(values: Floats) -> Floats:
    """Logarithms; minus infinity of zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def weighted_log(weights: Floats | float, values: Floats) -> Floats:
    """weights · log(values), where a weight of zero counts for nothing whatever the value."""
    counting = np.broadcast_to(np.asarray(weights) > 0, values.shape)
    return np.asarray(weights * safe_log(np.where(counting, values, 1.0)))


Function = TypeVar("Function", bound=Callable[..., object])

# Sums may be taken in another order; NaN and infinity keep their meaning.
_RELAXED = {"reassoc", "contract", "nsz"}


def kernel(function: Function) -> Function:
    """Compiles a loop on its first call; other Python threads run on meanwhile."""
    import numba

    return cast("Function", numba.njit(nogil=True, cache=True, fastmath=_RELAXED)(function))


@cache
def compiled(room: str) -> ModuleType | None:
    """The kernels of a room; None without numba."""
    try:
        return importlib.import_module(f"taskmix.sequences._{room}_kernels")
    except ImportError:
        return None
