"""`taskmix sequences`: tasks that are few sequences each, as mixtures of shared generators."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._sequence_words import (
    GENERATOR_HELP,
    Gathered,
    GeneratorOptions,
    cut_prefix,
    gather_split,
    make_generator,
)
from taskmix.errors import InputError, OptionError, RecordError, RunError

if TYPE_CHECKING:
    from taskmix.sequences import Comparison, MixtureState, SequenceMixture
    from taskmix.tasks import TaskSet

_SAVE_EVERY = 10.0  # seconds
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
    against one model per task, one pooled model, a mixture without tasks and plain LDA. Stop it and run
    the same command again: it goes on from the last iteration, and what is done is not done again.

    Examples:

        taskmix sequences names/ --characters --generator hmm --states 10 --generators 8

        taskmix sequences names/ --characters --predict mac --task Scottish
    """
    from taskmix.records import specification_hash
    from taskmix.tasks import load_tasks

    begin = time.monotonic()
    loaded = load_tasks(
        folder,
        settings=tasks,
        task_column=task_column,
        kind="sequences",
        sequence_column=sequence_column,
        time_column=time_column,
        symbols="characters" if characters else None,
        first_symbol_is_task=first_is_task or None,
    )
    train = gather_split(loaded, "train")
    held_out = _held_out(loaded)
    kind = make_generator(
        GeneratorOptions(generator, order, states, components, hidden, smoothing, diagonal, device),
        vectors=not isinstance(train.sequences[0][0], str),
    )
    specification = {
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
    model = None if fresh else _finished(out, name)
    if model is None:
        from taskmix.sequences import SequenceMixture

        plain = SequenceMixture(
            kind,
            max_iter=iterations,
            n_init=restarts,
            annealing=annealing,
            batch_size=batch_size,
            n_jobs=workers,
            random_state=seed,
        )
        model = _fit(plain, generators, train, held_out, out, name, fresh=fresh, quiet=json_)
    if predict is not None:
        _predict(model, cut_prefix(predict, characters=characters), task, as_json=json_)
        return
    summary = _summary(out, name)
    if summary is None or (baselines and not summary["rows"]):
        compared = _compare(model, train, held_out, quiet=json_) if baselines else None
        summary = _write(model, out, name, loaded, compared, folder)
    _tell(summary, model, time.monotonic() - begin, as_json=json_)


def _held_out(tasks: TaskSet) -> Gathered:
    """Test sequences; those of dev where there are none. Of tasks that can be fitted."""
    for split in ("test", "dev"):
        found = gather_split(tasks, split)
        if found.sequences:
            return found
    raise InputError("Tasks should have sequences to hold out. Found neither test nor dev.")


def _finished(out: Path, name: str) -> SequenceMixture | None:
    from taskmix.sequences import load_mixture

    path = out / f"model-{name}.safetensors"
    return load_mixture(path) if path.exists() else None


def _summary(out: Path, name: str) -> dict[str, Any] | None:
    """What was told of this model before; None where it was another's, or can be read no more."""
    from taskmix.files import read_plain

    try:
        found = json.loads(read_plain(out / "summary.json"))
    except (OSError, ValueError, RecursionError, RecordError):  # then it is made and written again
        return None
    is_ours = isinstance(found, dict) and found.get("name") == name
    return found if is_ours and isinstance(found.get("rows"), list) else None


def _fit(
    plain: SequenceMixture,
    generators: str,
    train: Gathered,
    held_out: Gathered,
    out: Path,
    name: str,
    *,
    fresh: bool,
    quiet: bool,
) -> SequenceMixture:
    """The mixture, with a checkpoint every few seconds that the next run goes on from."""
    from taskmix.cli._display import iteration_bar
    from taskmix.cli._stopping import clean_stop
    from taskmix.sequences import find_symbols, load_start, save_mixture, save_start

    out.mkdir(parents=True, exist_ok=True)
    symbols = find_symbols([*train.sequences, *held_out.sequences], plain)
    plain.set_params(symbols=symbols)
    count = _count(generators, plain, train, quiet=quiet)
    checkpoint = out / "checkpoint.safetensors"
    start = None if fresh else load_start(checkpoint, name)
    saved = time.monotonic()
    with clean_stop() as should_stop, iteration_bar(plain.max_iter, quiet=quiet) as tell:

        def listen(state: MixtureState) -> None:
            nonlocal saved
            tell(state.iteration, state.bound)
            if should_stop() or time.monotonic() - saved > _SAVE_EVERY:
                saved = time.monotonic()
                save_start(checkpoint, name, state)
            if should_stop():
                raise RunError("Stopped. Run the same command again to go on from here.")

        plain.set_params(n_generators=count, on_state=listen)
        if start is not None:
            plain.set_params(start=start[0], alpha=start[1])
        plain.fit(train.sequences, train.tasks)
    plain.set_params(on_state=None)
    for old in out.glob("model-*.safetensors"):
        old.unlink()
    save_mixture(plain, out / f"model-{name}.safetensors")
    checkpoint.unlink(missing_ok=True)
    return plain


def _count(word: str, plain: SequenceMixture, train: Gathered, *, quiet: bool) -> int:
    from taskmix.sequences import choose_generators

    if word.isdigit() and int(word) > 0:
        return int(word)
    if word != "auto":
        raise OptionError(
            f"`--generators` should be a whole number above 0, or auto. Found {word!r}."
        )
    told = (lambda sentence: None) if quiet else (lambda s: typer.echo(f"... {s}", err=True))
    choice = choose_generators(plain, train.sequences, train.tasks, _COUNTS, on_progress=told)
    if not quiet:
        typer.echo(f"{choice.best} generators have the highest held-out likelihood.", err=True)
    return choice.best


def _compare(
    model: SequenceMixture, train: Gathered, held_out: Gathered, *, quiet: bool
) -> Comparison:
    from taskmix.sequences import baselines, compare

    models = baselines(model)
    models[next(iter(models))] = model
    known = set(model.tasks_)
    rows = [row for row, name in enumerate(held_out.tasks) if name in known]
    return compare(
        model,
        train.sequences,
        train.tasks,
        [held_out.sequences[row] for row in rows],
        [held_out.tasks[row] for row in rows],
        models=models,
        on_progress=None if quiet else lambda name: typer.echo(f"... {name}", err=True),
    )


def _write(
    model: SequenceMixture,
    out: Path,
    name: str,
    tasks: TaskSet,
    compared: Comparison | None,
    folder: str,
) -> dict[str, Any]:
    """The page, and the figures as they are printed; the figures last, as they say all is done."""
    from taskmix.cli._sequenced import summary_of
    from taskmix.report import write_mixture_page

    command = shlex.join(["taskmix", *sys.argv[1:]])
    page = write_mixture_page(
        model,
        out / "report.html",
        title=Path(folder).resolve().name,
        comparison=compared,
        command=command,
        notes=tasks.notes,
    )
    summary = summary_of(model, compared) | {"name": name, "command": command, "page": str(page)}
    aside = out / ".summary.json.tmp"
    aside.write_text(json.dumps(summary, indent=2, ensure_ascii=False), encoding="utf-8")
    aside.replace(out / "summary.json")
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
