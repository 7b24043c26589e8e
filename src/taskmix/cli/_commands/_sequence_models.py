"""`taskmix sequences score`, `next`, `sample` and `adapt`: what a mixture that exists is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from taskmix.cli._commands._predict import ENDINGS, write_rows
from taskmix.cli._options._sequences import SequenceFileOptions, cut_prefix, is_of_characters
from taskmix.cli._printing._display import echo, note, print_json
from taskmix.cli._printing._sequence_scores import print_samples, print_scores, print_shares
from taskmix.cli._printing._sequences import print_continuation
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.sequences import SequenceMixture
    from taskmix.tasks import SequenceRows

ModelArgument = Annotated[
    Path, typer.Argument(help="A folder of `taskmix sequences`, or its .safetensors file.")
]
FileArgument = Annotated[
    Path,
    typer.Argument(
        help="Sequences: .txt with one a line, a table of any format, or a folder with a file for "
        "each task."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace the file of --out if there is one.")
]


def score(
    reading: SequenceFileOptions,
    model: ModelArgument,
    file: FileArgument,
    task: Annotated[
        str | None,
        typer.Option(
            "--task", help="Whose the sequences should be [the file's, or the likeliest]."
        ),
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            "--task-prior", help="Of tasks: counts (of sequences they were fitted to), or uniform."
        ),
    ] = "counts",
    most: Annotated[
        int, typer.Option("--most", min=1, help="How many typical and surprising ones to show.")
    ] = 5,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where to write all scores: .csv, .jsonl or .parquet."),
    ] = None,
    overwrite: OverwriteOption = False,
    json_: JsonOption = False,
) -> None:
    """Score the sequences of FILE: whose they are, and how odd they are for their task.

    Every sequence gets its log-likelihood in the task, its surprise (negative log-likelihood of a
    symbol), the log-ratio of the task to the rest (above 0: rather this task's than anybody's), log
    P(task | sequence), the likeliest task, and p-values: the share of the task's own held-out
    sequences that are as odd, by ratio and by surprise. A low p_ratio says that somebody else wrote it.

    Examples:

        taskmix sequences score found new.txt --task Scottish

        taskmix sequences score found new.csv --task-column user --out scores.csv
    """
    from taskmix.sequences import load_mixture

    if prior not in ("counts", "uniform"):
        raise OptionError(f"`prior` should be counts or uniform. Found {prior!r}.")
    _check_rows_file(out, overwrite=overwrite)
    mixture = load_mixture(model)
    rows = reading.read(file, mixture)
    tasks, by_likeliest = _tasks_of(mixture, rows, task, prior)
    found = mixture.score_sequences(rows.sequences, tasks, prior=cast("Any", prior))
    texts = [_written(mixture, each) for each in rows.sequences]
    lines = [{"sequence": text, **row} for text, row in zip(texts, found.rows(), strict=True)]
    if by_likeliest:
        for line in lines:
            line["p_ratio"] = line["p_surprise"] = None  # the task was picked to fit
    if out is not None:
        write_rows(lines, out)
    if by_likeliest and not json_:
        note(
            "no task is named, so each sequence is scored against its likeliest one, without p-values."
        )
    if not by_likeliest and mixture.reference_ is None and not json_:
        note("the model is not calibrated, so there are no p-values.")
    if json_:
        print_json({"prior": prior, "rows": lines, "out": None if out is None else str(out)})
        return
    print_scores(lines, most=most)
    if out is not None:
        echo(f"Wrote {out}.")


def next_symbol(
    model: ModelArgument,
    prefix: Annotated[str, typer.Argument(help="How the sequence begins; may be empty.")],
    task: Annotated[str | None, typer.Option("--task", help="Whose it is [a new task's].")] = None,
    characters: Annotated[
        bool | None,
        typer.Option("--characters/--words", help="What a symbol is [as the model's are]."),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Say which symbol comes after PREFIX, and how the sequence goes on most likely.

    Examples:

        taskmix sequences next found mac --task Scottish
    """
    from taskmix.sequences import continue_sequence, load_mixture

    mixture = load_mixture(model)
    given = _begin(mixture, prefix, characters)
    print_continuation(continue_sequence(mixture, given, task), as_json=json_)


def sample(
    model: ModelArgument,
    task: Annotated[
        str | None, typer.Option("--task", help="Whose they are [a new task's].")
    ] = None,
    number: Annotated[int, typer.Option("--number", min=1, help="How many.")] = 10,
    prefix: Annotated[str, typer.Option("--prefix", help="How each begins.")] = "",
    length: Annotated[
        int | None,
        typer.Option("--length", min=1, help="The longest; needed where generators do not end."),
    ] = None,
    characters: Annotated[
        bool | None,
        typer.Option("--characters/--words", help="What a symbol is [as the model's are]."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    json_: JsonOption = False,
) -> None:
    """Draw sequences of a task from its mixture.

    Examples:

        taskmix sequences sample found --task Scottish --number 5
    """
    import numpy as np

    from taskmix.sequences import load_mixture

    mixture = load_mixture(model)
    begin = _begin(mixture, prefix, characters)
    seeds = np.random.default_rng(seed).integers(0, 2**31, number).tolist()
    drawn = [
        mixture.sample(task, begin or None, length=length, random_state=each) for each in seeds
    ]
    made = [_written(mixture, each) for each in drawn]
    print_samples(made, task, as_json=json_)


def adapt(
    reading: SequenceFileOptions,
    model: ModelArgument,
    file: FileArgument,
    task: Annotated[
        str | None, typer.Option("--task", help="What the new task is called [the file's tasks].")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where to write a model that knows the tasks: .safetensors."),
    ] = None,
    overwrite: OverwriteOption = False,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws behind the intervals.")] = 0,
    json_: JsonOption = False,
) -> None:
    """Learn new tasks from a few sequences each; the generators stay as they are.

    Prints what each task is made of with intervals, and how likely a symbol of its next sequence is.

    Examples:

        taskmix sequences adapt found welsh.txt --task Welsh --out with-welsh.safetensors
    """
    from taskmix.files import check_output
    from taskmix.sequences import load_mixture, save_mixture

    if out is not None:
        if out.suffix != ".safetensors":
            raise OptionError(f"The name of --out should end in .safetensors. Found `{out.name}`.")
        remedy = "Choose another name, or replace it with --overwrite."
        check_output(out, is_ours=lambda begin: overwrite, what="the model", remedy=remedy)
    mixture = load_mixture(model)
    rows = reading.read(file, mixture)
    tasks = _named(rows, task)
    if tasks is None:
        tasks = [file.name.split(".")[0]] * len(rows.sequences)
    shares = mixture.estimate_shares(rows.sequences, tasks, level=level, random_state=seed)
    if out is not None:
        save_mixture(mixture.adapt(rows.sequences, tasks), out)
    print_shares(shares, out, as_json=json_)


def _begin(model: SequenceMixture, prefix: str, characters: bool | None) -> list[str]:
    """A prefix cut as the model's symbols are, with a note where it has some that are unknown."""
    given = cut_prefix(prefix, characters=is_of_characters(model, characters))
    known = None if model.alphabet_ is None else set(model.alphabet_.symbols)
    strange = [] if known is None else [each for each in given if each not in known]
    if strange:
        shown = ", ".join(map(repr, dict.fromkeys(strange)))
        note(
            f"the model has never seen {shown}, which it takes as unknown. --words and --characters "
            "say how the prefix is cut."
        )
    return given


def _tasks_of(
    model: SequenceMixture, rows: SequenceRows, task: str | None, prior: str
) -> tuple[list[Any], bool]:
    """The task of each sequence, and whether it is only the likeliest."""
    named = _named(rows, task)
    if named is not None:
        return named, False
    posterior = model.task_log_posterior(rows.sequences, prior=cast("Any", prior))
    return [model.tasks_[place] for place in posterior.argmax(axis=1)], True


def _named(rows: SequenceRows, task: str | None) -> list[str] | None:
    return rows.tasks if task is None else [task] * len(rows.sequences)


def _written(model: SequenceMixture, sequence: Any) -> str:
    """A sequence as one line: letters together, words apart, vectors as their numbers."""
    if model.bank_.observes == "vectors":
        return " ".join(str([round(float(x), 4) for x in each]) for each in sequence)
    words = [str(each) for each in sequence]
    return ("" if is_of_characters(model, None) else " ").join(words)


def _check_rows_file(out: Path | None, *, overwrite: bool) -> None:
    from taskmix.files import check_output

    if out is None:
        return
    if out.suffix.lower() not in ENDINGS:
        raise OptionError(
            f"The name of --out should end in {', '.join(ENDINGS)}. Found `{out.name}`."
        )
    remedy = "Choose another name, or replace it with --overwrite."
    check_output(out, is_ours=lambda begin: overwrite, what="the scores", remedy=remedy)
