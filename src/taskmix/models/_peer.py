"""Peers: shallow models that answer within seconds, for a network to be better than, or to join.

A peer is an options object, like the architectures of networks. What is not given is chosen by the dev
rows of all tasks together, one value for all of them; the options of what was fitted say which, so that
a second fit, on the dev rows too, needs no rows to choose by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from taskmix.errors import InputError, OptionError
from taskmix.models._peer_answer import TaskAnswer, dev_loss, task_answers
from taskmix.models._peer_features import READABLE, PeerFeatures, Texts, Vectors, Windows
from taskmix.models._peer_linear import (
    STRENGTHS,
    USUAL_STRENGTH,
    LinearGroup,
    LinearScores,
    Sharing,
    shared_groups,
)
from taskmix.models._peer_rows import PeerRows, lengths_of, peer_rows
from taskmix.models._peer_state import pack_state, unpack_state
from taskmix.models._peer_tags import USUAL_WEIGHT, WEIGHTS, TagChain
from taskmix.models._peer_trees import (
    FEW_ROWS,
    ITERATIONS,
    MOST_CLASSES,
    USUAL_ITERATIONS,
    Forest,
    TreeGroup,
    TreeScores,
)
from taskmix.tasks import Encoding, FeatureEncoding, Ngrams, Question, TableEncoding, TaskSet

Groups: TypeAlias = tuple[tuple[str, ...], ...]
Number = TypeVar("Number", int, float)


class Peer(Protocol):
    """Options of a shallow model for several tasks."""

    @property
    def name(self) -> str: ...

    def fit(
        self,
        tasks: TaskSet,
        *,
        splits: tuple[str, ...] = ("train",),
        encoding: Encoding | None = None,
        seed: int = 0,
    ) -> FittedPeer:
        """Learns from the rows of these splits; what is not given is chosen by `dev`."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedPeer:
    """A peer that has learned: its options as they were settled, and what it says to rows.

    >>> from taskmix.tasks import digits_tasks
    >>> tasks = digits_tasks().select(("parity", "half"))
    >>> fitted = LinearPeer(sharing="alone", strength=1.0).fit(tasks)
    >>> rows = tasks["parity"].splits["test"].inputs
    >>> fitted.outputs("parity", rows[:3]).exp().sum(dim=1)
    tensor([1., 1., 1.])
    >>> again = FittedPeer.restore(fitted.describe(), fitted.state())
    >>> torch.equal(fitted.outputs("parity", rows), again.outputs("parity", rows))
    True
    """

    peer: LinearPeer | TreesPeer
    questions: tuple[Question, ...]
    features: PeerFeatures
    answers: tuple[TaskAnswer, ...]  # of each question

    def outputs(self, task: str, inputs: pa.Table) -> Tensor:
        """Logarithms of probabilities [row, class], or [word, class] where words are labelled; values
        [row] of a regression; logits [row, label] where a row may have several labels.
        """
        for question, answer in zip(self.questions, self.answers, strict=True):
            if question.name == task:
                features = self.features.matrix(question, inputs)
                found = answer.outputs(features, lengths_of(question, inputs))
                return torch.from_numpy(found).float()
        raise InputError(
            f"The task should be one that the peer was fitted to. Found `{task}`, and not one of "
            f"{', '.join(question.name for question in self.questions)}."
        )

    def describe(self) -> dict[str, Any]:
        """Everything but the arrays, as plain JSON."""
        described: dict[str, Any] = pack_state(self)[0]
        return described

    def state(self) -> dict[str, Tensor]:
        """The arrays, by name."""
        return pack_state(self)[1]

    @classmethod
    def restore(cls, description: Mapping[str, Any], state: Mapping[str, Tensor]) -> FittedPeer:
        """What gave this description and these arrays."""
        fitted = unpack_state(description, state, {each.__name__: each for each in (cls, *KEPT)})
        if not isinstance(fitted, FittedPeer):
            raise TypeError(f"{type(fitted).__name__} in the place of a peer")
        for question, answer in zip(fitted.questions, fitted.answers, strict=True):
            row = np.zeros((1, fitted.features.width(question)), np.float32)
            found, outputs = answer.outputs(row, (1,)), max(len(question.labels), 1)
            if found.size != outputs or answer.kind != question.kind:
                raise ValueError(f"{found.size} outputs for `{question.name}`, which has {outputs}")
        return fitted


@dataclass(frozen=True, kw_only=True)
class LinearPeer:
    """Logistic regression of classes and labels, ridge regression of values.

    With `sharing="pooled"` tasks with the same answers to the same kind of input have one model, with
    an intercept for each task; with `"partly"` they share features beside each task's own copies of
    them. Both hold within `groups` where these are given, and other tasks are alone.

    >>> LinearPeer(sharing="partly").name
    'linear partly pooled'
    """

    sharing: Sharing = "alone"
    strength: float | None = None  # of the penalty, where rows have a length of 1; None: by dev
    transitions: float | None = None  # how much a tag's neighbours say of it; None: by dev
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if self.sharing not in ("alone", "pooled", "partly"):
            raise OptionError(
                f"`sharing` should be alone, pooled or partly. Found {self.sharing!r}."
            )
        if self.strength is not None and not 0 < self.strength < np.inf:
            raise OptionError(
                f"`strength` should be above 0, or None. Found {self.strength}. 0.1 is usual."
            )

    @property
    def name(self) -> str:
        return "linear partly pooled" if self.sharing == "partly" else f"linear {self.sharing}"

    def fit(
        self,
        tasks: TaskSet,
        *,
        splits: tuple[str, ...] = ("train",),
        encoding: Encoding | None = None,
        seed: int = 0,  # nothing here is drawn
    ) -> FittedPeer:
        """Learns from the rows of these splits; what is not given is chosen by `dev`."""
        features, rows = peer_rows(tasks, splits, encoding)
        places = shared_groups(rows, self.sharing, self.groups)
        groups = [LinearGroup([rows[place] for place in some], self.sharing) for some in places]
        strengths = _to_try(rows, self.strength, STRENGTHS, USUAL_STRENGTH)
        strength, answers = _by_dev(
            rows, strengths, lambda strength: _answers(rows, places, groups, strength), path=True
        )
        transitions = self.transitions
        chains = _chains(rows, places)
        if chains:
            transitions, answers = _by_dev(
                rows,
                _to_try(rows, self.transitions, WEIGHTS, USUAL_WEIGHT),
                lambda weight: _with_chains(answers, chains, weight),
            )
        return FittedPeer(
            peer=replace(self, strength=strength, transitions=transitions),
            questions=tuple(each.question for each in rows),
            features=features,
            answers=tuple(answers),
        )


@dataclass(frozen=True, kw_only=True)
class TreesPeer:
    """Boosted trees for tables; pooled, with the task as a column.

    >>> TreesPeer(sharing="pooled").name
    'trees pooled'
    """

    sharing: Sharing = "alone"
    iterations: int | None = None  # None: by dev
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if self.sharing not in ("alone", "pooled"):
            raise OptionError(f"`sharing` should be alone or pooled. Found {self.sharing!r}.")

    @property
    def name(self) -> str:
        return f"trees {self.sharing}"

    def fit(
        self,
        tasks: TaskSet,
        *,
        splits: tuple[str, ...] = ("train",),
        encoding: Encoding | None = None,
        seed: int = 0,  # nothing here is drawn
    ) -> FittedPeer:
        """Learns from the rows of these splits; what is not given is chosen by `dev`."""
        for task in tasks:
            if task.inputs != "table":
                raise InputError(
                    f"Trees should be given tables. Found `{task.name}`, {task.kind} of "
                    f"{task.inputs}. Use LinearPeer."
                )
        features, rows = peer_rows(tasks, splits, encoding)
        several = _to_try(rows, self.iterations, ITERATIONS, USUAL_ITERATIONS)
        places = shared_groups(rows, self.sharing, self.groups)
        groups = [TreeGroup([rows[place] for place in some], max(several)) for some in places]
        iterations, answers = _by_dev(
            rows, several, lambda count: _answers(rows, places, groups, count)
        )
        return FittedPeer(
            peer=replace(self, iterations=iterations),
            questions=tuple(each.question for each in rows),
            features=features,
            answers=tuple(answers),
        )


# What may be in the file of a fitted peer.
KEPT: tuple[type, ...] = (
    *(LinearPeer, TreesPeer, Question, TaskAnswer, LinearScores, TreeScores, Forest, TagChain),
    *(PeerFeatures, Texts, Windows, Vectors, Ngrams, FeatureEncoding, TableEncoding),
)


def peers_for(tasks: TaskSet, *, groups: Sequence[Sequence[str]] | None = None) -> tuple[Peer, ...]:
    """The peers that can read all of these tasks; none for text to be written.

    `groups` are those within which tasks share features, as transfer finds them.

    >>> from taskmix.tasks import digits_tasks
    >>> [peer.name for peer in peers_for(digits_tasks())]
    ['linear alone', 'linear pooled', 'linear partly pooled', 'trees alone', 'trees pooled']
    """
    if not len(tasks) or not all(task.inputs in READABLE for task in tasks):
        return ()
    targets = [task.splits["train"].targets if task.size else np.zeros(0) for task in tasks]
    rows = [PeerRows(Question.of(t), None, each) for t, each in zip(tasks, targets, strict=True)]
    share = len(shared_groups(rows, "pooled", None)) < len(tasks)
    within = None if groups is None else tuple(map(tuple, groups))
    found: list[Peer] = [LinearPeer(sharing="alone")]
    if share:
        found += [LinearPeer(sharing="pooled"), LinearPeer(sharing="partly", groups=within)]
    few = np.mean(tasks.sizes) < FEW_ROWS or max(len(t.labels) for t in tasks) > MOST_CLASSES
    if all(task.inputs == "table" for task in tasks) and not few:
        found.append(TreesPeer(sharing="alone"))
        if share:
            found.append(TreesPeer(sharing="pooled"))
    return tuple(found)


def _to_try(
    rows: Sequence[PeerRows], given: Number | None, several: Sequence[Number], usual: Number
) -> Sequence[Number]:
    """What was given, or what dev rows may choose from; without them what is usual."""
    if given is not None:
        return (given,)
    return several if any(each.dev is not None for each in rows) else (usual,)


def _by_dev(
    rows: Sequence[PeerRows],
    options: Sequence[Number],
    answers_by: Callable[[Number], list[TaskAnswer]],
    *,
    path: bool = False,  # whether what follows a rise of the loss is worse still
) -> tuple[Number, list[TaskAnswer]]:
    """The option whose answers foretell the dev rows best, and these answers."""
    chosen, best, least = options[0], answers_by(options[0]), np.inf
    for number, option in enumerate(options if len(options) > 1 else ()):
        answers = answers_by(option) if number else best
        loss = dev_loss(rows, answers)
        if loss < least:
            chosen, best, least = option, answers, loss
        elif path:
            break
    return chosen, best


def _answers(
    rows: Sequence[PeerRows],
    places: Sequence[Sequence[int]],
    groups: Sequence[LinearGroup | TreeGroup],
    option: Any,
) -> list[TaskAnswer]:
    """The answers of all tasks, in their order, as their groups learn them."""
    found: dict[int, TaskAnswer] = {}
    for some, group in zip(places, groups, strict=True):
        scores, seen = group.fit(option)
        found |= zip(some, task_answers([rows[place] for place in some], scores, seen), strict=True)
    return [found[place] for place in range(len(rows))]


def _chains(rows: Sequence[PeerRows], places: Sequence[Sequence[int]]) -> dict[int, TagChain]:
    """How tags follow each other, in each task with tags; in all tasks that learn together."""
    found: dict[int, TagChain] = {}
    for some in places:
        question = rows[some[0]].question
        if question.kind == "tagging":
            sentences = [
                sentence
                for place in some
                for sentence in np.split(rows[place].targets, np.cumsum(rows[place].lengths)[:-1])
            ]
            chain = TagChain.fit([each.astype(np.int64) for each in sentences], question.labels)
            found |= dict.fromkeys(some, chain)
    return found


def _with_chains(
    answers: Sequence[TaskAnswer], chains: Mapping[int, TagChain], weight: float
) -> list[TaskAnswer]:
    return [
        replace(answer, chain=replace(chains[place], weight=weight)) if place in chains else answer
        for place, answer in enumerate(answers)
    ]
