"""How a task was read: which kind of task it was taken for, from which columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from taskmix.tasks._formats._words import tame

TaskKind = Literal[
    "classification",
    "multilabel",
    "regression",
    "tagging",
    "sequences",
    "generation",
    "language",
]
InputKind = Literal["text", "pair", "table", "tokens", "sequences", "prompt", "passage"]
# Kinds whose targets are pieces of text, which only the tokenizer of a model can count.
WRITTEN: frozenset[TaskKind] = frozenset({"generation", "language"})
WITHOUT_TARGETS: frozenset[TaskKind] = WRITTEN | {"sequences"}  # what is learned is in the inputs

_NAMED = 2  # tasks and columns named in a line; the rest are counted


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a task was taken for.

    >>> reading = Reading(
    ...     inputs="text", columns=("review",), label="stars", kind="classification", classes=5,
    ...     metric="accuracy",
    ... )
    >>> print(reading)
    text `review`; 5 classes of `stars`; accuracy
    >>> print(Reading(
    ...     inputs="prompt", columns=("question",), label="reply", kind="generation", classes=0,
    ...     metric="exact_match",
    ... ))
    prompt `question`; answer `reply`; exact match
    """

    inputs: InputKind
    columns: tuple[str, ...]  # of the inputs, as the file calls them
    label: str | None  # the target column, where it is known
    kind: TaskKind
    classes: int  # 0 unless classes are predicted
    metric: str
    by_imbalance: bool = False  # whether the metric was chosen because one class is so common
    left_out: tuple[tuple[str, str], ...] = ()  # columns that are no inputs, and why
    divided: tuple[str, ...] = ()  # what was done to the splits

    def __str__(self) -> str:
        metric = self.metric.replace("_", " ") if self.kind in WRITTEN else self.metric
        parts = [self._inputs(), *self._target(), metric, *self.divided]
        if self.left_out:
            parts.append(f"without {some([f'`{name}` ({why})' for name, why in self.left_out])}")
        return tame("; ".join(parts))

    def _inputs(self) -> str:
        if self.inputs == "table":
            return f"table of {len(self.columns)} column{'' if len(self.columns) == 1 else 's'}"
        if self.inputs == "sequences":
            return " of ".join(["sequences", *self.columns])
        names = " and ".join(f"`{name}`" for name in self.columns)
        return f"{self.inputs} {names}" if names else self.inputs

    def _target(self) -> list[str]:
        label = "" if self.label is None else f" `{self.label}`"
        if self.kind == "generation":
            return [f"answer{label}"] if label else []
        if self.kind in WITHOUT_TARGETS:
            return []
        if self.kind == "regression":
            return [f"regression of{label}" if label else "regression"]
        unit = {"tagging": "tags", "multilabel": "labels"}.get(self.kind, "classes")
        return [f"{self.classes} {unit}{' of' if label else ''}{label}"]

    def document(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"left_out": dict(self.left_out)}


def some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - _NAMED
    if more <= 0:
        return " and ".join(names)
    return f"{', '.join(names[:_NAMED])} and {more} more"
