"""Text that is to be written: prompts with their answers, conversations, and passages.

Columns named `prompt` and `answer`, or as usual data sets have them (`instruction` with `response`,
`output` or `completion`, `question` with `answer`), mean generation where there is no label; an
`input` beside an `instruction` belongs to the prompt. In a column `messages` each cell is a list of
objects with `role` and `content`, and the last of them, by the `assistant`, is the answer. Passages
are read as such only where `kind` is `language`, because texts without labels are often a slip.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._columns._stack import StackedFiles, cell_family, folded_name, match_column
from taskmix.tasks._formats._words import quoted
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._reading import WRITTEN

PROMPTS = ("prompt", "instruction", "question")
ANSWERS = ("answer", "response", "completion", "output")
MESSAGES = "messages"
_BESIDE = "input"  # what an instruction is about
_REMEDY = "Correct that row or take it out."
_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])


@dataclass(frozen=True)
class WrittenColumns:
    """Which columns hold what is read and what is to be written."""

    kind: Literal["generation", "language"]
    columns: tuple[str, ...]  # of the prompt, or of the passage
    answer: str | None  # `messages` where the answer is the last of them; None of a passage


def find_written(
    stack: StackedFiles,
    settings: TaskSettings,
    label: str | None,  # the target column asked for, which may name the answer
    apart: Collection[str],  # columns that say the task and the split
) -> WrittenColumns | None:
    """The columns of prompts and answers, or of passages; None where it is another kind of task."""
    if settings.kind == "language":
        return WrittenColumns("language", (_passage(stack, settings, apart),), None)
    said = settings.prompt is not None or settings.answer is not None
    if settings.kind is not None and settings.kind not in WRITTEN:
        return None
    if settings.kind is None and not said and (label or match_column(stack.names, "label")):
        return None
    names = [name for name in stack.names if name not in apart]
    answer = settings.answer or label or _first_of(ANSWERS, names)
    prompt = settings.prompt or _prompt([name for name in names if name != answer])
    if prompt is not None and answer is not None:
        return WrittenColumns("generation", prompt, answer)
    talk = prompt[0] if prompt else match_column(names, MESSAGES) or MESSAGES
    if talk in names and cell_family(stack.column(talk).type) == "list":
        return WrittenColumns("generation", (talk,), talk)
    if said or settings.kind is not None:
        stack.parts[0].bad(
            "A task with answers to write should have columns for the prompt and for the answer.",
            f"the columns {', '.join(stack.names[:8])}",
            "Name them with `prompt` and `answer` in task.toml.",
        )
    return None


def _prompt(names: Collection[str]) -> tuple[str, ...] | None:
    found = _first_of(PROMPTS, names)
    beside = match_column(names, _BESIDE)
    if found is not None and folded_name(found) == "instruction" and beside is not None:
        return (found, beside)
    return None if found is None else (found,)


def _first_of(words: Collection[str], names: Collection[str]) -> str | None:
    return next((n for word in words if (n := match_column(names, word)) is not None), None)


def _passage(stack: StackedFiles, settings: TaskSettings, apart: Collection[str]) -> str:
    if settings.text is not None:
        return settings.text
    names = [name for name in stack.names if name and name not in apart]
    for usual in ("text", "line"):  # the lines of a .txt file are a column
        if found := match_column(names, usual):
            return found
    texts = [name for name in names if cell_family(stack.column(name).type) == "text"]
    if len(texts) != 1:
        should = "One column should hold the text of a language task."
        found = f"text in the columns {', '.join(texts[:8]) or '(none)'}"
        stack.parts[0].bad(should, found, "Name it with `text` in task.toml.")
    return texts[0]


def build_written(stack: StackedFiles, columns: tuple[str, ...], answer: str | None) -> pa.Table:
    """The table of a prompt: `prompt`, and `answer` where a column of answers is named."""
    if cell_family(stack.column(columns[0]).type) == "list":
        return _build_talk(stack, columns[0], answer)
    table = {"prompt": _joined(stack, columns)}
    _check_words(stack, columns[0], table["prompt"])
    if answer is not None:
        table["answer"] = stack.text(answer, "as an answer")
        _check_words(stack, answer, table["answer"])
    return pa.table(table)


def build_passages(stack: StackedFiles, column: str) -> pa.Table:
    """The table of a passage."""
    texts = stack.text(column, "as a text to write")
    _check_words(stack, column, texts)
    return pa.table({"text": texts})


def _joined(stack: StackedFiles, columns: tuple[str, ...]) -> pa.ChunkedArray:
    """The first column, and after a blank line what the others have."""
    whole = stack.text(columns[0], "as a prompt")
    for name in columns[1:]:
        cells = stack.text(name, "as part of a prompt")
        more = pc.binary_join_element_wise(whole, cells, "\n\n")
        whole = pc.if_else(pc.equal(pc.utf8_trim_whitespace(cells), ""), whole, more)
    return whole


def _check_words(stack: StackedFiles, name: str, cells: pa.ChunkedArray) -> None:
    for part, start, size in zip(stack.parts, stack.starts, stack.sizes, strict=False):
        if not any(cell.as_py().strip() for cell in cells.slice(start, size)):
            should = f"`{name}` should have words in some rows."
            part.bad(should, "none", "Check which column is meant.", 0)


def _build_talk(stack: StackedFiles, column: str, answer: str | None) -> pa.Table:
    """Lists of messages; the last one is the answer where the column itself holds the answers."""
    prompts: list[list[dict[str, str]]] = []
    answers: list[str] = []
    for place, cell in enumerate(stack.column(column).to_pylist()):
        talk = _messages(stack, place, column, cell)
        if answer == column:
            if len(talk) < 2 or talk[-1]["role"] != "assistant":
                should = f"`{column}` should end with a message of the assistant, the answer."
                last = f"one by {quoted(talk[-1]['role'])}"
                found = last if talk[-1]["role"] != "assistant" else "no message before it"
                stack.bad(place, should, found, _REMEDY)
            answers.append(talk[-1]["content"])
        if answer in (column, None) and len(talk) > 1 and talk[-1]["role"] == "assistant":
            talk = talk[:-1]
        prompts.append(talk)
    table = {"prompt": pa.chunked_array([pa.array(prompts, pa.list_(_MESSAGE))])}
    if answer is not None:
        own = pa.chunked_array([pa.array(answers, pa.string())])
        table["answer"] = own if answer == column else stack.text(answer, "as an answer")
    return pa.table(table)


def _messages(stack: StackedFiles, place: int, column: str, cell: Any) -> list[dict[str, str]]:
    should = f"`{column}` should be a list of messages, each with a `role` and a `content`."
    for each in cell or [None]:
        said = each if isinstance(each, dict) else {}
        if not all(isinstance(said.get(key), str) for key in ("role", "content")):
            stack.bad(place, should, quoted(each), _REMEDY)
    return [{"role": each["role"], "content": each["content"]} for each in cell]
