"""Encoders with heads."""

from taskmix.models._adapters import Adapters, AddTo, SavedAdapters, adapter_key, is_linear
from taskmix.models._base import FrozenBase, frozen_base, outline_of
from taskmix.models._causal import (
    CausalEncoder,
    CausalTransformer,
    attend,
    rms_normed,
    rotary_table,
)
from taskmix.models._choose import choose_architecture
from taskmix.models._merging import (
    Merge,
    Merging,
    TaskArithmetic,
    WeightAverage,
    merge_states,
    task_vectors,
)
from taskmix.models._own_module import OwnModule, own_module
from taskmix.models._peer import FittedPeer, LinearPeer, Peer, TreesPeer, peers_for
from taskmix.models._peft import fill_adapters, read_adapters, save_adapters
from taskmix.models._perceptron import Perceptron
from taskmix.models._sharing import (
    Architecture,
    HardSharing,
    Head,
    make_head,
    named_last_layer,
    target_scale,
)
from taskmix.models._text_convolution import TextConvolution, TextConvolutionEncoder
from taskmix.models._transformer import (
    AdaptedEncoder,
    Transformer,
    computing_type,
    merged_network,
)
from taskmix.models._tuning import (
    USUAL_RATES,
    Tuning,
    pretrained,
    tuned,
    tuning_of,
    usual_tuning,
)
from taskmix.models._window_bilstm import WindowBiLSTM, WindowBiLSTMEncoder

__all__ = [
    "USUAL_RATES",
    "AdaptedEncoder",
    "Adapters",
    "AddTo",
    "Architecture",
    "CausalEncoder",
    "CausalTransformer",
    "FittedPeer",
    "FrozenBase",
    "HardSharing",
    "Head",
    "LinearPeer",
    "Merge",
    "Merging",
    "OwnModule",
    "Peer",
    "Perceptron",
    "SavedAdapters",
    "TaskArithmetic",
    "TextConvolution",
    "TextConvolutionEncoder",
    "Transformer",
    "TreesPeer",
    "Tuning",
    "WeightAverage",
    "WindowBiLSTM",
    "WindowBiLSTMEncoder",
    "adapter_key",
    "attend",
    "choose_architecture",
    "computing_type",
    "fill_adapters",
    "frozen_base",
    "is_linear",
    "make_head",
    "merge_states",
    "merged_network",
    "named_last_layer",
    "outline_of",
    "own_module",
    "peers_for",
    "pretrained",
    "read_adapters",
    "rms_normed",
    "rotary_table",
    "save_adapters",
    "target_scale",
    "task_vectors",
    "tuned",
    "tuning_of",
    "usual_tuning",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)
