"""Worlds in which the truth is known: three kinds of tasks.

Artificial tasks that are related to a real one as much as one likes.

    Bettgenhäuser, Hedderich and Klakow, "Learning Functions to Study the Benefit of Multitask
    Learning", 2020, Section 3, Eq. 2 and Algorithm 1.

The label of a row is kept with probability α and otherwise becomes any other label, all equally
likely: M[i, j] = α where i = j and (1 - α) / (c - 1) elsewhere, for k real labels and c artificial
ones. With α = 1/c the new labels are independent of the real ones, with α = 1 they are a copy. How
related two tasks came out is their adjusted mutual information, and α can be chosen to give a wanted
one. Where c < k, the label that is kept for the i-th real one is the (i mod c)-th.

Tags are taken without the difference between `B-` and `I-`: the simulated label is that of a word, as
in the paper, where training is on IO tags.

A table with a rare class, a task beside it that helps and one that harms.

Rows are vectors of independent normal features. With orthogonal directions w, u, v of length one and
noise ε, a row of the target is positive where its score is among the highest, so many as are wanted:

    target   w·x + ε                                few rows
    helps    0.95 w·x + 0.31 u·x + ε                many rows, the same share of positives
    harms    2 (v₁·x v₂·x + v₃·x v₄·x + v₅·x v₆·x) + ε     many rows, half of them positive

The helping task shows which direction counts. Nothing the harming task needs has to do with w, it
takes long to learn, and its half of positives gives it the larger gradients, so a shared model is
filled with what the target cannot use and is at its best when the target is fitted too closely. (A
task of opposed labels, −w·x, would help: a head of its own turns the sign back.)

Eight tasks from the digits of scikit-learn: a small world in which the truth is known.

1,797 images of 8 x 8 pixels are parted once into 900 to train, 400 for dev and 497 for test, so no
test image of one task is a training image of another. Six tasks ask something true of a digit, of
sizes from 900 rows down to 30; they need the same features, so the small ones gain from the others.
Two have their labels shuffled, in every split: they can only be learned by heart, so they cost the
shared model capacity, and no score on them can honestly be better than chance.

| task              | asks                               | train |
|-------------------|------------------------------------|-------|
| `ten_digits`      | which digit                        | 900   |
| `parity`          | odd or even                        | 300   |
| `half`            | below five or not                  | 150   |
| `prime`           | 2, 3, 5, 7 or not                  | 80    |
| `loop`            | with a closed loop (0, 6, 8, 9)    | 50    |
| `remainder`       | the remainder of division by three | 30    |
| `shuffled_parity` | `parity` with shuffled labels      | 900   |
| `shuffled_ten`    | `ten_digits` with shuffled labels  | 600   |
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError
from taskmix.numerics import adjusted_mutual_information
from taskmix.tasks._task import MISSING, Split, Task, TaskSet

_HALVINGS = 40  # of the interval for α: afterwards it is narrower than a random number's last bits
_TAG_PREFIX = re.compile(r"[BIES](-|$)")


@dataclass(frozen=True, eq=False)
class Simulation:
    """The real task first, then the artificial ones, and how related each is to it."""

    tasks: TaskSet
    alphas: NDArray[np.float64]  # [artificial task]
    labels: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]  # real and new, to train on

    @functools.cached_property
    def information(self) -> NDArray[np.float64]:
        """The AMI (Eq. 2) of each artificial task with the real one, over the rows to train on."""
        return np.array([_information(real, made) for real, made in self.labels])


def simulate_tasks(
    task: Task,
    *,
    count: int,
    generator: np.random.Generator,
    alpha: float | Sequence[float] | None = None,
    ami: float | Sequence[float] | None = None,
    labels: int | Sequence[int] | None = None,
    samples: int | Sequence[int] | None = None,
    real_samples: int | None = None,
) -> Simulation:
    """Makes `count` artificial tasks on the inputs of a real one.

    Give either `alpha` or the wanted `ami`, one value or one for each task; `labels` is how many
    different labels an artificial task has (as many as the real one if None). `samples` are the rows
    of `train` each artificial task has, words for tagging, and `real_samples` those of the real task
    (as many as `samples` if that is one number): the first rows, so that tasks share what they can.

    >>> import pyarrow as pa
    >>> table = pa.table({"x": np.arange(100.0) ** 2, "label": ["no", "yes"] * 50})
    >>> task = tables_as_tasks({"real": {"train": table, "dev": table}})["real"]
    >>> found = simulate_tasks(task, count=2, alpha=[0.5, 1.0], generator=np.random.default_rng(0))
    >>> found.information.round(1).tolist()  # unrelated, and a copy
    [0.0, 1.0]
    """
    _check(task, count)
    names = _real_labels(task)
    if (alpha is None) == (ami is None):
        raise OptionError("Either `alpha` or `ami` should be given. Found both or neither.")
    alphas = _one_each("alpha", alpha if alpha is not None else ami, count, float)
    sizes = _one_each("labels", labels if labels is not None else len(names), count, int)
    rows = _one_each("samples", samples, count, int) if samples is not None else [None] * count
    if real_samples is None and isinstance(samples, int):
        real_samples = samples
    tables: dict[int | None, dict[str, pa.Table]] = {}
    real = _cut(task, real_samples, tables)
    made, chosen, pairs = [real], [], []
    for place in range(count):
        template = _cut(task, rows[place], tables)
        codes = {name: _codes(template, split.targets) for name, split in template.splits.items()}
        draws = {name: generator.random((2, len(each))) for name, each in codes.items()}
        matrix = _LabelMatrix(len(names), sizes[place])
        value = alphas[place]
        if ami is not None:
            value = _solve_alpha(codes["train"], draws["train"], matrix, value)
        matrix.check(value)
        # Algorithm 1, lines 4 to 6, for all rows at once.
        targets = {name: matrix.draw(codes[name], draws[name], value) for name in codes}
        made.append(_artificial(template, place, targets, sizes[place]))
        chosen.append(value)
        pairs.append((codes["train"], targets["train"]))
    return Simulation(TaskSet(tuple(made)), np.array(chosen), tuple(pairs))


@dataclass(frozen=True)
class _LabelMatrix:
    """The M of Section 3, [real, artificial]: how likely each artificial label is for each real one."""

    real: int  # labels, the paper's k
    artificial: int  # labels, the paper's c

    def check(self, alpha: float) -> None:
        if not 0 <= alpha <= 1:
            raise OptionError(
                f"`alpha` should lie between 0 and 1: 1 copies the labels, {1 / self.artificial:.3g} "
                f"makes {self.artificial} independent ones. Found {alpha}."
            )

    def draw(
        self, codes: NDArray[np.int64], draws: NDArray[np.float64], alpha: float
    ) -> NDArray[np.int64]:
        """Labels by the rows of M; the same random numbers give nested changes for growing α."""
        kept = codes % self.artificial  # M[i, i] = α
        # M[i, j] = (1 - α) / (c - 1) for each of the c - 1 others.
        other = np.floor(draws[1] * (self.artificial - 1)).astype(np.int64)
        other = np.minimum(other, self.artificial - 2)
        other += other >= kept  # any label but the one that would have been kept
        return np.where(codes < 0, MISSING, np.where(draws[0] < alpha, kept, other))


def _solve_alpha(
    codes: NDArray[np.int64], draws: NDArray[np.float64], matrix: _LabelMatrix, wanted: float
) -> float:
    """The α whose labels, drawn with these random numbers, have the wanted information."""
    most = _information(codes, matrix.draw(codes, draws, 1.0))
    if not 0 <= wanted <= most:
        raise OptionError(
            f"`ami` should lie between 0 and {most:.3g}, that of a copy with {matrix.artificial} "
            f"labels. Found {wanted}."
        )
    low, high = 1 / matrix.artificial, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _information(codes, matrix.draw(codes, draws, middle)) < wanted:
            low = middle
        else:
            high = middle
    ends = [
        (abs(_information(codes, matrix.draw(codes, draws, a)) - wanted), a) for a in (low, high)
    ]
    return min(ends)[1]


def _information(codes: NDArray[np.int64], targets: NDArray[np.int64]) -> float:
    """Eq. 2 over the rows that have a label."""
    known = codes >= 0
    return adjusted_mutual_information(codes[known], targets[known])


def _check(task: Task, count: int) -> None:
    if task.kind not in ("classification", "tagging") or len(_real_labels(task)) < 2:
        raise InputError(
            "Artificial tasks should be made of a task with classes or tags, at least two. Found "
            f"`{task.name}`, a task of {task.kind} with {len(task.labels)} labels. Choose another."
        )
    if "train" not in task.splits:
        raise InputError(f"Task `{task.name}` should have rows to train on. Found none.")
    if count < 1:
        raise OptionError(f"`count` should be at least 1. Found {count}.")


def _one_each(name: str, value: Any, count: int, kind: type) -> list[Any]:
    """One value for each task."""
    values = [kind(value)] * count if isinstance(value, int | float) else [kind(v) for v in value]
    if len(values) != count:
        raise OptionError(
            f"`{name}` should be one value or one for each of the {count} tasks. Found {len(values)}."
        )
    if kind is int and min(values) < (2 if name == "labels" else 1):
        raise OptionError(
            f"`{name}` should be at least {2 if name == 'labels' else 1}. Found {min(values)}."
        )
    return values


def _real_labels(task: Task) -> tuple[str, ...]:
    """The labels that words or rows have, `B-` and `I-` being one."""
    return tuple(dict.fromkeys(_plain(task, label) for label in task.labels))


def _plain(task: Task, label: str) -> str:
    return _TAG_PREFIX.sub("", label) if task.kind == "tagging" else label


def _codes(task: Task, targets: NDArray[Any]) -> NDArray[np.int64]:
    """[row or word], the place of the real label; below zero where there is none."""
    places = {label: place for place, label in enumerate(_real_labels(task))}
    lookup = np.array([places[_plain(task, label)] for label in task.labels] + [-1], dtype=np.int64)
    targets = np.asarray(targets, dtype=np.int64)
    return lookup[np.where(targets == MISSING, len(task.labels), targets)]


def _cut(task: Task, samples: int | None, tables: dict[int | None, dict[str, pa.Table]]) -> Task:
    """The task with the first rows of `train`; tasks with as many share them."""
    if samples is None:
        return task
    train = task.splits["train"]
    if task.kind == "tagging":
        lists = train.inputs.column("tokens").combine_chunks()
        lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
        there, unit = int(lengths.sum()), "words"
    else:
        there, unit = len(train), "rows"
    if samples > there:
        raise InputError(
            f"`samples` should be at most the {there} {unit} that `{task.name}` has to train on. Found "
            f"{samples}."
        )
    if samples not in tables:
        if task.kind == "tagging":
            tables[samples] = {"train": _first_words(train.inputs, lengths, samples)}
        else:
            tables[samples] = {"train": train.inputs.slice(0, samples)}
    first = Split(tables[samples]["train"], train.targets[:samples])
    source = f"{task.source} ({samples} {unit})"
    return replace(task, splits={**task.splits, "train": first}, source=source)


def _first_words(table: pa.Table, lengths: NDArray[Any], count: int) -> pa.Table:
    """Sentences up to so many words, the last one cut."""
    ends = np.cumsum(lengths)
    sentences = int(np.searchsorted(ends, count)) + 1
    lists = table.column("tokens").combine_chunks().slice(0, sentences)
    offsets = np.concatenate([[0], np.minimum(ends[:sentences], count)]).astype(np.int32)
    words = lists.flatten().slice(0, count)
    return pa.table({"tokens": pa.ListArray.from_arrays(pa.array(offsets), words)})


def _artificial(
    template: Task,
    place: int,
    targets: dict[str, NDArray[np.int64]],
    labels: int,
) -> Task:
    width = len(str(labels - 1))
    return Task(
        name=f"artificial{place + 1}",
        kind=template.kind,
        inputs=template.inputs,
        labels=tuple(f"s{label:0{width}}" for label in range(labels)),
        metric="accuracy",
        source=template.source,
        splits={
            name: Split(split.inputs, targets[name]) for name, split in template.splits.items()
        },
    )


LABELS = ("no", "yes")
KINSHIP = 0.95  # of the helping task's direction with the target's
DIRECTIONS = 8  # that are used: fewer features have no room for them


def simulate_imbalanced(
    *,
    positives: float = 0.06,
    rows: int = 400,  # of the target to train on
    other_rows: int = 2000,  # of the others
    held_rows: int = 1000,  # of each task's dev, and of its test
    features: int = 30,
    generator: np.random.Generator,
) -> TaskSet:
    """The tasks `target`, `helps` and `harms`, scored by AUC.

    >>> tasks = simulate_imbalanced(rows=500, generator=np.random.default_rng(0))
    >>> tasks.names, tasks["target"].metric, float(tasks["target"].splits["dev"].targets.mean())
    (('target', 'helps', 'harms'), 'auc', 0.06)
    """
    if not 0 < positives < 1:
        raise OptionError(f"`positives` should lie between 0 and 1. Found {positives}.")
    if features < DIRECTIONS:
        raise OptionError(f"`features` should be at least {DIRECTIONS}. Found {features}.")
    for name, count in (("rows", rows), ("other_rows", other_rows), ("held_rows", held_rows)):
        if not 1 <= round(positives * count) < count:
            raise OptionError(
                f"`{name}` should be so many that there is a row of each class. Found {count} with a "
                f"share of {positives} positives."
            )
    world = _World(generator, features)
    return TaskSet(
        (
            world.task("target", positives, rows, held_rows),
            world.task("helps", positives, other_rows, held_rows),
            world.task("harms", 0.5, other_rows, held_rows),
        )
    )


class _World:
    """Directions, by which rows of any task get their scores."""

    def __init__(self, generator: np.random.Generator, features: int) -> None:
        self.generator = generator
        # Columns of a random rotation: no single feature says much.
        self.directions = np.linalg.qr(generator.normal(size=(features, features)))[0]

    def task(self, name: str, positives: float, rows: int, held_rows: int) -> Task:
        sizes = {"train": rows, "dev": held_rows, "test": held_rows}
        return Task(
            name=name,
            kind="classification",
            inputs="table",
            labels=LABELS,
            metric="auc",
            source=name,
            splits={split: self._split(name, positives, size) for split, size in sizes.items()},
        )

    def _split(self, name: str, positives: float, size: int) -> Split:
        """As many positives as are wanted, exactly: the rows with the highest scores."""
        values = self.generator.normal(size=(size, len(self.directions)))
        scores = self._scores(name, values) + self.generator.normal(size=size)
        targets = np.zeros(size, dtype=np.int64)
        targets[np.argsort(scores)[size - round(positives * size) :]] = 1
        columns = {f"x{place}": values[:, place] for place in range(values.shape[1])}
        return Split(pa.table(columns), targets)

    def _scores(self, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        along = values @ self.directions
        match name:
            case "target":
                found = along[:, 0]
            case "helps":
                found = KINSHIP * along[:, 0] + np.sqrt(1 - KINSHIP**2) * along[:, 1]
            case _:
                found = 2 * (along[:, 2:8:2] * along[:, 3:8:2]).sum(axis=1)
        return np.asarray(found, dtype=np.float64)


_TRAIN, _DEV = 900, 400  # images; the other 497 are for test
_SEED = 1797  # of the parting and of the shuffled labels: the tasks are the same each time


@dataclass(frozen=True)
class _Question:
    name: str
    rows: int  # to train on
    labels: tuple[str, ...]
    answer: Callable[[NDArray[Any]], NDArray[Any]]  # digits to class numbers
    shuffled: bool = False


_TEN = tuple("0123456789")
_QUESTIONS = (
    _Question("ten_digits", 900, _TEN, lambda digit: digit),
    _Question("parity", 300, ("even", "odd"), lambda digit: digit % 2),
    _Question("half", 150, ("below five", "five or more"), lambda digit: digit >= 5),
    _Question("prime", 80, ("no", "yes"), lambda digit: np.isin(digit, [2, 3, 5, 7])),
    _Question("loop", 50, ("no", "yes"), lambda digit: np.isin(digit, [0, 6, 8, 9])),
    _Question("remainder", 30, ("0", "1", "2"), lambda digit: digit % 3),
    _Question("shuffled_parity", 900, ("even", "odd"), lambda digit: digit % 2, shuffled=True),
    _Question("shuffled_ten", 600, _TEN, lambda digit: digit, shuffled=True),
)


def digits_tasks() -> TaskSet:
    """The eight tasks, the same each time; nothing is downloaded.

    >>> digits_tasks().names[:3]
    ('ten_digits', 'parity', 'half')
    """
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    generator = np.random.default_rng(_SEED)
    order = generator.permutation(len(digits))
    pools = {
        "train": order[:_TRAIN],
        "dev": order[_TRAIN : _TRAIN + _DEV],
        "test": order[_TRAIN + _DEV :],
    }
    tasks = []
    for question in _QUESTIONS:
        splits = {}
        for split_name, pool in pools.items():
            rows = generator.permutation(pool)
            if split_name == "train":
                rows = rows[: question.rows]
            answers = question.answer(digits[rows]).astype(np.int64)
            if question.shuffled:
                answers = generator.permutation(answers)
            splits[split_name] = Split(_table(pixels[rows]), answers)
        tasks.append(
            Task(
                name=question.name,
                kind="classification",
                inputs="table",
                labels=question.labels,
                metric="accuracy",
                source=f"scikit-learn digits, {question.name}",
                splits=splits,
            )
        )
    return TaskSet(tuple(tasks))


def _table(pixels: NDArray[Any]) -> pa.Table:  # [image, 64]
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    return pa.table({name: pixels[:, i] for i, name in enumerate(names)})
