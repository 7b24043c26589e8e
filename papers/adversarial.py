r"""Adversarial multitask learning: a shared encoder that cannot tell the tasks apart, and a private
one for each task.

    Liu, Qiu and Huang, "Adversarial Multi-task Learning for Text Classification", ACL 2017,
    Sections 4.1 to 4.3, Eqs. 8 to 12.

A task's head gets the shared and its private code side by side. To the task's loss are added

    $\lambda L_{adv}$: a discriminator guesses the task from the shared code, and the encoder is
    trained against it, by turning the sign of the gradient between them (Ganin and Lempitsky, 2015);
    $\gamma L_{diff}$: the squared products $\|S^\top H\|_F^2$ of shared and private codes, which keep
    the two from saying the same thing (Bousmalis et al., 2016).

Symbols: $\lambda$ is `adversarial_weight`, $\gamma$ is `orthogonality_weight`; $S$ and $H$ are the
codes of a batch, row by row.

It is an architecture and a loss, not a weighting: it goes with those that read no code of the encoder,
as equal weights do here. The two penalties ride
on a head's outputs: in training their gradients join that of the task's loss wherever it is
computed, so every loop can use the model as it is. They are not part of the loss that the loop
sees, are not multiplied by the task's weight, and, for the same reason, not by a `GradScaler`:
train in float32 or bfloat16. (A method that compares the tasks' gradients finds them in there, and
weighs them too.)

Cost: T + 1 encoders, of which a batch goes through two.

Departures: $L_{diff}$ is the mean of the squared products of centred codes of length one, as in
the code of Bousmalis et al.; the sum of the paper grows with the square of batch and width.
Encoders are those of any `architecture`, not LSTMs alone. Word vectors are one table for all
encoders, which the shared encoder holds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from taskmix.errors import InputError, OptionError
from taskmix.models import Architecture, HardSharing, make_head
from taskmix.tasks import EncodedTasks


class ReverseGradient(torch.autograd.Function):
    """The identity, whose gradient has the other sign."""

    @staticmethod
    def forward(ctx: Any, code: Tensor) -> Tensor:
        return code.view_as(code)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return -gradient


class AddGradient(torch.autograd.Function):
    """The first argument, whose gradient brings that of the second, a scalar, along."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, penalty: Tensor) -> Tensor:
        ctx.save_for_backward(torch.ones_like(penalty))
        return outputs.view_as(outputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return gradient, ctx.saved_tensors[0]


def orthogonality(shared: Tensor, private: Tensor) -> Tensor:
    """The mean squared product of two codes [row, feature], centred and of length one."""
    first = nn.functional.normalize(shared - shared.mean(dim=0), dim=1)
    second = nn.functional.normalize(private - private.mean(dim=0), dim=1)
    return (first.T @ second).square().mean()


@dataclass(frozen=True)
class SharedCode:
    """What every head gets: the shared code, the discriminator's guess, and the batch itself.

    >>> code = SharedCode(shared=torch.zeros(4, 8), guess=None, batch=torch.zeros(4, 3))
    >>> tuple(code.shared.shape)  # the guess at the task is there in training only
    (4, 8)
    """

    shared: Tensor  # [..., feature]
    guess: Tensor | None  # [..., task], scores; None outside training
    batch: Any


class Borrowed(nn.Module):
    """A module that another one holds: used here; trained, moved and saved there."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._module = (module,)  # within a tuple it is no part of this module

    def forward(self, ids: Tensor) -> Tensor:
        return cast("Tensor", self._module[0](ids))


class SharedEncoder(nn.Module):
    """The shared encoder with its adversary."""

    def __init__(self, encoder: nn.Module, features: int, tasks: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.discriminator = nn.Linear(features, tasks)

    def forward(self, batch: Any) -> SharedCode:
        shared = self.encoder(batch)
        guess = None
        if self.training:
            reversed_code = ReverseGradient.apply(shared)  # type: ignore[no-untyped-call]
            guess = self.discriminator(reversed_code)
        return SharedCode(shared, guess, batch)


class PrivateHead(nn.Module):
    """A task's own encoder and its outputs; in training they carry the penalties."""

    def __init__(
        self, private: nn.Module, output: nn.Module, task: int, options: AdversarialSharing
    ) -> None:
        super().__init__()
        self.private = private
        self.output = output
        self.task = task
        self.options = options

    def forward(self, code: SharedCode) -> Tensor:
        private = self.private(code.batch)
        outputs: Tensor = self.output(torch.cat([code.shared, private], dim=-1))
        if code.guess is None or not torch.is_grad_enabled():
            return outputs
        penalty = self.penalty(code, private)
        return cast("Tensor", AddGradient.apply(outputs, penalty))  # type: ignore[no-untyped-call]

    def penalty(self, code: SharedCode, private: Tensor) -> Tensor:
        """What is added to the task's loss."""
        if code.guess is None:
            raise InputError("The penalty should be taken in training mode. Call `model.train()`.")
        guess = code.guess.flatten(0, -2)
        truth = torch.full((len(guess),), self.task, device=guess.device)
        adversarial = nn.functional.cross_entropy(guess, truth)
        apart = orthogonality(code.shared.flatten(0, -2), private.flatten(0, -2))
        return (
            self.options.adversarial_weight * adversarial
            + self.options.orthogonality_weight * apart
        )


@dataclass(frozen=True, kw_only=True)
class AdversarialSharing:
    """Options: whose encoders, and how much the two penalties count.

    >>> import pyarrow as pa
    >>> from taskmix.tasks import tables_as_tasks
    >>> rows = {"train": pa.table({"x": [0.0, 1.0, 2.0], "label": ["no", "yes", "yes"]})}
    >>> tasks = Perceptron().encoding.encode(tables_as_tasks({"a": rows, "b": rows}))
    >>> model = AdversarialSharing(architecture=Perceptron(hidden=(16,))).build(tasks)
    >>> model.heads[0].output[-1].in_features  # the shared 16 and the task's own 16
    32
    """

    architecture: Architecture
    adversarial_weight: float = 0.05  # the paper's
    orthogonality_weight: float = 0.01  # the paper's
    head_dropout: float = 0.5

    def __post_init__(self) -> None:
        if self.adversarial_weight < 0 or self.orthogonality_weight < 0:
            raise OptionError(
                "`adversarial_weight` and `orthogonality_weight` should be at least 0. Found "
                f"{self.adversarial_weight} and {self.orthogonality_weight}."
            )

    @property
    def encoding(self) -> Any:
        return self.architecture.encoding

    def build(self, tasks: EncodedTasks) -> HardSharing:
        plain = self.architecture.build(tasks)
        widths = {_width(head) for head in plain.heads}
        if len(widths) > 1:
            raise InputError(
                "All tasks should have codes of one width, so that one discriminator reads them. "
                f"Found {sorted(widths)}. Train single texts and pairs of texts apart."
            )
        (width,) = widths
        heads = [
            PrivateHead(
                _fresh_copy(plain.encoder),
                make_head(tasks, task, 2 * width, dropout=self.head_dropout),
                place,
                self,
            )
            for place, task in enumerate(tasks)
        ]
        encoder = SharedEncoder(plain.encoder, width, len(heads))
        return HardSharing(encoder, heads, tasks.names)


def _width(head: nn.Module) -> int:
    """How many features the plain head reads."""
    return next(part.in_features for part in head.modules() if isinstance(part, nn.Linear))


def _fresh_copy(encoder: nn.Module) -> nn.Module:
    """An encoder of the same shape with its own parameters, but the same word vectors."""
    words = [part for part in encoder.modules() if isinstance(part, nn.Embedding)]
    made = copy.deepcopy(encoder, {id(part): Borrowed(part) for part in words})
    for part in made.modules():
        if hasattr(part, "reset_parameters"):
            cast("Any", part).reset_parameters()
    return made
