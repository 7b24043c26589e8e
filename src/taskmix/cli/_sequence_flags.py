"""The options of `taskmix sequences`, each with its help, in the order of `--help`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_KINDS = (
    "symbols: markov, hmm, gru, multinomial (LDA); vectors: gaussian, hmm, lds, gru [markov, or "
    "gaussian for vectors]"
)

SequenceFolder = Annotated[
    str, typer.Argument(help="A folder or file of sequences; see docs/task-folders.md.")
]
KindOption = Annotated[
    str | None, typer.Option("--generator", help=f"The kind of generator. {_KINDS}.")
]
CountOption = Annotated[
    str, typer.Option("--generators", help="How many, or auto: by held-out likelihood.")
]
OrderOption = Annotated[int, typer.Option("--order", min=0, help="Of markov.")]
StatesOption = Annotated[int, typer.Option("--states", min=1, help="Of hmm and lds.")]
ComponentsOption = Annotated[int, typer.Option("--components", min=1, help="Of gaussian.")]
HiddenOption = Annotated[int, typer.Option("--hidden", min=1, help="Of gru.")]
SmoothingOption = Annotated[
    float | None, typer.Option("--smoothing", min=0, help="Pseudo-counts [the generator's].")
]
DiagonalOption = Annotated[
    bool, typer.Option("--diagonal", help="Diagonal covariances of gaussian and hmm.")
]
CharactersOption = Annotated[
    bool, typer.Option("--characters", help="Every character is a symbol, not every word.")
]
FirstIsTaskOption = Annotated[
    bool, typer.Option("--first-is-task", help="A line begins with the name of its task.")
]
TaskColumnOption = Annotated[
    str | None, typer.Option("--task-column", help="The column of a table naming the task.")
]
SequenceColumnOption = Annotated[
    str | None, typer.Option("--sequence-column", help="The column of a table with sequences.")
]
TimeColumnOption = Annotated[
    str | None, typer.Option("--time-column", help="The column of a long table with times.")
]
SettingsOption = Annotated[
    Path | None,
    typer.Option("--tasks", help="A TOML file that says how tasks are made from the folder."),
]
PredictOption = Annotated[
    str | None,
    typer.Option("--predict", help="A prefix of symbols: what comes next, and a way on."),
]
PredictedTaskOption = Annotated[str | None, typer.Option("--task", help="The task of --predict.")]
IterationsOption = Annotated[int, typer.Option("--iterations", min=1)]
RestartsOption = Annotated[int, typer.Option("--restarts", min=1)]
AnnealingOption = Annotated[int, typer.Option("--annealing", min=0, help="Iterations.")]
SequenceBatchOption = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="Stochastic EM, so many sequences.")
]
BaselinesOption = Annotated[
    bool, typer.Option("--baselines/--no-baselines", help="Compare on held-out sequences.")
]
ThreadsOption = Annotated[int, typer.Option("--threads", min=1, help="At once.")]
GeneratorDeviceOption = Annotated[str, typer.Option("--device", help="Of hmm and gru: cpu, cuda.")]
SequenceSeedOption = Annotated[int, typer.Option("--seed")]
MixtureOutOption = Annotated[Path, typer.Option("--out", help="Where model and page go.")]
FreshFitOption = Annotated[bool, typer.Option("--fresh", help="Fit again from the start.")]
FiguresJsonOption = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
