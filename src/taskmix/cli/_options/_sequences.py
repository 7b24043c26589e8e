"""The options of `taskmix sequences`, and the generators that words stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._options._tasks import StrictOption
from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from taskmix.sequences import Generator, MixtureRecipe, SequenceMixture, SequenceStream
    from taskmix.tasks import SequenceRows, TaskSet

_KINDS = (
    "auto: by held-out likelihood; symbols: markov, hmm, gru, multinomial (LDA); vectors: gaussian, "
    "hmm, lds, gru"
)


@dataclass(frozen=True, kw_only=True)
class SequenceTaskOptions:
    """Where the sequences are, and how they are read."""

    folder: Annotated[
        str, typer.Argument(help="A folder or file of sequences; see docs/task-folders.md.")
    ]
    characters: Annotated[
        bool, typer.Option("--characters", help="Every character is a symbol, not every word.")
    ] = False
    first_is_task: Annotated[
        bool, typer.Option("--first-is-task", help="A line begins with the name of its task.")
    ] = False
    task_column: Annotated[
        str | None, typer.Option("--task-column", help="The column of one table naming the task.")
    ] = None
    sequence_column: Annotated[
        str | None, typer.Option("--sequence-column", help="The column of a table with sequences.")
    ] = None
    time_column: Annotated[
        str | None, typer.Option("--time-column", help="The column of a long table with times.")
    ] = None
    tasks: Annotated[
        Path | None,
        typer.Option("--tasks", help="A TOML file that says how tasks are made from the folder."),
    ] = None
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read the files again and again instead of holding them: data larger than memory.",
        ),
    ] = False
    strict: StrictOption = False

    def read_stream(self) -> SequenceStream:
        """The sequences of files that need not fit into memory."""
        from taskmix.sequences import RowColumns, SequenceStream

        if self.tasks is not None or self.time_column is not None or self.strict:
            raise OptionError(
                "`--stream` should be used with one sequence a line or row. Found --tasks, "
                "--time-column or --strict. Leave it out, or fit without a stream."
            )
        if not Path(self.folder).exists():
            raise InputError(
                f"`{self.folder}` should be a file or folder of sequences. Found nothing."
            )
        return SequenceStream(
            path=Path(self.folder),
            characters=self.characters,
            first_symbol_is_task=self.first_is_task,
            columns=RowColumns(sequence=self.sequence_column or "sequence", task=self.task_column),
        )

    def load(self) -> TaskSet:
        """The tasks, whose rows are sequences."""
        from taskmix.tasks import load_tasks

        return load_tasks(
            self.folder,
            settings=self.tasks,
            task_column=self.task_column,
            kind="sequences",
            sequence_column=self.sequence_column,
            time_column=self.time_column,
            symbols="characters" if self.characters else None,
            first_symbol_is_task=self.first_is_task or None,
            strict=self.strict,
        )


@dataclass(frozen=True, kw_only=True)
class SequenceFileOptions:
    """How the sequences of a file are read."""

    characters: Annotated[
        bool | None,
        typer.Option("--characters/--words", help="What a symbol is [as the model's symbols are]."),
    ] = None
    first_is_task: Annotated[
        bool, typer.Option("--first-is-task", help="A line begins with the name of its task.")
    ] = False
    task_column: Annotated[
        str | None, typer.Option("--task-column", help="The column naming the task [task].")
    ] = None
    sequence_column: Annotated[
        str | None,
        typer.Option("--sequence-column", help="The column with the sequences [sequence]."),
    ] = None
    time_column: Annotated[
        str | None, typer.Option("--time-column", help="The column of a long table with times.")
    ] = None

    def read(self, path: Path, model: SequenceMixture) -> SequenceRows:
        from taskmix.tasks import read_sequences

        if not path.exists():
            raise InputError(f"`{path}` should be a file or folder of sequences. Found nothing.")
        rows = read_sequences(
            path,
            symbols="characters" if is_of_characters(model, self.characters) else "words",
            sequence_column=self.sequence_column,
            task_column=self.task_column,
            time_column=self.time_column,
            first_symbol_is_task=self.first_is_task or None,
        )
        if not rows.sequences:
            raise InputError(f"`{path}` should have sequences. Found none.")
        return rows


def is_of_characters(model: SequenceMixture, said: bool | None) -> bool:
    """Whether a text is cut into characters: where it is not said, as the symbols of the model are."""
    if said is not None or model.alphabet_ is None:
        return bool(said)
    return all(isinstance(each, str) and len(each) == 1 for each in model.alphabet_.symbols)


@dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """The kind of generator, and how many; None is the generator's own default."""

    generator: Annotated[
        str, typer.Option("--generator", "--kind", help=f"The kind of generator. {_KINDS}.")
    ] = "auto"
    generators: Annotated[
        str, typer.Option("--generators", help="How many, or auto: by held-out likelihood.")
    ] = "auto"
    own: Annotated[
        bool, typer.Option("--own/--no-own", help="Let tasks keep something of their own.")
    ] = True
    budget: Annotated[
        int, typer.Option("--tries", min=1, help="Mixtures that auto tries at most.")
    ] = 20
    order: Annotated[int, typer.Option("--order", min=0, help="Of markov.")] = 1
    states: Annotated[int, typer.Option("--states", min=1, help="Of hmm and lds.")] = 5
    components: Annotated[int, typer.Option("--components", min=1, help="Of gaussian.")] = 1
    hidden: Annotated[int, typer.Option("--hidden", min=1, help="Of gru.")] = 32
    smoothing: Annotated[
        float | None, typer.Option("--smoothing", min=0, help="Pseudo-counts [the generator's].")
    ] = None
    diagonal: Annotated[
        bool, typer.Option("--diagonal", help="Diagonal covariances of gaussian and hmm.")
    ] = False
    device: Annotated[str, typer.Option("--device", help="Of hmm and gru: cpu, cuda.")] = "cpu"


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How the mixture is fitted."""

    iterations: Annotated[int, typer.Option("--iterations", min=1)] = 100
    restarts: Annotated[int, typer.Option("--restarts", min=1)] = 3
    annealing: Annotated[int, typer.Option("--annealing", min=0, help="Iterations.")] = 0
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Stochastic EM, so many sequences.")
    ] = None
    threads: Annotated[int, typer.Option("--threads", min=1, help="At once.")] = 1
    seed: Annotated[int, typer.Option("--seed")] = 0

    def recipe(self, options: GeneratorOptions, *, vectors: bool) -> MixtureRecipe:
        """What is fitted and how."""
        from taskmix.sequences import MixtureRecipe

        return MixtureRecipe(
            generator=make_generator(options, vectors=vectors),
            generators=count_generators(options.generators),
            own=options.own,
            budget=options.budget,
            iterations=self.iterations,
            restarts=self.restarts,
            annealing=self.annealing,
            batch_size=self.batch_size,
            seed=self.seed,
        )


def make_generator(options: GeneratorOptions, *, vectors: bool) -> Generator | None:
    """The generator a word stands for, for the kind of sequences there are; None of `auto`."""
    if options.generator == "auto":
        return None
    made = _vector_generators(options) if vectors else _symbol_generators(options)
    if options.generator not in made:
        kind = "vectors" if vectors else "symbols"
        raise OptionError(
            f"`--generator` should be one of auto, {', '.join(made)} for sequences of {kind}. Found "
            f"{options.generator!r}."
        )
    return made[options.generator]()


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


def _vector_generators(options: GeneratorOptions) -> dict[str, Callable[[], Generator]]:
    from taskmix.sequences import Gaussian, GaussianHiddenMarkov, LinearDynamics, Recurrent

    covariance: Any = "diagonal" if options.diagonal else "full"
    return {
        "gaussian": lambda: _smoothed(
            Gaussian(components=options.components, covariance=covariance), options
        ),
        "hmm": lambda: _smoothed(
            GaussianHiddenMarkov(states=options.states, covariance=covariance), options
        ),
        "lds": lambda: _smoothed(LinearDynamics(states=options.states), options),
        "gru": lambda: Recurrent(observes="vectors", hidden=options.hidden, device=options.device),
    }


def _symbol_generators(options: GeneratorOptions) -> dict[str, Callable[[], Generator]]:
    from taskmix.sequences import HiddenMarkov, Markov, Multinomial, Recurrent

    return {
        "markov": lambda: _smoothed(Markov(order=options.order), options),
        "hmm": lambda: _smoothed(
            HiddenMarkov(states=options.states, device=options.device), options
        ),
        "gru": lambda: Recurrent(hidden=options.hidden, device=options.device),
        "multinomial": lambda: _smoothed(Multinomial(), options),
    }


def _smoothed(generator: Any, options: GeneratorOptions) -> Any:
    """With the pseudo-counts that were asked for, or its own."""
    from dataclasses import replace

    smoothing = options.smoothing
    return generator if smoothing is None else replace(generator, smoothing=smoothing)
