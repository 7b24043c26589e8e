"""TRL: a YAML of its `DatasetMixtureConfig`, whose `fraction` is a source's share of the mixture.

TRL keeps so many rows of every source that none is repeated: the mixture is as large as the source that
runs out first allows, and further epochs repeat the same rows.
"""

from __future__ import annotations

from taskmix.plans._export._mixture import Mixture
from taskmix.plans._export._target import ExportTarget
from taskmix.plans._export._text import header, in_quotes, plain_number, text


def _write(mixture: Mixture) -> dict[str, str]:
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
    write=_write,
    usage="trl sft --config mixture.yaml --model_name_or_path MODEL",
    documentation="https://huggingface.co/docs/trl/script_utils#trl.DatasetMixtureConfig",
    checked="TRL 1.16.0, by its own parser and `get_dataset`",
)
