"""From the states of a pretrained model at all places of a text to one vector for the text.

Which way suits a model is its own affair: one that was trained to compare sentences says so in a file
beside its weights (Reimers and Gurevych, "Sentence-BERT", EMNLP 2019). Of the others a causal model has
seen the whole text at its last place alone, and the places of an encoder have all seen it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.extras import load
from taskmix.files import UnreadableError, read_plain
from taskmix.tasks._encoding._pretrained import in_cache, locate, quiet_transformers

Pooling = Literal["mean", "first", "last", "max"]

# Of sentence-transformers. A mean times the root of the length has the direction of the mean, which is
# all that is left of a vector once its length is made 1; where several are joined, the mean is taken.
_MODES: dict[str, Pooling] = {
    "mean_tokens": "mean",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean",
    "weightedmean_tokens": "mean",
    "cls_token": "first",
    "cls": "first",
    "lasttoken": "last",
    "max_tokens": "max",
    "max": "max",
}
_POOLING_CLASS = "Pooling"  # the last part of the type in `modules.json`


def check_pooling(pooling: str | None) -> None:
    """Raises where it is none of the ways that are known."""
    if pooling is not None and pooling not in get_args(Pooling):
        raise OptionError(
            f"`pooling` should be one of {', '.join(get_args(Pooling))}, or None for what the model "
            f"itself says. Found {pooling!r}."
        )


def find_pooling(path: str) -> Pooling:
    """How a model, in a folder or on the hub, makes one vector of a text.

    As the pooling file of sentence-transformers says, where there is one; otherwise a causal model is
    read at its last place, and any other by the mean over all places.

    >>> from pathlib import Path
    >>> Path("causal").mkdir()
    >>> _ = Path("causal/config.json").write_text('{"architectures": ["GPT2ForCausalLM"]}')
    >>> find_pooling("causal")
    'last'
    """
    modules = _document(path, "modules.json")
    for module in modules if isinstance(modules, list) else ():
        if isinstance(module, dict) and str(module.get("type")).endswith(_POOLING_CLASS):
            named = _named(_document(path, f"{module.get('path')}/config.json"))
            if named is not None:
                return named
    return "last" if is_causal(path) else "mean"


def is_causal(path: str) -> bool:
    """Whether a model reads from left to right and can continue a text, by its configuration.

    >>> from pathlib import Path
    >>> Path("encoder").mkdir()
    >>> _ = Path("encoder/config.json").write_text('{"architectures": ["BertModel"]}')
    >>> is_causal("encoder")
    False
    """
    # All that transformers reads of GGUF files is causal.
    return locate(path).gguf is not None or _is_causal(_document(path, "config.json"))


def context_length(path: str) -> int | None:
    """How many pieces a model can read at once, where its configuration says so."""
    config = _document(path, "config.json")
    for name in ("max_position_embeddings", "n_positions"):  # the second is GPT-2's
        if isinstance(config, dict) and isinstance(config.get(name), int):
            return int(config[name])
    return None


def pool(
    states: Tensor,  # [row, place, feature]
    attention_mask: Tensor,  # [row, place], 0 at padding
    pooling: Pooling,
) -> Tensor:
    """[row, feature].

    >>> states = torch.tensor([[[1.0], [3.0], [9.0]]])
    >>> mask = torch.tensor([[1, 1, 0]])
    >>> [pool(states, mask, way).item() for way in ("mean", "first", "last", "max")]
    [2.0, 1.0, 3.0, 3.0]
    """
    if pooling == "mean":
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        return (states * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    if pooling == "max":
        outside = attention_mask.unsqueeze(-1) == 0
        return states.masked_fill(outside, torch.finfo(states.dtype).min).amax(dim=1)
    places = torch.arange(states.shape[1], device=states.device)
    inside = attention_mask != 0
    if pooling == "first":  # not always place 0: some tokenizers pad on the left
        place = torch.where(inside, places, states.shape[1] - 1).amin(dim=1)
    else:
        place = torch.where(inside, places, 0).amax(dim=1)
    return states[torch.arange(len(states), device=states.device), place]


def _named(document: Any) -> Pooling | None:
    """What a pooling file names; None where it has nothing that is known."""
    if not isinstance(document, dict):
        return None
    mode = document.get("pooling_mode")  # newer files: a word, or a list of them
    words = [mode] if isinstance(mode, str) else mode if isinstance(mode, list) else []
    prefix = "pooling_mode_"
    words += [name.removeprefix(prefix) for name in document if document[name] is True]
    found = {_MODES[word] for word in words if isinstance(word, str) and word in _MODES}
    return "mean" if "mean" in found else next(iter(sorted(found)), None)


def _is_causal(config: Any) -> bool:
    if not isinstance(config, dict):
        return False
    said = config.get("architectures")
    names = [str(name) for name in said] if isinstance(said, list) else []
    if config.get("is_decoder") or any(
        name.endswith(("ForCausalLM", "LMHeadModel")) for name in names
    ):
        return True
    kind = config.get("model_type")
    if not isinstance(kind, str):
        return False
    # A network without its head bears a name such as LlamaModel: then the kind of model decides.
    auto = load("transformers.models.auto.modeling_auto", purpose="A pretrained encoder")
    return (
        kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        and kind not in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )


def _document(path: str, name: str) -> Any:
    """A JSON document of a model; None where it has none that can be read."""
    try:
        path = in_cache(path)
        file = Path(path) / name if Path(path).exists() else _of_the_hub(path, name)
        return None if file is None else json.loads(read_plain(file))
    except (OSError, UnreadableError, ValueError, RecursionError):
        return None


def _of_the_hub(path: str, name: str) -> Path | None:
    hub = load("transformers.utils.hub", purpose="A pretrained encoder")
    with quiet_transformers():
        found = hub.cached_file(
            path,
            name,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
    return None if found is None else Path(found)
