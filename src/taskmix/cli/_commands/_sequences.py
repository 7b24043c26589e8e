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
    print_stream,
)
from taskmix.errors import OptionError, RunError

if TYPE_CHECKING:
    from taskmix.sequences import HeldOutFigures, SequenceData, SequenceMixture
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
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Score train sequences while they are held out, for p-values of `score`.",
        ),
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

    A model that exists is asked with `taskmix sequences score`, `next`, `sample` and `adapt`; each has
    its own --help.

    Examples:

        taskmix sequences names/ --characters

        taskmix sequences names/ --characters --generator hmm --states 10 --generators 8

        taskmix sequences names/ --characters --predict mac --task Scottish

        taskmix sequences logs/ --stream --batch-size 20000 --generators 16 --threads 4
    """
    from taskmix.cli._printing._repeat import this_command
    from taskmix.cli._stopping import clean_stop
    from taskmix.files import check_outside
    from taskmix.report import MIXTURE_PAGE_PACKAGES
    from taskmix.sequences import (
        CALIBRATION_FOLDS,
        FitStoppedError,
        MixtureFolder,
        MixtureWork,
        continue_sequence,
        split_sequences,
    )

    begin = time.monotonic()
    tell_slowness()
    has_page = predict is None and can_write_page(MIXTURE_PAGE_PACKAGES)
    if tasks.stream:
        if predict is not None:
            raise OptionError(
                "`--predict` should be used without --stream. Found both. Ask the model with "
                "`taskmix sequences next`."
            )
        _fit_stream(tasks, generator, fit, out, fresh=fresh, page=has_page, as_json=json_)
        return
    loaded = tasks.load()
    print_reading(loaded, quiet=json_ or predict is not None)
    data = split_sequences(loaded)
    if not tasks.characters and _are_single_words(data):
        note("every sequence is one word: --characters takes each character for a symbol.")
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
            folds=CALIBRATION_FOLDS if calibrate else 0,
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
            page = None
            if has_page:
                page = partial(_write_page, tasks.folder, loaded, data, this_command())
            document = work.describe(command=this_command(), baselines=baselines, write_page=page)
        except FitStoppedError as error:
            raise RunError("Stopped. Run the same command again to go on from here.") from error
    print_mixture(document, loaded, time.monotonic() - begin, as_json=json_)


def _are_single_words(data: SequenceData) -> bool:
    """Whether lines were probably meant to be read letter by letter."""
    return data.observes == "symbols" and all(
        len(each) == 1 and len(each[0]) > 1 for each in data.train.sequences
    )


def _fit_stream(
    tasks: SequenceTaskOptions,
    generator: GeneratorOptions,
    fit: FitOptions,
    out: Path,
    *,
    fresh: bool,
    page: bool,
    as_json: bool,
) -> None:
    """Sequences that need not fit into memory; nothing is compared, since every model reads them all."""
    from taskmix.cli._printing._repeat import this_command
    from taskmix.cli._stopping import clean_stop
    from taskmix.files import check_outside
    from taskmix.report import write_mixture_page
    from taskmix.sequences import FitStoppedError, MixtureFolder, StreamWork, score_held_out

    begin, stream = time.monotonic(), tasks.read_stream()
    if not as_json:
        print_stream(stream)

    def write(
        model: SequenceMixture,
        figures: tuple[HeldOutFigures, ...],
        tried: tuple[str, ...],
        path: Path,
    ) -> Path:
        held = stream.held_out.of_tasks(set(model.tasks_))
        scores = score_held_out(model, held.sequences, held.tasks) if held.sequences else None
        return write_mixture_page(
            model,
            path,
            title=Path(tasks.folder).resolve().name,
            figures=figures,
            scores=scores,
            command=this_command(),
            notes=[f"Tried: {each}" for each in tried],
        )

    with clean_stop() as should_stop:
        work = StreamWork(
            recipe=fit.recipe(generator, vectors=False),
            stream=stream,
            folder=MixtureFolder(out),
            fresh=fresh,
            workers=fit.threads,
            should_stop=should_stop,
            on_fit=None if as_json else print_fit,
            on_choice=None if as_json else print_choice,
            on_note=note,
            watch=partial(iteration_bar, quiet=as_json),
        )
        work.check()
        check_outside(out, Path(tasks.folder), what="the mixture")
        try:
            document = work.describe(command=this_command(), write_page=write if page else None)
        except FitStoppedError as error:
            raise RunError("Stopped. Run the same command again to go on from here.") from error
    print_mixture(document, None, time.monotonic() - begin, as_json=as_json)


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
