"""Networks and tokenizers of Hugging Face, loaded without a word to the terminal.

transformers draws bars and logs what it finds while it loads and saves. Of that one thing matters: a
network some of whose weights are not in its files, since those begin at random.

A model is a folder, a name on the hub, or a GGUF file: the file itself, or a folder that has one of
them and no `config.json`. The weights of a GGUF file become those of the usual network.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from taskmix.errors import InputError, TaskmixWarning
from taskmix.extras import load, require
from taskmix.files import check_plain, check_plain_folder, list_folder
from taskmix.tasks._encoding._weights import check_memory

if TYPE_CHECKING:
    import torch

UNTRAINED_LAYER = "pooler"  # a layer after the last one: whoever trains on other tasks never had it

# What a model is made of; other files may lie in its folder, and change while it is at work.
MODEL_FILES = (".safetensors", ".gguf", ".bin", ".model", ".txt", "config.json", "tokenizer.json")

PretrainedKind = Literal["AutoModel", "AutoModelForCausalLM", "AutoTokenizer"]


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


def load_pretrained(kind: PretrainedKind, path: str, *, dtype: torch.dtype | None = None) -> Any:
    """What a folder, a GGUF file or a name on the hub has of this kind.

    A network has the type `dtype`, float32 where none is given. OSError or ValueError where there is
    nothing of the kind; `InputError` where its weights do not fit or need too much memory.

    >>> tokenizer = load_pretrained("AutoTokenizer", "bert-base-uncased")  # doctest: +SKIP
    """
    import torch

    transformers = load("transformers", purpose="A pretrained encoder")
    place = locate(path)
    more: dict[str, Any] = {}
    if place.gguf is not None:
        require("gguf", purpose=f"The GGUF file `{path}`")
        check_plain(Path(place.folder) / place.gguf)
        more = {"gguf_file": place.gguf}
    else:
        check_plain_folder(Path(path))
    loader = getattr(transformers, kind)
    if kind == "AutoTokenizer":
        with quiet_transformers():
            return loader.from_pretrained(place.folder, **more)
    dtype = dtype or torch.float32
    check_memory(path, Path(place.folder), place.gguf, dtype)
    with quiet_transformers(), _without_bar(is_gguf=place.gguf is not None):
        try:
            network, found = loader.from_pretrained(
                place.folder, dtype=dtype, output_loading_info=True, **more
            )
        except RuntimeError as error:  # shapes that differ, told over many lines
            raise _misfit(path, _told(error)) from error
    _check_loaded(path, network, found)
    if place.gguf is not None:
        _forget_packing(network)
    return network


def outline_network(path: str, *, causal: bool) -> Any:
    """The network of a model without its weights: its modules and their shapes, in no memory.

    >>> network = outline_network("bert-base-uncased", causal=False)  # doctest: +SKIP
    """
    import torch

    transformers = load("transformers", purpose="A pretrained encoder")
    place = locate(path)
    more = {} if place.gguf is None else {"gguf_file": place.gguf}
    if place.gguf is not None:
        require("gguf", purpose=f"The GGUF file `{path}`")
    with quiet_transformers(), torch.device("meta"):
        config = transformers.AutoConfig.from_pretrained(place.folder, **more)
        loader = transformers.AutoModelForCausalLM if causal else transformers.AutoModel
        return loader.from_config(config)


@contextmanager
def _without_bar(*, is_gguf: bool) -> Iterator[None]:
    """The bar over the tensors of a GGUF file is none of those that transformers' settings reach."""
    if not is_gguf:
        yield
        return
    module = load("transformers.modeling_gguf_pytorch_utils", purpose="A GGUF file")
    bar = module.tqdm
    module.tqdm = lambda items, **_: items
    try:
        yield
    finally:
        module.tqdm = bar


def _forget_packing(network: Any) -> None:
    """The weights of a GGUF file are plain once they are loaded, so the network can be saved again."""
    network.hf_quantizer = None
    if hasattr(network.config, "quantization_config"):
        del network.config.quantization_config


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


def _told(error: Exception) -> str:
    """What an error of transformers comes down to, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "size mismatch" in line.lower() or "shape" in line.lower()]
    return (telling or lines or [type(error).__name__])[0].rstrip(".")
