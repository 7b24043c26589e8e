"""Where the rows of a plan's tasks lie, and how they are written, for a trainer that reads them.

A file is given by name, or found in a folder: `FOLDER/TASK/train.jsonl` or `FOLDER/TASK.jsonl`, or
another format that trainers read; for those that read tokens, `FOLDER/TASK.idx` or
`FOLDER/TASK_text_document.idx`, as Megatron's preprocessing names them. What nobody said is a
placeholder that no file is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path, PurePath
from typing import Literal

from taskmix.errors import InputError
from taskmix.tasks import read_rows

PLACEHOLDER = "REPLACE-ME"
LONGEST = (
    60  # letters of a plain name: file names end at 255 bytes, and keys of YAML at 1024 letters
)
BUILDERS = {  # by the ending of a file, the builder of `datasets.load_dataset` that reads it
    ".jsonl": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".txt": "text",
}
PROMPTS = ("prompt", "instruction", "question", "input")
ANSWERS = ("completion", "answer", "response", "output", "target")

Form = Literal["messages", "prompt", "text", "unknown"]


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """One task's rows."""

    task: str
    plain: str  # a name of its own that a path, a list with commas and a key of YAML can have
    path: str | None = None  # None: a placeholder has to stand for it
    rows: int | None = None
    columns: tuple[str, ...] = ()

    @property
    def form(self) -> Form:
        """How its rows are written: conversations, prompts with answers, texts, or not known."""
        if "messages" in self.columns:
            return "messages"
        if self.prompt and self.answer:
            return "prompt"
        return "text" if "text" in self.columns and "label" not in self.columns else "unknown"

    @property
    def prompt(self) -> str | None:
        return next((name for name in PROMPTS if name in self.columns), None)

    @property
    def answer(self) -> str | None:
        return next((name for name in ANSWERS if name in self.columns), None)

    @property
    def file(self) -> str:
        return self.path or f"{PLACEHOLDER}/{self.plain}.jsonl"

    @property
    def prefix(self) -> str:
        """Of Megatron's two files, which end in `.bin` and `.idx`."""
        return self.path or f"{PLACEHOLDER}/{self.plain}_text_document"

    @property
    def builder(self) -> str:
        return BUILDERS[_ending(PurePath(self.file)) or ".jsonl"]


def plain_names(tasks: Sequence[str]) -> dict[str, str]:
    """Of each task a short name without odd letters, which no other task has, in any case of letters."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for task in tasks:
        letters = (letter if letter.isalnum() or letter in "-._" else "_" for letter in task)
        plain = "".join(letters)[:LONGEST]
        others = (f"{plain}-{number}" for number in count(2))
        found[task] = next(each for each in chain([plain], others) if each.lower() not in taken)
        taken.add(found[task].lower())
    return found


def find_sources(
    tasks: Sequence[str],
    *,
    folder: Path | None,
    paths: Mapping[str, str],
    tokens: bool,  # whether the trainer reads tokens made beforehand, and no rows
) -> dict[str, DataSource]:
    """For each task what is said or found; a folder that is named should have them all."""
    stranger = next((name for name in paths if name not in tasks), None)
    if stranger is not None:
        raise InputError(
            f"A path should be for a task of the plan, one of {', '.join(tasks[:10])}. Found one for "
            f"`{stranger}`. Check the spelling."
        )
    if folder is not None and not folder.is_dir():
        raise InputError(
            f"The data should be a folder with the tasks' files. Found no folder at `{folder}`."
        )
    found, plain = {}, plain_names(tasks)
    for name in tasks:
        path = paths.get(name)
        if path is None and folder is not None:
            path = str(_find(name, folder, tokens=tokens).absolute())
        source = DataSource(task=name, plain=plain[name], path=path)
        found[name] = source if tokens else _looked_into(source)
    return found


def _looked_into(source: DataSource) -> DataSource:
    """The same with its rows counted and its columns known, where it is a file of this machine."""
    path = source.path
    if path is None or not Path(path).is_file() or _ending(Path(path)) is None:
        return source
    table = read_rows(Path(path)).table
    return replace(source, rows=table.num_rows, columns=tuple(table.column_names))


def _find(name: str, folder: Path, *, tokens: bool) -> Path:
    for place in _places(name, folder):
        if tokens:
            for stem in (place, place.with_name(f"{place.name}_text_document")):
                if stem.with_name(f"{stem.name}.idx").is_file():
                    return stem
            continue
        for ending in [f"{ending}{packed}" for ending in BUILDERS for packed in ("", ".gz")]:
            for path in (place / f"train{ending}", place.with_name(f"{place.name}{ending}")):
                if path.is_file():
                    return path
    looked = f"{name}_text_document.idx" if tokens else f"{name}/train.jsonl, {name}.jsonl"
    raise InputError(
        f"`{folder}` should have the rows of every task of the plan. Found no file for `{name}` "
        f"({looked} or the like). Say where it is with `--path {name}=FILE`."
    )


def _places(name: str, folder: Path) -> Iterator[Path]:
    """The task's own place, and its table's where several tasks are columns of one (`table/column`)."""
    parts = PurePath(name).parts
    for some in (parts, parts[:-1]):
        if some and not PurePath(name).is_absolute() and ".." not in some:
            yield folder.joinpath(*some)


def _ending(path: PurePath) -> str | None:
    """Of a file that can be read, without `.gz`."""
    name = path.name.lower().removesuffix(".gz")
    return next((ending for ending in BUILDERS if name.endswith(ending)), None)
