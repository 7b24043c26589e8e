"""Typed words to weightings: `bandit`, `bandit:1.2`, `bandit:radius=1.2,step_size=0.5`.

Options follow a colon, with commas between them. A value alone is the method's first option; a list
has slashes in it (`tchebycheff:weights=1/2/1`), but for `fixed:1,2`, whose option is one list.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.weighting import AnyWeighting

Reader = Callable[[str], object]


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(_number(part) for part in text.split("/"))


def _names(text: str) -> str | tuple[str, ...]:
    parts = tuple(text.split("/"))
    return parts if len(parts) > 1 else text


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text]


KINDS: dict[Reader, str] = {
    _number: "a number",
    int: "a whole number",
    _numbers: "numbers with slashes between them",
    _names: "a name, or names with slashes between them",
    _flag: "true or false",
}


@dataclass(frozen=True)
class Word:
    """A method of `taskmix.weighting` and how its options are read, the first one first."""

    method: str
    options: dict[str, Reader]


WORDS: dict[str, Word] = {
    "equal": Word("Equal", {}),
    "fixed": Word("FixedWeights", {"weights": _numbers}),
    "bandit": Word(
        "BanditMTL",
        {"radius": _number, "step_size": _number, "large_losses": _names, "smoothing": _number},
    ),
    "uncertainty": Word("Uncertainty", {"forms": _names, "step_size": _number}),
    "gradnorm": Word(
        "GradNorm", {"alpha": _number, "step_size": _number, "initial_losses": _numbers}
    ),
    "mgda": Word("MGDA", {"normalization": _names}),
    "mgda-ub": Word("MGDAUB", {"normalization": _names}),
    "tchebycheff": Word("Tchebycheff", {"weights": _numbers, "ideal": _numbers}),
    "dwa": Word("DynamicWeightAverage", {"temperature": _number, "steps_per_epoch": int}),
    "random": Word("RandomWeights", {"seed": int}),
    "geometric": Word("GeometricMean", {}),
    "imtl-l": Word("IMTLL", {"step_size": _number}),
    "imtl-g": Word("IMTLG", {"preference": _numbers}),
    "stch": Word(
        "SmoothTchebycheff",
        {"smoothness": _number, "weights": _numbers, "ideal": _numbers, "logarithm": _flag},
    ),
    "famo": Word("FAMO", {"step_size": _number, "decay": _number, "lower_bounds": _numbers}),
    "pcgrad": Word("PCGrad", {"seed": int, "preference": _numbers}),
    "gradvac": Word("GradVac", {"rate": _number, "seed": int, "preference": _numbers}),
    "cagrad": Word("CAGrad", {"closeness": _number, "preference": _numbers}),
    "nash": Word("NashMTL", {"preference": _numbers}),
    "aligned": Word("AlignedMTL", {"scale": _names, "preference": _numbers}),
    "upgrad": Word("UPGrad", {"preference": _numbers}),
    "config": Word("ConFIG", {"preference": _numbers}),
    "fairgrad": Word("FairGrad", {"alpha": _number, "preference": _numbers}),
    "excess": Word("ExcessMTL", {"step_size": _number, "warm_up": int}),
    "db-mtl": Word("DBMTL", {"memory": _number, "memory_power": _number}),
    "group-dro": Word("GroupDRO", {"step_size": _number}),
}
WEIGHTING_HELP = (
    "equal, fixed:W1,W2,... in the order of the tasks, bandit:radius=R,step_size=S, "
    + ", ".join(word for word in WORDS if word not in ("equal", "fixed", "bandit"))
    + "; options follow a colon"
)


def parse_weighting(word: str, *, task_count: int | None = None) -> AnyWeighting:
    """The weighting a word stands for; with `task_count`, lists have to be that long."""
    import taskmix.weighting

    name, _, rest = word.partition(":")
    if name not in WORDS:
        near = difflib.get_close_matches(name, WORDS, n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        raise OptionError(f"`--weighting` should be {WEIGHTING_HELP}. Found {word!r}.{hint}")
    options = _read_options(name, WORDS[name], rest)
    for option, value in options.items():
        if task_count is not None and isinstance(value, tuple) and len(value) != task_count:
            raise OptionError(
                f"`{option}` of `{name}` should have one entry for each of the {task_count} tasks. "
                f"Found {len(value)}."
            )
    return cast("AnyWeighting", getattr(taskmix.weighting, WORDS[name].method)(**options))


def _read_options(name: str, word: Word, rest: str) -> dict[str, Any]:
    if name == "fixed":
        return {"weights": _read(name, "weights", rest.replace(",", "/"), _numbers)}
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


def _read(name: str, option: str, text: str, reader: Reader) -> object:
    try:
        return reader(text)
    except (ValueError, KeyError):
        raise OptionError(
            f"`{option}` of `{name}` should be {KINDS[reader]}. Found {text!r}."
        ) from None
