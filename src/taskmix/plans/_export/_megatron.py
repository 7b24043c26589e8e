"""Megatron-LM: the weights and prefixes of `--data-path`, as a file for `--data-args-path`.

Megatron splits the file at white space, so neither a prefix nor a comment may have any. The prefixes are
those of `tools/preprocess_data.py`, without `.bin` and `.idx`.
"""

from __future__ import annotations

from taskmix.errors import InputError
from taskmix.plans._export._mixture import Mixture
from taskmix.plans._export._target import ExportTarget
from taskmix.plans._export._text import plain_number


def _write(mixture: Mixture) -> dict[str, str]:
    return {mixture.file("blend", "txt"): " ".join(blend(mixture)) + "\n"}


def blend(mixture: Mixture) -> list[str]:
    """Weight, prefix, weight, prefix, ..., as Megatron and NeMo read them."""
    words = []
    for source, share in zip(mixture.sources, mixture.shares, strict=True):
        if len(source.prefix.split()) != 1:
            raise InputError(
                "A path should have no blanks for Megatron, which splits its list there. Found "
                f"`{source.prefix}`. Rename the folder, or give a link with `--path`."
            )
        words += [plain_number(share), source.prefix]
    return words


MEGATRON = ExportTarget(
    word="megatron",
    trainer="Megatron-LM",
    write=_write,
    usage="pretrain_gpt.py ... --data-args-path blend.txt --split 99,1,0",
    documentation="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py",
    checked="megatron-core 0.16.1, by its `get_blend_from_list`",
    tokens=True,
    packs=True,
    has_comments=False,
)
