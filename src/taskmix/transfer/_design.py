"""Which subsets a study of transfer trains: how many, of which sizes, and which are held out.

Designs grow by whole blocks, each balanced in itself and drawn from its own random stream. So the
subsets of a small study are among those of a larger one with the same seed, up to the last block:
asking for more subsets trains only what is new, and the subsets of a pilot are not wasted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.transfer._subsets import (
    all_size_subsets,
    balanced_subsets,
    check_size,
    fixed_size_subsets,
    leave_one_out_subsets,
)

DesignKind = Literal["balanced", "fixed", "all-sizes", "leave-one-out"]
DESIGN_KINDS: tuple[DesignKind, ...] = ("balanced", "fixed", "all-sizes", "leave-one-out")

# Defaults of a study that names no number; others make the same command train other runs.
USUAL_SIZE = 3  # sources beside the target, as in the authors' own runs; half of fewer
SUBSETS_PER_SOURCE = 4  # one each leaves no residual, and so no noise to judge effects by
DEFAULT_HELD_OUT = 12  # at least; fewer make the intervals of the test on them very wide
# Up to so many subsets for each item, a block is all of them. Other numbers here draw other subsets
# for the same seed, so that a study that goes on would train its subsets anew.
_SUBSETS_PER_ITEM_IN_FULL_BLOCK = 8
_DESIGN_STREAM = 0
_HELD_OUT_STREAM = 1  # not the design's, so that the two are independent

_Block = Callable[[int, np.random.Generator], NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class SubsetDesign:
    """How subsets are drawn. Numbers of subsets are those of one target, whoever shares them.

    >>> design = SubsetDesign(size=3)
    >>> design.usual_count(sources=8)  # four subsets for each source
    32
    >>> design.other_sizes(sources=8)  # held out: from half the size to twice it, without itself
    (1, 2, 4, 5, 6)
    """

    kind: DesignKind = "balanced"
    size: int | None = None  # sources beside the target; None: 3, or half where they are few
    count: int | None = None  # subsets; None: four a source, or what `precision` asks for
    precision: float | None = None  # the standard error of θ_i − mean θ to reach, not a `count`
    most: int = 5000  # subsets; a precision that asks for more is refused
    held_out: int | None = None  # subsets of other sizes; None: a quarter of `count`, at least 12
    repeats: int = 1  # runs of each subset, each with a seed of its own
    alone: int = 10  # runs of the target alone
    seed: int = 0  # of the draws

    def __post_init__(self) -> None:
        if self.kind not in DESIGN_KINDS:
            raise OptionError(
                f"The design should be one of {', '.join(DESIGN_KINDS)}. Found {self.kind!r}."
            )
        if self.count is not None and self.precision is not None:
            raise OptionError(
                "Either a number of subsets or a precision should be asked for. Found both. Leave "
                "one of them out."
            )
        if self.precision is not None and not (
            math.isfinite(self.precision) and self.precision > 0
        ):
            raise OptionError(
                "The precision should be a standard error above zero, in the unit of the outcome. "
                f"Found {self.precision}."
            )
        if self.kind in ("all-sizes", "leave-one-out") and self.size is not None:
            raise OptionError(
                f"A size should go with subsets of one size. Found it with the design {self.kind}. "
                "Leave one of them out."
            )
        if self.kind in ("all-sizes", "leave-one-out") and self.precision is not None:
            raise OptionError(
                "A precision should go with subsets of one size, for which the number that it takes "
                f"is known. Found it with the design {self.kind}. Ask for a number of subsets."
            )
        for name in ("count", "size", "held_out", "repeats", "alone", "most"):
            value = getattr(self, name)
            least = 3 if name == "held_out" else 1
            if value is not None and value < least:
                raise OptionError(f"`{name}` should be {least} or more. Found {value}.")

    def source_size(self, sources: int) -> int:
        """How many sources a subset of one size has."""
        # Of half the sources there are the most subsets.
        size = min(USUAL_SIZE, max(sources // 2, 1)) if self.size is None else self.size
        check_size(size, sources)
        return size

    def usual_count(self, sources: int) -> int:
        """How many subsets a target gets where no precision is asked for."""
        return SUBSETS_PER_SOURCE * sources if self.count is None else self.count

    def pilot_count(self, sources: int) -> int:
        """Enough subsets of one target to fit every source and to see the noise."""
        return 2 * sources + 10

    def held_out_count(self, count: int) -> int:
        """How many subsets of one target are held out where `count` are trained on."""
        return max(count // 4, DEFAULT_HELD_OUT) if self.held_out is None else self.held_out

    def other_sizes(self, sources: int) -> tuple[int, ...]:
        """The sizes of the held-out subsets: from half the design's to twice it, without its own."""
        match self.kind:
            case "all-sizes":
                return tuple(range(1, sources + 1))
            case "leave-one-out":
                return tuple(range(max(sources // 2, 1), max(sources - 1, 2)))
            case _:
                size = self.source_size(sources)
                near = range(max(size // 2, 1), min(2 * size, sources) + 1)
                return tuple(other for other in near if other != size)


def draw_subsets(
    design: SubsetDesign,
    *,
    count: int,  # subsets in all
    items: int,  # what they are subsets of: the sources, or all tasks where targets share the runs
    extra: int,  # 1 where the target is one of the items, else 0
    whole: bool = False,  # rounded up to whole blocks, so that any larger design has them in it
) -> NDArray[np.bool_]:
    """The subsets to learn from, [subset, item]."""
    sources = items - extra
    match design.kind:
        case "leave-one-out":
            return leave_one_out_subsets(items)
        case "all-sizes":

            def block(number: int, generator: np.random.Generator) -> NDArray[np.bool_]:
                return all_size_subsets(items, number, generator=generator, smallest=1 + extra)

            return _in_blocks(block, count, 2 * sources, design.seed)
        case kind:
            size = design.source_size(sources) + extra
            if kind == "fixed":  # drawn one after another, so a longer list begins as a shorter one
                return fixed_size_subsets(
                    items, size, count, generator=_generator(design.seed, _DESIGN_STREAM)
                )

            def block(number: int, generator: np.random.Generator) -> NDArray[np.bool_]:
                return balanced_subsets(items, size, number, generator=generator)

            length = _block_length(items, size)
            return _in_blocks(
                block, length * -(-count // length) if whole else count, length, design.seed
            )


def draw_held_out(design: SubsetDesign, *, count: int, items: int, extra: int) -> NDArray[np.bool_]:
    """The subsets to be tried on, [subset, item], as many of each size as of any other.

    A size with few subsets (there is one of all) leaves the rest of its part to the others.
    """
    available = {size: math.comb(items, size + extra) for size in design.other_sizes(items - extra)}
    parts, left = [], count
    for place, (size, most) in enumerate(sorted(available.items(), key=lambda pair: pair[1])):
        share = min(-(-left // (len(available) - place)), most)
        left -= share
        if share:
            generator = _generator(design.seed, _HELD_OUT_STREAM, size)
            parts.append(balanced_subsets(items, size + extra, share, generator=generator))
    return np.concatenate(parts)


def _block_length(items: int, size: int) -> int:
    """Subsets after which every item can have occurred equally often."""
    available = math.comb(items, size)
    if available <= _SUBSETS_PER_ITEM_IN_FULL_BLOCK * items:
        return available
    even = items // math.gcd(items, size)
    return even * -(-2 * items // even)


def _in_blocks(block: _Block, count: int, length: int, seed: int) -> NDArray[np.bool_]:
    whole, rest = divmod(count, length)
    parts = [block(length, _generator(seed, _DESIGN_STREAM, number)) for number in range(whole)]
    if rest:
        parts.append(block(rest, _generator(seed, _DESIGN_STREAM, whole)))
    return np.concatenate(parts)


def _generator(seed: int, *stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, *stream])
