"""Adapters as the files of PEFT, out and in.

A folder has `adapter_config.json`, which says what the adapters are, and `adapter_model.safetensors`
with their matrices. PEFT calls a module by its place in the model that it was put into, so that of a
causal model with its output layer has the name of its network before it (`model.` in a Llama).

A pickle, which would run code of its own, is refused.

What is read is of the kind that is trained here, plain LoRA; whatever else may change what adapters
add is refused by name, also what a later version of PEFT may bring.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from taskmix.errors import InputError, TaskmixWarning
from taskmix.files import (
    check_output_folder,
    free_memory,
    make_folder,
    read_plain,
    write_bytes,
)
from taskmix.models._adapters import (
    Adapters,
    AdapterSet,
    SavedAdapters,
    find_targets,
    linear_names,
    linear_shape,
)
from taskmix.models._base import Outline, outline_of
from taskmix.records import from_plain, to_plain

if TYPE_CHECKING:
    from taskmix.models._transformer import AdaptedEncoder


PICKLE = "adapter_model.bin"
WHOLE = "base_model.model."  # before every name
PARTS = ("lora_A", "lora_B")


def save_adapters(folder: Path | str, encoder: AdaptedEncoder) -> Path:
    """Writes the adapters of a model as files that PEFT loads, into a new or empty folder.

    >>> save_adapters("adapters", model.encoder)  # doctest: +SKIP
    PosixPath('adapters')
    >>> base = AutoModel.from_pretrained("bert-base-uncased")  # doctest: +SKIP
    >>> peft.PeftModel.from_pretrained(base, "adapters")  # doctest: +SKIP
    """
    folder = Path(folder)
    check_output_folder(folder, is_ours=lambda path: False, what="the adapters")
    outline = outline_of(encoder.path)
    adapters = encoder.adapters
    modules = [outline.network.get_submodule(name) for name in adapters.names]
    config = PeftConfig(
        r=adapters.options.rank,
        lora_alpha=_whole(adapters.options.scale * adapters.options.rank),
        target_modules=_targets(outline, adapters.names),
        base_model_name_or_path=encoder.path,
        task_type="CAUSAL_LM" if outline.causal else "FEATURE_EXTRACTION",
        lora_dropout=adapters.options.dropout,
        fan_in_fan_out=any(not isinstance(module, nn.Linear) for module in modules),
    )
    tensors = {
        f"{WHOLE}{outline.prefix}{name}.{part}.weight": getattr(adapters.of(name), part)
        for name in adapters.names
        for part in PARTS
    }
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    make_folder(folder)
    write_bytes(folder / WEIGHTS, safetensors.torch.save(plain, {"format": "pt"}))
    text = json.dumps(to_plain(config), indent=2, ensure_ascii=False)
    write_bytes(folder / CONFIG, (text + "\n").encode())
    return folder


def read_adapters(folder: Path | str, base: str) -> Adapters:
    """The options of adapters that begin as those in a folder of PEFT, for a model of this path.

    Rank, scale and modules are those of the files. Dropout is a matter of training, and is not.

    >>> read_adapters("nowhere", "bert-base-uncased")
    Traceback (most recent call last):
    taskmix.errors.InputError: `nowhere` should be a folder with adapters of PEFT, ...
    """
    config = read_config(Path(folder))
    outline = outline_of(base)
    data = _read_weights(Path(folder))
    found = _matched(_parse(data, Path(folder)), outline, Path(folder), base)
    ranks = {first.shape[0] for first, _ in found.values()}
    if ranks != {config.r}:
        raise refused(folder, f"adapters of rank {config.r}", f"{sorted(ranks)}")
    named = config.base_model_name_or_path
    if named and Path(named).name != Path(base).name:
        warn(
            f"The adapters in `{folder}` were trained on `{named}`, and are put into `{base}`.",
            TaskmixWarning,
            stacklevel=2,
        )
    return Adapters(
        rank=config.r,
        scale=config.scale,
        targets=_own_targets(outline, tuple(found)),
        start=SavedAdapters(folder=str(folder), content=hashlib.sha256(data).hexdigest()),
    )


def base_of_adapters(folder: Path | str) -> str | None:
    """The path or name of the model that adapters in a folder were trained on, if it says so."""
    return read_config(Path(folder)).base_model_name_or_path


def is_adapter_folder(path: str) -> bool:
    """Whether a path is a folder with adapters, and without a model of its own."""
    return (Path(path) / CONFIG).is_file() and not (Path(path) / "config.json").exists()


def fill_adapters(
    adapters: AdapterSet,
    folder: Path | str,
    base: str,
    *,
    content: str | None = None,  # hash of what the folder should have
) -> None:
    """Puts what a folder of PEFT has into adapters of the same modules and rank.

    >>> fill_adapters(model.encoder.adapters, "adapters", "bert-base-uncased")  # doctest: +SKIP
    """
    folder = Path(folder)
    data = _read_weights(folder)
    if content is not None and hashlib.sha256(data).hexdigest() != content:
        raise InputError(
            f"`{folder / WEIGHTS}` should have the adapters that this model begins with. Found other "
            "ones: it was changed since. Read the folder again, or restore the file."
        )
    found = _matched(_parse(data, folder), outline_of(base), folder, base)
    odd = sorted(set(found) ^ set(adapters.names))
    if odd:
        raise refused(folder, "adapters for the modules of the model", f"another: `{odd[0]}`")
    with torch.no_grad():
        for name, values in found.items():
            for part, value in zip(PARTS, values, strict=True):
                own: Tensor = getattr(adapters.of(name), part)
                if own.shape != value.shape:
                    rank = adapters.options.rank
                    raise refused(folder, f"adapters of rank {rank}", _shape(value))
                own.copy_(value)


def _read_weights(folder: Path) -> bytes:
    try:
        return read_plain(folder / WEIGHTS, limit=free_memory() // 4)
    except FileNotFoundError as error:
        found = "none"
        if (folder / PICKLE).exists():
            found = (
                f"`{PICKLE}`, a pickle, which is never loaded: it may run code. Load it with PEFT, if "
                "you trust it, and save it again with `save_pretrained`, which writes safetensors"
            )
        raise InputError(
            f"`{folder}` should have its adapters in `{WEIGHTS}`. Found {found}."
        ) from error


def _parse(data: bytes, folder: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(data)
    except (SafetensorError, ValueError, LookupError, RuntimeError, TypeError) as error:
        raise refused(folder / WEIGHTS, "safetensors", "another or a broken file") from error
    odd = next((n for n, t in tensors.items() if not torch.isfinite(t.float()).all()), None)
    if odd is not None:
        raise refused(folder / WEIGHTS, "finite numbers", f"others in `{odd}`")
    return tensors


def _matched(
    tensors: Mapping[str, Tensor], outline: Outline, folder: Path, base: str
) -> dict[str, tuple[Tensor, Tensor]]:
    """A and B by the names that modules have here, in the network's order."""
    linear = linear_names(outline.network)
    pairs: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        module, _, part = name.removeprefix(WHOLE).removesuffix(".weight").rpartition(".")
        if part not in PARTS or not name.startswith(WHOLE):
            raise refused(folder, "matrices `lora_A` and `lora_B` alone", f"`{name}`")
        known = [each for each in (_without(module, outline.name), module) if each in linear]
        if not known:
            raise InputError(
                f"The adapters in `{folder}` should fit `{base}`. Found those of `{module}`, which is "
                "no linear module of it. Give the model that they were trained on."
            )
        pairs.setdefault(known[0], {})[part] = tensor
    if not pairs:
        raise refused(folder, "adapters", "none")
    found = {}
    for name in (name for name in linear if name in pairs):
        features, outputs = linear_shape(outline.network.get_submodule(name))
        first, second = pairs[name].get("lora_A"), pairs[name].get("lora_B")
        if first is None or second is None:
            raise refused(folder, "an A and a B for every module", f"one of them for `{name}`")
        if first.dim() != 2 or second.shape != (outputs, len(first)) or first.shape[1] != features:
            raise InputError(
                f"The adapters in `{folder}` should fit `{base}`. Found {_shape(first)} and "
                f"{_shape(second)} for `{name}`, which takes {features} features to {outputs}. Give the "
                "model that they were trained on."
            )
        found[name] = (first, second)
    return found


def _targets(outline: Outline, names: tuple[str, ...]) -> list[str]:
    """The ends of names, where they stand for these modules alone, else the whole names."""
    whole = [f"{outline.prefix}{name}" for name in names]
    last = list(dict.fromkeys(name.rpartition(".")[2] for name in names))
    meant = [n for n, _ in outline.whole.named_modules() if n.rpartition(".")[2] in last]
    return last if sorted(meant) == sorted(whole) else whole


def _own_targets(outline: Outline, names: tuple[str, ...]) -> tuple[str, ...]:
    last = tuple(dict.fromkeys(name.rpartition(".")[2] for name in names))
    return last if find_targets(outline.network, last) == names else names


def _without(module: str, prefix: str) -> str:
    return module.removeprefix(f"{prefix}.") if prefix else module


def _whole(number: float) -> float:
    """As PEFT writes it: 16 and not 16.0, where it is whole."""
    return int(number) if number == int(number) else number


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape))


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
