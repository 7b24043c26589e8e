"""Axolotl: a YAML with `datasets`. Axolotl has no weights: it concatenates and shuffles.

So shares are said in rows. Of every task as many rows are listed as the plan draws: the whole file as
often as it goes, and a slice of it for the rest (`split: "train[:120]"`). The rows of the files have to
be known. With the plan's length the epochs are the plan; without it, an epoch is as large as it can be
with no row listed twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from taskmix.errors import InputError
from taskmix.plans._export._mixture import Mixture
from taskmix.plans._export._sources import DataSource
from taskmix.plans._export._target import ExportTarget, header, in_quotes, text

MOST_ENTRIES = 1000  # of a file that people read


def _write(mixture: Mixture) -> dict[str, str]:
    sizes = [_rows(source) for source in mixture.sources]
    most = min(size / share for size, share in zip(sizes, mixture.shares, strict=True))
    wanted, epochs = most, 1
    if mixture.steps is not None and mixture.batch_size is not None:
        wanted = mixture.steps * mixture.batch_size
        epochs = max(int(wanted / most), 1)  # whole passes that every task takes
    counts = [max(round(share * wanted / epochs), 1) for share in mixture.shares]
    if sum(count // size + 1 for count, size in zip(counts, sizes, strict=True)) > MOST_ENTRIES:
        raise InputError(
            "A plan should repeat its smallest task a few hundred times at most to be written for "
            "Axolotl, which has no weights. Found more. Export to another trainer, or fewer `--steps`."
        )
    lines = [
        *header(
            "Axolotl",
            "Axolotl has no weights, so a task's share is that of its rows: a file is listed as often",
            "as the plan draws it. Leave `dataset_exact_deduplication` off, which would undo that.",
        ),
        "datasets:",
    ]
    for source, size, count in zip(mixture.sources, sizes, counts, strict=True):
        for split in _splits(count, size):
            lines += _entry(source, split)
    lines += ["shuffle_merged_datasets: true", f"num_epochs: {epochs}"]
    if mixture.steps is not None:
        lines.append(f"max_steps: {mixture.steps}")
    if mixture.batch_size is not None:
        lines.append(f"micro_batch_size: {mixture.batch_size}")
    return {mixture.file("mixture", "yaml"): text(lines)}


def _rows(source: DataSource) -> int:
    if source.rows is None:
        raise InputError(
            "Axolotl has no weights, so a plan's shares are written as numbers of rows, and the files "
            f"should be at hand. Found none for `{source.task}`. Give the folder with `--data`."
        )
    if not source.rows:
        raise InputError(f"`{source.file}` should have rows. Found none.")
    return source.rows


def _splits(count: int, size: int) -> Iterator[str]:
    for _ in range(count // size):
        yield "train"
    if count % size:
        yield f"train[:{count % size}]"


def _entry(source: DataSource, split: str) -> list[str]:
    match source.form:
        case "messages":
            kind = ["    type: chat_template", "    field_messages: messages"]
        case "prompt":
            kind = [
                "    type:",
                f"      field_instruction: {in_quotes(source.prompt or '')}",
                f"      field_output: {in_quotes(source.answer or '')}",
                '      format: "{instruction}"',
                '      no_input_format: "{instruction}"',
            ]
        case "text":
            kind = ["    type: completion", "    field: text"]
        case _:
            kind = ["    type: alpaca  # REPLACE-ME: say how these rows are written"]
    return [
        f"  - path: {in_quotes(source.file)}  # task {in_quotes(source.task)}",
        f"    ds_type: {source.builder}",
        f"    split: {in_quotes(split)}",
        *kind,
    ]


AXOLOTL = ExportTarget(
    word="axolotl",
    trainer="Axolotl",
    write=_write,
    usage="axolotl train YOURS.yaml, with the lines of mixture.yaml in it",
    documentation="https://docs.axolotl.ai/docs/config-reference.html",
    checked="Axolotl 0.19.0, by its schema of a data set",
)
