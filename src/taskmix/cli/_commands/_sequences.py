"""`taskmix sequences`: tasks that are few sequences each, as mixtures of shared generators."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from taskmix.cli._commands._sequence_models import print_continuation
from taskmix.cli._options._tasks import StrictOption
from taskmix.cli._options._where import can_write_page, clean_stop, tell_slowness
from taskmix.cli._printing._display import draw_table, echo, iteration_bar, note, print_json
from taskmix.cli._printing._reading import print_reading, reading_document
from taskmix.cli._printing._repeat import this_command
from taskmix.errors import OptionError, RunError

if TYPE_CHECKING:
    from taskmix.sequences import (
        Generator,
        HeldOutFigures,
        MixtureChoice,
        SequenceData,
        SequenceMixture,
        SequenceReport,
    )
    from taskmix.tasks import TaskSet

_KINDS = (
    "auto: by held-out likelihood; symbols: markov, hmm, gru, multinomial (LDA); vectors: gaussian, "
    "hmm, lds, gru"
)


def sequences(
    folder: Annotated[
        str, typer.Argument(help="A folder or file of sequences; see docs/task-folders.md.")
    ],
    characters: Annotated[
        bool, typer.Option("--characters", help="Every character is a symbol, not every word.")
    ] = False,
    first_is_task: Annotated[
        bool, typer.Option("--first-is-task", help="A line begins with the name of its task.")
    ] = False,
    task_column: Annotated[
        str | None, typer.Option(help="The column of one table naming the task.")
    ] = None,
    sequence_column: Annotated[
        str | None, typer.Option(help="The column of a table with sequences.")
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(help="The column of a long table with times.")
    ] = None,
    tasks: Annotated[
        Path | None, typer.Option(help="A TOML file that says how tasks are made from the folder.")
    ] = None,
    strict: StrictOption = False,
    generator: Annotated[
        str, typer.Option("--generator", "--kind", help=f"The kind of generator. {_KINDS}.")
    ] = "auto",
    generators: Annotated[
        str, typer.Option(help="How many, or auto: by held-out likelihood.")
    ] = "auto",
    own: Annotated[
        bool, typer.Option("--own/--no-own", help="Let tasks keep something of their own.")
    ] = True,
    budget: Annotated[
        int, typer.Option("--tries", min=1, help="Mixtures that auto tries at most.")
    ] = 20,
    order: Annotated[int, typer.Option(min=0, help="Of markov.")] = 1,
    states: Annotated[int, typer.Option(min=1, help="Of hmm and lds.")] = 5,
    components: Annotated[int, typer.Option(min=1, help="Of gaussian.")] = 1,
    hidden: Annotated[int, typer.Option(min=1, help="Of gru.")] = 32,
    smoothing: Annotated[
        float | None, typer.Option(min=0, help="Pseudo-counts [the generator's].")
    ] = None,
    diagonal: Annotated[
        bool, typer.Option("--diagonal", help="Diagonal covariances of gaussian and hmm.")
    ] = False,
    device: Annotated[str, typer.Option(help="Of hmm and gru: cpu, cuda.")] = "cpu",
    iterations: Annotated[int, typer.Option(min=1)] = 100,
    restarts: Annotated[int, typer.Option(min=1)] = 3,
    annealing: Annotated[int, typer.Option(min=0, help="Iterations.")] = 0,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Stochastic EM, so many sequences.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="At once.")] = 1,
    seed: Annotated[int, typer.Option()] = 0,
    predict: Annotated[
        str | None, typer.Option(help="A prefix of symbols: what comes next, and a way on.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="The task of --predict.")] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Compare on held-out sequences.")
    ] = True,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Score train sequences while they are held out, for p-values of `score`.",
        ),
    ] = True,
    out: Annotated[Path, typer.Option(help="The folder for model and page.")] = Path("sequences"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Fit again from the start.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Learn the generators that the tasks of FOLDER share, and what each task is made of.

    The kind of generators, their number and what a task keeps of its own are chosen by sequences held
    out, unless you say them. Writes the model and a page with the generators drawn, the tasks' shares
    and held-out figures against one model per task, the same backed off to the pool, one pooled model, a
    mixture without tasks and plain LDA. Stop it or kill it and run the same command again: what is done
    is not done again, and the model is the same.

    A model that exists is asked with `taskmix sequences score`, `next`, `sample` and `adapt`; each has
    its own --help.

    Examples:

        taskmix sequences names/ --characters

        taskmix sequences names/ --characters --generator hmm --states 10 --generators 8

        taskmix sequences names/ --characters --predict mac --task Scottish
    """
    from taskmix.files import check_outside
    from taskmix.report import MIXTURE_PAGE_PACKAGES
    from taskmix.sequences import (
        CALIBRATION_FOLDS,
        FitStoppedError,
        MixtureFolder,
        MixtureRecipe,
        MixtureWork,
        continue_sequence,
        split_sequences,
    )
    from taskmix.tasks import load_tasks

    begin = time.monotonic()
    tell_slowness()
    has_page = predict is None and can_write_page(MIXTURE_PAGE_PACKAGES)
    loaded = load_tasks(
        folder,
        settings=tasks,
        task_column=task_column,
        kind="sequences",
        sequence_column=sequence_column,
        time_column=time_column,
        symbols="characters" if characters else None,
        first_symbol_is_task=first_is_task or None,
        strict=strict,
    )
    print_reading(loaded, quiet=json_ or predict is not None)
    data = split_sequences(loaded)
    if not characters and _are_single_words(data):
        note("every sequence is one word: --characters takes each character for a symbol.")
    if predict is not None and data.observes == "vectors":
        raise OptionError(
            "`--predict` should be used with sequences of symbols. Found vectors. Use "
            "`taskmix.sequences.load_mixture` and `predict_next` from Python."
        )
    settings: dict[str, Any] = {
        "order": order,
        "states": states,
        "components": components,
        "hidden": hidden,
        "device": device,
        "covariance": "diagonal" if diagonal else "full",
        **({} if smoothing is None else {"smoothing": smoothing}),
    }
    made = _make_generator(generator, settings, vectors=data.observes == "vectors")
    with clean_stop() as should_stop:
        work = MixtureWork(
            recipe=MixtureRecipe(
                generator=made,
                generators=_count_generators(generators),
                own=own,
                budget=budget,
                iterations=iterations,
                restarts=restarts,
                annealing=annealing,
                batch_size=batch_size,
                seed=seed,
            ),
            data=data,
            folder=MixtureFolder(out),
            fresh=fresh,
            folds=CALIBRATION_FOLDS if calibrate else 0,
            workers=threads,
            should_stop=should_stop,
            on_fit=None if json_ else lambda name: echo(f"... {name}", err=True),
            on_choice=None if json_ else _print_choice,
            on_note=note,
            watch=partial(iteration_bar, quiet=json_),
        )
        work.check()
        check_outside(out, Path(folder), what="the mixture")
        try:
            if predict is not None:
                prefix = list(predict) if characters else predict.split()
                print_continuation(continue_sequence(work.learn(), prefix, task), as_json=json_)
                return
            page = None
            if has_page:
                page = partial(_write_page, folder, loaded, data, this_command())
            document = work.describe(command=this_command(), baselines=baselines, write_page=page)
        except FitStoppedError as error:
            raise RunError("Stopped. Run the same command again to go on from here.") from error
    _print_mixture(document, loaded, time.monotonic() - begin, as_json=json_)


def _make_generator(word: str, settings: dict[str, Any], *, vectors: bool) -> Generator | None:
    """The generator a word stands for, for the kind of sequences there are; None of `auto`."""
    from taskmix.sequences import (
        Gaussian,
        GaussianHiddenMarkov,
        HiddenMarkov,
        LinearDynamics,
        Markov,
        Multinomial,
        Recurrent,
    )

    if word == "auto":
        return None
    kinds: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {  # with the options of each
        "markov": (Markov, ("order", "smoothing")),
        "hmm": (HiddenMarkov, ("states", "device", "smoothing")),
        "gru": (Recurrent, ("hidden", "device")),
        "multinomial": (Multinomial, ("smoothing",)),
    }
    if vectors:
        kinds = {
            "gaussian": (Gaussian, ("components", "covariance", "smoothing")),
            "hmm": (GaussianHiddenMarkov, ("states", "covariance", "smoothing")),
            "lds": (LinearDynamics, ("states", "smoothing")),
            "gru": (partial(Recurrent, observes="vectors"), ("hidden", "device")),
        }
    if word not in kinds:
        kind = "vectors" if vectors else "symbols"
        raise OptionError(
            f"`--generator` should be one of auto, {', '.join(kinds)} for sequences of {kind}. Found "
            f"{word!r}."
        )
    make, options = kinds[word]
    return cast("Generator", make(**{name: settings[name] for name in options if name in settings}))


def _count_generators(word: str) -> int | None:
    """The number of generators; None where the data are to say it."""
    if word == "auto":
        return None
    if word.isdecimal() and int(word) > 0:
        return int(word)
    raise OptionError(f"`--generators` should be a whole number above 0, or auto. Found {word!r}.")


def _are_single_words(data: SequenceData) -> bool:
    """Whether lines were probably meant to be read letter by letter."""
    return data.observes == "symbols" and all(
        len(each) == 1 and len(each[0]) > 1 for each in data.train.sequences
    )


def _write_page(
    folder: str,
    tasks: TaskSet,
    data: SequenceData,
    command: str,
    model: SequenceMixture,
    figures: tuple[HeldOutFigures, ...],
    tried: tuple[str, ...],
    path: Path,
) -> Path:
    from taskmix.report import write_mixture_page
    from taskmix.sequences import score_held_out

    held_out = data.held_out.of_tasks(set(model.tasks_))
    return write_mixture_page(
        model,
        path,
        title=Path(folder).resolve().name,
        figures=figures,
        scores=score_held_out(model, held_out.sequences, held_out.tasks),
        command=command,
        notes=[*tasks.notes, *(f"Tried: {each}" for each in tried)],
    )


def _print_choice(choice: MixtureChoice) -> None:
    """What was tried, and what the data have asked for."""
    best = choice.best
    for words in choice.words():
        echo(f"    {words}", err=True)
    why = "all tries are spent; raise --tries to try more" if choice.spent else "no more of it pays"
    echo(f"{best.name}: chosen by held-out likelihood of {len(choice.tried)} ({why}).", err=True)


def _print_mixture(
    document: SequenceReport, tasks: TaskSet, seconds: float, *, as_json: bool
) -> None:
    """The figures: an object for programs, a table for people."""
    if as_json:
        print_json(document.to_json() | reading_document(tasks))
        return
    from taskmix.sequences import mixture_table

    size = f"{_count(len(document.theta), 'task')}, {_count(document.generators, 'generator')}"
    own = ", each task with something of its own" if document.own else ""
    echo(f"{size}: {document.kind}{own}. {_count(document.iterations, 'iteration')}.")
    if document.rows:
        figures = mixture_table(document.rows)
        draw_table(figures.columns, figures.rows, title="held-out sequences", whole=True)
    wrote = "" if document.page is None else f"Wrote {document.page}. "
    echo(f"{wrote}{seconds:.0f} s.")


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
