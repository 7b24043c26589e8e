"""Events as metrics of an MLflow run.

listener = MLflowListener("file:mlruns", tasks.names, name="first", parameters={"steps": 1000})
for event in train(model, tasks, ...):
    listener(event)
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from taskmix.errors import InputError
from taskmix.extras import load
from taskmix.training._events import EndEvent, Event, StepEvent
from taskmix.training._tracked import points_of

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
