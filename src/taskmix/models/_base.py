"""A pretrained network that stays as it is: one in the process, for all models over it.

A model with adapters does not hold its base as a part of its own: its `state_dict` has what it
trained, a checkpoint is small, and a thousand models need the base's memory once. The base is in
evaluation mode, without dropout of its own. It is held in the type that a run computes in, so that a
step in bfloat16 does not convert every weight again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor, nn

from taskmix.models._adapters import Adapted, AddTo, find_targets, is_linear, linear_shape
from taskmix.tasks import is_causal, load_pretrained, outline_network, stamp_of

KEPT = 2  # bases at once: a float32 one for a check beside the bfloat16 one that trains


class FrozenBase:
    """A network whose linear modules can be given something to add.

    >>> from types import SimpleNamespace
    >>> network = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
    >>> network.config = SimpleNamespace(hidden_size=1)
    >>> _ = torch.nn.init.ones_(network[0].weight)
    >>> base = FrozenBase(network, causal=False)
    >>> with base.adding({"0": AddTo(torch.nn.Identity())}):
    ...     base.network(torch.tensor([3.0])).item()  # once the weight, once what was added
    6.0
    """

    def __init__(self, whole: nn.Module, *, causal: bool) -> None:
        self.whole = whole.requires_grad_(False).eval()
        self.causal = causal
        model: Any = whole
        self.network: nn.Module = model.base_model if causal else whole
        self.config: Any = model.config
        for name, module in list(self.network.named_modules()):
            if is_linear(module):
                parent, _, last = name.rpartition(".")
                setattr(self.network.get_submodule(parent), last, Adapted(module))

    @property
    def features(self) -> int:
        return hidden_size(self.config)

    def module(self, name: str) -> Adapted:
        """The linear module of that name."""
        found = self.network.get_submodule(name)
        assert isinstance(found, Adapted)
        return found

    @contextmanager
    def adding(self, added: Mapping[str, AddTo]) -> Iterator[None]:
        """Adds to the modules of these names within a `with` block."""
        modules = [(self.module(name), each) for name, each in added.items()]
        for module, each in modules:
            module.added = each
        try:
            yield
        finally:
            for module, _ in modules:
                module.added = None

    @contextmanager
    def compiled(self) -> Iterator[None]:
        """Computes the network's blocks by `torch.compile` within a `with` block.

        Blocks are alike, so one is compiled for all of them.
        """
        blocks: list[Any] = self._blocks()
        for block in blocks:
            if not hasattr(block, "taskmix_compiled"):
                block.compile(dynamic=False)
                block.taskmix_compiled = block._compiled_call_impl
            block._compiled_call_impl = block.taskmix_compiled
        try:
            yield
        finally:
            for block in blocks:
                block._compiled_call_impl = None

    def _blocks(self) -> list[nn.Module]:
        """The modules of the network's longest list of like ones."""
        lists = [each for each in self.network.modules() if isinstance(each, nn.ModuleList)]
        like = [each for each in lists if len({type(block) for block in each}) == 1]
        return max((list(each) for each in like), key=len, default=[])

    def logits(self, codes: Tensor) -> Tensor:
        """The scores of the next piece, for the codes of a causal network."""
        return language_scores(self.whole, codes)


def language_scores(whole: nn.Module, codes: Tensor) -> Tensor:
    """What a causal model makes of its last hidden states: one score for each piece."""
    model: Any = whole
    scores: Tensor = model.get_output_embeddings()(codes)
    if getattr(model.config, "logits_scaling", None):  # Granite
        scores = scores / model.config.logits_scaling
    cap = getattr(model.config, "final_logit_softcapping", None)  # Gemma
    return scores if cap is None else torch.tanh(scores / cap) * cap


def hidden_size(config: Any) -> int:
    """The width of a network's last hidden states."""
    return int(getattr(config, "hidden_size", None) or config.d_model)


@dataclass(frozen=True)
class Outline:
    """What is known of a pretrained network before its weights are read."""

    whole: nn.Module  # without memory
    causal: bool

    @property
    def network(self) -> nn.Module:
        """The part that adapters are added to: all but the output layer of a causal model."""
        model: Any = self.whole
        return cast("nn.Module", model.base_model) if self.causal else self.whole

    @property
    def name(self) -> str:
        """Of the network as a part of larger models: `bert`, or `model` for a Llama."""
        return cast("Any", self.whole).base_model_prefix or ""

    @property
    def prefix(self) -> str:
        """What stands before the network's names in the whole."""
        return "" if self.network is self.whole else f"{self.name}."

    @property
    def features(self) -> int:
        return hidden_size(cast("Any", self.whole).config)

    def shapes(self, targets: tuple[str, ...] | None) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the modules that get adapters."""
        names = find_targets(self.network, targets)
        return {name: linear_shape(self.network.get_submodule(name)) for name in names}


def outline_of(path: str) -> Outline:
    """The network of a path without its weights, found in milliseconds.

    >>> outline_of("bert-base-uncased").features  # doctest: +SKIP
    768
    """
    return _outline(path, stamp_of(path))


@lru_cache(maxsize=8)
def _outline(path: str, stamp: object) -> Outline:
    causal = is_causal(path)
    return Outline(outline_network(path, causal=causal), causal)


_bases: OrderedDict[Hashable, FrozenBase] = OrderedDict()


def frozen_base(
    path: str,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    stamp: Hashable | None = None,  # of its files, where that has been looked up
) -> FrozenBase:
    """The base of a path, in the memory of a device; the latest ones stay there.

    >>> base = frozen_base("bert-base-uncased", torch.device("cpu"))  # doctest: +SKIP
    """
    key = (path, stamp_of(path) if stamp is None else stamp, str(device), dtype)
    if key not in _bases:
        while len(_bases) >= KEPT:
            _bases.popitem(last=False)
        whole = load_whole(path, dtype)
        _bases[key] = FrozenBase(whole.to(device), causal=is_causal(path))
    _bases.move_to_end(key)
    return _bases[key]


def load_whole(path: str, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A pretrained network with all its weights; a causal one with its output layer."""
    kind: Any = "AutoModelForCausalLM" if is_causal(path) else "AutoModel"
    return cast("nn.Module", load_pretrained(kind, path, dtype=dtype))
