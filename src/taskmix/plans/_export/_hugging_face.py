"""Hugging Face `datasets`: a script with `interleave_datasets` and the shares as probabilities.

`all_exhausted` starts a source again that has ended, so that the shares hold until every row was seen.

TRL: a YAML of its `DatasetMixtureConfig`, whose `fraction` is a source's share of the mixture. TRL keeps
so many rows of every source that none is repeated: the mixture is as large as the source that runs out
first allows, and further epochs repeat the same rows.
"""

from __future__ import annotations

from taskmix.plans._export._mixture import Mixture
from taskmix.plans._export._target import ExportTarget, header, in_quotes, plain_number, text


def _write_datasets(mixture: Mixture) -> dict[str, str]:
    lines = [
        *header(
            "Hugging Face datasets", "mixture() is the data to train on; cut it at STEPS batches."
        ),
        "from datasets import interleave_datasets, load_dataset",
        "",
        "SOURCES = {  # task: builder, file, share of the batches",
        *(
            f"    {source.task!r}: ({source.builder!r}, {source.file!r}, {plain_number(share)}),"
            for source, share in zip(mixture.sources, mixture.shares, strict=True)
        ),
        "}",
        f"STEPS = {mixture.steps}  # batches that the plan has for it",
        f"BATCH_SIZE = {mixture.batch_size}",
        "",
        "",
        "def mixture(seed=0, streaming=False):",
        "    rows = [",
        '        load_dataset(builder, data_files=file, split="train", streaming=streaming)',
        "        for builder, file, _ in SOURCES.values()",
        "    ]",
        "    if streaming:",
        "        shuffled = [each.shuffle(seed=seed, buffer_size=10_000) for each in rows]",
        "    else:",
        "        shuffled = [each.shuffle(seed=seed) for each in rows]",
        "    shares = [share for _, _, share in SOURCES.values()]",
        "    return interleave_datasets(",
        '        shuffled, probabilities=shares, seed=seed, stopping_strategy="all_exhausted"',
        "    )",
    ]
    return {mixture.file("mixture", "py"): text(lines)}


DATASETS = ExportTarget(
    word="datasets",
    trainer="Hugging Face datasets",
    write=_write_datasets,
    usage="Import the file and train on `mixture()`; it ends when every row was seen, so say the steps.",
    documentation="https://huggingface.co/docs/datasets/process#interleave",
    checked="datasets 5.2.0, by running the script",
    any_rows=True,
)


def _write_trl(mixture: Mixture) -> dict[str, str]:
    lines = [
        *header("TRL", "Rows should have `messages`, or `prompt` and `completion`."),
        "datasets:",
    ]
    for source, share in zip(mixture.sources, mixture.shares, strict=True):
        lines += [
            f"  - path: {in_quotes(source.builder)}  # task {in_quotes(source.task)}",
            f"    data_files: {in_quotes(source.file)}",
            "    split: train",
            f"    fraction: {plain_number(share)}",
        ]
    if mixture.steps is not None:
        lines.append(f"max_steps: {mixture.steps}")
    if mixture.batch_size is not None:
        lines.append(f"per_device_train_batch_size: {mixture.batch_size}")
    return {mixture.file("mixture", "yaml"): text(lines)}


TRL = ExportTarget(
    word="trl",
    trainer="TRL",
    write=_write_trl,
    usage="trl sft --config mixture.yaml --model_name_or_path MODEL",
    documentation="https://huggingface.co/docs/trl/script_utils#trl.DatasetMixtureConfig",
    checked="TRL 1.16.0, by its own parser and `get_dataset`",
)
