"""An encoder of one's own, with our heads on top."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from taskmix.errors import InputError, OptionError
from taskmix.models._sharing import HardSharing, make_head
from taskmix.tasks import EncodedTasks, Encoding

TRIAL = 2  # rows of the batch that shows how wide the output is


@dataclass(frozen=True, kw_only=True)
class OwnModule:
    """An architecture around a module; `parameters` tells its first parameters from others.

    >>> from taskmix.tasks import digits_tasks
    >>> encoding = Perceptron().encoding
    >>> encoded = encoding.encode(digits_tasks())
    >>> architecture = own_module(torch.nn.Linear(64, 16), encoding, encoded)
    >>> architecture.module
    'Linear(in_features=64, out_features=16, bias=True)'
    """

    module: str  # as it prints itself
    parameters: str
    reads: Any  # the encoding
    _make: Callable[[EncodedTasks], nn.Module] = field(compare=False, repr=False)

    @property
    def encoding(self) -> Encoding:
        encoding: Encoding = self.reads
        return encoding

    def build(self, tasks: EncodedTasks) -> HardSharing:
        encoder = self._make(tasks)
        features = output_width(encoder, tasks)
        heads = [make_head(tasks, task, features) for task in tasks]
        return HardSharing(encoder, heads, tasks.names)


def own_module(
    model: nn.Module | Callable[..., nn.Module], encoding: Encoding, tasks: EncodedTasks
) -> OwnModule:
    """A module that is copied for each run, or a function that makes one.

    A module brings its parameters along, so all seeds begin with them (as with a pretrained one). A
    function is called under each run's seed; if it takes an argument, that is the encoded tasks,
    with the vocabulary or the number of features.

    >>> from taskmix.tasks import digits_tasks
    >>> encoding = Perceptron().encoding
    >>> encoded = encoding.encode(digits_tasks().select(("parity", "half")))
    >>> model = own_module(lambda: torch.nn.Linear(64, 16), encoding, encoded).build(encoded)
    >>> [sum(p.numel() for p in head.parameters()) for head in model.heads]  # 2 × 16 weights, 2 biases
    [34, 34]
    """
    make: Callable[[EncodedTasks], nn.Module]
    if isinstance(model, nn.Module):
        make = lambda tasks: copy.deepcopy(model)  # noqa: E731
    elif callable(model):
        takes_tasks = bool(inspect.signature(model).parameters)
        make = lambda tasks: model(tasks) if takes_tasks else model()  # noqa: E731
    else:
        raise OptionError(
            "`model` should be a module of PyTorch, a function that makes one, or a word such as "
            f"auto. Found {type(model).__name__}."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first = make(tasks)
    if not isinstance(first, nn.Module):
        raise OptionError(
            f"`model` should make a module of PyTorch. Found that it makes {type(first).__name__}."
        )
    output_width(first, tasks)
    return OwnModule(module=repr(first), parameters=_digest(first), reads=encoding, _make=make)


def output_width(encoder: nn.Module, tasks: EncodedTasks) -> int:
    """The last dimension of what the encoder gives for a batch; it should be a vector a row."""
    split = next(iter(tasks[0].splits.values()))
    count = min(TRIAL, len(split))
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            batch = split.inputs.batch(torch.arange(count))
            output = encoder(batch)
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"`model` should read a batch of the tasks' inputs. It failed: {error}"
        ) from error
    finally:
        encoder.train(training)
    if not isinstance(output, Tensor) or output.dim() != 2 or len(output) != count:
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            f"`model` should give a vector for each of {count} rows, [row, feature]. Found {shape}. "
            "Leave its last layer out: the heads are ours."
        )
    return int(output.shape[1])


def _digest(module: nn.Module) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name, value in module.state_dict().items():
        digest.update(name.encode() + value.detach().cpu().double().numpy().tobytes())
    return digest.hexdigest()
