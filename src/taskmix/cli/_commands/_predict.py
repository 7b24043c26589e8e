"""`taskmix predict`: a trained model's answers for new rows."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._options._tasks import StrictOption
from taskmix.cli._printing._display import echo, print_json
from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from taskmix.training import TrainedModel

ENDINGS = (".jsonl", ".csv", ".parquet")
_SHARE = 8  # standard input may have this part of the free memory


def predict(
    model: Annotated[
        Path, typer.Argument(help="A folder with a trained model, or a study that has one.")
    ],
    rows: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A file of any format that tasks are read from (.csv, .jsonl, .parquet, .conll, ...), "
            "a folder of `save_to_disk`, or - for JSON lines on standard input.",
        ),
    ],
    task: Annotated[
        str | None, typer.Option(help="The task to answer for [where there is one only].")
    ] = None,
    task_column: Annotated[
        str | None, typer.Option(help="The column that names the task of each row.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="The pretrained model that heads or adapters belong to [where it was in training]."
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="Write a .jsonl, .csv or .parquet file; in .csv an apostrophe goes before a label "
            "that a spreadsheet would compute, such as =1+1."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of --answers if there is one.")
    ] = False,
    strict: StrictOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Answer for the rows of INPUT, which have the columns of the task folder; labels are not needed.

    A class comes with its label and probability, a number as a value, a sentence with a tag for each
    of its tokens, a prompt with the answer that the model writes, a text with the bits per byte that
    the model needs for it. One JSON object a row goes to standard output.

    Examples:

        taskmix predict advice/model new.csv --task sentiment --answers answers.csv

        echo '{"text": "well worth it"}' | taskmix predict advice - --task books
    """
    from taskmix.engine import load_model

    check_rows_file(answers, "--answers", what="the answers", overwrite=overwrite)
    trained = load_model(model, base=base)
    by_row = task_column is not None and task is None
    questions = [trained.question(each) for each in (trained.tasks if by_row else (task,))]
    name = "the tasks of the rows" if by_row else questions[0].name
    notes: list[str] = []
    found = _answers(
        trained, rows, task if by_row else name, task_column, strict=strict, on_note=notes.append
    )
    if not json_:  # beside the answers, which may be piped on
        said = f"{len(questions)} tasks" if by_row else str(questions[0].reading)
        echo(f"Read {len(found):,} rows for {name}: {said}", err=True)
        for note in notes:
            echo(f"Note: {note}", err=True)
    if answers is not None:
        write_rows(found, answers)
        if not json_:
            echo(f"{len(found):,} answers for {name if by_row else f'`{name}`'}: {answers}")
            return
    if json_:
        only = None if by_row else questions[0]
        document = {"task": only and only.name, "kind": only and only.kind, "rows": found}
        readings = [{"tasks": [each.name], **each.reading.document()} for each in questions]
        print_json(document | {"readings": readings, "reading_notes": notes})
        return
    for answer in found:
        print_json(answer, indent=None)


def _answers(
    trained: TrainedModel,
    rows: str,
    task: str | None,
    task_column: str | None,
    *,
    strict: bool,
    on_note: Callable[[str], None],
) -> list[dict[str, Any]]:
    if rows != "-":
        return trained.predict(
            Path(rows), task, task_column=task_column, strict=strict, on_note=on_note
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard-input.jsonl"
        _copy_standard_input(path)
        return trained.predict(path, task, task_column=task_column, strict=strict, on_note=on_note)


def check_rows_file(path: Path | None, option: str, *, what: str, overwrite: bool) -> None:
    """Whether rows can be written there, before anything is read."""
    from taskmix.files import check_output

    if path is None:
        return
    if path.suffix.lower() not in ENDINGS:
        raise OptionError(
            f"The name of {option} should end in {', '.join(ENDINGS)}. Found `{path.name}`."
        )
    remedy = "Choose another name, or replace it with --overwrite."
    check_output(path, is_ours=lambda begin: overwrite, what=what, remedy=remedy)


def _cell(value: Any) -> Any:
    """What stands in a cell of CSV: lists, of a sentence or of labels, as JSON, and no formula."""
    from taskmix.files import guard_formula

    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return guard_formula(value) if isinstance(value, str) else value


def _copy_standard_input(path: Path) -> None:
    """Whatever comes, up to a part of the free memory: what never ends is told."""
    from taskmix.files import free_memory

    most, size = free_memory() // _SHARE, 0
    with path.open("wb") as file:
        while block := sys.stdin.buffer.read(1 << 20):
            size += len(block)
            if size > most:
                raise InputError(
                    f"Standard input should have at most {most:,} bytes, a part of the free memory. "
                    "Found more. Send it in several parts, or name a file."
                )
            file.write(block)


def write_rows(answers: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A .jsonl, .csv or .parquet file of rows that all have the same names."""
    import io

    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as arrow_parquet

    from taskmix.files import write_bytes

    if path.suffix.lower() == ".jsonl":
        lines = (json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
        write_bytes(path, "".join(lines).encode())
        return
    sink = io.BytesIO()
    if path.suffix.lower() == ".csv":
        cells = [{name: _cell(value) for name, value in answer.items()} for answer in answers]
        arrow_csv.write_csv(pa.Table.from_pylist(cells), sink)
    else:
        arrow_parquet.write_table(pa.Table.from_pylist(list(answers)), sink)
    write_bytes(path, sink.getvalue())
