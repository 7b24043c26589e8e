"""Events as a run of Weights & Biases.

listener = WandbListener("reviews", tasks.names, name="first", parameters={"steps": 1000})
for event in train(model, tasks, ...):
    listener(event)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from taskmix.errors import InputError
from taskmix.extras import load
from taskmix.training._events import EndEvent, Event
from taskmix.training._tracked import points_of


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
