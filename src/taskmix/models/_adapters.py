r"""Low-rank adapters: what is trained of a linear module whose own weight stays as it is.

    Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022, Section 4.1.

A module that gives W x gives W x + scale B A x instead. The paper's $r$ is `rank` and its
$\alpha / r$ is `scale`, so that adapters of different ranks move equally far. A begins as `nn.Linear`
begins (uniform within 1 / sqrt(features)), as in the authors' code and in PEFT, and B at 0, so that a
model with fresh adapters answers as its base does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from taskmix.errors import InputError, OptionError

# The query and value projections, or what holds them, under the names that architectures give them.
# The first row of which a network has every name is taken.
USUAL_TARGETS = (
    ("query", "value"),  # BERT, RoBERTa, ELECTRA, ViT
    ("q_proj", "v_proj"),  # Llama, Mistral, Qwen, Gemma, OPT
    ("q_lin", "v_lin"),  # DistilBERT
    ("query_proj", "value_proj"),  # DeBERTa
    ("query_key_value",),  # GPT-NeoX, Falcon, BLOOM
    ("c_attn",),  # GPT-2
    ("qkv_proj",),  # Phi-3
    ("Wqkv",),  # ModernBERT
    ("q", "v"),  # T5, MPNet
)


@dataclass(frozen=True, kw_only=True)
class SavedAdapters:
    """Adapters in a folder of PEFT, from which others begin; `read_adapters` finds them."""

    folder: str
    content: str  # hash of the matrices: a run is another one where they are others


@dataclass(frozen=True, kw_only=True)
class Adapters:
    """Options of low-rank adapters."""

    rank: int = 8
    scale: float = (
        2.0  # what an adapter's output is multiplied by; PEFT's `lora_alpha` over its `r`
    )
    dropout: float = 0.0  # of an adapter's input
    targets: tuple[str, ...] | None = None  # last parts of the modules' names; None: the usual ones
    start: SavedAdapters | None = None  # None: fresh ones

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise OptionError(f"`rank` should be 1 or more. Found {self.rank}.")
        if not 0.0 <= self.dropout < 1.0:
            raise OptionError(f"`dropout` should be from 0 to below 1. Found {self.dropout}.")
        if not math.isfinite(self.scale):
            raise OptionError(f"`scale` should be a finite number. Found {self.scale}.")


class Adapter(nn.Module):
    """One module's adapter; the names of its parameters are those of PEFT's files."""

    def __init__(self, features: int, outputs: int, options: Adapters) -> None:
        super().__init__()
        self.lora_A = nn.Parameter(torch.empty(options.rank, features))
        self.lora_B = nn.Parameter(torch.zeros(outputs, options.rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self._scale = options.scale
        self._dropout = options.dropout

    def forward(self, inputs: Tensor) -> Tensor:
        if self._dropout and self.training:
            inputs = functional.dropout(inputs, self._dropout)
        low = functional.linear(inputs, self.lora_A.to(inputs.dtype))
        return functional.linear(low, self.lora_B.to(inputs.dtype)) * self._scale


class Adapted(nn.Module):
    """A frozen linear module, and whatever is added to its output for the model now at work."""

    def __init__(self, base: nn.Module) -> None:
        super().__init__()
        self.base = base
        self.features, self.outputs = linear_shape(base)
        self.added: AddTo | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.base(inputs)
        return outputs if self.added is None else self.added(inputs, outputs)


class AddTo:
    """What one adapter makes of the frozen module's inputs and outputs.

    >>> AddTo(torch.nn.Identity())(torch.tensor([1.0]), torch.tensor([10.0])).item()
    11.0
    """

    def __init__(self, adapter: nn.Module) -> None:
        self._adapter = adapter

    def __call__(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        found: Tensor = outputs + self._adapter(inputs)
        return found


def linear_shape(module: nn.Module) -> tuple[int, int]:
    """Inputs and outputs of a linear module, or of GPT-2's `Conv1D`, whose weight is transposed."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    if isinstance(module, nn.Linear):
        return weight.shape[1], weight.shape[0]
    return weight.shape[0], weight.shape[1]


def is_linear(module: nn.Module) -> bool:
    """Whether a module is one that adapters are added to.

    >>> is_linear(torch.nn.Linear(1, 1)), is_linear(torch.nn.Embedding(1, 1))
    (True, False)
    """
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def linear_names(network: nn.Module) -> tuple[str, ...]:
    """The full names of all linear modules, in the network's order."""
    return tuple(name for name, module in network.named_modules() if is_linear(module))


def find_targets(network: nn.Module, targets: Sequence[str] | None = None) -> tuple[str, ...]:
    """The full names of the modules that get adapters, in the network's order.

    Without `targets` these are the query and value projections; all linear modules, where the
    network calls those something that is not known here.
    """
    linear = linear_names(network)
    last = {name.rpartition(".")[2] for name in linear}
    if targets is None:
        usual = next((row for row in USUAL_TARGETS if set(row) <= last), None)
        return linear if usual is None else _ending_in(usual, linear)
    found = _ending_in(targets, linear)
    for wanted in targets:
        if not _ending_in((wanted,), linear):
            raise InputError(
                "`targets` should name linear modules of the pretrained model by the ends of their "
                f"names. Found `{wanted}`; it has {', '.join(sorted(last)) or 'none'}."
            )
    return found


def _ending_in(ends: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    ends = tuple(ends)
    return tuple(
        name for name in names if any(name == end or name.endswith(f".{end}") for end in ends)
    )


class AdapterSet(nn.ModuleDict):
    """The adapters of one model, by the names of the modules that they belong to.

    A module of PyTorch cannot have a dot in its name, so the parameters have a dash there.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, int]], options: Adapters) -> None:
        super().__init__({_key(name): Adapter(*shape, options) for name, shape in shapes.items()})
        self.names = tuple(shapes)
        self.options = options

    def of(self, name: str) -> Adapter:
        """The adapter of a module."""
        found = self[_key(name)]
        assert isinstance(found, Adapter)
        return found


def _key(name: str) -> str:
    return name.replace(".", "-")


def adapter_key(name: str) -> str:
    """How the parameters of a module's adapter are called in a model's `state_dict`.

    >>> adapter_key("layer.0.query")
    'encoder.adapters.layer-0-query'
    """
    return f"encoder.adapters.{_key(name)}"
