"""`taskmix sequences score`, `next`, `sample` and `adapt`: what a mixture that exists is asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from taskmix.cli._commands._predict import check_rows_file, write_rows
from taskmix.cli._printing._display import draw_table, echo, note, print_json
from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from taskmix.sequences import Continuation, SequenceMixture, TaskShares
    from taskmix.tasks import SequenceRows

_WIDTH = 34  # of a sequence that is shown
_ODD = 0.05  # the p-value that is counted

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
CharactersOption = Annotated[
    bool | None, typer.Option("--characters/--words", help="What a symbol is [as the model's are].")
]


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
    task_column: Annotated[str | None, typer.Option(help="The column naming the task [task].")] = (
        None
    )
    sequence_column: Annotated[
        str | None, typer.Option(help="The column with the sequences [sequence].")
    ] = None
    time_column: Annotated[
        str | None, typer.Option(help="The column of a long table with times.")
    ] = None

    def read(self, path: Path, model: SequenceMixture) -> SequenceRows:
        from taskmix.tasks import read_sequences

        if not path.exists():
            raise InputError(f"`{path}` should be a file or folder of sequences. Found nothing.")
        rows = read_sequences(
            path,
            symbols="characters" if _is_of_characters(model, self.characters) else "words",
            sequence_column=self.sequence_column,
            task_column=self.task_column,
            time_column=self.time_column,
            first_symbol_is_task=self.first_is_task or None,
        )
        if not rows.sequences:
            raise InputError(f"`{path}` should have sequences. Found none.")
        return rows


def score(
    reading: SequenceFileOptions,
    model: ModelArgument,
    file: FileArgument,
    task: Annotated[
        str | None,
        typer.Option(help="Whose the sequences should be [the file's, or the likeliest]."),
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            "--task-prior", help="Of tasks: counts (of sequences they were fitted to), or uniform."
        ),
    ] = "counts",
    most: Annotated[
        int, typer.Option(min=1, help="How many typical and surprising ones to show.")
    ] = 5,
    out: Annotated[
        Path | None, typer.Option(help="Where to write all scores: .csv, .jsonl or .parquet.")
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
    check_rows_file(out, "--out", what="the scores", overwrite=overwrite)
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
    task: Annotated[str | None, typer.Option(help="Whose it is [a new task's].")] = None,
    characters: CharactersOption = None,
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
    task: Annotated[str | None, typer.Option(help="Whose they are [a new task's].")] = None,
    number: Annotated[int, typer.Option(min=1, help="How many.")] = 10,
    prefix: Annotated[str, typer.Option(help="How each begins.")] = "",
    length: Annotated[
        int | None, typer.Option(min=1, help="The longest; needed where generators do not end.")
    ] = None,
    characters: CharactersOption = None,
    seed: Annotated[int, typer.Option()] = 0,
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
    if json_:
        print_json({"task": task, "sequences": made})
        return
    for each in made:
        echo(each)


def adapt(
    reading: SequenceFileOptions,
    model: ModelArgument,
    file: FileArgument,
    task: Annotated[
        str | None, typer.Option(help="What the new task is called [the file's tasks].")
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="Where to write a model that knows the tasks: .safetensors.")
    ] = None,
    overwrite: OverwriteOption = False,
    seed: Annotated[int, typer.Option(help="Of the draws behind the intervals.")] = 0,
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


def _is_of_characters(model: SequenceMixture, said: bool | None) -> bool:
    """Whether a text is cut into characters: where it is not said, as the symbols of the model are."""
    if said is not None or model.alphabet_ is None:
        return bool(said)
    return all(isinstance(each, str) and len(each) == 1 for each in model.alphabet_.symbols)


def _begin(model: SequenceMixture, prefix: str, characters: bool | None) -> list[str]:
    """A prefix cut as the model's symbols are, with a note where it has some that are unknown."""
    given = list(prefix) if _is_of_characters(model, characters) else prefix.split()
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
    return ("" if _is_of_characters(model, None) else " ").join(words)


def print_continuation(found: Continuation, *, as_json: bool) -> None:
    """The next symbols, a most likely way on, and the generator that is at work."""
    if as_json:
        print_json(found.to_json())
        return
    for symbol, probability in found.next:
        echo(f"{symbol:>12}  {probability:.3f}")
    at_work = max(found.generators)
    echo(
        f"Most likely as a whole: {found.text} (probability {found.probability:.3g}). "
        f"Generator {found.generators.index(at_work) + 1} is at work with probability {at_work:.2f}."
    )


def print_scores(rows: Sequence[Mapping[str, Any]], *, most: int) -> None:
    """The most surprising and the most typical sequences of each task, and how many are odd."""
    table: list[Sequence[str] | None] = []
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    for task in tasks:
        mine = sorted(
            (row for row in rows if str(row["task"]) == task), key=lambda row: row["log_ratio"]
        )
        shown = mine if len(mine) <= 2 * most else [*mine[:most], None, *mine[-most:]]
        for row in shown:
            if row is None:
                left_out = f"... {len(mine) - 2 * most:,} more"
                table.append((task, left_out, *[""] * 6))
                continue
            text = str(row["sequence"])
            cells = (
                task,
                text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}...",
                f"{row['surprise']:.3f}",
                f"{row['log_ratio']:+.2f}",
                f"{math.exp(row['log_posterior']):.3f}",
                _p(row["p_ratio"]),
                _p(row["p_surprise"]),
                str(row["likeliest"]),
            )
            table.append(cells)
        if len(tasks) > 1:
            table.append(None)
    figures = ("surprise", "log-ratio", "P(task)", "p (ratio)", "p (surprise)")
    columns = ("task", "sequence", *figures, "likeliest")
    draw_table(columns, table, left=("sequence", "likeliest"), whole=True, wide=True)
    echo(f"{len(rows):,} sequences, those least like their task first.")
    odd = [row["p_ratio"] for row in rows if row["p_ratio"] is not None]
    if odd:
        count = sum(each <= _ODD for each in odd)
        echo(
            f"{count:,} of {len(odd):,} have a p-value of the ratio of at most {_ODD:g}; of the task's "
            f"own sequences about {_ODD * len(odd):.1f} would."
        )


def print_shares(shares: TaskShares, out: Path | None, *, as_json: bool) -> None:
    """What new tasks are made of, and how well their next sequence is foreseen."""
    if as_json:
        file = None if out is None else str(out)
        print_json({"level": shares.level, "tasks": shares.rows(), "out": file})
        return
    for place, task in enumerate(shares.tasks):
        level = shares.log_likelihood[place]
        echo(f"{task}: {shares.counts[place]:,} sequences.")
        order = (-shares.mean[place]).argsort()
        for which in order[: max(1, int((shares.mean[place] >= 0.01).sum()))]:
            echo(
                f"  generator {which + 1:<3} {shares.mean[place, which]:6.1%}  "
                f"({shares.low[place, which]:.1%} to {shares.high[place, which]:.1%})"
            )
        if level.n > 1:
            echo(
                f"  log-likelihood of a symbol of its next sequence {level.mean:.3f} "
                f"({level.low:.3f} to {level.high:.3f}), from {level.n} sequences, each while it "
                "was held out"
            )
    echo(f"Intervals of {shares.level:.0%}. The generators are as they were.")
    if out is not None:
        echo(f"Wrote {out}.")


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
