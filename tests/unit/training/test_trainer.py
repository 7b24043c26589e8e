"""A sampler's policy in a real Trainer: each loss should be that of its own task, and its own mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from taskmix.errors import InputError, RunError
from taskmix.policies import Exp3S, Uniform
from taskmix.training import PolicyBatchSampler, connect_trainer

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate", reason="the Trainer needs it")
shared = pytest.importorskip("launched_losses")

SIZES, CONSTANTS, ROWS = shared.SIZES, shared.CONSTANTS, shared.ROWS
ANSWERS = (
    5,
    12,
    1,
)  # tokens: the answers of the second task are long, those of the third one token
ROUTER = 0.7  # what a model of several experts adds to its loss


class Heard:
    """What a record is told: the task and the loss of each step."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float]] = []

    def add_step(self, step: int, task: int, *, loss: float, **others: Any) -> None:
        assert step == len(self.rows) + 1
        self.rows.append((task, loss))

    @property
    def right(self) -> int:
        return sum(loss == pytest.approx(CONSTANTS[task]) for task, loss in self.rows)


class Constant(torch.nn.Module):
    """A model whose loss says what task it saw; it remembers the rows it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.dropout = torch.nn.Dropout(0.5)
        self.seen: list[list[int]] = []

    def forward(self, task: torch.Tensor, row: torch.Tensor) -> Any:
        assert len(set(task.tolist())) == 1
        if self.training:
            self.seen.append(row.tolist())
        known = torch.tensor(CONSTANTS)[task].mean()
        noise = self.dropout(self.weight.expand(64)).mean()
        return {"loss": known + noise - noise.detach()}


def make_sampler(steps: int, **changes: Any) -> PolicyBatchSampler:
    options: dict[str, Any] = {
        "policy": Exp3S(eta=0.2),
        "reward": shared.LossAsReward(),
        "batch_size": 4,
        "steps": steps,
        "generator": np.random.default_rng(0),
    }
    return PolicyBatchSampler(SIZES, **(options | changes))


def make_arguments(folder: Path, **changes: Any) -> Any:
    options: dict[str, Any] = {
        "output_dir": str(folder),
        "num_train_epochs": 1,
        "learning_rate": 0.05,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "seed": 1,
    }
    return transformers.TrainingArguments(**(options | changes))


@pytest.mark.parametrize(("accumulation", "workers"), [(1, 2), (3, 0)])
def test_every_loss_goes_to_its_task_with_accumulation_workers_and_evaluation_in_between(
    tmp_path: Path, accumulation: int, workers: int
) -> None:
    heard = Heard()
    sampler = make_sampler(24, record=heard)
    arguments = make_arguments(
        tmp_path,
        gradient_accumulation_steps=accumulation,
        dataloader_num_workers=workers,
        eval_strategy="steps",
        eval_steps=2,
        label_names=["task"],
    )
    rows = ROWS
    trainer = transformers.Trainer(Constant(), arguments, train_dataset=rows, eval_dataset=rows[:8])
    connect_trainer(trainer, sampler).train()
    assert len(heard.rows) == heard.right == 24
    assert len({task for task, _ in heard.rows}) == 3


@pytest.mark.parametrize(
    ("ignore", "accumulation", "workers"),
    [(False, 2, 2), (False, 1, 0), (True, 2, 0)],
    ids=["skipping ahead", "skipping", "ignore_data_skip"],
)
def test_a_resumed_trainer_goes_on_as_if_it_had_never_stopped(
    tmp_path: Path, ignore: bool, accumulation: int, workers: int
) -> None:
    def train(steps: int, resume: str | None) -> tuple[Heard, Constant]:
        heard, model = Heard(), Constant()
        arguments = make_arguments(
            tmp_path,
            max_steps=steps,
            gradient_accumulation_steps=accumulation,
            save_strategy="steps",
            save_steps=4,
            ignore_data_skip=ignore,
            dataloader_num_workers=workers,
            lr_scheduler_type="constant",
        )
        sampler = make_sampler(12 * accumulation, generator=np.random.default_rng(5), record=None)
        trainer = transformers.Trainer(model, arguments, train_dataset=ROWS)
        connect_trainer(trainer, sampler)
        observe = sampler.observe

        def listening(loss: Any, draw: Any) -> Any:
            choice = observe(loss, draw)
            heard.rows.append((choice.task, float(loss)))
            return choice

        sampler.observe = listening  # type: ignore[method-assign]
        trainer.train(resume_from_checkpoint=resume)
        return heard, model

    whole, model = train(12, None)
    first = 4 * accumulation
    later, continued = train(12, str(tmp_path / "checkpoint-4"))
    assert later.rows == whole.rows[first:]
    assert later.right == len(later.rows) == 8 * accumulation
    assert continued.seen == model.seen[first:]
    torch.testing.assert_close(continued.weight, model.weight, rtol=0, atol=0)


def test_a_last_step_of_fewer_batches_is_made_after_a_resume_too(tmp_path: Path) -> None:
    def train(resume: Any) -> Any:
        arguments = make_arguments(
            tmp_path, gradient_accumulation_steps=2, save_strategy="steps", save_steps=2
        )
        trainer = transformers.Trainer(Constant(), arguments, train_dataset=ROWS)
        connect_trainer(trainer, make_sampler(7)).train(resume_from_checkpoint=resume)
        return trainer

    whole, later = train(None), train(str(tmp_path / "checkpoint-2"))
    assert whole.state.global_step == later.state.global_step == 4
    assert whole.state.epoch == later.state.epoch
    torch.testing.assert_close(whole.model.weight, later.model.weight, rtol=0, atol=0)


# What the loss of a batch is.


def token_mean(logits: torch.Tensor, labels: torch.Tensor, smoothing: float = 0.0) -> float:
    shifted, targets = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    return float(cross_entropy(shifted, targets, label_smoothing=smoothing))


class OwnMean(transformers.Trainer):  # type: ignore[misc, name-defined]
    """A loss of one's own, which takes no notice of the number of items."""

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        shifted, targets = outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        loss = cross_entropy(shifted, targets)
        return (loss, outputs) if return_outputs else loss


def summed(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    """A loss function of one's own that divides as the Trainer asks it to."""
    shifted, targets = outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    return cross_entropy(shifted, targets, reduction="sum") / num_items_in_batch


def averaged(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    return cross_entropy(outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def balanced(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    """As models of several experts do, with a part that is not divided."""
    return summed(outputs, labels, num_items_in_batch) + ROUTER


def powered(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    return summed(outputs, labels, num_items_in_batch) ** 3


@pytest.mark.parametrize(
    ("kind", "given", "options", "smoothing"),
    [
        (transformers.Trainer, {}, {}, 0.0),
        (transformers.Trainer, {}, {"label_smoothing_factor": 0.1}, 0.1),
        (transformers.Trainer, {"compute_loss_func": summed}, {}, 0.0),
        (transformers.Trainer, {"compute_loss_func": averaged}, {}, 0.0),
        (transformers.Trainer, {"compute_loss_func": balanced}, {}, 0.0),
        (OwnMean, {}, {}, 0.0),
    ],
    ids=[
        "the model's loss",
        "label smoothing",
        "a sum",
        "a mean",
        "a sum and more",
        "compute_loss",
    ],
)
def test_the_loss_of_a_batch_is_the_mean_over_its_own_tokens(
    tmp_path: Path, kind: Any, given: Any, options: Any, smoothing: float
) -> None:
    heard = Heard()
    sampler = make_sampler(8, policy=Uniform(), record=heard)
    model: Any = shared.tiny_llama()
    expected: Any = []

    def watch(module: Any, positional: Any, named: Any, outputs: Any) -> None:
        if module.training:
            rows = [tuple(row) for row in named["input_ids"].tolist()]
            labels = torch.tensor([by_tokens[row] for row in rows])
            expected.append(token_mean(outputs.logits.detach(), labels, smoothing))

    rows = shared.causal_rows(ANSWERS)
    by_tokens = {tuple(row["input_ids"]): row["labels"] for row in rows}
    model.register_forward_hook(watch, with_kwargs=True)
    arguments = make_arguments(tmp_path, gradient_accumulation_steps=4, **options)
    trainer = kind(
        model,
        arguments,
        train_dataset=rows,
        data_collator=transformers.default_data_collator,
        **given,
    )
    connect_trainer(trainer, sampler).train()
    found = [loss for _, loss in heard.rows]
    assert len(found) == 8
    expected = np.add(expected, ROUTER) if given.get("compute_loss_func") is balanced else expected
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_training_with_a_connected_trainer_is_the_training_without(tmp_path: Path) -> None:
    def train(connected: bool) -> Any:
        model = shared.tiny_llama()
        model.config.attention_dropout = 0.3
        arguments = make_arguments(tmp_path, gradient_accumulation_steps=2)
        sampler, rows = make_sampler(6, policy=Uniform()), shared.causal_rows(ANSWERS)
        if connected:
            trainer = connect_trainer(
                transformers.Trainer(model, arguments, train_dataset=rows, data_collator=collate),
                sampler,
            )
        else:
            batches = [[rows[row] for row in batch] for batch in sampler]
            loader = torch.utils.data.DataLoader(
                batches, batch_size=None, collate_fn=collate, generator=torch.Generator()
            )

            class Plain(transformers.Trainer):  # type: ignore[misc, name-defined]
                def get_train_dataloader(self) -> Any:
                    return self.accelerator.prepare(loader)

            trainer = Plain(model, arguments, train_dataset=rows)
        trainer.train()
        return torch.cat([weight.flatten() for weight in model.parameters()])

    collate = transformers.default_data_collator
    torch.testing.assert_close(train(True), train(False), rtol=0, atol=0)


# What cannot be is said.


def test_a_loss_that_cannot_be_undone_is_told_in_a_sentence(tmp_path: Path) -> None:
    arguments = make_arguments(tmp_path, gradient_accumulation_steps=2)
    trainer = transformers.Trainer(
        shared.tiny_llama(),
        arguments,
        train_dataset=shared.causal_rows(ANSWERS),
        data_collator=transformers.default_data_collator,
        compute_loss_func=powered,
    )
    with pytest.raises(RunError, match=r"twice the number makes it 0\.125 times as large"):
        connect_trainer(trainer, make_sampler(4)).train()


def test_a_batch_of_another_loader_is_told_in_a_sentence(tmp_path: Path) -> None:
    rows = ROWS
    trainer = transformers.Trainer(Constant(), make_arguments(tmp_path), train_dataset=rows)
    connect_trainer(trainer, make_sampler(4))
    trainer.get_train_dataloader = lambda: torch.utils.data.DataLoader(rows, batch_size=4)
    with pytest.raises(RunError, match="without the key `draw`"):
        trainer.train()


def test_a_checkpoint_without_the_sampler_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-2").mkdir()
    (tmp_path / "checkpoint-2" / "trainer_state.json").write_text(json.dumps({"global_step": 2}))
    trainer = transformers.Trainer(Constant(), make_arguments(tmp_path), train_dataset=ROWS)
    with pytest.raises(InputError, match="was saved by a trainer that was not connected"):
        connect_trainer(trainer, make_sampler(4)).train(resume_from_checkpoint=True)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_train_epochs": 3}, r"`num_train_epochs` should be 1.*Found 3"),
        ({"max_steps": 9, "gradient_accumulation_steps": 2}, r"18 in each process\. Found 12"),
    ],
)
def test_a_training_longer_than_the_sampler_s_budget_is_told_in_a_sentence(
    tmp_path: Path, changes: Any, sentence: str
) -> None:
    arguments = make_arguments(tmp_path, **changes)
    trainer = transformers.Trainer(Constant(), arguments, train_dataset=ROWS)
    with pytest.raises(InputError, match=sentence):
        connect_trainer(trainer, make_sampler(12)).train()
