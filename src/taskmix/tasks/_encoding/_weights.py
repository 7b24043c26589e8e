"""How much memory the weights of a model take, known from its files before anything is loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from taskmix.errors import InputError
from taskmix.extras import load
from taskmix.files import check_plain, free_memory, list_folder

if TYPE_CHECKING:
    import torch

_BYTES = 1e9
_PACKED = 8  # weights that a byte of a GGUF file has at most
_SLACK = 1.1  # of the weights: what a small batch and the loading itself take besides


def check_memory(path: str, folder: Path, gguf: str | None, dtype: torch.dtype) -> None:
    """Raises where a network of this type would not fit; what is not on this disk is not known."""
    import torch

    free = free_memory()
    if gguf is not None and _size(folder / gguf) * _PACKED * dtype.itemsize * _SLACK <= free:
        return  # to count what such a file has takes seconds
    count = count_parameters(folder, gguf)
    needed = count * dtype.itemsize * _SLACK
    if needed <= free:
        return
    half = count * torch.bfloat16.itemsize * _SLACK
    ways = "Take a smaller model"
    if dtype.itemsize > torch.bfloat16.itemsize and half <= free:
        ways += f", load it as bfloat16 ({half / _BYTES:.1f} GB)"
    raise InputError(
        f"A model should fit into memory. `{path}` has {count:,} parameters, which take "
        f"{needed / _BYTES:.1f} GB as {str(dtype).removeprefix('torch.')}. Found {free / _BYTES:.1f} "
        f"GB free. {ways}, one of at most {int(free / dtype.itemsize / _SLACK):,} parameters, or a "
        "machine with more memory."
    )


def count_parameters(folder: Path, gguf: str | None = None) -> int:
    """About how many weights the files of a model have; 0 where there are none here."""
    if gguf is not None:
        return _of_gguf(folder / gguf)
    names = list_folder(folder)
    tensors = [name for name in names if name.endswith(".safetensors")]
    # Of several copies of the same weights one is loaded: as `model`, where there is such a name.
    whole = [name for name in tensors if re.fullmatch(r"model(-\d+-of-\d+)?\.safetensors", name)]
    if tensors:
        return sum(_of_safetensors(folder / name) for name in whole or tensors)
    older = [name for name in names if re.fullmatch(r"pytorch_model.*\.bin", name)]
    return sum(_size(folder / name) for name in older) // 4  # usually float32


def _of_safetensors(file: Path) -> int:
    total = 0
    try:
        check_plain(file)
        with safe_open(file, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                size = 1
                for extent in tensors.get_slice(name).get_shape():
                    size *= extent
                total += size
    except (SafetensorError, OSError):
        return 0  # loading it will say what is wrong
    return total


def _of_gguf(file: Path) -> int:
    reader = load("gguf", purpose=f"The GGUF file `{file}`").GGUFReader(file)
    return sum(int(tensor.n_elements) for tensor in reader.tensors)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
