"""A policy in the Hugging Face Trainer: its batches, its losses and its place in the checkpoints.

A callback is not given the trainer, and what a model returns is not what the Trainer trains on. So the
trainer's own methods are wrapped, on this one object: `get_train_dataloader` (batches that know their
draw), `compute_loss` (the loss as the Trainer computes it, whoever computes it) and `train` (where it
goes on from).

What is learned from is the mean loss of one batch. Where the Trainer accumulates gradients, it tells the
model how many labels all batches of the step have together (`num_items_in_batch`), and most models then
give the sum of this batch's token losses divided by that number: a share of the step's loss, larger for
longer answers. Some models ignore the number, and so may a loss function of one's own; a mixture of
experts adds a loss of its router that is not divided. Some versions also multiply by the number of
processes. Which of this happens is measured once, on the first batch: the loss is computed again with
twice the number, and without the averaging over processes, in evaluation mode and without gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from taskmix.errors import InputError, RunError
from taskmix.extras import load
from taskmix.files import check_plain
from taskmix.records import load_state, save_state
from taskmix.training._draws import KEY, DrawnCollate, DrawnRow, DrawnRows
from taskmix.training._sampler import PolicyBatchSampler

STATE_FILE = "taskmix_sampler.safetensors"  # in each checkpoint of the Trainer

TrainerT = TypeVar("TrainerT")


def connect_trainer(trainer: TrainerT, sampler: PolicyBatchSampler) -> TrainerT:
    """Lets a sampler's policy choose what a Hugging Face `Trainer` trains on, and hear every loss.

    The trainer's `train_dataset` has all tasks' rows one after another, in the order of the sampler's
    sizes. Batches come from the sampler; `per_device_train_batch_size` and `get_train_dataloader` do not
    count any more. The loss of a batch is its own mean, also with gradient accumulation, label smoothing
    or a `compute_loss` of one's own. The sampler's state is in every checkpoint, and
    `train(resume_from_checkpoint=...)` goes on from it exactly. The trainer is given back.

    >>> trainer = connect_trainer(Trainer(model, args, train_dataset=rows), sampler)  # doctest: +SKIP
    >>> output = trainer.train()  # doctest: +SKIP
    """
    transformers = load("transformers", purpose="Connecting a Trainer")
    if not isinstance(trainer, transformers.Trainer):
        raise InputError(
            "`trainer` should be a `transformers.Trainer` or one of its kind. Found "
            f"{type(trainer).__name__}. In a loop of your own use `sampler.loader` and `observe`."
        )
    _Connection(trainer, sampler).wire(transformers)
    return trainer


class _Connection:
    def __init__(self, trainer: Any, sampler: PolicyBatchSampler) -> None:
        self._trainer, self._sampler = trainer, sampler
        self._mean_loss = MeanLoss(trainer, trainer.compute_loss)
        self._losses: list[tuple[torch.Tensor, torch.Tensor]] = []  # draw and loss, not told yet
        self._train, self._compute_loss = trainer.train, trainer.compute_loss
        self._told = 0  # batches of the step that is being made
        self._budget = _WholeBudget(sampler)
        self._loader: Any = None

    def wire(self, transformers: Any) -> None:
        connection = self

        class PolicyCallback(transformers.TrainerCallback):  # type: ignore[misc]
            """Tells the sampler the losses of each step, and saves it with each checkpoint."""

            def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                connection.begin(args, state)

            def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                connection.tell()

            def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                connection.end_step()

            def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                connection.save(args, state)

        trainer = self._trainer
        trainer.get_train_dataloader = self.make_loader
        trainer.compute_loss = self.compute_loss
        trainer.train = self.train
        trainer.add_callback(PolicyCallback())

    def make_loader(self) -> Any:
        """The Trainer's own loader, but for the batches."""
        trainer = self._trainer
        rows = trainer.train_dataset
        if rows is None:
            raise InputError(
                "The trainer should have a `train_dataset` with all tasks' rows one after another. "
                "Found none. Give it the `ConcatDataset` of the tasks."
            )
        self._sampler.check_rows(rows)
        collate = trainer.data_collator
        without_unused = getattr(trainer, "_get_collator_with_removed_columns", None)
        if without_unused is not None:
            collate = without_unused(collate, description="training")
        arguments = trainer.args
        workers = arguments.dataloader_num_workers
        loader: DataLoader[Any] = DataLoader(
            DrawnRows(rows),
            batch_sampler=self._budget,
            collate_fn=DrawnCollate(collate),
            num_workers=workers,
            pin_memory=arguments.dataloader_pin_memory,
            persistent_workers=arguments.dataloader_persistent_workers,
            prefetch_factor=arguments.dataloader_prefetch_factor if workers else None,
            # Its own: taking the workers' seed from the global one would move the model's dropout.
            generator=torch.Generator().manual_seed(arguments.seed),
        )
        self._loader = trainer.accelerator.prepare(loader)
        self._check_length(len(self._loader))
        return self._loader

    def _check_length(self, batches: int) -> None:
        """An epoch of the Trainer is the whole budget, and there is only one."""
        arguments = self._trainer.args
        if arguments.max_steps <= 0 and arguments.num_train_epochs != 1:
            raise InputError(
                "`num_train_epochs` should be 1: the sampler's `steps` are the whole training. Found "
                f"{arguments.num_train_epochs}. Set it to 1, or set `max_steps`."
            )
        wanted = arguments.max_steps * arguments.gradient_accumulation_steps
        if wanted > batches:
            raise InputError(
                f"The sampler should have batches for all of `max_steps`, {wanted} in each process. "
                f"Found {batches}. Make it with more `steps`: those of all processes, each with its "
                "gradient accumulation."
            )

    def begin(self, arguments: Any, state: Any) -> None:
        """The Trainer asks for the batches of a resumed run again and throws them away."""
        skipped = state.global_step * arguments.gradient_accumulation_steps
        shard = getattr(self._loader, "batch_sampler", None)
        cut = getattr(shard, "split_batches", False)
        shared = 1 if cut else getattr(shard, "num_processes", 1)
        self._budget.thrown_away = 0 if arguments.ignore_data_skip else skipped * shared

    def compute_loss(
        self, model: Any, inputs: MutableMapping[str, Any], *others: Any, **named: Any
    ) -> Any:
        draw = inputs.pop(KEY, None)
        if draw is None and model.training:
            raise RunError(
                "Every training batch should know its draw. Found a batch without the key "
                f"`{KEY}`. Let the connected trainer make its own training loader."
            )
        if draw is None:
            return self._compute_loss(model, inputs, *others, **named)
        given, mean = self._mean_loss.compute(model, inputs, *others, **named)
        self._losses.append((draw, mean))
        return given

    def tell(self) -> None:
        for draw, loss in self._losses:
            self._sampler.observe(loss, draw)
        self._told += len(self._losses)
        self._losses.clear()

    def end_step(self) -> None:
        self.tell()
        if not self._told:
            raise RunError(
                "Every step should have a loss that the policy learns from. Found a step without: "
                f"`{type(self._trainer).__name__}` trains without calling its `compute_loss`. Call "
                "`sampler.observe(loss, draw)` from its `training_step` instead of connecting it."
            )
        self._told = 0

    def save(self, arguments: Any, state: Any) -> None:
        folder = Path(arguments.output_dir) / f"checkpoint-{state.global_step}"
        if arguments.should_save and folder.is_dir():
            save_state(folder / STATE_FILE, self._sampler.state_dict())

    def train(self, resume_from_checkpoint: Any = None, *others: Any, **named: Any) -> Any:
        """The Trainer's own, after the sampler has gone back to where the checkpoint was saved."""
        self._losses.clear()
        self._told = 0
        if not resume_from_checkpoint:
            if len(self._sampler) != self._sampler.steps:
                raise InputError(
                    "The sampler of a new training should be a new one. Found one of whose "
                    f"{self._sampler.steps} batches {len(self._sampler)} are left. Make another, or "
                    "give `resume_from_checkpoint`."
                )
            return self._train(resume_from_checkpoint, *others, **named)
        folder = self._checkpoint(resume_from_checkpoint)
        path = folder / STATE_FILE
        try:
            check_plain(path)
        except FileNotFoundError:
            raise InputError(
                f"The checkpoint `{folder}` should have the sampler's state in `{STATE_FILE}`. Found "
                "none: it was saved by a trainer that was not connected. Train anew, or continue "
                "without a sampler."
            ) from None
        self._sampler.load_state_dict(load_state(path))
        return self._train(str(folder), *others, **named)

    def _checkpoint(self, resume_from: Any) -> Path:
        if resume_from is not True:
            return Path(resume_from)
        trainer_utils: Any = load("transformers", purpose="Connecting a Trainer").trainer_utils
        output = self._trainer.args.output_dir
        found = trainer_utils.get_last_checkpoint(output)
        if found is None:
            raise InputError(
                f"`{output}` should have a checkpoint to go on from. Found none. Train without "
                "`resume_from_checkpoint` first."
            )
        return Path(found)


class _WholeBudget(Sampler[list[int]]):
    """The sampler as the Trainer should see it: an epoch is the whole budget, also after a resume.

    A Trainer that resumes asks for all batches from the first one on and throws away those of the steps
    that were made. It gets blanks for these, since the sampler goes on from its own state.
    """

    def __init__(self, sampler: PolicyBatchSampler) -> None:
        self._sampler = sampler
        self.batch_size, self.drop_last = sampler.batch_size, sampler.drop_last
        self.thrown_away = 0

    def __len__(self) -> int:
        return self._sampler.steps

    def __iter__(self) -> Iterator[list[int]]:
        blank: list[int] = [DrawnRow.of(0, draw=0)] * (self.batch_size or 1)
        for _ in range(self.thrown_away):
            yield blank
        self.thrown_away = 0
        yield from self._sampler


ITEMS = "num_items_in_batch"
IGNORED = -100  # the label that no loss is computed of, in all of transformers
NEAR = 0.02  # relative; bfloat16 has two to three digits


@dataclass(frozen=True, slots=True)
class _Scaling:
    divided: bool  # by the number of items of the whole step
    scale: float = 1.0  # what was divided was multiplied by this
    constant: float = 0.0  # what was added to it


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
        mean = (_loss_of(given) - scaling.constant) / scaling.scale
        if scaling.divided:
            if isinstance(items, Tensor):  # on several GPUs of one process the same number for each
                items = items.flatten()[0]
            mean = mean * items * max(self._trainer.args.n_gpu, 1) / count
        return given, mean + scaling.constant

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
        if 0.0 in (as_given, plain) or not math.isfinite(as_given + doubled + plain):
            # This batch shows nothing, so what the Trainer itself takes for granted. Several
            # processes stay with it: one that measured again would wait for the others for ever.
            scale = self._trainer.accelerator.num_processes if averaged else 1
            presumed = _Scaling(True, float(scale))
            self._scaling = None if alone else presumed
            return presumed
        share = 2 * (as_given - doubled) / as_given  # what of the loss is divided by the number
        if not -NEAR <= share <= 1 + NEAR:
            raise RunError(
                f"The loss should be divided by `{ITEMS}`, or not depend on it. Found that twice the "
                f"number makes it {doubled / as_given:.3g} times as large. Compute a mean in your "
                "`compute_loss`."
            )
        constant = (1 - share) * as_given if NEAR < share < 1 - NEAR else 0.0
        scale = (as_given - constant) / (plain - constant)
        self._scaling = _Scaling(share > NEAR, scale, constant)
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
