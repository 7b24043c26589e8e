"""What of a pretrained model is trained: heads on its vectors, adapters in it, or all of it.

| | is | trains |
|---|---|---|
| heads | `Perceptron` that reads a `FeatureEncoding` | a small network on vectors that were read once |
| adapters | `Transformer(tune="adapters")` | low-rank additions to a model that stays as it is |
| all | `Transformer(tune="all")` | every weight |

Each can be turned into each other one, since all of them name the same model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from taskmix.errors import InputError, OptionError
from taskmix.models._adapters import Adapters
from taskmix.models._perceptron import Perceptron
from taskmix.models._sharing import Architecture
from taskmix.models._transformer import Transformer
from taskmix.tasks import FeatureEncoding, usual_precision

Tuning = Literal["heads", "adapters", "all"]

# Of Adam. LoRA wants a rate some ten times that of all weights (Hu et al., ICLR 2022).
USUAL_RATES: dict[Tuning, float] = {"heads": 1e-3, "adapters": 5e-4, "all": 2e-5}

# Chosen on the dev rows of two folders, 11 tasks of tweets and 16 of reviews (docs/pretrained.md).
HEADS_HIDDEN = (256,)
HEADS_DROPOUT = 0.5


def check_tuning(how: str) -> None:
    """Raises where a word is none of the three."""
    if how not in get_args(Tuning):
        raise OptionError(
            f"`tune` should be one of {', '.join(get_args(Tuning))}. Found {how!r}.",
            arguments=("tune",),
        )


def pretrained(
    path: str,
    how: Tuning,
    *,
    max_length: int | None = None,
    rank: int | None = None,  # of adapters
    as_pairs: bool = False,  # of vectors: as wide as those of pairs, whatever the tasks
) -> Architecture:
    """The model of a folder, a GGUF file or a name on the hub, tuned this way.

    >>> pretrained("bert-base-uncased", "adapters", rank=4).adapters.rank
    4
    """
    check_tuning(how)
    if rank is not None and how != "adapters":
        raise OptionError(
            f"`rank` should go with adapters. Found it with {how}. Leave it out.",
            arguments=("rank",),
        )
    length = 128 if max_length is None else max_length
    if how == "heads":
        reads = FeatureEncoding(
            path=path, max_length=length, as_pairs=as_pairs, precision=usual_precision()
        )
        return Perceptron(hidden=HEADS_HIDDEN, dropout=HEADS_DROPOUT, reads=reads)
    adapters = Adapters() if rank is None else Adapters(rank=rank)
    return Transformer(path=path, max_length=length, tune=how, adapters=adapters)


def tuning_of(architecture: Architecture) -> Tuning | None:
    """How an architecture tunes a pretrained model; None where it has none.

    >>> tuning_of(Perceptron()), tuning_of(Transformer(path="bert-base-uncased"))
    (None, 'all')
    """
    if isinstance(architecture, Transformer):
        return architecture.tune
    reads = getattr(architecture, "reads", None)
    return "heads" if isinstance(reads, FeatureEncoding) else None


def tuned(architecture: Architecture, how: Tuning) -> Architecture:
    """The same pretrained model, tuned another way.

    >>> heads = tuned(Transformer(path="bert-base-uncased", max_length=64), "heads")
    >>> heads.reads.path, heads.reads.max_length, tuned(heads, "all").max_length
    ('bert-base-uncased', 64, 64)
    """
    check_tuning(how)
    now = tuning_of(architecture)
    if now is None:
        raise InputError(
            f"What tunes {how} should be a pretrained model. Found {type(architecture).__name__}. "
            "Choose such a model, or leave `tuning` out."
        )
    if now == how:
        return architecture
    if isinstance(architecture, Transformer):
        if how != "heads":
            return replace(architecture, tune=how)
        made = pretrained(architecture.path, "heads", max_length=architecture.max_length)
        assert isinstance(made, Perceptron)
        assert isinstance(made.reads, FeatureEncoding)
        return replace(made, reads=replace(made.reads, pooling=architecture.pooling))
    assert isinstance(architecture, Perceptron)
    assert isinstance(architecture.reads, FeatureEncoding)
    assert how != "heads"
    reads = architecture.reads
    return Transformer(
        path=reads.path, max_length=reads.max_length, pooling=reads.pooling, tune=how
    )


def usual_tuning(device: str) -> Tuning:
    """Adapters on a GPU; heads elsewhere, where a model can be read once but not trained.

    >>> usual_tuning("cpu"), usual_tuning("cuda:0")
    ('heads', 'adapters')
    """
    return "adapters" if device.startswith("cuda") else "heads"
