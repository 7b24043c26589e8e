"""`taskmix predict`: a trained model's answers for new rows."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from taskmix.engine import TrainedModel

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
            help="A .jsonl, .csv, .parquet or .conll file, or - for JSON lines on standard input.",
        ),
    ],
    task: Annotated[
        str | None, typer.Option("--task", help="The task to answer for [where there is one only].")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a .jsonl, .csv or .parquet file.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Answer for the rows of INPUT, which have the columns of the task folder; labels are not needed.

    A class comes with its label and probability, a number as a value, a sentence with a tag for each
    of its tokens. One JSON object a row goes to standard output.

    Examples:

        taskmix predict advice/model new.csv --task sentiment --out answers.csv

        echo '{"text": "well worth it"}' | taskmix predict advice - --task books
    """
    from taskmix.cli._display import print_json
    from taskmix.engine import read_model

    if out is not None and out.suffix.lower() not in ENDINGS:
        raise OptionError(
            f"The name of --out should end in {', '.join(ENDINGS)}. Found `{out.name}`."
        )
    trained = read_model(model)
    question = trained.question(task)
    answers = _answers(trained, rows, question.name)
    if out is not None:
        _write(answers, out)
        if not json_:
            typer.echo(f"{len(answers):,} answers for `{question.name}`: {out}")
            return
    if json_:
        print_json({"task": question.name, "kind": question.kind, "rows": answers})
        return
    for answer in answers:
        typer.echo(json.dumps(answer, ensure_ascii=False))


def _answers(trained: TrainedModel, rows: str, task: str) -> list[dict[str, Any]]:
    if rows != "-":
        return trained.predict(Path(rows), task)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard-input.jsonl"
        _copy_standard_input(path)
        return trained.predict(path, task)


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


def _write(answers: list[dict[str, Any]], path: Path) -> None:
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
        # A cell of CSV is text: lists, of a sentence, are written as JSON.
        cells = [
            {
                k: json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v
                for k, v in a.items()
            }
            for a in answers
        ]
        arrow_csv.write_csv(pa.Table.from_pylist(cells), sink)
    else:
        arrow_parquet.write_table(pa.Table.from_pylist(answers), sink)
    write_bytes(path, sink.getvalue())
