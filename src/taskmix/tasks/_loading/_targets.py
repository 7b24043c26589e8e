"""What is predicted: from a column to class indices, sets of labels, numbers or tags.

The kind of a task, where settings do not name it, follows from its target column:

- lists beside a list of tokens: `tagging`; other lists, of words or whole numbers: `multilabel`;
- text with a separator between several labels, where that is plain (`_multilabel.py` has the rule):
  `multilabel`; other text, true or false: `classification`;
- integers (also when written 1.0): `classification` if there are at most 20 different ones, or if
  they are exactly 0, 1, ..., k - 1 as class numbers are; otherwise `regression`;
- other numbers: `regression`.

More than 20 different integers are noted, whichever it was. A cell that is no number in a column of
numbers (`_values.py` has the rule) is a label of its own, with a note, or an error in a regression;
where numbers are mostly but not nearly all of many different values, the kind has to be said.

Labels are text as it is written (`_spelling.py` has the rule): numbers in their order, words in that of
the alphabet, tags with `O` first.

A label that no row of `train` has is an error for `classification`, because it is nearly always a
slip. Where the loader itself divided the rows it is chance. It is accepted, with a note, for tags and
for several labels a row; and
where labels are text and train, with 100 rows or more, has labels that occur only once: by Good and
Turing's estimate there are then more to come, and real data (the intents of ATIS) are like that.
`extend_labels` overrides this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.tasks._columns._spelling import SpelledColumn, normal, spell, words_of
from taskmix.tasks._columns._stack import StackedFiles, cell_family
from taskmix.tasks._formats._words import quoted
from taskmix.tasks._loading._multilabel import (
    LabelSets,
    are_bracketed,
    find_separator,
    likely_remark,
    rarest_labels,
    read_label_sets,
    refuse_vectors,
    safe_remark,
)
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._written import WrittenColumns
from taskmix.tasks._reading import WRITTEN, TaskKind
from taskmix.tasks._scoring._metrics import find_metric
from taskmix.tasks._task import MISSING

_MOST_CLASSES = 20  # whole numbers of more values are a regression, unless `kind` says otherwise
_MANY_ROWS = 100  # among which a label that stands once tells that more labels are to come
_REMEDY = "Correct that row or take it out."
_ASK_KIND = "; `kind=...` says otherwise"


@dataclass(frozen=True, eq=False)
class Target:
    """A target column, not yet encoded: classes, sets of labels, tags or numbers."""

    column: str
    kind: TaskKind
    words: SpelledColumn | None = None  # of rows, of tokens, or of all labels of the rows
    is_text: bool = False  # before it was made words
    offsets: NDArray[np.int64] | None = None  # [row + 1], the first token, or label, of each row
    sets: LabelSets | None = None  # where a row has several labels
    values: NDArray[np.float64] | None = None  # [row]
    remarks: tuple[str, ...] = ()  # what was decided about it
    written: WrittenColumns | None = None  # where text is to be written

    @property
    def missing(self) -> NDArray[np.bool_] | None:
        """[row], whether it has no target; None where every row must have one."""
        if self.sets is not None:
            return self.sets.missing
        if self.values is not None:
            return np.isnan(self.values)
        if self.words is None or self.offsets is not None:
            return None
        return self.words.codes < 0

    @property
    def strata(self) -> NDArray[np.int64] | None:
        """[row], what splits should have in equal shares: the class, or the rarest label of a row."""
        if self.sets is not None:
            return rarest_labels(self.sets)
        if self.words is None or self.offsets is not None:
            return None
        return self.words.codes


def read_target(
    stack: StackedFiles, column: str, settings: TaskSettings, tokens: str | None
) -> Target:
    """The target column; `tokens` names the column of tokens where there is one."""
    cells = stack.column(column)
    kind = settings.kind or ("multilabel" if settings.separator else guess_kind(cells, tokens))
    remark = None
    if kind == "classification" and settings.kind is None and settings.labels is None:
        kind, remark = _several_or_one(column, cells)
    if kind == "multilabel":
        if settings.kind is None and cell_family(cells.type) == "list":
            _refuse_tags(stack, column)
        separator = settings.separator or (remark[0] if remark else None)
        sets = read_label_sets(stack, column, separator)
        remarks = (*sets.remarks, *([remark[1]] if remark else []))
        return Target(
            column,
            kind,
            words=sets.words,
            is_text=True,
            offsets=sets.offsets,
            sets=sets,
            remarks=remarks,
        )
    if kind == "regression":
        if cell_family(cells.type) == "list":
            refuse_vectors(stack, column, cells)
        values = stack.numbers(column, "as the target of a regression", may_miss=True)
        remarks = ()
        if settings.kind is None and pa.types.is_integer(cells.type):
            remarks = (
                f"`{column}` has many whole numbers and was taken for regression{_ASK_KIND}",
            )
        return Target(column, kind, values=values, remarks=remarks)
    if kind == "tagging":
        return _read_tags(stack, column, tokens)
    should = f"`{column}` should be text, a number, true or false in every row, as a label."
    if cell_family(cells.type) in ("list", "other"):
        stack.bad_where(pc.is_valid(cells), should, quoted(_first(cells)), _REMEDY)
    if cell_family(cells.type) == "text":
        stack.check_characters(column, cells)
    words = spell(stack, column)
    is_text = cell_family(cells.type) == "text"
    remarks = (*words.remarks, *_remarks_on_labels(stack, column, words, settings))
    remarks += (remark[1],) if remark else ()
    return Target(column, kind, words=words, is_text=is_text, remarks=remarks)


def _several_or_one(
    column: str, cells: pa.ChunkedArray
) -> tuple[TaskKind, tuple[str | None, str] | None]:
    """Whether text cells hold several labels or one; where it is no matter of course, a separator
    and what is to be said."""
    if cell_family(cells.type) != "text":
        return "classification", None
    if are_bracketed(cells):
        return "multilabel", None
    found = find_separator(cells)
    if found is None:
        return "classification", None
    if found.is_safe:
        return "multilabel", (found.mark, safe_remark(column, found))
    return "classification", (None, likely_remark(column, found))


def _refuse_tags(stack: StackedFiles, column: str) -> None:
    """Lists that are as long as those of another column are tags, whose words have to be named."""
    lengths = pc.list_value_length(stack.column(column))
    if not (pc.max(lengths).as_py() or 0) > 1:
        return
    for name in stack.names:
        if name == column or cell_family(stack.parts[0].table[name].type) != "list":
            continue
        words = stack.column(name)
        inside = cell_family(words.type.value_type) == "text"
        if inside and pc.all(pc.equal(pc.list_value_length(words), lengths)).as_py():
            should = "Tags should stand beside `tokens`."
            found = f"none, but lists of the same lengths in `{name}`"
            remedy = (
                'Say which column has the tokens; or `kind = "multilabel"` if these are no tags.'
            )
            stack.bad(0, should, found, remedy)


def _remarks_on_labels(
    stack: StackedFiles, column: str, words: SpelledColumn, settings: TaskSettings
) -> tuple[str, ...]:
    """What was decided about labels of which many are numbers."""
    odd = stack.odd(column)
    is_number = cell_family(stack.column(column).type) == "number"
    if (
        odd is not None
        and not odd.are_missing
        and settings.kind is None
        and len(words.words) > _MOST_CLASSES
    ):
        should = f"`{column}` should be numbers, or names of classes, but not many of both."
        found = f"{odd.numbers} numbers and {odd.count} other cells, such as {quoted(odd.value)},"
        stack.bad(odd.place, should, found, "Correct the column, or say which `kind` is meant.")
    if odd is not None and odd.are_missing:
        return (
            f"`{column}` has numbers as labels, but {quoted(odd.value)} in {stack.where(odd.place)} "
            f"({odd.count} such rows) is none; it was kept as a label of its own",
        )
    if is_number and settings.kind is None and len(words.words) > _MOST_CLASSES:
        return (
            f"`{column}` has the whole numbers from 0 to {len(words.words) - 1} and was taken for "
            f"{len(words.words)} classes{_ASK_KIND}",
        )
    return ()


def _first(cells: pa.ChunkedArray) -> object:
    return next((cell.as_py() for cell in cells if cell.is_valid), None)


def guess_kind(cells: pa.ChunkedArray, tokens: str | None = None) -> TaskKind:
    """The kind of task that such a target column makes; `tokens` names that of tokens beside it."""
    kind = cell_family(cells.type)
    if kind == "list":
        return "multilabel" if tokens is None else "tagging"
    if kind != "number":
        return "classification"
    values = pc.unique(cells.drop_null()).cast(pa.float64(), safe=False).to_numpy()
    whole = np.isfinite(values).all() and (values == np.rint(values)).all()
    if whole and (
        len(values) <= _MOST_CLASSES or (values.min() == 0 and values.max() == len(values) - 1)
    ):
        return "classification"
    return "regression"


def _read_tags(stack: StackedFiles, column: str, tokens: str | None) -> Target:
    should = f"`{column}` should be a list with one tag for each of the tokens, in every row."
    cells = stack.column(column)
    if cell_family(cells.type) != "list":
        stack.bad(0, should, quoted(cells[0].as_py()), _REMEDY)
    if tokens is None:
        stack.bad(0, "Tags should stand beside `tokens`.", "none", "Say which column has them.")
    stack.bad_where(pc.is_null(cells), should, "nothing", _REMEDY)
    words = stack.column(tokens)
    if cell_family(words.type) != "list":
        stack.bad(0, f"`{tokens}` should be a list of tokens.", quoted(words[0].as_py()), _REMEDY)
    stack.bad_where(pc.is_null(words), f"`{tokens}` should be a list.", "nothing", _REMEDY)
    lengths = np.asarray(pc.list_value_length(cells).to_numpy(), dtype=np.int64)
    others = np.asarray(pc.list_value_length(words).to_numpy(), dtype=np.int64)
    for place in np.flatnonzero(lengths != others)[:1]:
        found = f"{lengths[place]} tags beside {others[place]} tokens"
        stack.bad(int(place), should, found, _REMEDY)
    flat, offsets = stack.items(cells, should)
    return Target(column, "tagging", words=words_of(flat), offsets=offsets)


def is_chunked(labels: Sequence[str]) -> bool:
    """Whether the tags are those of entities or chunks: `B-`, `I-` (and `E-`, `S-`, `L-`, `U-`)."""
    inner = [label for label in labels if label != "O"]
    return bool(inner) and all(label[0] in "BIESLU" and label[1:2] == "-" for label in inner)


def choose_metric(target: Target | None, labels: Sequence[str], wanted: str | None) -> str:
    """The metric asked for, if it fits the kind of task; otherwise the usual one."""
    kind: TaskKind = "sequences" if target is None else target.kind
    usual = {
        "classification": "accuracy",
        "multilabel": "micro_f1",
        "regression": "rmse",
        "sequences": "log_loss",
        "generation": "exact_match",
        "language": "bits_per_byte",
    }
    if wanted is None:
        return usual.get(kind) or ("entity_f1" if is_chunked(labels) else "accuracy")
    metric = find_metric(wanted)
    needs = metric.needs
    fits = (needs == "values") == (kind == "regression") and (needs != "tags" or kind == "tagging")
    fits &= metric.is_of_sets if kind == "multilabel" else needs != "sets"
    fits &= metric.is_of_text == (kind in WRITTEN)
    if kind == "language":  # the windows of a passage are no answers
        fits &= not {"exact_match", "word_f1", "rouge_l"} & set(wanted.split("+"))
    if not fits:
        raise OptionError(
            f"`metric` should fit the kind of task. Found `{wanted}` for {kind} "
            f"({'a target' if target is None else f'`{target.column}`'}). Choose another one."
        )
    return wanted


def keep_labels(stack: StackedFiles, target: Target, wanted: Sequence[str]) -> NDArray[np.bool_]:
    """[row], whether its label is among the wanted ones, each of which has to occur.

    Where a row has several labels, all rows are kept, and of their labels the wanted ones.
    """
    if target.kind not in ("classification", "multilabel") or target.words is None:
        raise OptionError(
            f"`labels` should be given for classification or multilabel. Found {target.kind} of "
            f"`{target.column}`. Leave it out."
        )
    known = target.words.words
    for label in map(normal, wanted):
        if label not in known:
            stack.parts[0].bad(
                f"All wanted labels should occur in the column `{target.column}`.",
                f"no row with {quoted(label)}",
                "Correct `labels`.",
            )
    if target.sets is not None:
        return np.ones(len(target.sets.missing), dtype=np.bool_)
    places = [known.index(normal(label)) for label in wanted]
    return np.isin(target.words.codes, places)


def settle_labels(
    stack: StackedFiles,
    target: Target,
    settings: TaskSettings,
    *,
    kept: NDArray[np.bool_],  # [row]
    known: NDArray[np.bool_],  # [row], whether it is train, as far as labels go
) -> tuple[tuple[str, ...], NDArray[np.int64], tuple[str, ...]]:
    """The labels in their order, the class index of every cell, and what is to be noted."""
    words = target.words
    if words is None:
        raise AssertionError("labels are asked of classes, sets of labels and tags only")
    if target.offsets is not None:
        lengths = np.diff(target.offsets)
        kept, known = np.repeat(kept, lengths), np.repeat(known, lengths)
    kept = kept & (words.codes >= 0)
    counts = np.bincount(words.codes[kept], minlength=len(words.words))
    in_train = np.bincount(words.codes[known & kept], minlength=len(words.words))
    if settings.labels is not None:
        order = [words.words.index(normal(label)) for label in settings.labels]
    else:
        order = [int(place) for place in np.flatnonzero(counts)]
        if target.kind == "tagging":  # the tag for nothing has its usual place
            order.sort(key=lambda place: words.words[place] != "O")
    remarks = target.remarks
    unseen = [place for place in order if not in_train[place]] if in_train.any() else []
    if unseen:
        names = ", ".join(quoted(words.words[place]) for place in unseen[:5])
        names += ", ..." if len(unseen) > 5 else ""
        remarks += (f"`{target.column}` has labels that no row of train has ({names})",)
        more_to_come = target.is_text and in_train.sum() >= _MANY_ROWS and 1 in in_train
        accept = settings.extend_labels
        if accept is None:
            accept = target.offsets is not None or settings.labels is not None or more_to_come
        if not accept:
            _refuse(stack, target, words, kept & ~known, unseen, in_train)
    index = np.full(len(words.words) + 1, MISSING, dtype=np.int64)  # the last one: of no label
    index[order] = np.arange(len(order))
    return tuple(words.words[place] for place in order), index[words.codes], remarks


def _refuse(
    stack: StackedFiles,
    target: Target,
    words: SpelledColumn,
    where: NDArray[np.bool_],
    unseen: Sequence[int],
    counts: NDArray[np.int64],
) -> None:
    place = int(np.flatnonzero(where & np.isin(words.codes, unseen))[0])
    known = [quoted(words.words[p]) for p in np.flatnonzero(counts)[:10]]
    more = ", ..." if np.count_nonzero(counts) > len(known) else ""
    row = place
    if target.offsets is not None:
        row = int(np.searchsorted(target.offsets, place, side="right")) - 1
    stack.bad(
        row,
        f"Every label `{target.column}` should also be in train, which has "
        f"{', '.join(known)}{more}.",
        quoted(words.words[words.codes[place]]),
        "Correct that row, or set `extend_labels` if the label is meant.",
    )
