"""`taskmix sequences`: tasks that are few sequences each, as mixtures of shared generators."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._display import echo, note
from taskmix.cli._extras import can_write_page, tell_slowness
from taskmix.cli._options import StrictOption
from taskmix.cli._reading import print_reading, reading_document
from taskmix.cli._sequence_words import (
    GENERATOR_HELP,
    Gathered,
    GeneratorOptions,
    count_generators,
    cut_prefix,
    gather_held_out,
    gather_split,
    make_generator,
)
from taskmix.errors import OptionError, RunError

if TYPE_CHECKING:
    from taskmix.sequences import Fitting, MixtureComparison, MixtureFolder, SequenceMixture
    from taskmix.tasks import TaskSet

_FORMAT = 2  # of the specification that names the model; 1: of version 0.1
_COUNTS = (1, 2, 4, 8, 16)  # tried by --generators auto


def sequences(
    folder: Annotated[
        str, typer.Argument(help="A folder or file of sequences; see docs/task-folders.md.")
    ],
    generator: Annotated[
        str | None, typer.Option("--generator", help=f"The kind of generator. {GENERATOR_HELP}.")
    ] = None,
    generators: Annotated[
        str, typer.Option("--generators", help="How many, or auto: by held-out likelihood.")
    ] = "8",
    order: Annotated[int, typer.Option("--order", min=0, help="Of markov.")] = 1,
    states: Annotated[int, typer.Option("--states", min=1, help="Of hmm and lds.")] = 5,
    components: Annotated[int, typer.Option("--components", min=1, help="Of gaussian.")] = 1,
    hidden: Annotated[int, typer.Option("--hidden", min=1, help="Of gru.")] = 32,
    smoothing: Annotated[
        float | None, typer.Option("--smoothing", min=0, help="Pseudo-counts [the generator's].")
    ] = None,
    diagonal: Annotated[
        bool, typer.Option("--diagonal", help="Diagonal covariances of gaussian and hmm.")
    ] = False,
    characters: Annotated[
        bool, typer.Option("--characters", help="Every character is a symbol, not every word.")
    ] = False,
    first_is_task: Annotated[
        bool, typer.Option("--first-is-task", help="A line begins with the name of its task.")
    ] = False,
    task_column: Annotated[
        str | None, typer.Option("--task-column", help="The column of a table naming the task.")
    ] = None,
    sequence_column: Annotated[
        str | None, typer.Option("--sequence-column", help="The column of a table with sequences.")
    ] = None,
    time_column: Annotated[
        str | None, typer.Option("--time-column", help="The column of a long table with times.")
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option("--tasks", help="A TOML file that says how tasks are made from the folder."),
    ] = None,
    strict: StrictOption = False,
    predict: Annotated[
        str | None,
        typer.Option("--predict", help="A prefix of symbols: what comes next, and a way on."),
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="The task of --predict.")] = None,
    iterations: Annotated[int, typer.Option("--iterations", min=1)] = 100,
    restarts: Annotated[int, typer.Option("--restarts", min=1)] = 3,
    annealing: Annotated[int, typer.Option("--annealing", min=0, help="Iterations.")] = 0,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Stochastic EM, so many sequences.")
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Compare on held-out sequences.")
    ] = True,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Threads.")] = 1,
    device: Annotated[str, typer.Option("--device", help="Of hmm and gru: cpu, cuda.")] = "cpu",
    seed: Annotated[int, typer.Option("--seed")] = 0,
    out: Annotated[Path, typer.Option("--out", help="Where model and page go.")] = Path(
        "sequences"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Fit again from the start.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Learn the generators that the tasks of FOLDER share, and what each task is made of.

    Writes the model and a page with the generators drawn, the tasks' shares and held-out figures
    against one model per task, one pooled model, a mixture without tasks and plain LDA. Stop it or kill
    it and run the same command again: what is done is not done again, and the model is the same.

    Examples:

        taskmix sequences names/ --characters --generator hmm --states 10 --generators 8

        taskmix sequences names/ --characters --predict mac --task Scottish
    """
    from taskmix.cli._stopping import clean_stop
    from taskmix.files import check_outside
    from taskmix.records import specification_hash
    from taskmix.report import MIXTURE_PAGE_PACKAGES
    from taskmix.sequences import FitStoppedError, MixtureFolder, RecordedFits, load_mixture
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
    train = gather_split(loaded, "train")
    held_out = gather_held_out(loaded)
    kind = make_generator(
        GeneratorOptions(generator, order, states, components, hidden, smoothing, diagonal, device),
        vectors=not isinstance(train.sequences[0][0], str),
    )
    specification = {
        "format": _FORMAT,
        "data": loaded.content,
        "generator": kind,
        "generators": generators,
        "iterations": iterations,
        "restarts": restarts,
        "annealing": annealing,
        "batch_size": batch_size,
        "seed": seed,
    }
    name = specification_hash(specification)
    written = MixtureFolder(out)
    written.check(name)
    check_outside(out, Path(folder), what="the mixture")
    if predict is not None and not fresh and written.model(name).exists():
        model = load_mixture(written.model(name))
        _predict(model, cut_prefix(predict, characters=characters), task, as_json=json_)
        return
    plain = _mixture(kind, [*train.sequences, *held_out.sequences])
    plain.set_params(
        max_iter=iterations,
        n_init=restarts,
        annealing=annealing,
        batch_size=batch_size,
        n_jobs=workers,
        random_state=seed,
    )
    fixed_count = count_generators(generators)
    with written.claimed() as study, clean_stop() as should_stop:
        fits = RecordedFits(
            study=study,
            data=loaded.content,
            fresh=fresh,
            should_stop=should_stop,
            on_note=note,
        )
        try:
            count = fixed_count or _best_count(plain, train, fits, quiet=json_)
            model = plain.set_params(n_generators=count)
            _fit(model, train, fits, quiet=json_)
            _save(model, written, name, fresh=fresh)
            if predict is None:
                summary = None if fresh else written.summary(name)
                incomplete = summary is None or (baselines and not summary["rows"])
                if summary is None or incomplete or (has_page and summary["page"] is None):
                    compared = None
                    if baselines:
                        compared = _compare(model, train, held_out, fits, quiet=json_)
                    summary = _write(
                        model, written, name, loaded, compared, folder, has_page=has_page
                    )
        except FitStoppedError as error:
            raise RunError("Stopped. Run the same command again to go on from here.") from error
    if predict is not None:
        _predict(model, cut_prefix(predict, characters=characters), task, as_json=json_)
        return
    assert summary is not None
    if json_:
        summary = summary | reading_document(loaded)
    _tell(summary, model, time.monotonic() - begin, as_json=json_)


def _mixture(kind: Any, sequences: list[Any]) -> SequenceMixture:
    """A mixture that knows the symbols of all sequences, those held out too."""
    from taskmix.sequences import SequenceMixture, find_symbols

    plain = SequenceMixture(kind)
    plain.set_params(symbols=find_symbols(sequences, plain))
    return plain


def _best_count(plain: SequenceMixture, train: Gathered, fits: Fitting, *, quiet: bool) -> int:
    from taskmix.sequences import choose_generators

    choice = choose_generators(
        plain,
        train.sequences,
        train.tasks,
        _COUNTS,
        on_progress=None if quiet else lambda name: echo(f"... {name}", err=True),
        fitting=fits,
    )
    if not quiet:
        echo(f"{choice.best} generators have the highest held-out likelihood.", err=True)
    return choice.best


def _fit(model: SequenceMixture, train: Gathered, fits: Fitting, *, quiet: bool) -> None:
    from taskmix.cli._display import iteration_bar
    from taskmix.sequences import SHARED_NAME

    with iteration_bar(model.max_iter, quiet=quiet) as tell:
        model.set_params(on_state=lambda state: tell(state.iteration, state.bound))
        fits(SHARED_NAME, model, train.sequences, train.tasks, lambda: None)
    model.set_params(on_state=None)


def _save(model: SequenceMixture, written: MixtureFolder, name: str, *, fresh: bool) -> None:
    """The model as a file of its own; the record it is from stays as it is."""
    from taskmix.sequences import save_mixture

    if fresh or not written.model(name).exists():
        save_mixture(model, written.model(name))


def _compare(
    model: SequenceMixture, train: Gathered, held_out: Gathered, fits: Fitting, *, quiet: bool
) -> MixtureComparison:
    from taskmix.sequences import SHARED_NAME, compare_with_baselines, make_baselines

    models = make_baselines(model) | {SHARED_NAME: model}
    known = set(model.tasks_)
    rows = [row for row, name in enumerate(held_out.tasks) if name in known]
    return compare_with_baselines(
        model,
        train.sequences,
        train.tasks,
        [held_out.sequences[row] for row in rows],
        [held_out.tasks[row] for row in rows],
        models=models,
        on_progress=None if quiet else lambda name: echo(f"... {name}", err=True),
        fitting=fits,
    )


def _write(
    model: SequenceMixture,
    written: MixtureFolder,
    name: str,
    tasks: TaskSet,
    compared: MixtureComparison | None,
    folder: str,
    *,
    has_page: bool,
) -> dict[str, Any]:
    """The page, and the figures as they are printed; the figures last, as they say all is done."""
    from taskmix.cli._sequenced import summary_of
    from taskmix.report import write_mixture_page

    command = shlex.join(["taskmix", *sys.argv[1:]])
    page = None
    if has_page:
        page = write_mixture_page(
            model,
            written.page,
            title=Path(folder).resolve().name,
            comparison=compared,
            command=command,
            notes=tasks.notes,
        )
    summary = summary_of(model, compared) | {
        "name": name,
        "command": command,
        "model": str(written.model(name)),
        "page": None if page is None else str(page),
    }
    written.write_summary(summary)
    return summary


def _predict(model: SequenceMixture, prefix: list[str], task: str | None, *, as_json: bool) -> None:
    from taskmix.cli._sequenced import tell_prediction

    if model.observes != "symbols":
        raise OptionError(
            "`--predict` should be used with sequences of symbols. Found vectors. Use "
            "`taskmix.sequences.load_mixture` and `predict_next` from Python."
        )
    tell_prediction(model, prefix, task, as_json=as_json)


def _tell(
    summary: dict[str, Any], model: SequenceMixture, seconds: float, *, as_json: bool
) -> None:
    from taskmix.cli._sequenced import tell_summary

    tell_summary(summary, model, seconds, as_json=as_json)
