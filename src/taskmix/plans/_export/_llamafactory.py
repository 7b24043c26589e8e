"""LLaMA-Factory: `interleave_probs` in its YAML, and `dataset_info.json` with the files.

`interleave_over` starts a data set again that has ended, so that the shares hold until all were seen.
"""

from __future__ import annotations

import json
from typing import Any

from taskmix.plans._export._mixture import Mixture
from taskmix.plans._export._sources import DataSource
from taskmix.plans._export._target import ExportTarget, header, in_quotes, plain_number, text


def _write(mixture: Mixture) -> dict[str, str]:
    names = [source.plain for source in mixture.sources]
    information = mixture.file("dataset_info", "json")
    several = bool(mixture.label)
    lines = [
        *header("LLaMA-Factory", "Add it to the options of your training."),
        f"dataset: {in_quotes(','.join(names))}",
        # LLaMA-Factory reads `dataset_info.json` of a folder and knows no other name.
        f"dataset_dir: {mixture.label or '.'}  # the folder of dataset_info.json, from where you start",
        "mix_strategy: interleave_over",
        f"interleave_probs: {','.join(plain_number(share) for share in mixture.shares)}",
    ]
    if mixture.steps is not None:
        lines.append(f"max_steps: {mixture.steps}")
    if mixture.batch_size is not None:
        lines.append(f"per_device_train_batch_size: {mixture.batch_size}")
    if several:
        information = f"{mixture.label}/dataset_info.json"
    entries = {name: _entry(each) for name, each in zip(names, mixture.sources, strict=True)}
    return {
        mixture.file("mixture", "yaml"): text(lines),
        information: json.dumps(entries, indent=2, ensure_ascii=False) + "\n",
    }


def _entry(source: DataSource) -> dict[str, Any]:
    entry: dict[str, Any] = {"file_name": source.file}
    match source.form:
        case "messages":
            tags = {"role_tag": "role", "content_tag": "content", "user_tag": "user"}
            tags |= {"assistant_tag": "assistant", "system_tag": "system"}
            return {**entry, "formatting": "sharegpt", "columns": {"messages": "messages"}} | {
                "tags": tags
            }
        case "prompt":
            return {**entry, "columns": {"prompt": source.prompt, "response": source.answer}}
        case "text":
            return {**entry, "columns": {"prompt": "text"}}
    return entry  # alpaca's columns, which LLaMA-Factory expects unless told


LLAMAFACTORY = ExportTarget(
    word="llamafactory",
    trainer="LLaMA-Factory",
    write=_write,
    usage="llamafactory-cli train YOURS.yaml, with the lines of mixture.yaml in it",
    documentation="https://llamafactory.readthedocs.io/en/latest/getting_started/data_preparation.html",
    checked="LLaMA-Factory 0.9.5, by its `DataArguments` and `get_dataset_list`",
    has_comments=False,
)
