"""Any Hugging Face encoder or causal language model, from a folder or the hub.

A text or a pair is one vector, pooled as the model's own configuration says (a sentence encoder's file
of pooling, the last piece of a causal model, else the mean over pieces). A word of a sentence to be
tagged is the vector of its first piece. Where an answer is to be generated, the vectors of the pieces
before each of its own go through the model's own output layer.

A model with its adapters added into its weights (`merged_network`) is one like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from taskmix.errors import InputError, OptionError
from taskmix.models._adapters import Adapters, AdapterSet, AddTo
from taskmix.models._base import (
    FrozenBase,
    frozen_base,
    hidden_size,
    language_scores,
    load_whole,
    outline_of,
)
from taskmix.models._peft import fill_adapters
from taskmix.models._sharing import HardSharing, make_head
from taskmix.tasks import (
    WRITTEN,
    EncodedTask,
    EncodedTasks,
    Pooling,
    SubwordEncoding,
    find_pooling,
    is_causal,
    pool,
    stamp_of,
)

UNREAD = "pooler"  # a layer after the states: a network may have it, and nothing here reads it


class TransformerEncoder(nn.Module):
    """A batch of `SubwordInputs` to [row, hidden], or [row, place, hidden] where places are read."""

    def __init__(self, network: nn.Module, pooling: Pooling, *, causal: bool = False) -> None:
        super().__init__()
        self.network = network
        self.pooling: Pooling = pooling
        self.causal = causal
        self.features = hidden_size(cast("Any", network).config)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return read_states(self._states(batch), batch, self.pooling)

    def _states(self, batch: Mapping[str, Tensor]) -> Tensor:
        network: Any = self.network
        return last_states(network.base_model if self.causal else network, batch)

    def scores(self, codes: Tensor) -> Tensor:
        """Of the next piece, by the model's own output layer."""
        return language_scores(self.network, codes)

    def read_on(self, pieces: Mapping[str, Tensor], cache: Any) -> tuple[Tensor, Any]:
        """The state after the last of some more pieces [row, hidden], and a cache to go on from."""
        return read_on(cast("Any", self.network).base_model, pieces, cache)


class AdaptedEncoder(nn.Module):
    """The same over a base that is not trained; what is trained are its adapters.

    >>> architecture = Transformer(path="bert-base-uncased", tune="adapters")
    >>> model = architecture.build(architecture.encoding.encode(tasks))  # doctest: +SKIP
    >>> model.encoder.adapters.names[0]  # doctest: +SKIP
    'encoder.layer.0.attention.self.query'
    """

    def __init__(self, path: str, adapters: AdapterSet, pooling: Pooling, features: int) -> None:
        super().__init__()
        self.adapters = adapters
        self.path = path
        self._stamp = stamp_of(path)  # once, and not in every step
        self.pooling: Pooling = pooling
        self.features = features

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        base = self.base(batch["input_ids"].device)
        added = {name: AddTo(self.adapters.of(name)) for name in self.adapters.names}
        # The base computes in the type that it is held in.
        with torch.autocast(batch["input_ids"].device.type, enabled=False), base.adding(added):
            states = last_states(base.network, batch)
        return read_states(states, batch, self.pooling)

    def scores(self, codes: Tensor) -> Tensor:
        """Of the next piece, by the base's own output layer."""
        base = self.base(codes.device)
        with torch.autocast(codes.device.type, enabled=False):
            return base.logits(codes.to(computing_type(codes.device)))

    def read_on(self, pieces: Mapping[str, Tensor], cache: Any) -> tuple[Tensor, Any]:
        """The state after the last of some more pieces [row, hidden], and a cache to go on from."""
        device = pieces["input_ids"].device
        base = self.base(device)
        added = {name: AddTo(self.adapters.of(name)) for name in self.adapters.names}
        with torch.autocast(device.type, enabled=False), base.adding(added):
            return read_on(base.network, pieces, cache)

    @property
    def causal(self) -> bool:
        return is_causal(self.path)

    @property
    def last_layer(self) -> tuple[nn.Parameter, ...]:
        """The B of the last adapter on the way to the states: A has no gradient while B is 0."""
        names = [name for name in self.adapters.names if UNREAD not in name.split(".")]
        return tuple(self.adapters.of(name).lora_B for name in names[-1:])

    def base(self, device: torch.device) -> FrozenBase:
        """The base on a device, in the type that is computed in."""
        return frozen_base(self.path, device, computing_type(device), self._stamp)


def computing_type(device: torch.device) -> torch.dtype:
    """That of autocast where it is on, else float32.

    >>> computing_type(torch.device("cpu"))
    torch.float32
    """
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return torch.float32


def last_states(network: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """[row, piece, hidden]."""
    inputs = {name: value for name, value in batch.items() if name != "word_starts"}
    return cast("Tensor", network(**inputs).last_hidden_state)


def read_on(network: nn.Module, pieces: Mapping[str, Tensor], cache: Any) -> tuple[Tensor, Any]:
    """The state after the last piece of each row, with the cache of what was read before."""
    # Some architectures know places by the mask alone (BLOOM, MPT) and take no positions.
    known = inspect.signature(network.forward).parameters
    inputs = {name: value for name, value in pieces.items() if name in known}
    found = network(**inputs, past_key_values=cache, use_cache=True)
    return found.last_hidden_state[:, -1], found.past_key_values


def read_states(states: Tensor, batch: Mapping[str, Tensor], pooling: Pooling) -> Tensor:
    """One vector a row, or one for each place that is read."""
    starts = batch.get("word_starts")
    if starts is None:
        return pool(states, batch["attention_mask"], pooling)
    places = starts.unsqueeze(-1).expand(-1, -1, states.shape[-1])
    return states.gather(1, places)


class LanguageHead(nn.Module):
    """The output layer of the pretrained model itself; nothing of it is this head's own."""

    def __init__(self, encoder: TransformerEncoder | AdaptedEncoder) -> None:
        super().__init__()
        self._encoder = (encoder,)  # in a tuple: it is not a part of the head

    def forward(self, codes: Tensor) -> Tensor:
        return self._encoder[0].scores(codes)


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """Options of a pretrained encoder or causal language model.

    >>> Transformer(path="bert-base-uncased", max_length=64).encoding
    SubwordEncoding(path='bert-base-uncased', max_length=64)
    """

    path: str  # a folder with weights and tokenizer, a GGUF file, or a name on the hub
    max_length: int = 128
    head_dropout: float = 0.1
    tune: Literal["adapters", "all"] = "all"  # what is trained besides the heads
    adapters: Adapters = field(default_factory=Adapters)
    pooling: Pooling | None = None  # of a text's pieces; None: as the model's configuration says

    def __post_init__(self) -> None:
        if self.tune not in ("adapters", "all"):
            raise OptionError(
                f"`tune` should be adapters or all. Found {self.tune!r}. Heads alone are trained by a "
                "`Perceptron` that reads a `FeatureEncoding`."
            )
        if self.adapters.start is not None and self.tune != "adapters":
            raise OptionError(
                "A model that begins with adapters should go on training them. Found `tune` "
                f"{self.tune!r}. Tune adapters, or merge them into the model first."
            )

    @property
    def encoding(self) -> SubwordEncoding:
        return SubwordEncoding(path=self.path, max_length=self.max_length)

    def build(self, tasks: EncodedTasks) -> HardSharing:
        pooling = self.pooling or find_pooling(self.path)
        generated = [task.name for task in tasks if task.kind in WRITTEN]
        if generated and not is_causal(self.path):
            raise InputError(
                f"Task `{generated[0]}` should be learned by a causal language model, which generates "
                f"text. Found `{self.path}`, an encoder. Give a causal model, or leave the task out."
            )
        encoder: TransformerEncoder | AdaptedEncoder
        if self.tune == "all":
            whole = load_whole(self.path)
            encoder = TransformerEncoder(whole, pooling, causal=is_causal(self.path))
        else:
            outline = outline_of(self.path)
            adapters = AdapterSet(outline.shapes(self.adapters.targets), self.adapters)
            start = self.adapters.start
            if start is not None:
                fill_adapters(adapters, start.folder, self.path, content=start.content)
            encoder = AdaptedEncoder(self.path, adapters, pooling, outline.features)

        def head(task: EncodedTask) -> nn.Module:
            if task.kind in WRITTEN:
                return LanguageHead(encoder)
            return make_head(tasks, task, encoder.features, dropout=self.head_dropout)

        return HardSharing(encoder, [head(task) for task in tasks], tasks.names)


@torch.no_grad()
def merged_network(encoder: AdaptedEncoder) -> nn.Module:
    """A new network in float32, on the CPU: W + scale B A where a module W has an adapter.

    >>> merged_network(model.encoder).save_pretrained("merged")  # doctest: +SKIP
    """
    whole: Any = load_whole(encoder.path)
    network: nn.Module = whole.base_model if encoder.causal else whole
    for name in encoder.adapters.names:
        module, adapter = network.get_submodule(name), encoder.adapters.of(name)
        product = (adapter.lora_B @ adapter.lora_A).cpu() * encoder.adapters.options.scale
        weight = module.weight
        assert isinstance(weight, Tensor)
        weight += product if isinstance(module, nn.Linear) else product.T  # GPT-2's are transposed
    return cast("nn.Module", whole)
