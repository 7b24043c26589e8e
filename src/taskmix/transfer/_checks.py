"""What every function of this package asks of a set of sources."""

from __future__ import annotations

from taskmix.errors import InputError, OptionError

# One or two sources have at most three subsets: no surrogate says more than training them all.
FEWEST_SOURCES = 3


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
