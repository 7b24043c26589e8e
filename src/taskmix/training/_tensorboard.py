"""Events as curves of TensorBoard.

listener = TensorBoardListener("runs/first", tasks.names)
for event in train(model, tasks, ...):
    listener(event)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taskmix.extras import load
from taskmix.training._events import EndEvent, Event
from taskmix.training._tracked import points_of


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
