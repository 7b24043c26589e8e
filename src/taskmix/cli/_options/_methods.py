"""Typed words to policies, rewards and weightings: `tempered:2`, `exp3s:eta=0.01`, `bandit:radius=1.2`.

Options follow a colon, with commas between them. A value alone is the first option; a list
has slashes in it (`tchebycheff:weights=1/2/1`), but for `fixed:1,2`, whose option is one list.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.policies import AnyPolicy, AnyReward
    from taskmix.weighting import AnyWeighting

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
    from taskmix.policies import POLICIES

    name, _, rest = word.partition(":")
    named = _chosen(name, POLICIES, "--policy", POLICY_HELP)
    if name == "scheduled":
        return _scheduled(rest)
    known = _word_of(named.policy, named.options) if named.options else Word(named.policy, {})
    return cast("AnyPolicy", known.method(**_read_options(name, known, rest)))


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


def _chosen(name: str, makers: Mapping[str, MethodT], option: str, known: str) -> MethodT:
    if name not in makers:
        raise OptionError(f"`{option}` should be {known}. Found {name!r}.")
    return makers[name]


def _scheduled(rest: str) -> AnyPolicy:
    from taskmix.policies import Scheduled

    stages = []
    for part in rest.split(";"):
        start, _, shares = part.partition("=")
        begin = _read("scheduled", "step", start, _whole)
        stages.append((begin, _read("scheduled", "shares", shares, _listed)))
    return Scheduled(tuple(stages))


Reader = Callable[[str], object]


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _whole(text: str) -> int:
    value = _finite(text)
    if not value.is_integer():
        raise ValueError(text)
    return int(value)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(_finite(part) for part in text.split("/"))


def _listed(text: str) -> tuple[float, ...]:
    return tuple(_finite(part) for part in text.split(","))


def _names(text: str) -> str | tuple[str, ...]:
    parts = tuple(text.split("/"))
    return parts if len(parts) > 1 else text


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text]


KINDS: dict[Reader, str] = {
    _finite: "a number",
    _whole: "a whole number",
    _numbers: "numbers with slashes between them",
    _listed: "numbers with commas between them",
    _names: "a name, or names with slashes between them",
    _flag: "true or false",
}


@dataclass(frozen=True)
class Word:
    """A method and how its options are read, the first one first."""

    method: type[Any]
    options: dict[str, Reader]


def _word_of(method: type[Any], options: Sequence[str] = ()) -> Word:
    """How the options of a method are typed: all in their order, its own before inherited ones."""
    own = inspect.get_annotations(method)
    named = options or sorted((each.name for each in fields(method)), key=lambda n: n not in own)
    kinds = get_type_hints(method)
    return Word(method, {name: _reader(kinds[name]) for name in named})


def _reader(annotation: object) -> Reader:
    """How a value of a type is read."""
    kinds = {annotation, *get_args(annotation)}
    if any(get_origin(kind) in (tuple, Sequence) and float in get_args(kind) for kind in kinds):
        return _numbers
    plain: dict[object, Reader] = {bool: _flag, int: _whole, float: _finite}
    return next((reader for kind, reader in plain.items() if kind in kinds), _names)


# Of `taskmix.weighting.WEIGHTINGS`, which takes a second to import: help and shells must not wait.
WORDS = (
    *("equal", "fixed", "bandit", "uncertainty", "gradnorm", "mgda", "mgda-ub", "tchebycheff"),
    *("dwa", "random", "geometric", "imtl-l", "imtl-g", "stch", "famo", "pcgrad", "gradvac"),
    *("cagrad", "nash", "aligned", "upgrad", "config", "fairgrad", "excess", "db-mtl", "group-dro"),
)
WEIGHTING_HELP = (
    "equal, fixed:W1,W2,... in the order of the tasks, bandit:radius=R,step_size=S, "
    + ", ".join(word for word in WORDS if word not in ("equal", "fixed", "bandit"))
    + "; options follow a colon"
)


def parse_weighting(word: str) -> AnyWeighting:
    """The weighting a word stands for."""
    from taskmix.weighting import WEIGHTINGS

    name, _, rest = word.partition(":")
    if name not in WEIGHTINGS:
        near = difflib.get_close_matches(name, WEIGHTINGS, n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        raise OptionError(f"`--weighting` should be {WEIGHTING_HELP}. Found {word!r}.{hint}")
    known = _word_of(WEIGHTINGS[name].method)
    return cast("AnyWeighting", known.method(**_read_options(name, known, rest)))


def _read_options(name: str, word: Word, rest: str) -> dict[str, Any]:
    if name == "fixed":
        return {option: _read(name, option, rest, _listed) for option in word.options}
    found: dict[str, Any] = {}
    for place, part in enumerate(rest.split(",") if rest else []):
        option, equals, text = part.partition("=")
        if not word.options:
            raise OptionError(
                f"`{name}` should stand alone, it has no option. Found `{name}:{rest}`."
            )
        if not equals and place == 0:
            option, text = next(iter(word.options)), part
        elif option.strip() not in word.options or not equals:
            raise OptionError(
                f"`{name}` should be followed by {', '.join(f'{o}=' for o in word.options)} with "
                f"commas between them. Found {part!r}."
            )
        option = option.strip()
        if option in found:
            raise OptionError(f"`{option}` of `{name}` should be given once. Found it twice.")
        found[option] = _read(name, option, text.strip(), word.options[option])
    return found


def _read(name: str, option: str, text: str, reader: Reader) -> Any:
    try:
        return reader(text)
    except (ValueError, KeyError):
        raise OptionError(
            f"`{option}` of `{name}` should be {KINDS[reader]}. Found {text!r}."
        ) from None
