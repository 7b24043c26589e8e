"""`--tensorboard`, `--mlflow` and `--wandb`: runs where people already look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from taskmix.engine import Run, RunListener
    from taskmix.records import RunFolder


@dataclass(frozen=True, kw_only=True)
class TrackingOptions:
    """Where else runs are logged."""

    tensorboard: Annotated[
        Path | None,
        typer.Option("--tensorboard", help="Write curves for TensorBoard into this folder."),
    ] = None
    mlflow: Annotated[
        str | None,
        typer.Option("--mlflow", help="Log runs to this MLflow server, folder or database."),
    ] = None
    wandb: Annotated[
        str | None,
        typer.Option("--wandb", help="Log runs to this project of Weights & Biases."),
    ] = None

    def listeners(
        self, leave_out: Sequence[str] = ("probe", "price")
    ) -> Callable[[Run, RunFolder], list[RunListener]] | None:
        """Gives the listeners of a run, once; runs with a label of `leave_out` are means to an end."""
        if self.tensorboard is None and self.mlflow is None and self.wandb is None:
            return None
        heard: set[tuple[str, str]] = set()  # label and name

        def listeners_of(run: Run, folder: RunFolder) -> list[RunListener]:
            key = (run.label, folder.name)
            if key in heard or run.label in leave_out:
                return []
            heard.add(key)
            return self._listeners_of(run, folder)

        return listeners_of

    def _listeners_of(self, run: Run, folder: RunFolder) -> list[RunListener]:
        from taskmix.training import MLflowListener, TensorBoardListener, WandbListener

        tasks, name = run.load().names, f"{run.label}-{run.seed}-{folder.name[:6]}"
        parameters = {"label": run.label, "seed": run.seed, "steps": run.steps}
        parameters |= {"tasks": ", ".join(tasks), "record": str(folder.path)}
        found: list[RunListener] = []
        if self.tensorboard is not None:
            found.append(TensorBoardListener(self.tensorboard / name, tasks))
        if self.mlflow is not None:
            found.append(MLflowListener(self.mlflow, tasks, name=name, parameters=parameters))
        if self.wandb is not None:
            found.append(
                WandbListener(self.wandb, tasks, name=name, group=run.label, parameters=parameters)
            )
        return found
