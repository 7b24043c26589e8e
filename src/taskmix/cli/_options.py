"""Options that several commands share: where the tasks are, which model, how it is trained."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.engine import TaskSource
    from taskmix.models import Architecture
    from taskmix.tasks import TaskSet


class Schedule(StrEnum):
    """How the learning rate changes over the run."""

    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"


class Optimizer(StrEnum):
    """PyTorch's optimisers on offer here."""

    ADAM = "adam"
    ADAMW = "adamw"
    SGD = "sgd"


FolderArgument = Annotated[
    str,
    typer.Argument(
        help="A task folder, a table with a task column, hf:NAME, or digits for the demo's tasks."
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        help="auto, perceptron, convolution, bilstm, or a Hugging Face encoder's path or name.",
    ),
]
VectorsOption = Annotated[
    Path | None, typer.Option("--vectors", help="Word vectors: GloVe or fastText text, or .npz.")
]
MaxLengthOption = Annotated[
    int | None,
    typer.Option(
        "--max-length", min=1, help="Words or word pieces of a text; the rest is cut off."
    ),
]
TasksOption = Annotated[
    Path | None,
    typer.Option("--tasks", help="A TOML file that says how tasks are made from the folder."),
]
OnlyOption = Annotated[
    str | None, typer.Option("--only", help="Names of the tasks to keep, with commas.")
]
TaskColumnOption = Annotated[
    str | None, typer.Option("--task-column", help="The column of one table naming the task.")
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", help="The label column; give several for several tasks."),
]
TextOption = Annotated[
    list[str] | None,
    typer.Option("--text", help="The column that holds the text; give two for a pair."),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Refuse cells that are no numbers in a column of numbers."),
]
BatchSizeOption = Annotated[int, typer.Option("--batch-size", min=1)]
OptimizerOption = Annotated[Optimizer, typer.Option("--optimizer")]
LearningRateOption = Annotated[
    float | None, typer.Option("--learning-rate", help="[0.001; 2e-05 for a pretrained encoder]")
]
WeightDecayOption = Annotated[float, typer.Option("--weight-decay", min=0)]
ScheduleOption = Annotated[Schedule, typer.Option("--schedule")]
WarmupOption = Annotated[float, typer.Option("--warmup", help="Share of the steps.")]
ClipNormOption = Annotated[
    float | None, typer.Option("--clip-norm", help="Largest norm of the gradient.")
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1, ...")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes at once [one a core].")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume/--fresh", help="Go on where the study stopped, or start over.")
]
CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Keep encoded tasks here for the next run.")
]


def choose_source(
    folder: str,
    *,
    only: str | None,
    settings: Path | None,
    task_column: str | None,
    labels: list[str] | None,
    text: list[str] | None,
    strict: bool,
    cache: Path | None,
) -> tuple[TaskSource, tuple[str, ...] | None]:
    """Where the tasks come from, and which of them to keep where the source cannot do that."""
    from taskmix.engine import DigitsSource, FolderSource

    names = tuple(name.strip() for name in only.split(",")) if only else None
    if folder == "digits" and not Path(folder).exists():
        if settings or task_column or labels or text:
            raise OptionError(
                "The demo's tasks should be used as they are. Found an option that says how tasks "
                "are made from a folder. Leave it out."
            )
        return DigitsSource(), names
    source = FolderSource(
        path=folder,
        tasks=names,
        settings=settings,
        task_column=task_column,
        label_columns=tuple(labels) if labels else None,
        text_columns=tuple(text) if text else None,
        strict=strict,
        cache=cache,
    )
    return source, None


# What the words of an error of `choose_architecture` are called on the command line.
_MODEL_FLAGS = "The flags for it are --only, --label, --model and --max-length."


def choose_architecture(
    word: str, tasks: TaskSet, vectors: Path | None, max_length: int | None = None
) -> tuple[Architecture, bool]:
    """The model a word stands for, and whether it is pretrained; `auto` goes by the inputs."""
    from taskmix.models import choose_architecture as choose  # torch comes with it

    try:
        return choose(word, tasks, vectors, max_length)
    except OptionError as error:
        raise OptionError(f"{error} {_MODEL_FLAGS}") from error
