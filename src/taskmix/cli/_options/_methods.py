"""Typed words to policies and rewards. Options follow a colon, `tempered:2` or `exp3s:eta=0.01`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.policies import AnyPolicy, AnyReward

MethodT = TypeVar("MethodT")

POLICY_HELP = (
    "uniform, proportional, tempered:T[,limit=K] (sizes, none above K, to the power 1/T), capped[:K] "
    "(sizes, none above K [the median]), fixed:P1,P2,... in the order of the tasks, "
    "scheduled:0=P1,P2;500=P1,P2 (from a step on), exp3[:exploration=G] or "
    "exp3s[:eta=H,epsilon=E,propensity=policy|mixture]"
)
REWARD_HELP = (
    "hard (progress on hard tasks), gain (prediction gain: one more forward pass) or score (rise of "
    "the dev score), each with /cost for reward per unit of cost and /scaled for quantile scaling"
)
LEARNING = ("exp3", "exp3s")  # the policies that learn from a reward while they train


def parse_policy(word: str) -> AnyPolicy:
    """The policy a word such as `tempered:2` stands for."""
    from taskmix.policies import Capped, Exp3, Exp3S, Fixed, SizeProportional, Uniform

    makers: dict[str, Callable[[str], AnyPolicy]] = {
        "uniform": lambda rest: _plain(Uniform(), "uniform", rest),
        "proportional": lambda rest: _plain(SizeProportional(), "proportional", rest),
        "tempered": _tempered,
        "capped": lambda rest: Capped(limit=_whole(rest, "capped") if rest else None),
        "fixed": lambda rest: Fixed(_shares(rest, "fixed")),
        "scheduled": _scheduled,
        "exp3": lambda rest: Exp3(**_options(rest, "exp3", exploration=float)),
        "exp3s": lambda rest: Exp3S(
            **_options(rest, "exp3s", eta=float, epsilon=float, propensity=str)
        ),
    }
    name, _, rest = word.partition(":")
    return _chosen(name, makers, "--policy", POLICY_HELP)(rest)


def parse_reward(word: str | None, policy: str | None) -> AnyReward:
    """The reward a word such as `gain/cost` stands for.

    Without a word it is what suits the policy: scaled prediction gain for one that learns while it
    trains, as in the paper, and progress on hard tasks for the others, which costs nothing and lets
    `taskmix improve` learn from the record.
    """
    from taskmix.policies import HardProgress, PredictionGain, QuantileScaled, ScoreImprovement

    learns = (policy or "").partition(":")[0] in LEARNING
    name, *marks = (word or ("gain/scaled" if learns else "hard")).split("/")
    makers: dict[str, Callable[..., AnyReward]] = {
        "hard": HardProgress,
        "gain": PredictionGain,
        "score": ScoreImprovement,
    }
    maker = _chosen(name, makers, "--reward", REWARD_HELP)
    if unknown := set(marks) - {"cost", "scaled"}:
        raise OptionError(f"`--reward` should be {REWARD_HELP}. Found the mark /{min(unknown)}.")
    reward = maker(per_cost="cost" in marks)
    return QuantileScaled(reward=reward) if learns or "scaled" in marks else reward


def _chosen(name: str, makers: dict[str, MethodT], option: str, known: str) -> MethodT:
    if name not in makers:
        raise OptionError(f"`{option}` should be {known}. Found {name!r}.")
    return makers[name]


def _tempered(rest: str) -> AnyPolicy:
    """`2`, `2,limit=1000` or `limit=1000`."""
    from taskmix.policies import Tempered

    first, _, others = rest.partition(",")
    if "=" in first:
        first, others = "", rest
    temperature = _number(first or "2", "tempered")
    return Tempered(temperature=temperature, **_options(others, "tempered", limit=int))


def _scheduled(rest: str) -> AnyPolicy:
    from taskmix.policies import Scheduled

    stages = []
    for part in rest.split(";"):
        start, _, shares = part.partition("=")
        stages.append((int(_number(start, "scheduled")), _shares(shares, "scheduled")))
    return Scheduled(tuple(stages))


def _shares(text: str, name: str) -> tuple[float, ...]:
    return tuple(_number(part, name) for part in text.split(","))


def _options(rest: str, name: str, **kinds: type) -> dict[str, Any]:
    """`eta=0.01,epsilon=0.1` as keywords."""
    found: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in kinds:
            raise OptionError(
                f"`{name}` should have no options but {', '.join(kinds)}. Found {key!r}."
            )
        read: dict[type, Callable[[str, str], Any]] = {float: _number, int: _whole}
        found[key] = value if kinds[key] is str else read[kinds[key]](value, f"{name}:{key}=")
    return found


def _plain(method: MethodT, name: str, rest: str) -> MethodT:
    if rest:
        raise OptionError(f"`{name}` should stand alone, it has no option. Found `{name}:{rest}`.")
    return method


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"`{name}` should be followed by a number. Found {text!r}.") from None


def _whole(text: str, name: str) -> int:
    value = _number(text, name)
    if not value.is_integer():
        raise OptionError(f"`{name}` should be followed by a whole number. Found {text!r}.")
    return int(value)
