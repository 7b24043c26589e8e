"""Listeners that log a training elsewhere: TensorBoard, MLflow, and Weights & Biases.

listener = TensorBoardListener("runs/first", tasks.names)
for event in train(model, tasks, ...):
    listener(event)
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.extras import load
from taskmix.training._events import EndEvent, EvaluationEvent, Event, StepEvent


class TensorBoardListener:
    """Writes into a folder of its own; the file is complete after the `EndEvent`, or `close`.

    >>> listener = TensorBoardListener("runs/first", ["a", "b"])  # doctest: +SKIP
    >>> step = StepEvent(step=1, tasks=(0,), losses=(0.7,), examples=(32,), seconds=0.01)
    >>> listener(step)  # doctest: +SKIP
    """

    def __init__(self, folder: Path | str, tasks: Sequence[str]) -> None:
        torch_side = load(
            "torch.utils.tensorboard", purpose="`TensorBoardListener`", needs="tensorboard"
        )
        self._tasks = tuple(tasks)
        self._writer = torch_side.SummaryWriter(str(folder))

    def __call__(self, event: Event) -> None:
        for name, value, step in points_of(event, self._tasks):
            self._writer.add_scalar(name, value, step)
        if isinstance(event, EndEvent):
            self.close()

    def close(self) -> None:
        self._writer.close()


METRICS_AT_ONCE = 500  # in one request; the server takes no more than 1,000
PARAMETERS_AT_ONCE = 100  # in one request; the server takes no more
LONGEST_PARAMETER = 500  # characters; the server refuses more
_FORBIDDEN = re.compile(r"[^\w\-. /]")  # what the name of a metric must not have


class MLflowListener:
    """One run of an experiment at a tracking server, or in a folder or database.

    Metrics are sent in batches, the last of them with the `EndEvent`, or by `close`.

    >>> listener = MLflowListener("file:mlruns", ["a", "b"], name="first")  # doctest: +SKIP
    >>> step = StepEvent(step=1, tasks=(0,), losses=(0.7,), examples=(32,), seconds=0.01)
    >>> listener(step)  # doctest: +SKIP
    """

    def __init__(
        self,
        uri: str,
        tasks: Sequence[str],
        *,
        name: str | None = None,
        experiment: str = "taskmix",
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        mlflow, entities, exceptions = (
            load(module, purpose="`MLflowListener`")
            for module in ("mlflow", "mlflow.entities", "mlflow.exceptions")
        )
        self._tasks = tuple(tasks)
        self._metric: Any = entities.Metric
        self._waiting: list[Any] = []
        self._ended = False
        if uri.startswith("file:") or "://" not in uri:
            # Newer versions want to be told that a plain folder is meant; a database needs packages
            # that mlflow-skinny does not bring.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        try:
            self._client = mlflow.MlflowClient(tracking_uri=uri)
            known = self._client.get_experiment_by_name(experiment)
            number = (
                self._client.create_experiment(experiment) if known is None else known.experiment_id
            )
            run = self._client.create_run(number, run_name=name)
            self.run_id: str = run.info.run_id
            named = [
                entities.Param(_FORBIDDEN.sub("_", key), str(value)[:LONGEST_PARAMETER])
                for key, value in (parameters or {}).items()
            ]
            for begin in range(0, len(named), PARAMETERS_AT_ONCE):
                self._client.log_batch(
                    self.run_id, params=named[begin : begin + PARAMETERS_AT_ONCE]
                )
        except (exceptions.MlflowException, OSError) as error:
            raise InputError(
                "The address of MLflow should be a server, a folder or a database that it can write "
                f"to. Found {uri}: {str(error).splitlines()[0]}"
            ) from error

    def __call__(self, event: Event) -> None:
        now = int(time.time() * 1000)
        for name, value, step in points_of(event, self._tasks):
            self._waiting.append(self._metric(_FORBIDDEN.sub("_", name), value, now, step))
        if len(self._waiting) >= METRICS_AT_ONCE or not isinstance(event, StepEvent):
            self._send()
        if isinstance(event, EndEvent):
            self.close()

    def _send(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:METRICS_AT_ONCE], self._waiting[METRICS_AT_ONCE:]
            self._client.log_batch(self.run_id, metrics=batch)

    def close(self) -> None:
        """Sends what is left and ends the run."""
        self._send()
        if not self._ended:
            self._ended = True
            self._client.set_terminated(self.run_id)


class WandbListener:
    """One run of a project; with `WANDB_MODE=offline` it is kept in a folder and sent later.

    Several may log at the same time. The run ends with the `EndEvent`, or by `close`.

    >>> listener = WandbListener("reviews", ["a", "b"], name="first")  # doctest: +SKIP
    >>> step = StepEvent(step=1, tasks=(0,), losses=(0.7,), examples=(32,), seconds=0.01)
    >>> listener(step)  # doctest: +SKIP
    """

    def __init__(
        self,
        project: str,
        tasks: Sequence[str],
        *,
        name: str | None = None,
        group: str | None = None,
        parameters: Mapping[str, object] | None = None,
        folder: Path | str | None = None,  # None: as WANDB_DIR says, or `wandb` where one is
    ) -> None:
        wandb = load("wandb", purpose="`WandbListener`")
        self._tasks = tuple(tasks)
        self._ended = False
        try:
            self._run = wandb.init(
                project=project,
                name=name,
                group=group,
                config=dict(parameters or {}),
                dir=None if folder is None else str(folder),
                reinit="create_new",  # runs of a fleet are logged side by side
                settings=wandb.Settings(silent=True, console="off", disable_git=True),
            )
        except (wandb.errors.Error, OSError, ValueError) as error:
            raise InputError(
                "Weights & Biases should take the run of the project "
                f"`{project}`. Found: {str(error).splitlines()[0]} Log in with `wandb login`, or set "
                "WANDB_MODE=offline and send it later with `wandb sync`."
            ) from error

    def __call__(self, event: Event) -> None:
        points = {name: value for name, value, _ in points_of(event, self._tasks)}
        if points and not self._ended:
            self._run.log(points, step=event.step)
        if isinstance(event, EndEvent):
            self.close()

    def close(self) -> None:
        """Sends what is left and ends the run."""
        if not self._ended:
            self._ended = True
            self._run.finish()


Point = tuple[str, float, int]  # name, value, step


def points_of(event: Event, tasks: Sequence[str]) -> Iterator[Point]:
    """Losses, weights and probabilities of each task, the reward, and scores; NaN is left out."""
    for name, value, step in _points(event, tasks):
        if value == value:
            yield name, value, step


def _points(event: Event, tasks: Sequence[str]) -> Iterator[Point]:
    if isinstance(event, StepEvent):
        for place, task in enumerate(event.tasks):
            yield f"loss/{tasks[task]}", event.losses[place], event.step
            if event.weights is not None:
                yield f"weight/{tasks[task]}", event.weights[place], event.step
        if event.probabilities is not None:
            for name, share in zip(tasks, event.probabilities.tolist(), strict=True):
                yield f"probability/{name}", share, event.step
        if event.reward is not None:
            yield "reward", event.reward, event.step
    elif isinstance(event, EvaluationEvent | EndEvent):
        where = "" if isinstance(event, EvaluationEvent) else "final/"
        for score in event.scores:
            yield f"{where}{score.split}/{score.task}/{score.metric}", score.value, event.step
        if isinstance(event, EvaluationEvent):
            yield "dev/mean", event.mean, event.step
