"""`taskmix swarm`: many small models, each on its own mixture of the domains."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._options import ResumeOption, WhereOptions
from taskmix.cli._options._extras import check_extras
from taskmix.cli._options._swarm import (
    MemberOptions,
    MixtureDesignOptions,
    find_tokenizer,
    swarm_options,
)
from taskmix.cli._printing._display import echo
from taskmix.cli._printing._reading import print_reading


def swarm(
    called: typer.Context,
    folder: Annotated[
        str, typer.Argument(help="A folder with a folder of texts for each domain, or hf:NAME.")
    ],
    members: MemberOptions,
    design: MixtureDesignOptions,
    where: WhereOptions,
    only: Annotated[
        str | None, typer.Option("--only", help="Names of the domains to keep, with commas.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="The column that holds the text.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes", min=0, help="Stop after so long, with a checkpoint to go on from."
        ),
    ] = None,
    long: Annotated[
        bool, typer.Option("--long", help="Begin even where it is going to take days.")
    ] = False,
    models: Annotated[
        bool,
        typer.Option("--models", help="Keep every member's weights and steps, not scores alone."),
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="The study to write to.")] = Path("swarm"),
    resume: ResumeOption = True,
    json_: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Train a swarm of small language models, each on its own mixture of the domains of FOLDER.

    Every member is scored in bits per byte on the dev set of every domain. The mixtures and scores go
    into the study as ratios.csv and metrics.csv, which `taskmix mix` reads. Stop it or kill it and run
    the same command again: it continues from its last checkpoint.

    Examples:

        taskmix swarm domains/ --members 512 --parameters 1M --tokens 50M

        taskmix swarm domains/ --members 32 --layers 1 --width 32 --tokens 200k --device cpu

        taskmix swarm domains/ --members 64 --model smollm/ --tune adapters --tokens 1M
    """
    from taskmix.cli._printing._swarm import print_swarm
    from taskmix.engine import FolderSource, open_study
    from taskmix.extras import require
    from taskmix.mixtures import (
        check_swarm_time,
        domains_of_swarm,
        estimate_swarm,
        pieces_to_learn,
        say_duration,
        train_swarm,
    )

    begin = time.monotonic()
    members.check()
    is_learned = pieces_to_learn(members.tokenizer) is not None
    swarm_options(members, design)  # what is wrong with them is said before anything is read
    check_extras(model="auto" if members.model is None else members.model, where=where)
    if members.tokenizer is not None:
        require("transformers", "tokenizers", purpose="`--tokenizer`")
    where.join(called)
    source = FolderSource(
        path=folder,
        tasks=tuple(name.strip() for name in only.split(",")) if only else None,
        text=None if text is None else (text,),
        kind="language",
    )
    loaded = source.load()
    print_reading(loaded, quiet=json_)
    device = where.choose_device()
    tasks = domains_of_swarm(loaded, dev_bytes=design.dev_bytes, context=members.context)
    mixtures = design.given(tasks.names)
    study = open_study(out, tasks, source)
    study.lean = not models
    if is_learned:
        study.settle()  # the folder is ours before a tokenizer lies in it
    tokenizer = find_tokenizer(members.tokenizer, tasks, out)
    options = swarm_options(members, design, tokenizer, None if mixtures is None else len(mixtures))
    over = None if minutes is None else begin + 60 * minutes
    with where.executing(
        "swarm",
        quiet=json_,
        fresh=not resume,
        rounds=False,
        is_over=lambda: over is not None and time.monotonic() > over,
    ) as executor:
        seconds = estimate_swarm(
            tasks, options, study, device=device, mixtures=mixtures, at_once=executor.at_once
        )
        if seconds is not None and not long:
            check_swarm_time(seconds, options, device=device)
        if not json_:
            about = "" if not seconds else f" About {say_duration(seconds)}."
            echo(
                f"{options.members} members, {options.steps:,} steps of {options.batch_size} rows of "
                f"{options.context} tokens each, on {device}.{about}"
            )
        found = train_swarm(
            tasks, options, study, executor=executor, device=device, mixtures=mixtures
        )
    print_swarm(found, study, as_json=json_)
