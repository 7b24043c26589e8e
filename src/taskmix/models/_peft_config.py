"""What PEFT's `adapter_config.json` says, and which of it can be honoured.

What is read is of the kind that is trained here, plain LoRA; whatever else may change what adapters
add is refused by name, also what a later version of PEFT may bring.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.files import read_plain
from taskmix.records import from_plain

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"

# Entries of PEFT's configuration that change nothing of what adapters add, or are looked at below. An
# entry that is not here, and is set, may change it.
KNOWN = {
    *("task_type", "peft_type", "auto_mapping", "peft_version", "base_model_name_or_path"),
    *("revision", "inference_mode", "r", "target_modules", "exclude_modules", "lora_alpha"),
    *("lora_dropout", "fan_in_fan_out", "bias", "use_rslora", "init_lora_weights"),
    *("layers_to_transform", "layers_pattern", "megatron_core", "qalora_group_size"),
    *("runtime_config", "eva_config", "ensure_weight_tying"),
}
# How A and B began, where the base stayed as it was; others (PiSSA, OLoRA, ...) change the base.
STARTS = (True, False, None, "gaussian", "eva", "orthogonal")


@dataclass(frozen=True, kw_only=True)
class PeftConfig:
    """What we write of PEFT's configuration, and read of it."""

    r: int
    lora_alpha: float
    target_modules: Any  # names or the ends of names; of PEFT also a pattern
    base_model_name_or_path: str | None = None
    peft_type: str = "LORA"
    task_type: str | None = None
    lora_dropout: float = 0.0
    fan_in_fan_out: bool = False
    bias: str = "none"
    use_rslora: bool = False
    inference_mode: bool = True  # as PEFT saves

    @property
    def scale(self) -> float:
        return self.lora_alpha / (math.sqrt(self.r) if self.use_rslora else self.r)


def read_config(folder: Path) -> PeftConfig:
    """The configuration of a folder; raises where its adapters are of a kind that is not taken."""
    try:
        document = json.loads(read_plain(folder / CONFIG))
    except FileNotFoundError as error:
        raise InputError(
            f"`{folder}` should be a folder with adapters of PEFT, with `{CONFIG}` and `{WEIGHTS}` in "
            "it. Found none. Check the path."
        ) from error
    except (ValueError, RecursionError) as error:
        raise refused(folder / CONFIG, "JSON", "something else") from error
    if not isinstance(document, dict):
        raise refused(folder / CONFIG, "an object", "something else")
    kind = document.get("peft_type")
    if kind != "LORA":
        raise refused(folder, "adapters of the kind LORA", f"{kind}")
    if document.get("bias", "none") != "none":
        raise refused(folder, "adapters without trained biases", f"`bias` {document['bias']!r}")
    start = document.get("init_lora_weights", True)
    if start not in STARTS:
        raise refused(folder, "adapters of an unchanged base", f"`init_lora_weights` {start!r}")
    for name, value in document.items():
        if value and name not in KNOWN:
            raise refused(folder, "adapters of plain LoRA", f"`{name}`, which is not taken here")
    try:
        config = from_plain(PeftConfig, document)
    except TypeError as error:
        raise refused(folder / CONFIG, "the options of adapters", str(error)) from error
    if config.r < 1 or not math.isfinite(config.lora_alpha):
        raise refused(folder, "a rank of 1 or more and a finite `lora_alpha`", f"{config.r}")
    return config


def refused(place: Path | str, should: str, found: str) -> InputError:
    """The error of a folder that has something else than it should have."""
    return InputError(f"`{place}` should have {should}. Found {found}.")
