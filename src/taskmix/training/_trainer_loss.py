"""The mean loss of one batch, from what the Hugging Face Trainer computes.

Where the Trainer accumulates gradients, it tells the model how many labels all batches of the step have
together (`num_items_in_batch`), and most models then give the sum of this batch's token losses divided
by that number: a share of the step's loss, larger for longer answers. Some models ignore the number, and
so may a loss function of one's own. Some versions also multiply by the number of processes. Which of
this happens is measured once, on the first batch: the loss is computed again with twice the number, and
without the averaging over processes, in evaluation mode and without gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from taskmix.errors import RunError

ITEMS = "num_items_in_batch"
IGNORED = -100  # the label that no loss is computed of, in all of transformers
NEAR = 0.02  # relative; bfloat16 has two to three digits


@dataclass(frozen=True, slots=True)
class _Scaling:
    divided: bool  # by the number of items of the whole step
    scale: float  # what it was multiplied by


class MeanLoss:
    """Computes the Trainer's loss with `compute_loss`, and what the mean of the batch is."""

    def __init__(self, trainer: Any, compute_loss: Callable[..., Any]) -> None:
        self._trainer, self._compute_loss = trainer, compute_loss
        self._scaling: _Scaling | None = None

    def compute(
        self, model: Any, inputs: MutableMapping[str, Any], *others: Any, **named: Any
    ) -> tuple[Any, Tensor]:
        """What `compute_loss` gives, and the mean loss of the batch."""
        items = named.get(ITEMS, others[1] if len(others) > 1 else None)
        if items is None:
            given = self._compute_loss(model, inputs, *others, **named)
            return given, _loss_of(given)
        count = self._count_labels(inputs)  # now: label smoothing takes the labels away
        scaling = self._scaling or self._measure(model, inputs, items)
        given = self._compute_loss(model, inputs, *others, **named)
        mean = _loss_of(given) / scaling.scale
        if not scaling.divided:
            return given, mean
        if isinstance(items, Tensor):  # on several GPUs of one process the same number for each
            items = items.flatten()[0]
        return given, mean * items * max(self._trainer.args.n_gpu, 1) / count

    def _count_labels(self, inputs: MutableMapping[str, Any]) -> Tensor:
        labels = inputs["shift_labels"] if "shift_labels" in inputs else inputs.get("labels")
        if not isinstance(labels, Tensor):
            raise RunError(
                "A batch should have its `labels` as a tensor, so that the mean of its loss is known. "
                f"Found {type(labels).__name__}. Let the data collator make one."
            )
        if "shift_labels" not in inputs and self._labels_are_shifted():
            labels = labels[..., 1:]  # the first one is nothing's prediction
        return labels.ne(IGNORED).sum()

    def _labels_are_shifted(self) -> bool:
        known = getattr(self._trainer, "_loss_shifts_labels", None)
        if known is not None:
            return bool(known)
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

        model = self._trainer.accelerator.unwrap_model(self._trainer.model)
        if hasattr(model, "get_base_model"):  # adapters of PEFT
            model = model.get_base_model()
        return type(model).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()

    def _measure(self, model: Any, inputs: MutableMapping[str, Any], items: Any) -> _Scaling:
        arguments = self._trainer.args
        averaged = getattr(arguments, "average_tokens_across_devices", False)
        alone = self._trainer.accelerator.num_processes == 1 and arguments.n_gpu <= 1

        def loss(number: Any) -> float:
            return float(_loss_of(self._compute_loss(model, dict(inputs), **{ITEMS: number})))

        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        model.eval()
        try:
            with torch.no_grad(), torch.random.fork_rng(devices):
                as_given, doubled = loss(items), loss(2 * items)
                plain = as_given
                if averaged and not alone:
                    arguments.average_tokens_across_devices = False
                    plain = loss(items)
        finally:
            if averaged:
                arguments.average_tokens_across_devices = averaged
            model.train()
        if 0.0 in (doubled, plain) or not math.isfinite(as_given + doubled + plain):
            # This batch shows nothing, so what the Trainer itself takes for granted. Several
            # processes stay with it: one that measured again would wait for the others for ever.
            scale = self._trainer.accelerator.num_processes if averaged else 1
            presumed = _Scaling(True, float(scale))
            self._scaling = None if alone else presumed
            return presumed
        ratio = as_given / doubled
        if min(abs(ratio - 1), abs(ratio - 2)) > NEAR:
            raise RunError(
                f"The loss should be divided by `{ITEMS}`, or not depend on it. Found that twice the "
                f"number makes it {1 / ratio:.3g} times as large. Compute a mean in your "
                "`compute_loss`."
            )
        self._scaling = _Scaling(abs(ratio - 2) <= NEAR, as_given / plain)
        return self._scaling


def _loss_of(given: Any) -> Tensor:
    """The loss alone, without its outputs; on several GPUs of one process there is one of each."""
    loss = given[0] if isinstance(given, tuple) else given
    if not isinstance(loss, Tensor):
        raise RunError(
            "`compute_loss` should give a tensor, or a tensor and the outputs. Found "
            f"{type(loss).__name__}."
        )
    return loss.detach().float().mean()
