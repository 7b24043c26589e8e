"""`taskmix swarm`: many small models, each on its own mixture of the domains."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._mixtures import read_shares_of
from taskmix.cli._options._tasks import Schedule, TuneName
from taskmix.cli._options._where import ResumeOption, WhereOptions, check_extras
from taskmix.cli._printing._display import draw_table, echo, note, print_json
from taskmix.cli._printing._reading import print_reading
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.mixtures import TrainedSwarm
    from taskmix.records import Study
    from taskmix.tasks import TaskSet


class Prior(StrEnum):
    """The shares around which mixtures are drawn."""

    NATURAL = "natural"
    UNIFORM = "uniform"


def swarm(
    called: typer.Context,
    folder: Annotated[
        str, typer.Argument(help="A folder with a folder of texts for each domain, or hf:NAME.")
    ],
    where: WhereOptions,
    members: Annotated[int, typer.Option(min=2, help="Models, each on a mixture.")] = (512),
    parameters: Annotated[str, typer.Option(help="Of a model: 1M, 5M, 20M, or about 300k.")] = "1M",
    layers: Annotated[
        int | None, typer.Option(min=1, help="With --width, in place of --parameters.")
    ] = None,
    width: Annotated[int | None, typer.Option(min=2)] = None,
    tokens: Annotated[
        str, typer.Option(help="That each model reads: bytes, or pieces of --tokenizer.")
    ] = "20M",
    context: Annotated[int, typer.Option(min=2, help="Tokens of a row.")] = 128,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in a step.")] = 8,
    learning_rate: Annotated[
        float | None, typer.Option(help="[0.001 for 1M, less for wider ones]")
    ] = None,
    schedule: Annotated[Schedule, typer.Option()] = Schedule.LINEAR,
    warmup: Annotated[float, typer.Option(help="Share of the steps.")] = 0.05,
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.1,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="train[:SIZE] learns pieces from all domains; or the folder of one [bytes]."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A pretrained causal model: members are adapters on it [from scratch]."),
    ] = None,
    tune: Annotated[
        TuneName | None, typer.Option(help="With --model: adapters, of each member.")
    ] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="Of adapters [8].")] = None,
    mixtures: Annotated[
        Path | None,
        typer.Option(help="A file of mixtures to train, a row each, as ratios.csv [drawn]."),
    ] = None,
    replicates: Annotated[
        int | None, typer.Option(min=0, help="Members that repeat a mixture [one in 16].")
    ] = None,
    prior: Annotated[
        Prior, typer.Option(help="Draw mixtures around shares by size, or equal ones.")
    ] = Prior.NATURAL,
    bound: Annotated[
        list[str] | None, typer.Option(help="DOMAIN=LOW,HIGH: limits of a share; may be repeated.")
    ] = None,
    dev_bytes: Annotated[
        int, typer.Option(min=1, help="Of each domain's dev set that are scored.")
    ] = 32_768,
    checkpoints: Annotated[int, typer.Option(min=0, help="While training, to go on from.")] = 4,
    seed: Annotated[int, typer.Option(help="Of the mixtures, and the first member's.")] = 0,
    only: Annotated[
        str | None, typer.Option(help="Names of the domains to keep, with commas.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="The column that holds the text.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after so long, with a checkpoint to go on from."),
    ] = None,
    long: Annotated[
        bool, typer.Option("--long", help="Begin even where it is going to take days.")
    ] = False,
    models: Annotated[
        bool,
        typer.Option("--models", help="Keep every member's weights and steps, not scores alone."),
    ] = False,
    out: Annotated[Path, typer.Option(help="The study to write to.")] = Path("swarm"),
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
    from taskmix.engine import FolderSource, open_study
    from taskmix.extras import require
    from taskmix.mixtures import (
        SwarmOptions,
        as_count,
        check_swarm_time,
        domains_of_swarm,
        estimate_swarm,
        pieces_to_learn,
        say_duration,
        train_swarm,
    )

    begin = time.monotonic()
    _check_model(model, tune, rank, tokenizer, layers)
    is_learned = pieces_to_learn(tokenizer) is not None
    # What is wrong with them is said before anything is read.
    options = SwarmOptions(
        members=members,
        parameters=parameters,
        layers=layers,
        width=width,
        tokens=as_count(tokens, name="tokens"),
        context=context,
        batch_size=batch_size,
        learning_rate=learning_rate,
        schedule=schedule.value,
        warmup=warmup,
        weight_decay=weight_decay,
        model=model,
        rank=rank,
        dev_bytes=dev_bytes,
        replicates=replicates,
        prior=prior.value,
        bounds=_bounds(bound or []),
        checkpoints=checkpoints,
        seed=seed,
    )
    check_extras(model="auto" if model is None else model, where=where)
    if tokenizer is not None:
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
    tasks = domains_of_swarm(loaded, dev_bytes=dev_bytes, context=context)
    shares = None
    if mixtures is not None:
        for name, value in (("--bound", bound), ("--replicates", replicates)):
            if value:
                raise OptionError(
                    f"`{name}` should go with mixtures that are drawn. Found it with --mixtures. Leave "
                    "one of them out."
                )
        shares = read_shares_of(mixtures, tasks.names)
    study = open_study(out, tasks, source)
    study.lean = not models
    if is_learned:
        study.settle()  # the folder is ours before a tokenizer lies in it
    options = replace(options, tokenizer=_find_tokenizer(tokenizer, tasks, out))
    if shares is not None:
        options = replace(options, members=len(shares), replicates=0)
    over = None if minutes is None else begin + 60 * minutes
    with where.executing(
        "swarm",
        quiet=json_,
        fresh=not resume,
        rounds=False,
        is_over=lambda: over is not None and time.monotonic() > over,
    ) as executor:
        seconds = estimate_swarm(
            tasks, options, study, device=device, mixtures=shares, at_once=executor.at_once
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
            tasks, options, study, executor=executor, device=device, mixtures=shares
        )
    print_swarm(found, study, as_json=json_)


def _check_model(
    model: str | None,
    tune: TuneName | None,
    rank: int | None,
    tokenizer: str | None,
    layers: int | None,
) -> None:
    """Options that go with --model, or do not."""
    for name, value in (("--tune", tune), ("--rank", rank)):
        if value is not None and model is None:
            raise OptionError(f"`{name}` should go with --model. Found it alone. Leave it out.")
    if model is None:
        return
    if tune not in (None, TuneName.ADAPTERS):
        raise OptionError(
            "`--tune` should be adapters in a swarm: its members share the rest of the model. Found "
            f"{tune}. Leave it out."
        )
    for name, given in (("--tokenizer", tokenizer), ("--layers", layers)):
        if given is not None:
            raise OptionError(
                f"`{name}` should go with models from scratch. Found it with --model, which has its "
                "own. Leave it out."
            )


def _bounds(given: list[str]) -> tuple[tuple[str, float, float], ...]:
    """Domain, smallest and largest share."""
    found = []
    for words in given:
        name, _, limits = words.rpartition("=")
        try:
            low, high = map(float, limits.split(","))
        except ValueError:
            raise OptionError(
                f"`--bound` should be DOMAIN=LOW,HIGH, as in code=0,0.3. Found {words!r}."
            ) from None
        found.append((name, low, high))
    return tuple(found)


def _find_tokenizer(words: str | None, tasks: TaskSet, study: Path) -> str | None:
    """The folder of the tokenizer, which is learned into the study where that was asked for.

    It names every run, so it is the same one wherever the command is started from.
    """
    from taskmix.mixtures import pieces_to_learn, train_tokenizer

    size = pieces_to_learn(words)
    if size is not None:
        return str(train_tokenizer(tasks, study.resolve() / f"tokenizer-{size}", size=size))
    return str(Path(words).resolve()) if words is not None and Path(words).is_dir() else words


def print_swarm(swarm: TrainedSwarm, study: Study, *, as_json: bool) -> None:
    """How far apart the members are on each domain, how fast it was, and the next command."""
    table, speed = swarm.table, swarm.speed
    ratios, metrics = study.path / "ratios.csv", study.path / "metrics.csv"
    command = shlex.join(["taskmix", "mix", str(ratios), str(metrics)])
    if as_json:
        print_json(
            {
                "study": str(study.path),
                "domains": table.domains,
                "metrics": table.metrics,
                "runs": table.runs,
                "shares": table.shares.tolist(),
                "values": table.values.tolist(),
                "failed": [{"run": name, "error": error} for name, error in swarm.failed],
                "member_steps": speed.member_steps,
                "seconds": speed.seconds,
                "member_steps_per_second": speed.steps_a_second,
                "share_of_peak": speed.share_of_peak,
                "next": command,
            }
        )
        return
    _show_spread(swarm)
    if speed.member_steps:
        share = speed.share_of_peak
        of_peak = "" if share is None else f", {100 * share:.1f} % of the device's peak"
        fast = speed.steps_a_second
        echo(
            f"{fast:,.0f} member-steps a second{of_peak}."
            if fast >= 10
            else f"{fast:.1f} member-steps a second."
        )
    for name, error in swarm.failed[:5]:
        note(f"Member {name} is not in the table: {error}")
    if len(swarm.failed) > 5:
        note(f"Nor are {len(swarm.failed) - 5} more members.")
    echo(f"Table: {ratios} and {metrics}, {len(table)} runs.")
    echo(f"Next: {command}")


def _show_spread(swarm: TrainedSwarm) -> None:
    import numpy as np

    table, rows = swarm.table, []
    for place, domain in enumerate(table.domains):
        values = table.values[:, place]
        best = int(np.nanargmin(values))
        figures = (values[best], np.nanmedian(values), np.nanmax(values))
        share = f"{100 * table.shares[best, place]:.1f} %"
        rows.append((domain, *(f"{value:.3f}" for value in figures), share))
    columns = ("domain", "best", "middle", "worst", "share in the best")
    draw_table(columns, rows, title="Bits per byte on dev")
