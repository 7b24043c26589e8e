"""Peers: shallow models that answer within seconds, for a network to be better than, or to join.

A peer is an options object, like the architectures of networks. What is not given is chosen by the dev
rows of all tasks together, one value for all of them; the options of what was fitted say which, so that
a second fit, on the dev rows too, needs no rows to choose by.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import InputError, OptionError
from taskmix.models._peer_answer import TaskAnswer, pack_answers, unpack_answers
from taskmix.models._peer_features import READABLE, PeerFeatures
from taskmix.models._peer_linear import (
    STRENGTHS,
    USUAL_STRENGTH,
    LinearGroup,
    LinearScores,
    PeerRows,
    Sharing,
    rows_with_target,
    shared_groups,
    stacked,
)
from taskmix.models._peer_tags import USUAL_WEIGHT, WEIGHTS, TagChain
from taskmix.models._peer_trees import (
    FEW_ROWS,
    ITERATIONS,
    MOST_CLASSES,
    USUAL_ITERATIONS,
    TreeGroup,
    TreeScores,
)
from taskmix.tasks import MISSING, Encoding, Question, TaskSet

Groups: TypeAlias = tuple[tuple[str, ...], ...]
_KNOWN_FEATURES = 2  # that are kept: those of train, and those of train and dev
_features: OrderedDict[tuple[str, tuple[str, ...], str], PeerFeatures] = OrderedDict()


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
                lengths = _lengths(inputs) if question.kind == "tagging" else ()
                found = answer.outputs(self.features.matrix(question, inputs), lengths)
                return torch.from_numpy(found).float()
        raise InputError(
            f"The task should be one that the peer was fitted to. Found `{task}`, and not one of "
            f"{', '.join(question.name for question in self.questions)}."
        )

    def describe(self) -> dict[str, Any]:
        """Everything but the arrays, as plain JSON."""
        return {
            "peer": {"kind": type(self.peer).__name__, **asdict(self.peer)},
            "questions": [asdict(question) for question in self.questions],
            "features": self.features.describe(),
            "answers": pack_answers(self.answers)[0],
        }

    def state(self) -> dict[str, Tensor]:
        """The arrays, by name."""
        features = {f"features.{name}": each for name, each in self.features.state().items()}
        return features | pack_answers(self.answers)[1]

    @classmethod
    def restore(cls, description: Mapping[str, Any], state: Mapping[str, Tensor]) -> FittedPeer:
        """What gave this description and these arrays."""
        options = {key: _tuples(value) for key, value in description["peer"].items()}
        peers: dict[str, Any] = {each.__name__: each for each in (LinearPeer, TreesPeer)}
        begin = "features."
        arrays = {name.removeprefix(begin): each for name, each in state.items() if begin in name}
        fitted = cls(
            peer=peers[options.pop("kind")](**options),
            questions=tuple(
                Question(**{key: _tuples(value) for key, value in each.items()})
                for each in description["questions"]
            ),
            features=PeerFeatures.restore(description["features"], arrays),
            answers=unpack_answers(description["answers"], state),
        )
        for question, answer in zip(fitted.questions, fitted.answers, strict=True):
            row = np.zeros((1, fitted.features.width(question)), np.float32)
            found, outputs = answer.outputs(row, (1,)), max(len(question.labels), 1)
            if found.size != outputs or answer.kind != question.kind:
                raise ValueError(f"{found.size} outputs for `{question.name}`, which has {outputs}")
        return fitted


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


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
        features, rows = _read(tasks, splits, encoding)
        places = shared_groups(rows, self.sharing, self.groups)
        groups = [LinearGroup([rows[place] for place in some], self.sharing) for some in places]
        by_dev = any(each.dev_features is not None for each in rows)
        strengths = STRENGTHS if by_dev else (USUAL_STRENGTH,)
        best: tuple[float, float, list[TaskAnswer]] | None = None
        for strength in strengths if self.strength is None else (self.strength,):
            answers: dict[int, TaskAnswer] = {}
            for some, group in zip(places, groups, strict=True):
                scores, seen = group.fit(strength)
                answers |= zip(some, _answers(group.rows, scores, seen), strict=True)
            ordered = [answers[place] for place in range(len(rows))]
            loss = _dev_loss(rows, ordered)
            if best is not None and not loss < best[0]:
                break
            best = (loss, strength, ordered)
        assert best is not None
        _, strength, ordered = best
        transitions = self.transitions
        if any(each.question.kind == "tagging" for each in rows):
            chains = _chains(rows, places)
            weights = WEIGHTS if by_dev else (USUAL_WEIGHT,)
            tried = [
                _with_chains(ordered, chains, weight)
                for weight in (weights if transitions is None else (transitions,))
            ]
            losses = [_dev_loss(rows, each) for each in tried]
            ordered = tried[int(np.argmin(losses))]
            transitions = next(each.chain.weight for each in ordered if each.chain is not None)
        return FittedPeer(
            peer=replace(self, strength=strength, transitions=transitions),
            questions=tuple(each.question for each in rows),
            features=features,
            answers=tuple(ordered),
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
        features, rows = _read(tasks, splits, encoding)
        by_dev = any(each.dev_features is not None for each in rows)
        several = ITERATIONS if by_dev else (USUAL_ITERATIONS,)
        several = several if self.iterations is None else (self.iterations,)
        places = shared_groups(rows, self.sharing, self.groups)
        groups = [[rows[place] for place in some] for some in places]
        grown = [TreeGroup(group, iterations=max(several)) for group in groups]
        best: tuple[float, int, list[TaskAnswer]] | None = None
        for iterations in several:
            answers: dict[int, TaskAnswer] = {}
            for some, group, trees in zip(places, groups, grown, strict=True):
                scores = trees.scores(iterations)
                answers |= zip(some, _answers(group, scores, trees.seen), strict=True)
            ordered = [answers[place] for place in range(len(rows))]
            loss = _dev_loss(rows, ordered)
            if best is None or loss < best[0]:
                best = (loss, iterations, ordered)
        assert best is not None
        return FittedPeer(
            peer=replace(self, iterations=best[1]),
            questions=tuple(each.question for each in rows),
            features=features,
            answers=tuple(best[2]),
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


def _read(
    tasks: TaskSet, splits: tuple[str, ...], encoding: Encoding | None
) -> tuple[PeerFeatures, list[PeerRows]]:
    """The features of tasks, and what is to be learned from; `dev` too, unless it is learned from."""
    for task in tasks:
        if task.inputs not in READABLE:
            raise InputError(
                f"Peers should be given texts, pairs, tables or tokens. Found `{task.name}`, "
                f"{task.kind} of {task.inputs}. Leave it out."
            )
    features = _features_of(tasks, splits, encoding)
    rows = []
    for task in tasks:
        question, dev = Question.of(task), task.splits.get("dev")
        some = [task.splits[name] for name in splits if name in task.splits]
        found: dict[str, Any] = {}
        if (
            dev is not None
            and "dev" not in splits
            and rows_with_target(question, dev.targets).any()
        ):
            lengths = _lengths(dev.inputs) if task.kind == "tagging" else ()
            matrix = features.matrix(question, dev.inputs)
            found = {"dev_features": matrix, "dev_targets": dev.targets, "dev_lengths": lengths}
        if not some:  # a task without rows, which others may answer for
            empty = question.unanswered(tasks[task.name].splits[next(iter(task.splits))].inputs[:0])
            some = list(empty.splits.values())
        rows.append(
            PeerRows(
                question,
                stacked([features.matrix(question, split.inputs) for split in some]),
                np.concatenate([split.targets for split in some]),
                lengths=tuple(
                    length
                    for split in some
                    for length in (_lengths(split.inputs) if task.kind == "tagging" else ())
                ),
                **found,
            )
        )
    return features, rows


def _features_of(
    tasks: TaskSet, splits: tuple[str, ...], encoding: Encoding | None
) -> PeerFeatures:
    """What the features of these tasks are; found once for several peers."""
    parts = {*splits, "dev"}
    needed = TaskSet(
        tuple(
            replace(task, splits={name: s for name, s in task.splits.items() if name in parts})
            for task in tasks
        )
    )
    key = (needed.content, splits, repr(encoding))
    if key not in _features:
        _features[key] = PeerFeatures.fit(needed, splits, encoding)
        while len(_features) > _KNOWN_FEATURES:
            _features.popitem(last=False)
    return _features[key]


def _lengths(inputs: pa.Table) -> tuple[int, ...]:
    return tuple(len(words or ()) for words in inputs.column("tokens").to_pylist())


def _answers(
    group: Sequence[PeerRows],
    scores: Sequence[LinearScores | TreeScores | None],
    seen: tuple[int, ...],
) -> list[TaskAnswer]:
    """Scores, with what is said of classes that were not seen; without scores the prior."""
    question = group[0].question
    together = np.concatenate([each.targets[each.known] for each in group])
    learned = len(seen) > 0 or (question.kind == "regression" and len(together) > 0)
    cases = len(together) + (2 if question.kind == "multilabel" else len(question.labels))
    found = []
    for each, own in zip(group, scores, strict=True):
        targets = each.targets[each.known] if each.known.any() else together
        found.append(
            TaskAnswer(
                kind=question.kind,
                scores=own if learned else None,
                seen=seen,
                prior=_prior(question, targets),
                floor=1 / cases if question.labels else 0.0,
            )
        )
    return found


def _prior(question: Question, targets: NDArray[Any]) -> tuple[float, ...]:
    """How frequent each class or label is, each counted once more; of a regression, the mean."""
    if question.kind == "regression":
        return (float(targets.mean()) if len(targets) else 0.0,)
    if question.kind == "multilabel":
        marks = targets.reshape(-1, len(question.labels))
        with_label, without = (marks == 1).sum(axis=0), (marks == 0).sum(axis=0)
        return tuple(((with_label + 1) / (with_label + without + 2)).tolist())
    counts = np.bincount(targets.astype(np.int64), minlength=len(question.labels)) + 1
    return tuple((counts / counts.sum()).tolist())


def _dev_loss(rows: Sequence[PeerRows], answers: Sequence[TaskAnswer]) -> float:
    """The mean over tasks of the log loss, or of the squared error in variances; 0 without dev rows."""
    losses = []
    for each, answer in zip(rows, answers, strict=True):
        if each.dev_features is None or each.dev_targets is None:
            continue
        known = rows_with_target(each.question, each.dev_targets)
        found = answer.outputs(each.dev_features, each.dev_lengths)[known]
        targets = each.dev_targets[known]
        if answer.kind == "regression":
            losses.append(np.square(found - targets).mean() / (targets.var() or 1.0))
        elif answer.kind == "multilabel":
            marked = targets != MISSING
            signs = np.where(targets == 1, -1.0, 1.0)
            losses.append(np.logaddexp(0, signs * found)[marked].mean())
        else:
            losses.append(-found[np.arange(len(targets)), targets.astype(np.int64)].mean())
    return float(np.mean(losses)) if losses else 0.0


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
