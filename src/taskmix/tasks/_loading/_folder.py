"""`load_tasks`: from a folder, a file, the name of a data set or a frame to a `TaskSet`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taskmix.errors import InputError, OptionError
from taskmix.tasks._formats._readers import TableReader
from taskmix.tasks._formats._words import Notes, quoted
from taskmix.tasks._loading._discover import Loader, some_of
from taskmix.tasks._loading._settings import Symbols, TaskSettings
from taskmix.tasks._reading import TaskKind
from taskmix.tasks._task import TaskSet


def load_tasks(
    source: Any,  # a path, `hf:` and a name, or whatever has columns
    *,
    tasks: str | Sequence[str] | None = None,
    settings: Path | None = None,
    task_column: str | None = None,
    label: str | Sequence[str] | None = None,
    text: str | Sequence[str] | None = None,
    tokens: str | None = None,
    prompt: str | Sequence[str] | None = None,
    answer: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    split_column: str | None = None,
    columns: str | Sequence[str] | None = None,
    kind: TaskKind | None = None,
    separator: str | None = None,
    metric: str | None = None,
    labels: str | Sequence[str] | None = None,
    extend_labels: bool | None = None,
    sequence_column: str | None = None,
    time_column: str | None = None,
    values: str | Sequence[str] | None = None,
    symbols: Symbols | None = None,
    first_symbol_is_task: bool | None = None,
    strict: bool = False,
    cache: Path | None = None,
    byte_limit: int | None = None,
) -> TaskSet:
    r"""Load tasks from a folder, a file, the Hugging Face hub (`hf:name`, `hf:name:config`) or a frame.

    A frame (pandas, polars, anything that speaks Arrow, a Hugging Face data set, a mapping from columns
    to values, a list of mappings) is read as a file is, by the same options. A mapping from names to
    frames has a task, or several, for each name; from `train`, `dev` and `test`, the splits of one.

    A folder is one of these, and the first that fits is taken:

    - it is what `datasets` leaves by `save_to_disk`;
    - it holds `train`, `dev` (or `valid`, `val`, `validation`) and `test` files: one task, named as
      the folder, or with several columns as `label` one for each, named `folder/column`;
    - its sub-folders hold such files: each is a task, or several;
    - it holds a table with the column `task_column` (`task` unless said): one task for each value.
      A `split` column is honoured; without one the rows are divided 80/10/10 by a fixed rule;
    - it holds several tables: each is a task, or `books_train` and `books_test` are splits of one.

    Where `dev` is missing, a tenth of `train` is put aside by a fixed rule. `TaskSet.notes` says
    what was decided so. Names of columns are found whatever the case of their letters. What a task
    reads and predicts follows from its columns:

    - a column `text`, and `text2` for a pair, with a column `label`: keywords name others; without a
      column of that name, the only one that holds sentences;
    - `tokens` with a list of tags, or CoNLL columns, where the tags are the last column unless
      `label` has others, by number from 1 or by the names of `columns`;
    - `prompt` and `answer`, or usual names for them (`_written.py` has them), or `messages`, where
      there is no label: answers to be written; the keywords `prompt` and `answer` name others;
    - with `kind="language"`, `text` or the lines of a `.txt` file: texts to be written;
    - otherwise a table: all columns are features but the label, the task, the split, names and
      numbers of rows, and `ignore`; or just `features`;
    - sequences: lines of symbols in a `.txt` file, cells of the column `sequence_column`, or rows
      with the columns `sequence`, `t` and values. `symbols` says whether a cell is cut at white
      space or into characters; `first_symbol_is_task` that a line begins with its task's name.

    Whether classes, sets of labels or numbers are predicted follows from the labels (`_targets.py` has
    the rule); `kind` overrides it, and `separator` is what stands between the labels of a cell. `labels`
    keeps the rows with these labels. `settings` is a TOML file with a `[[task]]` for each task, and
    `task.toml` in a folder has the same keys; keywords go before both.

    A column that is a number in 95 of 100 cells is one of numbers, and its other cells are missing,
    which is noted; rows without a label or task are left out. With `strict` both are an error.
    `Task.reading` has what a task was taken for.

    With `cache`, parsed tables are kept in that folder under a hash of the file's bytes. A file that
    becomes more than 200 times its size, or takes half of the free memory, is refused (see
    `taskmix.files.Allowance`); `byte_limit` says instead how many bytes a file may have unpacked.

    >>> from pathlib import Path
    >>> folder = Path("reviews/films")
    >>> folder.mkdir(parents=True)
    >>> _ = (folder / "train.csv").write_text("text,label\ngood,yes\nbad,no\nfine,yes\n")
    >>> _ = (folder / "dev.csv").write_text("text,label\nawful,no\n")
    >>> load_tasks("reviews")["films"].sizes
    {'train': 3, 'dev': 1}
    >>> rows = {"about": ["film", "book"] * 20, "pages": [5, 7, 7, 9] * 10, "good": ["y", "n"] * 20}
    >>> load_tasks(rows, task_column="about", label="good").names
    ('book', 'film')
    """
    texts = _text_columns(text)
    given = TaskSettings(
        label=_names("label", label),
        labels=_names("labels", labels),
        metric=metric,
        kind=kind,
        separator=separator,
        text=texts[0],
        text2=texts[1],
        tokens=tokens,
        prompt=_names("prompt", prompt),
        answer=answer,
        columns=_names("columns", columns),
        features=_names("features", features),
        ignore=_names("ignore", ignore),
        task_column=task_column,
        split_column=split_column,
        sequence=sequence_column,
        time=time_column,
        values=_names("values", values),
        symbols=symbols,
        first_symbol_is_task=first_symbol_is_task,
        extend_labels=extend_labels,
    )
    notes = Notes()
    reader = TableReader(cache=cache, byte_limit=byte_limit, notes=notes)
    only = _names("tasks", tasks)
    loader = Loader(reader, notes, given, only, strict)
    made = loader.load(source, settings)
    names = [task.name for task in made]
    if only is not None:
        for name in only:
            if name not in names:
                raise InputError(
                    f"`{name}` should be one of the tasks. Found {some_of(names)}. "
                    "Check the spelling."
                )
        made = [made[names.index(name)] for name in only]
    return TaskSet(tuple(made), notes.sentences({task.name for task in made}))


def _names(option: str, names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """A list of names; a single string is one too, and not a list of letters."""
    if names is None:
        return None
    result = (names,) if isinstance(names, str) else tuple(names)
    if not result or len(set(result)) != len(result):
        raise OptionError(
            f"`{option}` should have different names, at least one. Found {quoted(list(result))}. "
            "Correct it, or leave it out."
        )
    return result


def _text_columns(names: str | Sequence[str] | None) -> tuple[str | None, str | None]:
    texts = _names("text", names) or ()
    if len(texts) > 2:
        raise OptionError(
            f"`text` should name one column, or two for a pair. Found {len(texts)}. "
            "Join the others to one of them first."
        )
    return (texts[0] if texts else None, texts[1] if len(texts) > 1 else None)
