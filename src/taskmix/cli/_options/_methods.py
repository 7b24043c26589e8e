"""Typed words to policies, rewards and weightings: `tempered:2`, `exp3s:eta=0.01`, `bandit:radius=1.2`.

Options follow a colon, with commas between them. A value alone is the first option; a list
has slashes in it (`tchebycheff:weights=1/2/1`), but for `fixed:1,2`, whose option is one list.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

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
    import taskmix.policies

    name, _, rest = word.partition(":")
    if name == "scheduled":
        return _scheduled(rest)
    known = _chosen(name, POLICY_WORDS, "--policy", POLICY_HELP)
    options = _read_options(name, known, rest)
    return cast("AnyPolicy", getattr(taskmix.policies, known.method)(**options))


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

    method: str
    options: dict[str, Reader]


POLICY_WORDS: dict[str, Word] = {  # but for `scheduled`
    "uniform": Word("Uniform", {}),
    "proportional": Word("SizeProportional", {}),
    "tempered": Word("Tempered", {"temperature": _finite, "limit": _whole}),
    "capped": Word("Capped", {"limit": _whole}),
    "fixed": Word("Fixed", {"shares": _listed}),
    "exp3": Word("Exp3", {"exploration": _finite}),
    "exp3s": Word("Exp3S", {"eta": _finite, "epsilon": _finite, "propensity": str}),
}
WORDS: dict[str, Word] = {  # of weightings
    "equal": Word("Equal", {}),
    "fixed": Word("FixedWeights", {"weights": _listed}),
    "bandit": Word(
        "BanditMTL",
        {"radius": _finite, "step_size": _finite, "large_losses": _names, "smoothing": _finite},
    ),
    "uncertainty": Word("Uncertainty", {"forms": _names, "step_size": _finite}),
    "gradnorm": Word(
        "GradNorm", {"alpha": _finite, "step_size": _finite, "initial_losses": _numbers}
    ),
    "mgda": Word("MGDA", {"normalization": _names}),
    "mgda-ub": Word("MGDAUB", {"normalization": _names}),
    "tchebycheff": Word("Tchebycheff", {"weights": _numbers, "ideal": _numbers}),
    "dwa": Word("DynamicWeightAverage", {"temperature": _finite, "steps_per_epoch": _whole}),
    "random": Word("RandomWeights", {"seed": _whole}),
    "geometric": Word("GeometricMean", {}),
    "imtl-l": Word("IMTLL", {"step_size": _finite}),
    "imtl-g": Word("IMTLG", {"preference": _numbers}),
    "stch": Word(
        "SmoothTchebycheff",
        {"smoothness": _finite, "weights": _numbers, "ideal": _numbers, "logarithm": _flag},
    ),
    "famo": Word("FAMO", {"step_size": _finite, "decay": _finite, "lower_bounds": _numbers}),
    "pcgrad": Word("PCGrad", {"seed": _whole, "preference": _numbers}),
    "gradvac": Word("GradVac", {"rate": _finite, "seed": _whole, "preference": _numbers}),
    "cagrad": Word("CAGrad", {"closeness": _finite, "preference": _numbers}),
    "nash": Word("NashMTL", {"preference": _numbers}),
    "aligned": Word("AlignedMTL", {"scale": _names, "preference": _numbers}),
    "upgrad": Word("UPGrad", {"preference": _numbers}),
    "config": Word("ConFIG", {"preference": _numbers}),
    "fairgrad": Word("FairGrad", {"alpha": _finite, "preference": _numbers}),
    "excess": Word("ExcessMTL", {"step_size": _finite, "warm_up": _whole}),
    "db-mtl": Word("DBMTL", {"memory": _finite, "memory_power": _finite}),
    "group-dro": Word("GroupDRO", {"step_size": _finite}),
}
WEIGHTING_HELP = (
    "equal, fixed:W1,W2,... in the order of the tasks, bandit:radius=R,step_size=S, "
    + ", ".join(word for word in WORDS if word not in ("equal", "fixed", "bandit"))
    + "; options follow a colon"
)


def parse_weighting(word: str) -> AnyWeighting:
    """The weighting a word stands for."""
    import taskmix.weighting

    name, _, rest = word.partition(":")
    if name not in WORDS:
        near = difflib.get_close_matches(name, WORDS, n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        raise OptionError(f"`--weighting` should be {WEIGHTING_HELP}. Found {word!r}.{hint}")
    options = _read_options(name, WORDS[name], rest)
    return cast("AnyWeighting", getattr(taskmix.weighting, WORDS[name].method)(**options))


def _read_options(name: str, word: Word, rest: str) -> dict[str, Any]:
    if name == "fixed":
        return {
            option: _read(name, option, rest, reader) for option, reader in word.options.items()
        }
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
