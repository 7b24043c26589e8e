"""Where the runs of a command are done (here, as a fleet, on a cluster), where else they are logged, and
the packages that this needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix import _signals
from taskmix.cli._printing._display import note, runs_bar
from taskmix.errors import OptionError
from taskmix.extras import missing, require

if TYPE_CHECKING:
    from taskmix.engine import Executor, Observers, Run, RunListener, Workers
    from taskmix.records import RunFolder

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
class TrackingOptions:
    """Where else runs are logged."""

    tensorboard: Annotated[
        Path | None, typer.Option(help="Write curves for TensorBoard into this folder.")
    ] = None
    mlflow: Annotated[
        str | None, typer.Option(help="Log runs to this MLflow server, folder or database.")
    ] = None
    wandb: Annotated[
        str | None, typer.Option(help="Log runs to this project of Weights & Biases.")
    ] = None

    def listeners(
        self, leave_out: Sequence[str] = ("probe", "price")
    ) -> Callable[[Run, RunFolder], list[RunListener]] | None:
        """Gives the listeners of a run, once; runs with a label of `leave_out` are means to an end."""
        if self.tensorboard is None and self.mlflow is None and self.wandb is None:
            return None
        from taskmix.training import MLflowListener, TensorBoardListener, WandbListener

        heard: set[tuple[str, str]] = set()  # label and name

        def listeners_of(run: Run, folder: RunFolder) -> list[RunListener]:
            key = (run.label, folder.name)
            if key in heard or run.label in leave_out:
                return []
            heard.add(key)
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
                    WandbListener(
                        self.wandb, tasks, name=name, group=run.label, parameters=parameters
                    )
                )
            return found

        return listeners_of


@dataclass(frozen=True, kw_only=True)
class WhereOptions:
    """The machine or machines; `auto` trains runs as a fleet where that is faster."""

    device: DeviceOption = "auto"
    engine: EngineOption = EngineName.AUTO
    workers: WorkersOption = None
    address: Annotated[
        str | None,
        typer.Option(help="The cluster of --engine ray: auto, or HOST:PORT [one of this machine]."),
    ] = None
    store: Annotated[
        str | None,
        typer.Option(help="Copy finished runs of --engine ray to this fsspec path too: s3://..."),
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
        from taskmix.engine import Observers, RestartingExecutor, Workers, launched_processes

        with clean_stop(patient=launched_processes() > 1) as asked, Workers(self.workers) as pool:
            observers = Observers(
                progress=partial(runs_bar, quiet=quiet, title=title),
                listeners=tracking.listeners() if tracking is not None else None,
                stop=lambda: asked() or is_over(),
            )
            executor = self._executor(observers, pool if rounds else self.workers)
            yield RestartingExecutor(executor) if fresh else executor

    def _executor(self, observers: Observers, workers: int | Workers | None) -> Executor:
        from taskmix.engine import Auto, Fleet, Here, Ray, TorchrunExecutor, launched_processes

        if launched_processes() > 1:
            if self.engine in (EngineName.FLEET, EngineName.RAY):
                raise OptionError(
                    "Several processes for one model should train it here. Found --engine "
                    f"{self.engine.value}. Leave it out, or start one process."
                )
            return TorchrunExecutor(observers=observers)
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


@contextmanager
def clean_stop(*, patient: bool = False) -> Iterator[Callable[[], bool]]:
    """Gives a function that tells whether to stop; who has been asked to does not leave the block.

    Whatever is at work has a little more than a second for a checkpoint; then the program ends, with
    the sentence and the exit code of a stop. A second signal ends it at once, unless it is `patient`:
    a launcher sends its own signal after the user's.
    """
    with _signals.grace(patient=patient):
        yield _signals.asked


# Words of `--model` for models of our own.
OWN_MODELS = ("auto", "perceptron", "convolution", "bilstm")


def check_extras(
    *,
    model: str = "auto",
    where: WhereOptions | None = None,
    tracking: TrackingOptions | None = None,
) -> None:
    """Refuses what was asked for by name where its package is missing."""
    where, tracking = where or WhereOptions(), tracking or TrackingOptions()
    if model not in OWN_MODELS:
        require("transformers", "tokenizers", purpose=f"The Hugging Face encoder `{model}`")
        if model.lower().endswith(".gguf"):
            require("gguf", purpose=f"The GGUF file `{model}`")
    asked = {
        "--engine ray": ("ray", where.engine is EngineName.RAY),
        "--store": ("fsspec", where.store is not None),
        "--tensorboard": ("tensorboard", tracking.tensorboard is not None),
        "--mlflow": ("mlflow", tracking.mlflow is not None),
        "--wandb": ("wandb", tracking.wandb is not None),
    }
    for option, (package, is_asked) in asked.items():
        if is_asked:
            require(package, purpose=f"`{option}`")


def can_write_page(packages: Sequence[str]) -> bool:
    """Whether the page that comes with an answer can be written; says so where it cannot."""
    error = missing(*packages, purpose="It")
    if error is not None:
        note(f"There will be no report page. {error}")
    return error is None


def tell_slowness() -> None:
    """Says what makes the fit of sequences faster, where it is missing."""
    error = missing("numba", purpose="The fast one")
    if error is not None:
        note(f"The fit will be a slower one with the same results. {error}")
