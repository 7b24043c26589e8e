"""A policy in the Hugging Face Trainer: its batches, its losses and its place in the checkpoints.

A callback is not given the trainer, and what a model returns is not what the Trainer trains on. So the
trainer's own methods are wrapped, on this one object: `get_train_dataloader` (batches that know their
draw), `compute_loss` (the loss as the Trainer computes it, whoever computes it) and `train` (where it
goes on from). What is read from the loss is in `_trainer_loss.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.utils.data import DataLoader, Sampler

from taskmix.errors import InputError, RunError
from taskmix.extras import load
from taskmix.files import check_plain
from taskmix.records import load_state, save_state
from taskmix.training._draws import KEY, DrawnCollate, DrawnRow, DrawnRows
from taskmix.training._sampler import PolicyBatchSampler
from taskmix.training._trainer_loss import MeanLoss

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
