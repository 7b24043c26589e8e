"""Where the runs of a command are done: here, as a fleet, on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.cli._options._tracking import TrackingOptions
    from taskmix.engine import Executor, Observers, Workers

ResumeOption = Annotated[
    bool, typer.Option("--resume/--fresh", help="Go on where the study stopped, or start over.")
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1, ...")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes at once [one a core].")
]


class EngineName(StrEnum):
    """Where runs execute."""

    AUTO = "auto"
    HERE = "here"
    FLEET = "fleet"
    RAY = "ray"


EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        help="here: one run a process; fleet: many models as one batch; auto: the faster of these; "
        "ray: a Ray cluster.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class WhereOptions:
    """The machine or machines; `auto` trains runs as a fleet where that is faster."""

    device: DeviceOption = "auto"
    engine: EngineOption = EngineName.AUTO
    workers: WorkersOption = None
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            help="The cluster of --engine ray: auto, or HOST:PORT [one of this machine].",
        ),
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="Copy finished runs of --engine ray to this fsspec path too: s3://..."
        ),
    ] = None

    def join(self, context: typer.Context) -> None:
        """Joins the cluster of `--engine ray`, or starts one, until the command ends."""
        if self.engine is not EngineName.RAY:
            for option, value in (("--address", self.address), ("--store", self.store)):
                if value is not None:
                    raise OptionError(
                        f"`{option}` should go with --engine ray. Found it with "
                        f"{self.engine.value}. Leave it out."
                    )
            return
        from taskmix.engine import cluster

        context.with_resource(cluster(self.address, workers=self.workers, store=self.store))

    def choose_device(self) -> str:
        """The device of runs: on a cluster what its machines have, not what this one has."""
        from taskmix.engine import choose_cluster_device, choose_device

        choose = choose_cluster_device if self.engine is EngineName.RAY else choose_device
        return choose(self.device)

    @contextmanager
    def executing(
        self,
        title: str,
        *,
        quiet: bool,
        fresh: bool = False,
        rounds: bool = True,
        tracking: TrackingOptions | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Iterator[Executor]:
        """An executor with a bar, which Ctrl-C stops; with `fresh` runs start over.

        Processes stay for the next of several `rounds` of runs.
        """
        from taskmix.cli._printing._display import runs_bar
        from taskmix.cli._stopping import clean_stop
        from taskmix.engine import Observers, StartingOver, Workers, launched_processes

        with clean_stop(patient=launched_processes() > 1) as asked, Workers(self.workers) as pool:
            observers = Observers(
                progress=partial(runs_bar, quiet=quiet, title=title),
                listeners=tracking.listeners() if tracking is not None else None,
                stop=lambda: asked() or is_over(),
            )
            executor = self._executor(observers, pool if rounds else self.workers)
            yield StartingOver(executor) if fresh else executor

    def _executor(self, observers: Observers, workers: int | Workers | None) -> Executor:
        from taskmix.engine import Auto, Fleet, Here, Launched, Ray, launched_processes

        if launched_processes() > 1:
            if self.engine in (EngineName.FLEET, EngineName.RAY):
                raise OptionError(
                    "Several processes for one model should train it here. Found --engine "
                    f"{self.engine.value}. Leave it out, or start one process."
                )
            return Launched(observers=observers)
        if self.engine is EngineName.RAY:
            return Ray(workers=self.workers, observers=observers)
        if self.engine is EngineName.FLEET:
            return Fleet(workers=workers, observers=observers)
        if self.engine is EngineName.HERE:
            return Here(workers=workers, observers=observers)
        return Auto(workers=workers, observers=observers)


@dataclass(frozen=True, kw_only=True)
class OneByOneOptions(WhereOptions):
    """The same; runs are done one by one unless a fleet is asked for."""

    engine: EngineOption = EngineName.HERE
