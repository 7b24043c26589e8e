"""Typed words to methods: the one such table. Options follow a colon, `tempered:2`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.policies import AnyPolicy
    from taskmix.weighting import AnyLossWeighting

MethodT = TypeVar("MethodT")

POLICY_HELP = "uniform, proportional or tempered:T (sizes to the power 1/T)"
WEIGHTING_HELP = "equal or fixed:W1,W2,... in the order of the tasks"


def parse_policy(word: str) -> AnyPolicy:
    """The policy a word such as `tempered:2` stands for."""
    from taskmix.policies import SizeProportional, Tempered, Uniform

    makers: dict[str, Callable[[str], AnyPolicy]] = {
        "uniform": lambda rest: _plain(Uniform(), "uniform", rest),
        "proportional": lambda rest: _plain(SizeProportional(), "proportional", rest),
        "tempered": lambda rest: Tempered(temperature=_number(rest or "2", "tempered")),
    }
    return _parse(word, makers, "--policy", POLICY_HELP)


def parse_weighting(word: str) -> AnyLossWeighting:
    """The weighting a word such as `fixed:1,2` stands for."""
    from taskmix.weighting import Equal, FixedWeights

    makers: dict[str, Callable[[str], AnyLossWeighting]] = {
        "equal": lambda rest: _plain(Equal(), "equal", rest),
        "fixed": lambda rest: FixedWeights(
            weights=tuple(_number(part, "fixed") for part in rest.split(","))
        ),
    }
    return _parse(word, makers, "--weighting", WEIGHTING_HELP)


def _parse(
    word: str, makers: dict[str, Callable[[str], MethodT]], option: str, known: str
) -> MethodT:
    name, _, rest = word.partition(":")
    if name not in makers:
        raise OptionError(f"`{option}` should be {known}. Found {word!r}.")
    return makers[name](rest)


def _plain(method: MethodT, name: str, rest: str) -> MethodT:
    if rest:
        raise OptionError(f"`{name}` should stand alone, it has no option. Found `{name}:{rest}`.")
    return method


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"`{name}` should be followed by a number. Found {text!r}.") from None
