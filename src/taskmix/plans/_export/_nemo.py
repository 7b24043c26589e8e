"""NeMo: the same weights and prefixes as Megatron's, for Megatron Bridge and for NeMo 2's data module.

NeMo's language models have moved to Megatron Bridge, so the file has both.
"""

from __future__ import annotations

from taskmix.plans._export._megatron import blend
from taskmix.plans._export._mixture import Mixture
from taskmix.plans._export._target import ExportTarget
from taskmix.plans._export._text import header, text


def _write(mixture: Mixture) -> dict[str, str]:
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
    write=_write,
    usage="Import the file: blend() for Megatron Bridge, data_module() for NeMo 2",
    documentation="https://docs.nvidia.com/nemo/megatron-bridge/latest/",
    checked="Megatron Bridge 0.3.1, by its `get_blend_and_blend_per_split`",
    tokens=True,
    packs=True,
)
