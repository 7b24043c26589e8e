"""`taskmix sequences`: tasks that are few sequences each, as mixtures of shared generators."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._extras import can_write_page, tell_slowness
from taskmix.cli._options._sequences import (
    FitOptions,
    GeneratorOptions,
    SequenceTaskOptions,
    cut_prefix,
)
from taskmix.cli._printing._display import iteration_bar, note
from taskmix.cli._printing._reading import print_reading
from taskmix.cli._printing._sequences import (
    print_choice,
    print_continuation,
    print_fit,
    print_mixture,
)
from taskmix.errors import OptionError, RunError

if TYPE_CHECKING:
    from taskmix.sequences import HeldOutFigures, SequenceMixture
    from taskmix.tasks import TaskSet


def sequences(
    tasks: SequenceTaskOptions,
    generator: GeneratorOptions,
    fit: FitOptions,
    predict: Annotated[
        str | None,
        typer.Option("--predict", help="A prefix of symbols: what comes next, and a way on."),
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="The task of --predict.")] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Compare on held-out sequences.")
    ] = True,
    out: Annotated[Path, typer.Option("--out", help="The folder for model and page.")] = Path(
        "sequences"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Fit again from the start.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Learn the generators that the tasks of FOLDER share, and what each task is made of.

    The kind of generators, their number and what a task keeps of its own are chosen by sequences held
    out, unless you say them. Writes the model and a page with the generators drawn, the tasks' shares
    and held-out figures against one model per task, the same backed off to the pool, one pooled model, a
    mixture without tasks and plain LDA. Stop it or kill it and run the same command again: what is done
    is not done again, and the model is the same.

    Examples:

        taskmix sequences names/ --characters

        taskmix sequences names/ --characters --generator hmm --states 10 --generators 8

        taskmix sequences names/ --characters --predict mac --task Scottish
    """
    from taskmix.cli._printing._repeat import this_command
    from taskmix.cli._stopping import clean_stop
    from taskmix.files import check_outside
    from taskmix.report import MIXTURE_PAGE_PACKAGES
    from taskmix.sequences import (
        FitStoppedError,
        MixtureFolder,
        MixtureWork,
        continue_sequence,
        split_sequences,
    )

    begin = time.monotonic()
    tell_slowness()
    has_page = predict is None and can_write_page(MIXTURE_PAGE_PACKAGES)
    loaded = tasks.load()
    print_reading(loaded, quiet=json_ or predict is not None)
    data = split_sequences(loaded)
    if predict is not None and data.observes == "vectors":
        raise OptionError(
            "`--predict` should be used with sequences of symbols. Found vectors. Use "
            "`taskmix.sequences.load_mixture` and `predict_next` from Python."
        )
    with clean_stop() as should_stop:
        work = MixtureWork(
            recipe=fit.recipe(generator, vectors=data.observes == "vectors"),
            data=data,
            folder=MixtureFolder(out),
            fresh=fresh,
            workers=fit.threads,
            should_stop=should_stop,
            on_fit=None if json_ else print_fit,
            on_choice=None if json_ else print_choice,
            on_note=note,
            watch=partial(iteration_bar, quiet=json_),
        )
        work.check()
        check_outside(out, Path(tasks.folder), what="the mixture")
        try:
            if predict is not None:
                prefix = cut_prefix(predict, characters=tasks.characters)
                print_continuation(continue_sequence(work.learn(), prefix, task), as_json=json_)
                return
            page = partial(_write_page, tasks.folder, loaded, this_command()) if has_page else None
            document = work.describe(command=this_command(), baselines=baselines, write_page=page)
        except FitStoppedError as error:
            raise RunError("Stopped. Run the same command again to go on from here.") from error
    print_mixture(document, loaded, time.monotonic() - begin, as_json=json_)


def _write_page(
    folder: str,
    tasks: TaskSet,
    command: str,
    model: SequenceMixture,
    figures: tuple[HeldOutFigures, ...],
    tried: tuple[str, ...],
    path: Path,
) -> Path:
    from taskmix.report import write_mixture_page

    title = Path(folder).resolve().name
    return write_mixture_page(
        model,
        path,
        title=title,
        figures=figures,
        command=command,
        notes=[*tasks.notes, *(f"Tried: {each}" for each in tried)],
    )
