"""Where the tasks are and how they are read; which model, and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._options._completing import task_folders
from taskmix.cli._options._where import WhereOptions
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.engine import Run, TaskSource
    from taskmix.tasks import TaskSet


def _kinds(incomplete: str) -> list[str]:
    from typing import get_args

    from taskmix.tasks import TaskKind

    return [kind for kind in get_args(TaskKind) if kind.startswith(incomplete)]


def _metrics(incomplete: str) -> list[str]:
    from taskmix.tasks import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse cells that are no numbers in a column of numbers.")
]
CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Keep encoded tasks here for the next run.")
]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What the columns of a folder are, where the guess would be wrong; None is a guess."""

    task_column: Annotated[
        str | None, typer.Option(help="The column of one table naming the task.")
    ] = None
    split_column: Annotated[
        str | None, typer.Option(help="The column of one table saying train, dev or test.")
    ] = None
    label: Annotated[
        list[str] | None, typer.Option(help="The label column; give several for several tasks.")
    ] = None
    text: Annotated[
        list[str] | None, typer.Option(help="The column that holds the text; give two for a pair.")
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(help="A column of a table that is an input; give all of them."),
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option(help="A column that is no input; give it again for more.")
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            help="What is learned, if the guess is wrong: classification, regression, ...",
            autocompletion=_kinds,
        ),
    ] = None
    separator: Annotated[
        str | None, typer.Option(help="What stands between the labels of a cell: several a row.")
    ] = None
    metric: Annotated[
        str | None,
        typer.Option(
            help="What tasks are scored by [accuracy, or by imbalance].", autocompletion=_metrics
        ),
    ] = None
    strict: StrictOption = False

    def keywords(self) -> dict[str, Any]:
        """These options as `load_tasks` and `FolderSource` take them."""
        found: dict[str, Any] = {}
        for each in fields(ReadingOptions):
            value = getattr(self, each.name)
            found[each.name] = (tuple(value) or None) if isinstance(value, list) else value
        return found


@dataclass(frozen=True, kw_only=True)
class TaskOptions(ReadingOptions):
    """The folder, and how tasks are made from it."""

    folder: Annotated[
        str,
        typer.Argument(
            help="A task folder, a table with a task column, hf:NAME, or digits for the demo's tasks.",
            autocompletion=task_folders,
        ),
    ]
    tasks: Annotated[
        Path | None, typer.Option(help="A TOML file that says how tasks are made from the folder.")
    ] = None
    only: Annotated[str | None, typer.Option(help="Names of the tasks to keep, with commas.")] = (
        None
    )
    cache: CacheOption = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the tasks to keep; None are all."""
        return tuple(name.strip() for name in self.only.split(",")) if self.only else None

    def source(self) -> TaskSource:
        """Where the tasks come from."""
        from taskmix.engine import DigitsSource, FolderSource

        how = self.keywords()
        if self.folder == "digits" and not Path(self.folder).exists():
            if self.tasks or any(value for name, value in how.items() if name != "strict"):
                raise OptionError(
                    "The demo's tasks should be used as they are. Found an option that says how "
                    "tasks are made from a folder. Leave it out."
                )
            return DigitsSource(tasks=self.names)
        return FolderSource(
            path=self.folder, tasks=self.names, settings=self.tasks, cache=self.cache, **how
        )


class Schedule(StrEnum):
    """How the learning rate changes over the run."""

    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"


class TuneName(StrEnum):
    """What of a pretrained model is trained."""

    HEADS = "heads"
    ADAPTERS = "adapters"
    ALL = "all"


class OptimizerName(StrEnum):
    """PyTorch's optimisers on offer here."""

    ADAM = "adam"
    ADAMW = "adamw"
    SGD = "sgd"


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model, and what every way of training it has."""

    model: Annotated[
        str,
        typer.Option(
            help="auto, perceptron, convolution, bilstm, causal, or a Hugging Face model: a folder, a "
            "GGUF file or a name; or a folder with adapters of PEFT, which names its model."
        ),
    ] = "auto"
    vectors: Annotated[
        Path | None, typer.Option(help="Word vectors: GloVe or fastText text, or .npz.")
    ] = None
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Words or word pieces of a text; the rest is cut off.")
    ] = None
    tune: Annotated[
        TuneName | None,
        typer.Option(
            help="What of a pretrained model is trained [heads on a CPU, adapters on a GPU]."
        ),
    ] = None
    rank: Annotated[
        int | None, typer.Option(min=1, help="Of adapters, with --tune adapters [8].")
    ] = None
    adapter: Annotated[
        str | None, typer.Option(help="A folder with adapters of PEFT for --model, to go on from.")
    ] = None
    batch_size: Annotated[int, typer.Option(min=1)] = 32
    learning_rate: Annotated[
        float | None,
        typer.Option(help="[0.001; with --tune adapters 0.0005, with --tune all 2e-05]"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OptimizationOptions:
    """How the parameters move."""

    optimizer: Annotated[OptimizerName, typer.Option()] = OptimizerName.ADAM
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.0
    schedule: Annotated[Schedule, typer.Option()] = Schedule.CONSTANT
    warmup: Annotated[float, typer.Option(help="Share of the steps.")] = 0.0
    clip_norm: Annotated[float | None, typer.Option(help="Largest norm of the gradient.")] = None


def make_template(
    label: str,
    tasks: TaskOptions,
    model: ModelOptions,
    where: WhereOptions,
    optimization: OptimizationOptions | None = None,
    *,
    steps: int,
    seed: int,
) -> tuple[Run, TaskSet]:
    """The run that a command varies, and its tasks; a cluster should have been joined before."""
    from taskmix.engine import Optimization, Run, load_for_runs
    from taskmix.models import choose_architecture

    source = tasks.source()
    loaded = load_for_runs(source)
    device = where.choose_device()
    architecture, tuning = choose_architecture(
        model.model,
        loaded,
        model.vectors,
        model.max_length,
        tune=None if model.tune is None else model.tune.value,
        rank=model.rank,
        adapter=model.adapter,
        device=device,
    )
    given = optimization or OptimizationOptions()
    run = Run(
        label=label,
        source=source,
        architecture=architecture,
        optimization=Optimization(
            optimizer=given.optimizer.value,
            learning_rate=Optimization.usual_rate(model.learning_rate, tuning=tuning),
            weight_decay=given.weight_decay,
            schedule=given.schedule.value,
            warmup=given.warmup,
        ),
        steps=steps,
        batch_size=model.batch_size,
        clip_norm=given.clip_norm,
        device=device,
        precision="bfloat16" if tuning == "adapters" and device.startswith("cuda") else "float32",
        seed=seed,
    )
    return run, loaded
