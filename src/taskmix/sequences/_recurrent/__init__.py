"""Gated recurrent networks as generators, learned by gradient steps in torch.

`_gated` is `Recurrent`; `_network` runs the networks of all generators side by side, and `_passes`
makes of what they say log-likelihoods and predictions. torch is imported where it is used.
"""

from taskmix.sequences._recurrent._gated import Recurrent, RecurrentParameters

__all__ = [
    "Recurrent",
    "RecurrentParameters",
]
