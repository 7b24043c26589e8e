"""Encoders with heads."""

from taskmix.models._adversarial import AdversarialSharing, SharedCode
from taskmix.models._causal import (
    CausalEncoder,
    CausalTransformer,
    attend,
    rms_normed,
    rotary_table,
)
from taskmix.models._choose import choose_architecture
from taskmix.models._own_module import OwnModule, own_module
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
from taskmix.models._transformer import Transformer
from taskmix.models._window_bilstm import WindowBiLSTM, WindowBiLSTMEncoder

__all__ = [
    "AdversarialSharing",
    "Architecture",
    "CausalEncoder",
    "CausalTransformer",
    "HardSharing",
    "Head",
    "OwnModule",
    "Perceptron",
    "SharedCode",
    "TextConvolution",
    "TextConvolutionEncoder",
    "Transformer",
    "WindowBiLSTM",
    "WindowBiLSTMEncoder",
    "attend",
    "choose_architecture",
    "make_head",
    "named_last_layer",
    "own_module",
    "rms_normed",
    "rotary_table",
    "target_scale",
]
