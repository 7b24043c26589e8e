"""`taskmix sequences`: tasks that are few sequences each, as mixtures of shared generators."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from taskmix.cli import _sequence_flags as flags
from taskmix.cli._display import iteration_bar, note
from taskmix.cli._extras import can_write_page, tell_slowness
from taskmix.cli._options import StrictOption
from taskmix.cli._reading import print_reading
from taskmix.cli._sequence_answers import (
    print_choice,
    print_continuation,
    print_fit,
    print_mixture,
)
from taskmix.cli._sequence_words import (
    GeneratorOptions,
    count_generators,
    cut_prefix,
    make_generator,
)
from taskmix.errors import OptionError, RunError

if TYPE_CHECKING:
    from taskmix.sequences import HeldOutFigures, MixtureRecipe, SequenceData, SequenceMixture
    from taskmix.tasks import TaskSet


def sequences(
    folder: flags.SequenceFolder,
    generator: flags.KindOption = None,
    generators: flags.CountOption = "8",
    order: flags.OrderOption = 1,
    states: flags.StatesOption = 5,
    components: flags.ComponentsOption = 1,
    hidden: flags.HiddenOption = 32,
    smoothing: flags.SmoothingOption = None,
    diagonal: flags.DiagonalOption = False,
    characters: flags.CharactersOption = False,
    first_is_task: flags.FirstIsTaskOption = False,
    task_column: flags.TaskColumnOption = None,
    sequence_column: flags.SequenceColumnOption = None,
    time_column: flags.TimeColumnOption = None,
    tasks: flags.SettingsOption = None,
    strict: StrictOption = False,
    predict: flags.PredictOption = None,
    task: flags.PredictedTaskOption = None,
    iterations: flags.IterationsOption = 100,
    restarts: flags.RestartsOption = 3,
    annealing: flags.AnnealingOption = 0,
    batch_size: flags.SequenceBatchOption = None,
    baselines: flags.BaselinesOption = True,
    workers: flags.ThreadsOption = 1,
    device: flags.GeneratorDeviceOption = "cpu",
    seed: flags.SequenceSeedOption = 0,
    out: flags.MixtureOutOption = Path("sequences"),
    fresh: flags.FreshFitOption = False,
    json_: flags.FiguresJsonOption = False,
) -> None:
    """Learn the generators that the tasks of FOLDER share, and what each task is made of.

    Writes the model and a page with the generators drawn, the tasks' shares and held-out figures
    against one model per task, one pooled model, a mixture without tasks and plain LDA. Stop it or kill
    it and run the same command again: what is done is not done again, and the model is the same.

    Examples:

        taskmix sequences names/ --characters --generator hmm --states 10 --generators 8

        taskmix sequences names/ --characters --predict mac --task Scottish
    """
    from taskmix.report import MIXTURE_PAGE_PACKAGES
    from taskmix.sequences import MixtureRecipe, split_sequences
    from taskmix.tasks import load_tasks

    tell_slowness()
    has_page = predict is None and can_write_page(MIXTURE_PAGE_PACKAGES)
    prefix = None if predict is None else cut_prefix(predict, characters=characters)
    asked = _Asked(
        folder=folder, out=out, prefix=prefix, task=task, baselines=baselines, workers=workers,
        fresh=fresh, as_json=json_, has_page=has_page,
    )  # fmt: skip
    loaded = load_tasks(
        folder, settings=tasks, task_column=task_column, kind="sequences",
        sequence_column=sequence_column, time_column=time_column,
        symbols="characters" if characters else None, first_symbol_is_task=first_is_task or None,
        strict=strict,
    )  # fmt: skip
    print_reading(loaded, quiet=json_ or predict is not None)
    data = split_sequences(loaded)
    words = GeneratorOptions(
        generator, order, states, components, hidden, smoothing, diagonal, device
    )
    recipe = MixtureRecipe(
        generator=make_generator(words, vectors=data.observes == "vectors"),
        generators=count_generators(generators), iterations=iterations, restarts=restarts,
        annealing=annealing, batch_size=batch_size, seed=seed,
    )  # fmt: skip
    _answer(asked, recipe, data, loaded)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is to be done with the mixture, and how it is said."""

    folder: str
    out: Path
    prefix: list[str] | None  # of a sequence to go on with; None: the figures are asked for
    task: str | None
    baselines: bool
    workers: int
    fresh: bool
    as_json: bool
    has_page: bool  # whether one can be written
    begin: float = field(default_factory=time.monotonic)


def _answer(asked: _Asked, recipe: MixtureRecipe, data: SequenceData, tasks: TaskSet) -> None:
    from taskmix.cli._stopping import clean_stop
    from taskmix.files import check_outside
    from taskmix.sequences import FitStoppedError, MixtureFolder, MixtureWork, continue_sequence

    if asked.prefix is not None and data.observes == "vectors":
        raise OptionError(
            "`--predict` should be used with sequences of symbols. Found vectors. Use "
            "`taskmix.sequences.load_mixture` and `predict_next` from Python."
        )
    with clean_stop() as should_stop:
        work = MixtureWork(
            recipe=recipe,
            data=data,
            folder=MixtureFolder(asked.out),
            fresh=asked.fresh,
            workers=asked.workers,
            should_stop=should_stop,
            on_fit=None if asked.as_json else print_fit,
            on_choice=None if asked.as_json else print_choice,
            on_note=note,
            watch=partial(iteration_bar, quiet=asked.as_json),
        )
        work.check()
        check_outside(asked.out, Path(asked.folder), what="the mixture")
        try:
            if asked.prefix is not None:
                found = continue_sequence(work.learn(), asked.prefix, asked.task)
                print_continuation(found, as_json=asked.as_json)
                return
            command = shlex.join(["taskmix", *sys.argv[1:]])
            page = partial(_write_page, asked.folder, tasks, command) if asked.has_page else None
            document = work.describe(command=command, baselines=asked.baselines, write_page=page)
        except FitStoppedError as error:
            raise RunError("Stopped. Run the same command again to go on from here.") from error
    print_mixture(document, tasks, time.monotonic() - asked.begin, as_json=asked.as_json)


def _write_page(
    folder: str,
    tasks: TaskSet,
    command: str,
    model: SequenceMixture,
    figures: tuple[HeldOutFigures, ...],
    path: Path,
) -> Path:
    from taskmix.report import write_mixture_page

    title = Path(folder).resolve().name
    return write_mixture_page(
        model, path, title=title, figures=figures, command=command, notes=tasks.notes
    )
