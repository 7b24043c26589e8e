"""A run described whole, and its execution into a study.

The description is frozen and made of plain options, so its hash names the run's folder: asking for
the same run twice costs once, and a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from taskmix.engine._optimization import Optimization
from taskmix.engine._source import KeptEncodings, TaskSource, load_once, select_once
from taskmix.errors import OptionError, RunError
from taskmix.models import Architecture, HardSharing, Merge
from taskmix.policies import AnyPolicy, AnyReward, Uniform
from taskmix.records import (
    Checkpoint,
    RecordWriter,
    RunFolder,
    RunSummary,
    Study,
    describe,
    specification_hash,
)
from taskmix.tasks import EncodedTasks, TaskSet
from taskmix.training import (
    CheckpointEvent,
    EndEvent,
    EvaluationEvent,
    Event,
    Ranks,
    Score,
    StepEvent,
    train,
)
from taskmix.weighting import AnyWeighting

FORMAT = 1  # of the specification; a change in what it means gets a new number

PASSES_OF_A_BATCH = 3  # through the encoder: one there, and back one for inputs, one for weights

Listener = Callable[[Event], None]

_encodings = KeptEncodings()


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that determines a run, and what it is called.

    >>> from dataclasses import replace
    >>> from taskmix.models import Perceptron
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> replace(run, label="other").specification() == run.specification()
    True
    >>> replace(run, seed=1).specification() == run.specification()
    False
    """

    label: str  # what the report calls this kind of run, the same for all seeds; determines nothing
    source: TaskSource
    architecture: Architecture
    steps: int
    seed: int
    tasks: tuple[str, ...] | None = None  # only these, in this order
    policy: AnyPolicy | None = None
    reward: AnyReward | None = None
    weighting: AnyWeighting | None = None
    optimization: Optimization = field(default_factory=Optimization)
    batch_size: int = 32
    evaluate_every: int | None = None
    checkpoint_every: int | None = None
    patience: int | None = None
    clip_norm: float | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    device: str = "cpu"
    merge: Merge | None = None  # how it is made of its sources; None: it is trained
    sources: tuple[Run, ...] = ()  # the runs whose models are merged

    def __post_init__(self) -> None:
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise OptionError(
                "`clip_norm` should be the largest norm of a gradient, above 0. Found "
                f"{self.clip_norm}."
            )

    def load(self) -> TaskSet:
        """The run's tasks, in its order."""
        return (
            load_once(self.source) if self.tasks is None else select_once(self.source, self.tasks)
        )

    @property
    def batches_a_step(self) -> int:
        """That are encoded: one, or with a weighting one of each task, those that share inputs once."""
        if self.weighting is None:
            return 1
        return len({id(task.splits["train"].inputs) for task in self.load()})

    @property
    def passes_a_step(self) -> int:
        """Of a batch through the encoder, one there and two back: what a step costs."""
        if self.weighting is None:
            return PASSES_OF_A_BATCH
        return self.weighting.needs.passes(batches=self.batches_a_step, tasks=len(self.load()))

    @property
    def cost(self) -> float:
        """Of all its steps, in batches of a plain step: what a budget of steps counts."""
        if self.merge is not None:
            return sum(source.cost for source in self.sources)
        return self.cost_of(self.steps)

    def cost_of(self, steps: int) -> float:
        """Of some of its steps, in the same batches."""
        return steps * self.passes_a_step / PASSES_OF_A_BATCH

    def steps_for(self, batches: int) -> int:
        """How many steps cost what so many batches do, at least one."""
        return max(batches * PASSES_OF_A_BATCH // self.passes_a_step, 1)

    def folder(self, study: Study) -> RunFolder:
        """Where a study has the run, or will have it, asked for under the run's label."""
        return study.run(self.specification(), label=self.label)

    def specification(self) -> dict[str, Any]:
        """What determines the run, as plain values.

        Where the tasks lie does not matter, what they say does; the label is not part of it.
        """
        tasks = self.load()
        decision = self.weighting if self.weighting is not None else self.policy or Uniform()
        return {
            "format": FORMAT,
            "tasks": {"content": tasks.content, "names": list(tasks.names)},
            "architecture": describe(self.architecture),
            "policy" if self.weighting is None else "weighting": describe(decision),
            "reward": describe(self.reward),
            "optimization": describe(self.optimization),
            "steps": self.steps,
            "batch_size": self.batch_size,
            "evaluate_every": self.evaluate_every,
            "checkpoint_every": self.checkpoint_every,
            "patience": self.patience,
            "clip_norm": self.clip_norm,
            "precision": self.precision,
            "device": self.device.split(":", maxsplit=1)[0],
            "seed": self.seed,
            **self._merged(),
        }

    def _merged(self) -> dict[str, Any]:
        if self.merge is None:
            return {}
        names = [specification_hash(source.specification()) for source in self.sources]
        return {"merge": describe(self.merge), "sources": names}


@dataclass(frozen=True, kw_only=True)
class Executed:
    """What came of asking for a run.

    >>> [Executed(outcome=word, summary=None).is_done for word in ("already finished", "busy")]
    [True, False]
    """

    outcome: Literal["finished", "already finished", "busy", "stopped", "failed"]
    summary: RunSummary | None
    notes: tuple[str, ...] = ()
    error: str | None = None  # what made it fail, where many runs go on without this one
    recorded: bool = True  # False where it was the disk that failed, which tells nothing of the run

    @property
    def is_done(self) -> bool:
        """Whether the study holds the whole run now."""
        return self.outcome in ("finished", "already finished")

    def for_equal(self, folder: RunFolder) -> Executed:
        """The same for an equal run, asked for under the label of its `folder`."""
        if self.summary is None or folder.label is None or folder.label == self.summary.label:
            return self
        folder.keep_label()
        done = self.outcome == "finished"
        return replace(
            self,
            outcome="already finished" if done else self.outcome,
            summary=self.summary.under(folder.label),
        )


def execute(
    run: Run,
    study: Study,
    *,
    listener: Listener | None = None,
    should_stop: Callable[[], bool] | None = None,
    fresh: bool = False,
) -> Executed:
    """Does the run in this process, or says why there is nothing to do.

    `fresh` starts over even where the study holds a checkpoint or a finished run.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> events = []
    >>> execute(run, Study("study"), listener=events.append).outcome
    'finished'
    >>> [type(event).__name__ for event in events]
    ['StepEvent', 'StepEvent', 'EvaluationEvent', 'CheckpointEvent', 'EndEvent']
    """
    study.settle()
    specification = run.specification()
    folder = run.folder(study)
    with folder.claim(fresh=fresh) as claim:
        if claim.outcome == "finished":
            return Executed(outcome="already finished", summary=folder.summary())
        writer = claim.writer
        if writer is None:
            return Executed(outcome="busy", summary=folder.summary())
        try:
            if run.merge is not None:
                from taskmix.engine._merge import merge_into  # which knows runs

                begin_record(writer, run, specification)
                ended = merge_into(writer, run, study, listener, should_stop)
            else:
                ended = _train_into(writer, run, specification, listener, should_stop)
        except Exception as error:
            writer.fail(f"{type(error).__name__}: {error}")
            raise
        return Executed(
            outcome="finished" if ended else "stopped",
            summary=folder.summary(),
            notes=tuple(writer.notes),
        )


def _train_into(
    writer: RecordWriter,
    run: Run,
    specification: dict[str, Any],
    listener: Listener | None,
    should_stop: Callable[[], bool] | None,
) -> bool:
    """Trains and writes; False where it was stopped before the end."""
    events = training_events(run, writer.resumed, should_stop, with_credits=not writer.lean)
    begin_record(writer, run, specification)
    ended = False
    for event in events:
        record_event(writer, event)
        ended = isinstance(event, EndEvent)
        if listener is not None:
            listener(event)
    if not ended:
        writer.stop()
    return ended


def training_events(
    run: Run,
    resumed: Checkpoint | None,
    should_stop: Callable[[], bool] | None,
    ranks: Ranks | None = None,
    *,
    with_credits: bool = False,
) -> Iterator[Event]:
    """Builds the run's model and gives the events of its training, from a checkpoint on."""
    model, tasks = build(run)
    optimizer, scheduler = run.optimization.build(model.parameters(), run.steps)
    return train(
        model,
        tasks,
        steps=run.steps,
        optimizer=optimizer,
        scheduler=scheduler,
        generator=np.random.default_rng(run.seed),
        policy=run.policy,
        reward=run.reward,
        weighting=run.weighting,
        batch_size=run.batch_size,
        evaluate_every=run.evaluate_every,
        checkpoint_every=run.checkpoint_every,
        patience=run.patience,
        clip_norm=run.clip_norm,
        precision=getattr(torch, run.precision),
        should_stop=should_stop,
        resume=resumed.state if resumed is not None else None,
        resume_best=resumed.best if resumed is not None else None,
        ranks=ranks,
        with_credits=with_credits,
    )


def begin_record(writer: RecordWriter, run: Run, specification: dict[str, Any]) -> None:
    """Writes what the record says of the run before its first step."""
    writer.start(
        specification=specification,
        seed=run.seed,
        label=run.label,
        steps=run.steps,
        tasks=[
            {
                "name": task.name,
                "kind": task.kind,
                "metric": task.metric,
                "source": task.source,
                "sizes": task.sizes,
                "labels": len(task.labels),
            }
            for task in run.load()
        ],
    )


def build(run: Run) -> tuple[HardSharing, EncodedTasks]:
    """The run's model with its first parameters, on its device, and its tasks encoded.

    >>> from taskmix.models import Perceptron
    >>> source, architecture = DigitsSource(tasks=("parity", "half")), Perceptron(hidden=(8,))
    >>> run = Run(label="demo", source=source, architecture=architecture, steps=2, seed=0)
    >>> model, tasks = build(run)
    >>> sum(parameter.numel() for parameter in model.parameters())  # 64 pixels, 8 units, 2 heads
    556
    """
    tasks = encode(run)
    device = find_device(run.device)
    return first_model(run, tasks).to(device), tasks


def encode(run: Run) -> EncodedTasks:
    """The run's tasks as its architecture reads them; those of the latest runs are kept."""
    cache = getattr(run.source, "cache", None)
    tasks, encoding = run.load(), run.architecture.encoding
    return _encodings.get(tasks, encoding, lambda: encoding.encode(tasks, cache=cache))


def first_model(run: Run, tasks: EncodedTasks) -> HardSharing:
    """The run's model with its first parameters, a function of its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return run.architecture.build(tasks)


def model_of_run(run: Run, study: Study) -> tuple[HardSharing, EncodedTasks]:
    """The best model of a run that has been trained, and its tasks encoded.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> study = Study("study")
    >>> execute(run, study).outcome
    'finished'
    >>> model, tasks = model_of_run(run, study)
    >>> first, _ = build(run)
    >>> all(torch.equal(a, b) for a, b in zip(model.parameters(), first.parameters()))
    False
    """
    best = best_of_run(run, study)
    model, tasks = build(run)
    model.load_state_dict(best)
    return model, tasks


def best_of_run(run: Run, study: Study) -> Any:
    """What the record of a run keeps as the best; raises where there is nothing."""
    folder = study.run(run.specification())
    best = folder.best()
    if best is None:
        raise RunError(
            f"Run `{run.label}` with seed {run.seed} should have a trained model in "
            f"{folder.path}. Found none. Train it first."
        )
    return best


def record_event(writer: RecordWriter, event: Event) -> None:
    """Writes an event of `train` into a record.

    >>> from taskmix.records import Study
    >>> from taskmix.training import StepEvent
    >>> folder = Study("study").run({"rate": 0.1})
    >>> with folder.claim() as claim:
    ...     about = {"specification": {"rate": 0.1}, "seed": 0, "label": "a", "steps": 1}
    ...     claim.writer.start(**about, tasks=[{"name": "t"}])
    ...     event = StepEvent(step=1, tasks=(0,), losses=(0.5,), examples=(32,), seconds=0.1)
    ...     record_event(claim.writer, event)
    ...     claim.writer.finish(scores=[], best_step=None, step=1)
    >>> folder.steps(["loss", "examples"]).to_pylist()
    [{'loss': 0.5, 'examples': 32}]
    """
    match event:
        case StepEvent():
            _write_step(writer, event)
        case EvaluationEvent():
            writer.add_scores(event.step, [score_row(score) for score in event.scores])
        case CheckpointEvent():
            writer.commit(
                event.step,
                event.state,
                best=event.best,
                best_step=event.best_step,
                best_changed=event.best_changed,
            )
        case EndEvent():
            writer.finish(
                scores=[score_row(score) for score in event.scores],
                best_step=event.best_step,
                step=event.step,
                row_credits=credits_of(event.scores),
            )


def score_row(score: Score) -> tuple[str, str, str, float]:
    """A score as the record takes it."""
    return score.task, score.split, score.metric, score.value


def credits_of(scores: Iterable[Score]) -> dict[str, NDArray[np.float64]]:
    """Of each task, what each row adds to its metric and to its loss, as the record takes it."""
    found: dict[str, list[NDArray[np.float64]]] = {}
    for score in scores:  # of a task the metric comes first
        if score.credits is not None:
            found.setdefault(score.task, []).append(score.credits)
    return {task: np.array(rows) for task, rows in found.items()}


def _write_step(writer: RecordWriter, event: StepEvent) -> None:
    weights = event.weights
    share = event.seconds / len(event.tasks)  # a step over all tasks is one cost, told in parts
    for place, task in enumerate(event.tasks):
        writer.add_step(
            event.step,
            task,
            probability=event.probability,
            probabilities=event.probabilities,
            loss=event.losses[place],
            loss_after=event.loss_after,
            reward=event.reward,
            weight=weights[place] if weights is not None else None,
            seconds=share,
            examples=event.examples[place],
        )


def find_device(name: str) -> torch.device:
    """The device of that name, if this machine has it."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise OptionError(
            f"`device` should be a device of PyTorch such as cpu or cuda. Found {name!r}."
        ) from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise OptionError(
            f"`device` should be one this machine has. Found {name!r}, and no CUDA device is here. "
            "Use `device` cpu.",
            arguments=("device",),
        )
    return device


def choose_device(name: str) -> str:
    """`auto` becomes the first accelerator PyTorch can use, else the CPU; others are checked.

    >>> choose_device("cpu")
    'cpu'
    >>> choose_device("abacus")
    Traceback (most recent call last):
    taskmix.errors.OptionError: `device` should be a device of PyTorch such as cpu or cuda. Found ...
    """
    if name != "auto":
        return str(find_device(name))
    if torch.cuda.is_available():
        return "cuda"
    return "cpu"
