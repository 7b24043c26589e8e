"""Networks and tokenizers of Hugging Face, loaded without a word to the terminal.

transformers draws bars and logs what it finds while it loads and saves. Of that one thing matters: a
network some of whose weights are not in its files, since those begin at random.

A model is a folder, a name on the hub, or a GGUF file: the file itself, or a folder that has one of
them and no `config.json`. The weights of a GGUF file become those of the usual network.
No code of a model's own is run, and whatever reading its files raises becomes a sentence.
"""

from __future__ import annotations

import logging
import re
import struct
import time
import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from functools import lru_cache
from io import StringIO
from math import prod
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from safetensors import SafetensorError, safe_open

from taskmix.errors import InputError, TaskmixError, TaskmixWarning
from taskmix.extras import load, require
from taskmix.files import check_plain, check_plain_folder, free_memory, list_folder, open_plain

if TYPE_CHECKING:
    import torch

UNTRAINED_LAYER = "pooler"  # a layer after the last one: whoever trains on other tasks never had it

# What a model is made of; other files may lie in its folder, and change while it is at work.
MODEL_FILES = (".safetensors", ".gguf", ".bin", ".model", ".txt", "config.json", "tokenizer.json")

PATIENCE = 5.0  # seconds that the hub has for its first answer

PretrainedKind = Literal["AutoModel", "AutoModelForCausalLM", "AutoTokenizer"]
if TYPE_CHECKING:
    import torch
    from torch.utils.hooks import RemovableHandle

_BYTES = 1e9
_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))  # of GGUF
_SLACK = 1.1  # of the weights: what a small batch and the loading itself take besides
_PACKED = 32  # weights to a number in a file: quantized to two bits, and half of them absent
_MOST_TENSORS = 100_000  # the largest models have 70,000; so many take some seconds to build
_PARTS, _MOST_PARTS = re.compile("layer|block|dense|kernel|num_labels"), 100_000
_MOST_VALUES = 5_000_000  # in a header; the largest vocabularies have 300,000 words


class Place(NamedTuple):
    """Where transformers finds a model."""

    folder: str  # or a name on the hub
    gguf: str | None  # a file in the folder


def locate(path: str) -> Place:
    """The folder of a model, and its GGUF file where it is one."""
    if path.lower().endswith(".gguf"):
        return Place(str(Path(path).parent), Path(path).name)
    if Path(path).is_dir() and not (Path(path) / "config.json").exists():
        files = [name for name in list_folder(Path(path)) if name.lower().endswith(".gguf")]
        if len(files) == 1:
            return Place(path, files[0])
    return Place(path, None)


def stamp_of(path: str) -> Hashable:
    """A value that changes when the files of a model do, so that what was read of them is not kept.

    >>> stamp_of("bert-base-uncased")  # a name on the hub
    'bert-base-uncased'
    """
    place = locate(path)
    folder = Path(place.folder)
    try:
        files = [folder / place.gguf] if place.gguf is not None else sorted(folder.iterdir())
        return tuple(
            (each.name, stat.st_mtime_ns, stat.st_size)
            for each in files
            if each.name.endswith(MODEL_FILES) and (stat := each.stat())
        )
    except OSError:
        return path


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Neither bars nor warnings of transformers and of the hub for the length of a `with` block.

    >>> with quiet_transformers():  # doctest: +SKIP
    ...     network = load_pretrained("AutoModel", "bert-base-uncased")
    """
    settings = load("transformers.utils.logging", purpose="A pretrained encoder")
    hub = logging.getLogger("huggingface_hub")
    level, hub_level, bars = settings.get_verbosity(), hub.level, settings.is_progress_bar_enabled()
    settings.set_verbosity_error()
    settings.disable_progress_bar()
    hub.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        settings.set_verbosity(level)
        hub.setLevel(hub_level)
        if bars:
            settings.enable_progress_bar()


def in_cache(path: str) -> str:
    """Of a name on the hub its folder in the cache, where the hub does not answer; else the same."""
    if Path(path).exists() or _hub_answers(int(time.monotonic() // 60)):
        return path
    hub = load("huggingface_hub", purpose="A name on the hub", needs="transformers")
    with suppress(OSError):
        return str(hub.snapshot_download(path, local_files_only=True))
    raise InputError(
        f"`{path}` should be a folder with a Hugging Face model or a name on the hub. Found no folder, "
        f"no copy in the hub's cache, and no answer of the hub in {PATIENCE:g} seconds. Check the path."
    )


@lru_cache(maxsize=1)  # not asked twice a minute, as it would be for every file
def _hub_answers(minute: int) -> bool:
    hub = load("huggingface_hub", purpose="A name on the hub", needs="transformers")
    said = []

    def ask() -> None:
        with suppress(Exception):  # of whichever of its libraries: there was no answer
            said.append(hub.get_session().head(hub.constants.ENDPOINT, timeout=PATIENCE))

    asking = Thread(target=ask, daemon=True)  # to look up an address may take longer than that
    asking.start()
    asking.join(PATIENCE)
    return bool(said)


@contextmanager
def reading_model(path: str) -> Iterator[None]:
    """Makes one sentence of whatever is raised within a `with` block while a model is read or used."""
    try:
        yield
    except BaseException as error:  # of other people's code on broken files: any type, Rust's too
        kind = type(error).__name__
        is_theirs = isinstance(error, Exception) or kind == "PanicException"
        if not is_theirs or isinstance(error, TaskmixError) or kind == "OutOfMemoryError":
            raise
        words = " ".join(str(error).split())
        if isinstance(error, RuntimeError) and "mismatch" in words:
            raise _misfit(path, "weights of other shapes") from error
        if "trust_remote_code" in words:
            raise InputError(
                f"A model should need no code but that of transformers. Found code in `{path}` itself, "
                "which is never run. Give a model of a type that transformers knows."
            ) from error
        raise InputError(
            f"`{path}` should be a folder with a Hugging Face model, a GGUF file or a name on the hub. "
            f"Reading it ended in {kind}: {words[:300].rstrip('.')}. Check the path, or save the "
            "model there again with `save_pretrained`."
        ) from error


def load_pretrained(kind: PretrainedKind, path: str, *, dtype: torch.dtype | None = None) -> Any:
    """What a folder, a GGUF file or a name on the hub has of this kind.

    A network has the type `dtype`, float32 where none is given. `InputError` where there is nothing of
    the kind, where its weights do not fit, or need too much memory.

    >>> tokenizer = load_pretrained("AutoTokenizer", "bert-base-uncased")  # doctest: +SKIP
    """
    import torch

    transformers, folder, more, count = _prepared(path)
    loader = getattr(transformers, kind)
    if kind == "AutoTokenizer":
        with reading_model(path), quiet_transformers():
            return loader.from_pretrained(folder, **more)
    dtype = dtype or torch.float32
    outline = outline_network(path, causal=kind == "AutoModelForCausalLM")
    check_memory(path, max(outline.num_parameters(), count), dtype)
    # The bar over the tensors of a GGUF file is none of those that transformers' settings reach.
    hidden = redirect_stderr(StringIO()) if "gguf_file" in more else nullcontext()
    with reading_model(path), quiet_transformers(), hidden:
        network, found = loader.from_pretrained(
            folder, dtype=dtype, output_loading_info=True, **more
        )
    _check_loaded(path, network, found)
    if "gguf_file" in more:  # the weights are plain once they are loaded, and can be saved again
        network.hf_quantizer = None
        vars(network.config).pop("quantization_config", None)
    return network


def outline_network(path: str, *, causal: bool) -> Any:
    """The network of a model without its weights: its modules and their shapes, in no memory.

    >>> network = outline_network("bert-base-uncased", causal=False)  # doctest: +SKIP
    """
    import torch

    transformers, folder, more, count = _prepared(path)
    loader = transformers.AutoModelForCausalLM if causal else transformers.AutoModel
    with reading_model(path), quiet_transformers():
        config = transformers.AutoConfig.from_pretrained(folder, **more)
        with torch.device("meta"), building_at_most(count):
            return loader.from_config(config, trust_remote_code=False)


def _prepared(path: str) -> tuple[Any, str, dict[str, Any], int]:
    """transformers, a model's folder, how all of it is read there, and how many weights it has."""
    transformers = load("transformers", purpose="A pretrained encoder")
    more: dict[str, Any] = {"trust_remote_code": False}  # or else it asks on standard input
    with reading_model(path), quiet_transformers():
        folder, gguf = locate(path)
        if gguf is not None:
            require("gguf", purpose=f"The GGUF file `{path}`")
            more["gguf_file"] = gguf
            return transformers, folder, more, count_gguf(Path(folder) / gguf)
        check_plain_folder(Path(path))
        folder = in_cache(path)
        with suppress(OSError):  # a tokenizer alone has no configuration
            check_numbers(transformers.PretrainedConfig.get_config_dict(folder, **more)[0])
        return transformers, folder, more, count_parameters(Path(folder))


def _check_loaded(path: str, network: Any, found: Any) -> None:
    absent = [
        name for name in sorted(found["missing_keys"]) if not name.startswith(UNTRAINED_LAYER)
    ]
    if not absent:
        return
    parameters = dict(network.named_parameters())
    random = sum(parameters[name].numel() for name in absent if name in parameters)
    if random > sum(each.numel() for each in parameters.values()) / 2:
        raise _misfit(path, f"no weights for {len(absent)} parameters, such as `{absent[0]}`")
    warnings.warn(
        f"`{path}` has no weights for {len(absent)} parameters of its encoder, such as "
        f"`{absent[0]}`: they begin at random.",
        TaskmixWarning,
        stacklevel=4,
    )


def _misfit(path: str, found: str) -> InputError:
    return InputError(
        f"The weights of `{path}` should fit its `config.json`. Found {found}. Put the "
        "configuration beside the weights that it was saved with."
    )


def check_memory(path: str, count: int, dtype: torch.dtype) -> None:
    """Raises where a network of so many parameters of this type would not fit."""
    import torch

    free = free_memory()
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


def check_numbers(description: Any, name: str = "") -> None:
    """Raises where a configuration asks for a list without end: it makes some before any network."""
    if isinstance(description, dict):
        for key, value in description.items():
            check_numbers(value, str(key))
    elif isinstance(description, int) and description > _MOST_PARTS and _PARTS.search(name):
        raise ValueError(f"{name} is {description:,}")


def building_at_most(count: int) -> RemovableHandle:
    """Within a `with` block no network in no memory gets far larger than so many weights; 0: unknown."""
    from torch.nn.modules.module import register_module_parameter_registration_hook

    tensors = total = 0

    def add(module: Any, name: str, parameter: Any) -> None:
        nonlocal tensors, total
        if parameter is not None and parameter.is_meta:
            tensors, total = tensors + 1, total + parameter.numel()
            if tensors > _MOST_TENSORS or total > _PACKED * (count or total):
                raise ValueError(f"{total:,} weights or more are described, and {count:,} there")

    return register_module_parameter_registration_hook(add)


def count_parameters(folder: Path) -> int:
    """About how many weights the files of a model have; 0 where there are none here."""
    names = list_folder(folder)
    tensors = [name for name in names if name.endswith(".safetensors")]
    # Of several copies of the same weights one is loaded: as `model`, where there is such a name.
    whole = [name for name in tensors if re.fullmatch(r"model(-\d+-of-\d+)?\.safetensors", name)]
    older = [name for name in names if re.fullmatch(r"pytorch_model.*\.bin", name)]
    return max(
        sum(_of_safetensors(folder / name) for name in whole or tensors),
        sum((folder / name).stat().st_size for name in older) // 4,  # usually float32
    )


def _of_safetensors(file: Path) -> int:
    try:
        check_plain(file)
        with safe_open(file, "pt") as tensors:
            return sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    except (SafetensorError, OSError):
        return 0  # loading it will say what is wrong


def count_gguf(file: Path) -> int:
    """How many weights a GGUF file has; raises where its header promises what is not in the file."""
    with open_plain(file) as content:
        room = _MOST_VALUES

        def number(code: str) -> Any:
            return struct.unpack(f"<{code}", content.read(struct.calcsize(f"<{code}")))[0]

        def text() -> str:
            length = number("Q")
            if length > _MOST_VALUES:
                raise ValueError(f"its header has a text of {length:,} bytes")
            return content.read(length).decode(errors="replace")

        def value(kind: int) -> Any:
            nonlocal room
            if kind in _NUMBERS:
                return number(_NUMBERS[kind])
            if kind == 8:
                return text() and None
            inner, count = number("I"), number("Q")
            room -= count
            if kind != 9 or room < 0:
                raise ValueError(f"its header has a list of {count:,} values")
            for _ in range(count):
                value(inner)
            return None

        if content.read(8)[:4] != b"GGUF":
            raise ValueError("it does not begin as a GGUF file does")
        tensors, values = number("Q"), number("Q")
        if max(tensors, values) > _MOST_TENSORS:
            raise ValueError(f"it says that it has {tensors:,} tensors and {values:,} values")
        check_numbers({text(): value(number("I")) for _ in range(values)})
        weights = 0
        for _ in range(tensors):
            text()
            weights += prod(number("Q") for _ in range(min(number("I"), 4)))
            content.read(12)  # its type, and where it begins
        return min(weights, 8 * file.stat().st_size)  # a byte has eight weights at most
