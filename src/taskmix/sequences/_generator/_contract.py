r"""What a generator of sequences is: a distribution over whole sequences, K of a kind at once.

    Crawford and Pineau, "Multitask and Transfer Learning via Mixtures of Shared Sequence
    Generators" (draft), "Topics as Sequence Generators", Eqs. 14 and 15.

A generator is a frozen options object; its parameters are a frozen dataclass of arrays whose first
axis is the generator (`take_generators` and `put_generators` rely on it; a field marked `shared` has
no such axis). The M-step (Eq. 15) is weighted maximum likelihood, or its mode under a prior:
`log_prior` is what the prior adds to the bound, so that the sum never falls.

To write one of your own, see docs/sequences.md, and run it through tests/conformance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._observed import Observed, Sequences

Floats = NDArray[np.float64]
Parameters = TypeVar("Parameters")
SHARED = {"shared": True}  # metadata of a field that all generators of a block have in common


@dataclass(frozen=True, eq=False)
class Next:
    """What may follow after each prefix, by each generator. A row is a prefix.

    `log_prefix` is the probability that a sequence begins so. For symbols the last of the
    `log_probabilities` is the end of the sequence, impossible where a generator does not halt. For
    vectors there are a mean and a covariance; that a sequence ends is not modelled.

    >>> ahead = Next(np.zeros((1, 1)), np.log([[[0.5, 0.25, 0.25]]]))  # two symbols, and the end
    >>> np.exp(ahead.log_probabilities[0, 0, -1])
    np.float64(0.25)
    """

    log_prefix: Floats  # [prefix, generator]
    log_probabilities: Floats | None = None  # [prefix, generator, symbol + 1]
    mean: Floats | None = None  # [prefix, generator, dimension]
    covariance: Floats | None = None  # [prefix, generator, dimension, dimension]


@dataclass(frozen=True, eq=False)
class ExpectedStatistics:
    """The E-step inside a generator.

    >>> chain = Markov()
    >>> prepared = chain.prepare(flatten_sequences([[0, 1], [0]]))
    >>> start = chain.start(prepared, np.ones((2, 1)), np.random.default_rng(0))
    >>> float(chain.expect(start, prepared, np.ones((2, 1))).statistics.counts.sum())  # with two ends
    5.0
    """

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
    """Sums over sequences, as arrays: the base of what most generators gather.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Lengths(Statistics):
    ...     total: float
    >>> (Lengths(3.0) + Lengths(4.0) * 0.5).total
    5.0
    """

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
