"""Which model, and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._tasks import TaskOptions
from taskmix.cli._options._where import WhereOptions

if TYPE_CHECKING:
    from taskmix.engine import Optimization, Run
    from taskmix.models import Architecture, Tuning
    from taskmix.tasks import TaskSet


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
            "--model",
            help="auto, perceptron, convolution, bilstm, causal, or a Hugging Face model: a folder, a "
            "GGUF file or a name; or a folder with adapters of PEFT, which names its model.",
        ),
    ] = "auto"
    vectors: Annotated[
        Path | None,
        typer.Option("--vectors", help="Word vectors: GloVe or fastText text, or .npz."),
    ] = None
    max_length: Annotated[
        int | None,
        typer.Option(
            "--max-length", min=1, help="Words or word pieces of a text; the rest is cut off."
        ),
    ] = None
    tune: Annotated[
        TuneName | None,
        typer.Option(
            "--tune",
            help="What of a pretrained model is trained [heads on a CPU, adapters on a GPU].",
        ),
    ] = None
    rank: Annotated[
        int | None, typer.Option("--rank", min=1, help="Of adapters, with --tune adapters [8].")
    ] = None
    adapter: Annotated[
        str | None,
        typer.Option(
            "--adapter", help="A folder with adapters of PEFT for --model, to go on from."
        ),
    ] = None
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 32
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--learning-rate", help="[0.001; with --tune adapters 0.0005, with --tune all 2e-05]"
        ),
    ] = None

    def architecture(self, tasks: TaskSet, device: str) -> tuple[Architecture, Tuning | None]:
        """The model, and what is tuned of a pretrained one; `auto` goes by the inputs."""
        from taskmix.models import choose_architecture  # torch comes with it

        return choose_architecture(
            self.model,
            tasks,
            self.vectors,
            self.max_length,
            tune=None if self.tune is None else self.tune.value,
            rank=self.rank,
            adapter=self.adapter,
            device=device,
        )


@dataclass(frozen=True, kw_only=True)
class OptimizationOptions:
    """How the parameters move."""

    optimizer: Annotated[OptimizerName, typer.Option("--optimizer")] = OptimizerName.ADAM
    weight_decay: Annotated[float, typer.Option("--weight-decay", min=0)] = 0.0
    schedule: Annotated[Schedule, typer.Option("--schedule")] = Schedule.CONSTANT
    warmup: Annotated[float, typer.Option("--warmup", help="Share of the steps.")] = 0.0
    clip_norm: Annotated[
        float | None, typer.Option("--clip-norm", help="Largest norm of the gradient.")
    ] = None

    def optimization(self, learning_rate: float) -> Optimization:
        """The same as an object."""
        from taskmix.engine import Optimization

        return Optimization(
            optimizer=self.optimizer.value,
            learning_rate=learning_rate,
            weight_decay=self.weight_decay,
            schedule=self.schedule.value,
            warmup=self.warmup,
        )


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
    from taskmix.engine import Optimization, Run

    source = tasks.source()
    loaded = source.load()
    device = where.choose_device()
    architecture, tuning = model.architecture(loaded, device)
    rate = Optimization.usual_rate(model.learning_rate, tuning=tuning)
    given = optimization or OptimizationOptions()
    run = Run(
        label=label,
        source=source,
        architecture=architecture,
        optimization=given.optimization(rate),
        steps=steps,
        batch_size=model.batch_size,
        clip_norm=given.clip_norm,
        device=device,
        precision="bfloat16" if tuning == "adapters" and device.startswith("cuda") else "float32",
        seed=seed,
    )
    return run, loaded
