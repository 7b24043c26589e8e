"""One run: a loop that yields events and opens no file.

Writing records, drawing progress and stopping on a signal are done by whoever reads the events.
Everything random is a function of the generator passed in and of the step: two runs with the same
generator and data give the same bits on the CPU, and so does a run that was stopped and resumed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from taskmix.errors import DivergedError, InputError, OptionError
from taskmix.models import HardSharing, target_scale
from taskmix.policies import AnyPolicy, AnyReward, Uniform
from taskmix.tasks import EncodedTasks
from taskmix.training._evaluate import evaluate, mean_score, scores_by_position
from taskmix.training._events import (
    CheckpointEvent,
    EndEvent,
    EvaluationEvent,
    Event,
    Score,
)
from taskmix.training._losses import task_loss
from taskmix.training._machinery import Machinery, Scheduler, TrainingSteps
from taskmix.training._ranks import Ranks
from taskmix.training._steps import PolicySteps, WeightingSteps
from taskmix.weighting import AnyWeighting


@dataclass
class BestTracker:
    """The best evaluation so far, and how many have gone by since.

    >>> best = BestTracker(patience=2)
    >>> [best.see(mean, step) for step, mean in enumerate((0.5, 0.7, 0.6, 0.7), start=1)]
    [True, True, False, False]
    >>> best.step, best.over
    (2, True)
    """

    patience: int | None
    score: float = -math.inf
    step: int = 0  # 0 until there was one
    waited: int = 0

    @property
    def over(self) -> bool:
        """Whether the run should stop: the score has not risen for `patience` evaluations."""
        return self.patience is not None and self.waited >= self.patience

    def see(self, mean: float, step: int) -> bool:
        """Takes the mean dev score after a step; True where it is the best so far."""
        # A set of tasks without dev scores (NaN) has no best moment but the latest.
        value = mean if not math.isnan(mean) else -math.inf
        if self.step == 0 or value > self.score or value == self.score == -math.inf:
            self.score, self.step, self.waited = value, step, 0
            return True
        self.waited += 1
        return False

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Goes on from a checkpoint."""
        self.score, self.step = tree["best_score"], tree["best_step"]
        self.waited = tree["waited"]

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"waited": self.waited, "best_score": self.score, "best_step": self.step}


def train(
    model: HardSharing,
    tasks: EncodedTasks,
    *,
    steps: int,
    optimizer: torch.optim.Optimizer,
    generator: np.random.Generator,
    policy: AnyPolicy | None = None,
    reward: AnyReward | None = None,
    weighting: AnyWeighting | None = None,
    scheduler: Scheduler | None = None,
    batch_size: int = 32,
    evaluate_every: int | None = None,
    checkpoint_every: int | None = None,
    patience: int | None = None,
    clip_norm: float | None = None,
    precision: torch.dtype = torch.float32,
    final_splits: tuple[str, ...] = ("dev", "test"),
    with_credits: bool = False,
    should_stop: Callable[[], bool] | None = None,
    resume: Mapping[str, Any] | None = None,
    resume_best: Mapping[str, Any] | None = None,
    ranks: Ranks | None = None,
) -> Iterator[Event]:
    """Trains `model` in place; iterate to the end, or stop whenever you like.

    With a `policy` each step trains on one task it draws; with a `weighting` each step trains on all
    tasks, their losses weighted; with neither, on one task drawn uniformly. The model's device is the
    run's device. Evaluation on `dev` comes every `evaluate_every` steps and after the last; a
    checkpoint every `checkpoint_every` steps and after the last; training stops early when the mean
    dev score has not risen for `patience` evaluations. At the end the model holds the parameters of
    its best evaluation, by which it is scored. When `should_stop` says so, a checkpoint is yielded and
    the run ends without an `EndEvent`. `resume` and `resume_best` are the trees of a `CheckpointEvent`.
    `ranks` are the processes that train this model together; all of them yield the same events. With
    `with_credits` the final scores on `dev` say what each row adds to them.

    >>> from taskmix.models import HardSharing
    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {s: (np.eye(2), ["no", "yes"]) for s in ("train", "dev")}})
    >>> model = HardSharing(torch.nn.Identity(), [torch.nn.Linear(2, 2)], ["a"])
    >>> optimizer, generator = torch.optim.SGD(model.parameters(), lr=1.0), np.random.default_rng(0)
    >>> options = {"steps": 30, "optimizer": optimizer, "generator": generator}
    >>> *_, end = train(model, encoding.encode(tasks), **options)
    >>> end.scores[0]
    Score(task='a', split='dev', metric='accuracy', value=1.0)
    """
    check_training(
        tasks,
        steps=steps,
        batch_size=batch_size,
        evaluate_every=evaluate_every,
        checkpoint_every=checkpoint_every,
        patience=patience,
        both=policy is not None and weighting is not None,
    )
    device = next(model.parameters()).device
    tasks = tasks.to(device)
    deviations = {task.name: target_scale(tasks, task)[1] for task in tasks}
    losses = [task_loss(task, deviations[task.name]) for task in tasks]
    machinery = Machinery(
        model=model,
        tasks=tasks,
        losses=losses,
        optimizer=optimizer,
        scheduler=scheduler,
        batch_size=batch_size,
        clip_norm=clip_norm,
        precision=precision,
        device=device,
        seed=int(resume["seed"]) if resume is not None else int(generator.integers(2**62)),
        ranks=ranks or Ranks(),
    )
    ranks = machinery.ranks
    taker: TrainingSteps
    if weighting is not None:
        taker = WeightingSteps(machinery, weighting)
    else:
        taker = PolicySteps(machinery, policy or Uniform(), reward, generator)

    step, checkpoint = 0, None
    tracker, best = BestTracker(patience), None
    if resume is not None:
        _restore(resume, machinery, taker)
        tracker.restore(resume)
        best = None if resume_best is None else dict(resume_best)
        step = checkpoint = resume["step"]
    told = tracker.step

    def score(split: str, *, with_credits: bool = False) -> tuple[Score, ...]:
        with ranks.working():
            found = evaluate(
                model,
                tasks,
                split,
                losses=losses,
                precision=precision,
                part=(ranks.rank, ranks.count),
                with_credits=with_credits,
            )
        return tuple(sorted(ranks.gather(found), key=lambda each: tasks.names.index(each.task)))

    model.train()
    while step < steps and not tracker.over:
        step += 1
        try:
            event = taker.take(step)
        except DivergedError as error:
            raise DivergedError(
                step=error.step, task=error.task, loss=error.loss, checkpoint=checkpoint
            ) from None
        yield event

        last = step == steps
        if (evaluate_every is not None and step % evaluate_every == 0) or last:
            scores = score("dev")
            mean = mean_score(scores, deviations)
            taker.measured(scores_by_position(tasks, scores, deviations))
            is_best = tracker.see(mean, step)
            if is_best:
                best = copy.deepcopy(model.state_dict())
            yield EvaluationEvent(step=step, scores=scores, mean=mean, best=is_best)
        asked = ranks.any(should_stop is not None and should_stop())
        due = checkpoint_every is not None and step % checkpoint_every == 0
        if due or last or tracker.over or asked:
            _parameters_must_be_finite(model, step, tasks.names[event.tasks[0]], checkpoint)
            state = {
                "step": step,
                "seed": machinery.seed,
                "model": dict(model.state_dict()),
                "optimizer": optimizer.state_dict(),
                "scheduler": _plain(scheduler),
                "steps": taker.state(),
                **tracker.state(),
            }
            yield CheckpointEvent(
                step=step,
                state=state,
                best=None if best is None else dict(best),
                best_step=None if best is None else tracker.step,
                best_changed=best is not None and tracker.step != told,
            )
            checkpoint, told = step, tracker.step
        if asked and not last and not tracker.over:
            return

    assert best is not None
    model.load_state_dict(best)
    final = tuple(
        each
        for split in final_splits
        for each in score(split, with_credits=with_credits and split == "dev")
    )
    yield EndEvent(
        step=step, best_step=tracker.step or step, stopped_early=tracker.over, scores=final
    )


def _restore(resume: Mapping[str, Any], machinery: Machinery, taker: TrainingSteps) -> None:
    machinery.model.load_state_dict(resume["model"])
    machinery.optimizer.load_state_dict(resume["optimizer"])
    if machinery.scheduler is not None:
        machinery.scheduler.load_state_dict(resume["scheduler"])
    taker.restore(resume["steps"])


def _plain(scheduler: Scheduler | None) -> dict[str, Any] | None:
    """A scheduler's state without the functions PyTorch leaves in it (`LambdaLR` holds None there)."""
    return None if scheduler is None else dict(scheduler.state_dict())


def _parameters_must_be_finite(
    model: HardSharing, step: int, task: str, checkpoint: int | None
) -> None:
    """A checkpoint with a NaN in it would be no way back."""
    for parameter in model.parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise DivergedError(step=step, task=task, loss=math.nan, checkpoint=checkpoint)


def check_training(
    tasks: EncodedTasks,
    *,
    steps: int,
    batch_size: int,
    evaluate_every: int | None,
    checkpoint_every: int | None,
    patience: int | None,
    both: bool,
) -> None:
    """Refuses, in words, what cannot be trained.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {"train": (np.eye(2), ["no", "yes"])}})
    >>> every = {"evaluate_every": None, "checkpoint_every": None, "patience": None}
    >>> check_training(encoding.encode(tasks), steps=0, batch_size=2, both=False, **every)
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `steps` should be 1 or more. Found 0.
    """
    if not len(tasks):
        raise InputError("There should be at least one task to train on. Found none.")
    for task in tasks:
        if not task.size:
            raise InputError(
                f"Every task should have rows to train on. Found none for `{task.name}`. "
                "Leave the task out, or give it a train split."
            )
    if both:
        raise OptionError(
            "Either a policy (one task a step) or a weighting (all tasks a step) should be given. "
            "Found both. Leave one of them out."
        )
    for name, value in (
        ("steps", steps),
        ("batch_size", batch_size),
        ("evaluate_every", evaluate_every),
        ("checkpoint_every", checkpoint_every),
        ("patience", patience),
    ):
        if value is not None and value < 1:
            raise OptionError(f"`{name}` should be 1 or more. Found {value}.")
