"""Words on the command line that stand for sequence generators, and sequences from a task folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from taskmix.sequences import Generator
    from taskmix.tasks import TaskSet

GENERATOR_HELP = (
    "symbols: markov, hmm, gru, multinomial (LDA); vectors: gaussian, hmm, lds, gru [markov, or "
    "gaussian for vectors]"
)


@dataclass(frozen=True)
class Gathered:
    """Sequences of one split and the task of each."""

    sequences: list[Any]
    tasks: list[str]


@dataclass(frozen=True)
class GeneratorOptions:
    """What the command line says about generators; None is the generator's own default."""

    word: str | None
    order: int
    states: int
    components: int
    hidden: int
    smoothing: float | None
    diagonal: bool
    device: str


def make_generator(options: GeneratorOptions, *, vectors: bool) -> Generator:
    """The generator a word stands for, for the kind of sequences there are."""
    from taskmix.sequences import (
        Gaussian,
        GaussianHiddenMarkov,
        HiddenMarkov,
        LinearDynamics,
        Markov,
        Multinomial,
        Recurrent,
    )

    smooth: dict[str, Any] = {}
    if options.smoothing is not None:
        smooth["smoothing"] = options.smoothing
    covariance: Any = "diagonal" if options.diagonal else "full"
    word = options.word or ("gaussian" if vectors else "markov")
    made: dict[str, Any] = {
        "gaussian": lambda: Gaussian(
            components=options.components, covariance=covariance, **smooth
        ),
        "hmm": lambda: GaussianHiddenMarkov(states=options.states, covariance=covariance, **smooth),
        "lds": lambda: LinearDynamics(states=options.states, **smooth),
        "gru": lambda: Recurrent(observes="vectors", hidden=options.hidden, device=options.device),
    }
    if not vectors:
        made = {
            "markov": lambda: Markov(order=options.order, **smooth),
            "hmm": lambda: HiddenMarkov(states=options.states, device=options.device, **smooth),
            "gru": lambda: Recurrent(hidden=options.hidden, device=options.device),
            "multinomial": lambda: Multinomial(**smooth),
        }
    if word not in made:
        kind = "vectors" if vectors else "symbols"
        raise OptionError(
            f"`--generator` should be one of {', '.join(made)} for sequences of {kind}. Found {word!r}."
        )
    found: Generator = made[word]()
    return found


def gather_split(tasks: TaskSet, split: str) -> Gathered:
    """The sequences of a split, as words or as arrays."""
    import numpy as np

    sequences: list[Any] = []
    names: list[str] = []
    for task in tasks:
        if task.inputs != "sequences":
            raise InputError(
                f"Tasks should be sequences. Found that `{task.name}` is {task.inputs}. See "
                "docs/task-folders.md for how sequences are written."
            )
        if split not in task.splits:
            continue
        table = task.splits[split].inputs
        column = "symbols" if "symbols" in table.column_names else "values"
        rows = table.column(column).to_pylist()
        if column == "values":
            rows = [
                np.array([[np.nan if v is None else v for v in each] for each in row])
                for row in rows
            ]
        sequences += rows
        names += [task.name] * len(rows)
    return Gathered(sequences, names)


def gather_held_out(tasks: TaskSet) -> Gathered:
    """Test sequences; those of dev where there are none. Of tasks that can be fitted."""
    for split in ("test", "dev"):
        found = gather_split(tasks, split)
        if found.sequences:
            return found
    raise InputError("Tasks should have sequences to hold out. Found neither test nor dev.")


def cut_prefix(text: str, *, characters: bool) -> list[str]:
    """A prefix as it is typed: words apart, or every character."""
    return list(text) if characters else text.split()


def count_generators(word: str) -> int | None:
    """The number of generators; None where the data are to say it."""
    if word == "auto":
        return None
    if word.isdecimal() and int(word) > 0:
        return int(word)
    raise OptionError(f"`--generators` should be a whole number above 0, or auto. Found {word!r}.")
