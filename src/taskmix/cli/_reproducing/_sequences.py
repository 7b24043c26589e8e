"""`taskmix reproduce sequences`: shared generators on known and on real tasks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._printing._display import echo
from taskmix.cli._printing._reproduced import print_reproduction
from taskmix.cli._reproducing._text import JsonOption, QuickOption
from taskmix.errors import OptionError


def reproduce_generators(
    data: Annotated[
        Path | None,
        typer.Argument(help="The folder of data sets: names_by_language/, msnbc/, ..."),
    ] = None,
    sets: Annotated[
        str | None, typer.Option("--sets", help="Some of them, with commas [all].")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", help="Sequences of a task, with commas; 0: all [5,10,20,50,0]."),
    ] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic/--no-synthetic", help="Also tasks that are made up.")
    ] = True,
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Draws of real sequences.")] = 5,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    out: Annotated[Path, typer.Option("--out", help="Where draws that are done are kept.")] = Path(
        "sequences-draws"
    ),
    quick: QuickOption = False,
    json_: JsonOption = False,
) -> None:
    """Shared sequence generators against one model per task, pooled models and plain LDA.

    Without DATA the synthetic part alone. Stop it and run it again: draws that are done are kept.

    Example: taskmix reproduce sequences data/ --sets names,vowels --quick
    """
    from taskmix.papers import SequencesOptions, reproduce_sequences

    begin = time.monotonic()
    chosen = sets or ("names,vowels" if quick else None)
    names = {} if chosen is None else {"sets": tuple(each.strip() for each in chosen.split(","))}
    fewer: dict[str, object] = (
        {"seeds": 2, "synthetic_seeds": 3, "sizes": (5,), "synthetic_sizes": (5, 20)}
        | {"synthetic_tasks": (5, 20)}
        if quick
        else {"seeds": seeds}
    )
    if sizes is not None:
        fewer["sizes"] = _sizes(sizes)
    if not synthetic:
        fewer |= {"synthetic_sizes": (), "synthetic_tasks": ()}
    options = SequencesOptions(data=data, seed=seed, out=out, **names, **fewer)  # type: ignore[arg-type]
    tell = None if json_ else lambda name: echo(f"... {name}", err=True)
    rows = reproduce_sequences(options, on_progress=tell)
    print_reproduction("sequences", rows, time.monotonic() - begin, as_json=json_)


def _sizes(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise OptionError(
            f"`--sizes` should be whole numbers with commas between them. Found {text!r}."
        )
    return tuple(int(part) for part in parts)
