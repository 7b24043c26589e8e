"""One line in a loop of one's own, whatever the method.

    balancer = Balancer(BanditMTL(radius=1.2, step_size=0.5), shared=model.encoder)
    balancer.backward(losses)  # instead of sum(losses).backward()

`losses` has a scalar for each task, by name or in order. Gradients are added to `.grad`, as
`backward` does, so optimisers, clipping, accumulation and schedulers work as they did. Heads get
their task's weight too. Two lines more serve every method and do nothing where a method does not
need them: `balancer.after_step(losses)`, with the batch's losses after the optimiser's step (only
worth an extra forward pass where `balancer.needs` has LOSSES_AFTER), and `balancer.end_epoch()`.

A balancer is a module without parameters: as a part of a model it is in the model's `state_dict`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import torch
import torch.distributed as distributed
from torch import Tensor, nn

from taskmix.errors import InputError, OptionError, RecordError
from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.weighting._found import Factors, weigh_parts
from taskmix.weighting._passes import GradientPass
from taskmix.weighting._preference import Preference
from taskmix.weighting._states import chosen_state, grown_state, tree_from_bytes, tree_to_bytes
from taskmix.weighting._step import Balanced, Losses, Step, WorkerGroup, read_step, read_values
from taskmix.weighting._weighting import (
    AnyGradientWeighting,
    AnyLossWeighting,
    AnyWeighting,
    CountsEpochs,
    HasOwnScale,
    LearnsAfterStep,
    Needs,
    check_method,
)


class Balancer(nn.Module):
    """Weighs the losses of each step by a method, and steps back through them.

    >>> parameter = torch.ones(2, requires_grad=True)
    >>> balancer = Balancer(FixedWeights(weights=(1, 3)))
    >>> info = balancer.backward([parameter[0] * 2, parameter[1] * 2])
    >>> info.weights.tolist()  # they sum to the number of tasks
    [0.5, 1.5]
    >>> parameter.grad.tolist()  # of 0.5 * 2 * first + 1.5 * 2 * second
    [1.0, 3.0]
    """

    def __init__(
        self,
        method: AnyWeighting,
        *,
        shared: nn.Module | Iterable[Tensor] | None = None,
        representation: nn.Module | None = None,
        last_layer: nn.Module | Iterable[Tensor] | None = None,
        normalize: Literal["tasks", "one"] | None = "tasks",
        update_every: int = 1,
        average: Literal["products", "gradients"] = "products",
        preference: Mapping[str, float] | Sequence[float] | None = None,
        process_group: distributed.ProcessGroup | None = None,
    ) -> None:
        """`shared` are the parameters that all tasks train, whose gradients some methods compare.

        `representation`, a module whose outputs are what the heads get, makes gradient methods
        compare the gradients of those outputs instead: one backward pass of the encoder, however
        many tasks. `last_layer` is for GradNorm. Weights sum to the number of tasks, or to "one"; None
        keeps the scale of the paper. A gradient method is asked in every `update_every`-th step; in
        between its weights stay, and a step costs what a plain one does. Among several workers the
        inner products of the tasks' gradients are averaged, which is a small message; with
        "gradients" the gradients themselves, one message for each task, and the weights are those of
        one worker with all the rows. `preference`, by name (1 for a task that has none) or in order,
        says how many times as much a task is wanted: as the method defines it, or as a factor of its
        weight for methods of losses.
        """
        super().__init__()
        check_method(method)
        self.method = method
        self._preference = None if preference is None else Preference(method, preference)
        if average not in ("products", "gradients"):
            raise OptionError(f'`average` should be "products" or "gradients". Found {average!r}.')
        if normalize not in ("tasks", "one", None) or update_every < 1:
            raise OptionError(
                '`normalize` should be "tasks", "one" or None, and `update_every` 1 or more. Found '
                f"{normalize!r} and {update_every}."
            )
        self._normalize = normalize
        self._update_every = update_every
        self._workers = WorkerGroup(process_group)
        self._names: tuple[str, ...] | None = None
        self._state: Any = None
        self._saved: Any = None  # a loaded state, until the first losses tell the device
        self._ready = False
        self._steps = 0
        self._weights: Tensor | None = None  # [task], the latest of a gradient method
        self._weighed: list[int] = []  # the tasks these are for
        self._pass: GradientPass | None = None
        if self.needs.gradients_of_tasks:
            self._pass = GradientPass(
                self.needs,
                shared=shared,
                representation=representation,
                last_layer=last_layer,
                workers=self._workers,
                average=average,
            )

    @property
    def needs(self) -> Needs:
        return self.method.needs

    @property
    def state(self) -> Any:
        """The method's state; None before the first step."""
        return self._state

    def backward(
        self,
        losses: Losses,
        *,
        scaler: torch.amp.GradScaler | None = None,
        scale: float = 1.0,
        representation: Tensor | Sequence[Tensor] | None = None,
        retain_graph: bool = False,
    ) -> Balanced:
        """Adds the weighted gradients of the losses to `.grad`, and learns from the step.

        None stands for a task that has no loss in this step. `scaler` is that of mixed precision;
        call its `step` and `update` as usual. `scale` multiplies the gradients and not what the
        method sees: 1/4 for each of four batches whose gradients are accumulated.
        `representation` is this step's, where no module was named that gives it.
        """
        step = read_step(losses, self._names, self._workers)
        if step.present is not None and Needs.EVERY_TASK in self.needs:
            missing = [n for n, there in zip(step.names, step.present, strict=True) if not there]
            raise InputError(
                f"`{type(self.method).__name__}` should have a loss of every task in every step. "
                f"Found none for {', '.join(missing)}. Take another method, or give each task rows."
            )
        self._start(step)
        factors = Factors(scaler, scale, retain_graph)
        if self._pass is None:
            return self._by_losses(step, factors)
        if self._is_due(step):
            return self._by_gradients(step, factors, self._pass, representation)
        weights = cast("Tensor", self._weights).to(step.seen)
        self._pass.forget()
        factors.walk(step.losses, weights[step.here])
        self._steps += 1
        return self._report(step, weights)

    def after_step(self, losses: Losses) -> None:
        """Tells the batch's losses after the optimiser's step to a method that needs them."""
        if not isinstance(self.method, LearnsAfterStep):
            return
        if self._names is None or not self._ready:
            raise InputError("`after_step` should come after `backward`. Found no step before it.")
        values = read_values(losses, self._names, self._workers)
        if bool(torch.isfinite(values).all()):
            self._state = self.method.after_step(self._state, values)

    def end_epoch(self) -> None:
        """Tells a method that counts epochs that one has ended."""
        if isinstance(self.method, CountsEpochs) and self._ready:
            self._state = self.method.end_epoch(self._state)

    def state_dict(  # type: ignore[override]
        self, *arguments: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Everything that the next step depends on, as a tree of tensors, numbers and names.

        In the `state_dict` of a module that has the balancer the tree is one tensor of bytes, so that
        any kind of checkpoint takes it.
        """
        if arguments or destination is not None or prefix:  # a module asks its parts
            found: dict[str, Any] = super().state_dict(
                *arguments, destination=destination, prefix=prefix, keep_vars=keep_vars
            )
            return found
        return {
            "method": type(self.method).__name__,
            "names": None if self._names is None else list(self._names),
            "state": state_to_tree(self._state) if self._ready else self._saved,
            "steps": self._steps,
            "weights": self._weights,
            "weighed": list(self._weighed),
        }

    def load_state_dict(
        self, tree: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> None:
        """Goes on where the balancer that gave `tree` stood."""
        name = type(self.method).__name__
        if tree.get("method") != name:
            raise RecordError(
                f"The saved state should be that of {name}. Found {tree.get('method')}. Build the "
                "balancer with the method it was saved with."
            )
        self._names = None if tree["names"] is None else tuple(tree["names"])
        self._steps = int(tree["steps"])
        self._weights = tree["weights"]
        self._weighed = list(tree["weighed"])
        self._saved, self._state, self._ready = tree["state"], None, False

    def get_extra_state(self) -> Tensor:
        return tree_to_bytes(self.state_dict())

    def set_extra_state(self, state: Tensor) -> None:
        self.load_state_dict(tree_from_bytes(state))

    def _start(self, step: Step) -> None:
        """Makes the state ready for all tasks of the step, those first seen in it too."""
        names = step.names if self._names is None else self._names
        known = len(names)
        if not self._ready:
            fresh = self.method.init(step.seen[:known])
            self._state = fresh if self._saved is None else state_from_tree(self._saved, like=fresh)
            self._saved, self._ready = None, True
        if len(step.names) > known:
            self._state = grown_state(
                self._state,
                like=self.method.init(step.seen),
                begun=self.method.init(step.seen[:known]),
                known=known,
            )
            self._weights = None
        self._names = step.names

    def _by_losses(self, step: Step, factors: Factors) -> Balanced:
        method = cast("AnyLossWeighting", self.method)
        if self._normalize is None and isinstance(method, HasOwnScale):
            weights = method.unscaled(self._state, step.seen, step.present)
        else:
            weights = method.weigh(self._state, step.seen, step.present)
        if self._normalize == "one":
            weights = weights / len(step.tasks)
        if self._preference is not None:
            weights = self._preference.applied(
                weights, step.names, keep=self._normalize is not None
            )
        on_cpu = step.seen.device.type == "cpu"
        # A sum is finite if all its parts are, and cheaper; it can only be wrong the other way.
        finite = not on_cpu or math.isfinite(sum(step.seen.tolist())) or _all_finite(step.seen)
        if not on_cpu:
            sound = torch.isfinite(step.seen).all()
            weights = torch.where(sound, weights, torch.nan)
        elif not finite:
            weights = torch.full_like(weights, torch.nan)
        values, fetched = step.seen, None
        if Needs.HOST in self.needs and step.seen.device.type == "cuda":
            values = step.seen.to("cpu", non_blocking=True)
            fetched = torch.cuda.Event()  # type: ignore[no-untyped-call]
            fetched.record()
        here = weights if len(step.here) == len(step.names) else weights[step.here]
        factors.walk(step.losses, here)
        if fetched is not None:
            fetched.synchronize()  # the values are here while the device is still at `backward`
            finite = _all_finite(values)
        if finite:
            new = method.update(self._state, values, step.present)
            hosted = on_cpu or fetched is not None
            self._state = new if hosted else chosen_state(sound, new, self._state)
        self._steps += 1
        return self._report(step, weights)

    def _is_due(self, step: Step) -> bool:
        return (
            self._weights is None
            or self._steps % self._update_every == 0
            or self._weighed != step.tasks
        )

    def _by_gradients(
        self,
        step: Step,
        factors: Factors,
        walk: GradientPass,
        representation: Tensor | Sequence[Tensor] | None,
    ) -> Balanced:
        method = cast("AnyGradientWeighting", self.method)
        if self._preference is not None:
            method = self._preference.method(step.names)
        found = walk.gradients(step, factors, representation)
        weighed = weigh_parts(method, self._state, found, normalize=self._normalize)
        self._state, weights = weighed.state, weighed.weights
        found.write(weights, weighed.by_part, weighed.combination)
        # Weights that differ from part to part cannot serve the steps in between.
        self._weights = weights if len(found.parts) == 1 else None
        self._weighed = step.tasks
        self._steps += 1
        return self._report(step, weights.to(step.seen), found.gramian)

    def _report(self, step: Step, weights: Tensor, gramian: Tensor | None = None) -> Balanced:
        losses = step.seen
        if step.present is not None:
            losses = torch.where(step.present.to(losses.device), losses, torch.nan)
        return Balanced(step.names, losses, weights.detach(), step.present, gramian)


def _all_finite(values: Tensor) -> bool:
    return bool(torch.isfinite(values).all())
