"""What trained models answer for rows that come after training.

An answer is a list of mappings, one a row, that becomes a frame on demand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.models import FittedPeer, HardSharing
from taskmix.tasks import (
    WRITTEN,
    EncodedTasks,
    NewRows,
    Question,
    TaskSet,
    encode_with,
    held_inputs,
    rows_by_task,
)
from taskmix.training._blend import Blend, blended
from taskmix.training._evaluate import outputs_of
from taskmix.training._written import written_answers

ROWS = 256  # of one's own inputs in a batch


@dataclass(frozen=True, kw_only=True)
class TrainedPart:
    """One model, and the tasks that it answers for.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.tasks import Question, digits_tasks, learned_by
    >>> tasks, architecture = digits_tasks().select(("parity", "half")), Perceptron(hidden=(8,))
    >>> encoded = architecture.encoding.encode(tasks)
    >>> part = TrainedPart(
    ...     model=architecture.build(encoded), architecture=architecture,
    ...     learned=learned_by(architecture.encoding, tasks, encoded),
    ...     questions=tuple(map(Question.of, tasks)), answers=("parity",))
    >>> outputs, _, _ = part.outputs(part.questions[0], tasks["parity"].splits["test"].inputs[:5])
    >>> outputs.shape  # untrained, but it has an opinion on five rows
    torch.Size([5, 2])
    """

    model: HardSharing
    architecture: Any
    learned: Mapping[str, Any]
    questions: tuple[Question, ...]  # in the order of the heads
    answers: tuple[str, ...]

    def outputs(
        self, question: Question, rows: NewRows, *, strict: bool = False
    ) -> tuple[Tensor, Any, tuple[str, ...]]:
        """What the model says to rows, their inputs, and what is to be noted about these."""
        inputs, notes = self.read(question, rows, strict=strict)
        return self.answer(question, inputs), inputs, notes

    def read(
        self, question: Question, rows: NewRows, *, strict: bool = False
    ) -> tuple[Any, tuple[str, ...]]:
        """The inputs of rows, and what is to be noted about them."""
        return question.read(rows, self.learned, strict=strict)

    def answer(self, question: Question, inputs: Any) -> Tensor:
        """What the model says to inputs that were read."""
        encoded = self._encoded(question, inputs)
        found = outputs_of(self.model, encoded, self._head(question))
        if found.dim() == 3:  # [sentence, word, class], padded to the longest sentence
            lengths = [len(words) for words in inputs.column("tokens").to_pylist()]
            found = torch.cat([row[:count] for row, count in zip(found, lengths, strict=True)])
        return found

    def written(
        self, question: Question, rows: NewRows, *, strict: bool = False
    ) -> tuple[Answers, tuple[str, ...]]:
        """The answers that the model writes, or how well it foresees texts; and what is to be noted."""
        inputs, notes = self.read(question, rows, strict=strict)
        encoded = self._encoded(question, inputs)
        return Answers(written_answers(self.model, encoded, self._head(question))), notes

    def _encoded(self, question: Question, inputs: Any) -> EncodedTasks:
        tasks = TaskSet((question.unanswered(inputs),))
        return encode_with(self.architecture.encoding, self.learned, tasks)

    def _head(self, question: Question) -> int:
        return [each.name for each in self.questions].index(question.name)


class HeldPart(TrainedPart):
    """A model that reads inputs of one's own: rows are what its data set gives, without targets.

    >>> from taskmix.models import own_module
    >>> from taskmix.tasks import Question, gather_tasks
    >>> rows = (torch.eye(3), [0, 1, 1])
    >>> tasks, encoding = gather_tasks({"a": (rows, rows)}, hold=True)
    >>> encoded = encoding.encode(tasks)
    >>> architecture = own_module(torch.nn.Linear(3, 4), encoding, encoded)
    >>> part = HeldPart(
    ...     model=architecture.build(encoded), architecture=architecture, learned={},
    ...     questions=(Question.of(tasks["a"]),), answers=("a",))
    >>> part.outputs(part.questions[0], torch.eye(3))[0].shape  # [row, class]
    torch.Size([3, 2])
    """

    def read(
        self, question: Question, rows: NewRows, *, strict: bool = False
    ) -> tuple[Any, tuple[str, ...]]:
        return held_inputs(rows, self.learned.get("collate")), ()

    def answer(self, question: Question, inputs: Any) -> Tensor:
        head = self.model.heads[[each.name for each in self.questions].index(question.name)]
        device = next(self.model.parameters()).device
        inputs = inputs.to(device)
        with torch.inference_mode():
            found = [
                head(self.model.encoder(inputs.batch(places))).float().cpu()
                for places in torch.split(torch.arange(len(inputs), device=device), ROWS)
            ]
        return torch.cat(found)


@dataclass(frozen=True, kw_only=True)
class PeerPart:
    """A fitted peer, and the tasks that it answers for.

    >>> from taskmix.models import LinearPeer
    >>> from taskmix.tasks import digits_tasks
    >>> tasks = digits_tasks().select(("parity", "half"))
    >>> part = PeerPart(fitted=LinearPeer(strength=1.0).fit(tasks), answers=("parity",))
    >>> outputs, _, _ = part.outputs(part.questions[0], tasks["parity"].splits["test"].inputs[:5])
    >>> outputs.shape
    torch.Size([5, 2])
    """

    fitted: FittedPeer
    answers: tuple[str, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        return self.fitted.questions

    @property
    def learned(self) -> Mapping[str, Any]:
        """What its reading of tables learned."""
        columns = self.fitted.features.columns
        return {} if columns is None else columns.learned

    def outputs(
        self, question: Question, rows: NewRows, *, strict: bool = False
    ) -> tuple[Tensor, Any, tuple[str, ...]]:
        """What the peer says to rows, their inputs, and what is to be noted about these."""
        inputs, notes = self.read(question, rows, strict=strict)
        return self.answer(question, inputs), inputs, notes

    def read(
        self, question: Question, rows: NewRows, *, strict: bool = False
    ) -> tuple[Any, tuple[str, ...]]:
        """The inputs of rows, and what is to be noted about them."""
        return question.read(rows, self.learned, strict=strict)

    def answer(self, question: Question, inputs: Any) -> Tensor:
        """What the peer says to inputs that were read."""
        return self.fitted.outputs(question.name, inputs)


class TrainedModel:
    """Answers for new rows: each task by the part that is for it, or by a blend of several parts.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.tasks import Question, digits_tasks, learned_by
    >>> tasks, architecture = digits_tasks().select(("parity", "half")), Perceptron(hidden=(8,))
    >>> encoded = architecture.encoding.encode(tasks)
    >>> part = TrainedPart(
    ...     model=architecture.build(encoded), architecture=architecture,
    ...     learned=learned_by(architecture.encoding, tasks, encoded),
    ...     questions=tuple(map(Question.of, tasks)), answers=("parity",))
    >>> model = TrainedModel([part])
    >>> [sorted(answer) for answer in model.predict(tasks["parity"].splits["test"].inputs[:1])]
    [['label', 'probability']]
    """

    def __init__(
        self,
        parts: Sequence[TrainedPart | PeerPart],
        blends: Mapping[str, Blend] | None = None,  # by task
    ) -> None:
        self._parts = tuple(parts)
        self._blends = dict(blends or {})
        for name, blend in self._blends.items():
            self._check_blend(name, blend)

    def _check_blend(self, name: str, blend: Blend) -> None:
        asked = [
            question
            for member in blend.members
            if member < len(self._parts)
            for question in self._parts[member].questions
            if question.name == name
        ]
        kinds = {(question.kind, question.labels) for question in asked}
        written = {question.kind for question in asked} & WRITTEN
        if len(asked) < len(blend.members) or len(kinds) > 1 or (written and len(asked) > 1):
            raise OptionError(
                f"The members of a blend should be parts that learned `{name}`, with the same labels. "
                f"Found {blend.members} of {len(self._parts)} parts."
            )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it answers for."""
        names = (name for part in self._parts for name in part.answers)
        return tuple(dict.fromkeys((*names, *self._blends)))

    def __repr__(self) -> str:
        return f"TrainedModel({', '.join(self.tasks)})"

    def predict(
        self,
        rows: NewRows,
        task: str | None = None,
        *,
        task_column: str | None = None,
        strict: bool = False,
        on_note: Callable[[str], None] | None = None,  # a warning unless given
    ) -> Answers:
        """An answer for each row, which has the columns of the task folder; labels are not needed.

        `rows` is the path of a file, a frame (pandas, polars, Arrow, a Hugging Face data set), a mapping
        from columns to values or a list of mappings. The task of each row is `task`, or is named in its
        `task_column`. The answer of a class has its `label` and `probability`, that of several labels
        the `labels` whose probability is above one half, with the `probabilities` of all by name, that
        of a number its `value`, and that of a sentence its `tokens` with their `tags` and
        `probabilities`. A prompt gets its `answer`, with the mean `log_probability` of its pieces, and
        a text its `bits_per_byte`, by which a model foresees it. A cell that is no number, in a column
        that was one of numbers, counts as missing and is noted; with `strict` it is an error.

        `pandas.DataFrame` and `polars.DataFrame` take the answers as they are; `to_pandas` gives them
        the index of the frame.
        """
        found = Path(rows) if isinstance(rows, str) else rows
        index = rows.index if hasattr(rows, "iloc") else None  # of pandas
        if task_column is None:
            answers = self._answers(found, task, strict=strict, on_note=on_note)
            return Answers(answers, index=index)
        if task is not None:
            raise OptionError(
                "`task` or `task_column` should be given, one of the two. Found both."
            )
        placed: dict[int, dict[str, Any]] = {}
        for name, (places, part) in rows_by_task(found, task_column).items():
            answers = self._answers(part, name, strict=strict, on_note=on_note)
            placed |= zip(places, answers, strict=True)
        return Answers((placed[place] for place in range(len(placed))), index=index)

    def probabilities(self, rows: NewRows, task: str | None = None) -> NDArray[np.float64]:
        """[row, class], of a task whose answers are classes, in the order of `question(task).labels`."""
        members, question = self._find(task)
        if question.kind not in ("classification", "multilabel"):
            raise OptionError(
                f"Probabilities should be asked of a task with classes. Found {question.kind} in "
                f"`{question.name}`. Use `predict`."
            )
        found = Path(rows) if isinstance(rows, str) else rows
        outputs, _, _ = self._outputs(members, question, found)
        if question.kind == "multilabel":  # each label has a probability of its own
            return torch.sigmoid(outputs.double()).numpy()
        return torch.softmax(outputs.double(), dim=-1).numpy()

    def _answers(
        self,
        rows: NewRows,
        task: str | None,
        *,
        strict: bool,
        on_note: Callable[[str], None] | None,
    ) -> Answers:
        members, question = self._find(task)
        written = Answers()
        if question.kind in WRITTEN:
            writer = members[0]
            assert isinstance(writer, TrainedPart)
            written, notes = writer.written(question, rows, strict=strict)
        else:
            outputs, inputs, notes = self._outputs(members, question, rows, strict=strict)
        for note in notes:
            sentence = f"{note[0].upper()}{note[1:]}."
            if on_note is None:
                warnings.warn(sentence, stacklevel=3)
            else:
                on_note(sentence)
        if question.kind in WRITTEN:
            return written
        if question.kind == "regression":
            return Answers({"value": value} for value in outputs.tolist())
        if question.kind == "multilabel":
            return _labelled(question.labels, torch.sigmoid(outputs.double()))
        shares = torch.softmax(outputs.double(), dim=-1)
        best, places = shares.max(dim=-1)
        labels = [question.labels[place] for place in places.flatten().tolist()]
        if question.kind == "classification":
            return Answers(
                {"label": label, "probability": share}
                for label, share in zip(labels, best.tolist(), strict=True)
            )
        return _tagged(inputs.column("tokens").to_pylist(), labels, best.tolist())

    def _outputs(
        self,
        members: Sequence[TrainedPart | PeerPart],
        question: Question,
        rows: NewRows,
        *,
        strict: bool = False,
    ) -> tuple[Tensor, Any, tuple[str, ...]]:
        """One output of all members, who answer to the same inputs, read once."""
        reader = next((part for part in members if "columns" in part.learned), members[0])
        inputs, notes = reader.read(question, rows, strict=strict)
        found = [part.answer(question, inputs) for part in members]
        if question.name not in self._blends:
            return found[0], inputs, notes
        return blended(question.kind, found, self._blends[question.name]), inputs, notes

    def _find(self, task: str | None) -> tuple[list[TrainedPart | PeerPart], Question]:
        """The parts that answer for a task, and what it asks."""
        if task is None and len(self.tasks) == 1:
            task = self.tasks[0]
        members: list[TrainedPart | PeerPart]
        if task in self._blends:
            members = [self._parts[place] for place in self._blends[task].members]
        else:
            members = [part for part in self._parts if task in part.answers][:1]
        for part in members:
            return members, next(each for each in part.questions if each.name == task)
        found = "none" if task is None else f"`{task}`"
        raise OptionError(
            f"The task should be one that the model answers for: {', '.join(self.tasks)}. Found "
            f"{found}."
        )

    def question(self, task: str | None = None) -> Question:
        """What a task asks: its kind, labels and columns."""
        return self._find(task)[1]


def _labelled(labels: Sequence[str], shares: Tensor) -> Answers:
    return Answers(
        {
            "labels": [label for label, share in zip(labels, row, strict=True) if share > 0.5],
            "probabilities": dict(zip(labels, row, strict=True)),
        }
        for row in shares.tolist()
    )


def _tagged(
    sentences: Sequence[Sequence[str]], tags: Sequence[str], shares: Sequence[float]
) -> Answers:
    ends = np.cumsum([len(words) for words in sentences])
    return Answers(
        {
            "tokens": list(words),
            "tags": list(tags[end - len(words) : end]),
            "probabilities": list(shares[end - len(words) : end]),
        }
        for words, end in zip(sentences, ends.tolist(), strict=True)
    )


class Answers(list[dict[str, Any]]):
    """A mapping for each row, and the same as a table of any kind.

    >>> answers = Answers([{"label": "yes", "probability": 0.75}, {"label": "no", "probability": 0.5}])
    >>> answers[0]["label"], answers.to_dict()["probability"]
    ('yes', [0.75, 0.5])
    >>> answers.to_arrow().column_names
    ['label', 'probability']
    """

    def __init__(self, answers: Iterable[dict[str, Any]] = (), *, index: Any = None) -> None:
        super().__init__(answers)
        self._frame_index = index  # of pandas, whose rows they are for; None: they are numbered

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns; an answer that has no such cell has None."""
        names = dict.fromkeys(name for answer in self for name in answer)
        return {name: [answer.get(name) for answer in self] for name in names}

    def to_arrow(self) -> pa.Table:
        return pa.table(self.to_dict())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Whatever speaks Arrow takes them: `polars.DataFrame(answers)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas frame, with the index of the frame that was answered for: `frame.join` takes it."""
        pandas = _imported("pandas")
        return pandas.DataFrame(self.to_dict(), index=self._frame_index)

    def to_polars(self) -> Any:
        return _imported("polars").DataFrame(self.to_dict())


def _imported(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise OptionError(
            f"`{name}` should be installed for a frame of it. Found none ({error}). Install it, or use "
            "`to_arrow` or `to_dict`."
        ) from error
