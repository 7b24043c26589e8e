"""`--tensorboard` and `--mlflow`: runs where people already look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from taskmix.engine import Run
    from taskmix.records import Study
    from taskmix.training import Event, MLflowListener, TensorBoardListener

TensorBoardOption = Annotated[
    Path | None,
    typer.Option("--tensorboard", help="Write curves for TensorBoard into this folder."),
]
MLflowOption = Annotated[
    str | None, typer.Option("--mlflow", help="Log runs to this MLflow server, folder or database.")
]


class Tracking:
    """Tells of each run once: as it goes, or from its record when it is done."""

    def __init__(self, tensorboard: Path | None, mlflow: str | None) -> None:
        self._tensorboard, self._mlflow = tensorboard, mlflow
        self._told: set[tuple[str, str]] = set()  # label and name

    def __bool__(self) -> bool:
        return self._tensorboard is not None or self._mlflow is not None

    def listeners(self, run: Run, study: Study) -> list[TensorBoardListener | MLflowListener]:
        """Listeners for a run that was not told of before."""
        from taskmix.training import MLflowListener, TensorBoardListener

        folder = study.run(run.specification())
        if (run.label, folder.name) in self._told:
            return []
        self._told.add((run.label, folder.name))
        tasks, name = run.load().names, f"{run.label}-{run.seed}-{folder.name[:6]}"
        found: list[TensorBoardListener | MLflowListener] = []
        if self._tensorboard is not None:
            found.append(TensorBoardListener(self._tensorboard / name, tasks))
        if self._mlflow is not None:
            parameters = {"label": run.label, "seed": run.seed, "steps": run.steps}
            parameters |= {"tasks": ", ".join(tasks), "record": str(folder.path)}
            found.append(MLflowListener(self._mlflow, tasks, name=name, parameters=parameters))
        return found

    @contextmanager
    def live(self, run: Run, study: Study) -> Iterator[Callable[[Event], None]]:
        """A listener for a run that begins now; one that goes on is told of when it is done."""
        begins = self and study.run(run.specification()).summary() is None
        found = self.listeners(run, study) if begins else []

        def listen(event: Event) -> None:
            for each in found:
                each(event)

        try:
            yield listen
        finally:
            for each in found:
                each.close()

    def tell(self, runs: Sequence[Run], study: Study) -> None:
        """Tells of runs that are done, from their records."""
        from taskmix.engine import events_of

        for run in runs if self else ():
            folder = study.run(run.specification())
            if folder.summary() is None:
                continue
            for listen in self.listeners(run, study):
                for event in events_of(folder):
                    listen(event)
