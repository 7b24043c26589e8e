"""Megatron-LM and NeMo: the weights and prefixes of `--data-path`, as a file for `--data-args-path`.

Megatron splits the file at white space, so neither a prefix nor a comment may have any. The prefixes are
those of `tools/preprocess_data.py`, without `.bin` and `.idx`.

NeMo has the same weights and prefixes, for Megatron Bridge and for NeMo 2's data module. NeMo's language
models have moved to Megatron Bridge, so the file has both.
"""

from __future__ import annotations

from taskmix.errors import InputError
from taskmix.plans._export._mixture import Mixture
from taskmix.plans._export._target import ExportTarget, header, plain_number, text


def _write_megatron(mixture: Mixture) -> dict[str, str]:
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
    write=_write_megatron,
    usage="pretrain_gpt.py ... --data-args-path blend.txt --split 99,1,0",
    documentation="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py",
    checked="megatron-core 0.16.1, by its `get_blend_from_list`",
    tokens=True,
    packs=True,
    has_comments=False,
)


def _write_nemo(mixture: Mixture) -> dict[str, str]:
    words = blend(mixture)
    pairs = zip(words[::2], words[1::2], strict=True)
    lines = [
        *header(
            "NeMo", "Weights and prefixes of token files, as of Megatron's preprocess_data.py."
        ),
        "PATHS = [",
        *(f"    {weight!r}, {prefix!r}," for weight, prefix in pairs),
        "]",
        f"STEPS = {mixture.steps}  # batches that the plan has for it",
        f"BATCH_SIZE = {mixture.batch_size}  # over all devices: global_batch_size",
        "",
        "",
        "def blend():",
        '    """For Megatron Bridge: GPTDatasetConfig(blend=blend(), ...)."""',
        "    from megatron.bridge.data.loaders import get_blend_and_blend_per_split",
        "",
        "    return get_blend_and_blend_per_split(data_paths=PATHS)[0]",
        "",
        "",
        "def data_module(**options):",
        '    """For NeMo 2."""',
        "    from nemo.collections.llm import PreTrainingDataModule",
        "",
        "    return PreTrainingDataModule(paths=PATHS, **options)",
    ]
    return {mixture.file("mixture", "py"): text(lines)}


NEMO = ExportTarget(
    word="nemo",
    trainer="NeMo",
    write=_write_nemo,
    usage="Import the file: blend() for Megatron Bridge, data_module() for NeMo 2",
    documentation="https://docs.nvidia.com/nemo/megatron-bridge/latest/",
    checked="Megatron Bridge 0.3.1, by its `get_blend_and_blend_per_split`",
    tokens=True,
    packs=True,
)
