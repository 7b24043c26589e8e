"""`taskmix reproduce`: published experiments, with the papers' figures beside ours."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from taskmix.cli._commands._train import Precision
from taskmix.cli._options import CacheOption, OneByOneOptions, grouped
from taskmix.cli._options._extras import check_extras
from taskmix.cli._printing._display import echo
from taskmix.cli._printing._reproduced import print_reproduction
from taskmix.cli._reproducing._laws import laws_study
from taskmix.cli._reproducing._sequences import reproduce_generators
from taskmix.cli._reproducing._text import JsonOption, QuickOption, newsgroups, reviews
from taskmix.cli._reproducing._transfer import census, nlp25, weak_supervision

app = typer.Typer(
    help="Run a published experiment and print the paper's figures beside ours.",
    no_args_is_help=False,
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXPERIMENTS = {
    "bandit": "selection, Figure 1: policies on the multitask bandit; about a minute",
    "glue": "selection, Tables 1 to 3: eight GLUE tasks on one encoder; hours, or minutes on a GPU",
    "transfer-theory": "transfer, Theorems 1 and 2: linear sources, related or not; half a minute",
    "census": "transfer: which states help to predict income in which; half an hour on a core",
    "weak-supervision": "transfer: which labelling functions to learn from; minutes",
    "nlp25": "transfer: which text tasks to learn together; an hour on a core, less on a GPU",
    "sequences": "generators: shared sequence generators on known and real tasks; a quarter of an hour",
    "laws-balanced": "laws, Figure 3 and eqs. 3 to 6: 5,010 taggers; an hour on a GPU",
    "laws-unbalanced": "laws, eqs. 7 to 11: 7,775 taggers with fewer words for the real task; the same",
    "newsgroups": "BanditMTL, Figures 3 to 9: loss weightings on four topic tasks; a GPU for hours",
    "reviews": "BanditMTL, Figures 2 and 4 to 9: loss weightings on 14 review tasks; a GPU for hours",
}


@app.callback()
def reproduce(
    context: typer.Context,
    list_: Annotated[bool, typer.Option("--list", help="The experiments there are.")] = False,
    json_: JsonOption = False,
) -> None:
    """Run a published experiment and print the paper's figures beside ours.

    Example: taskmix reproduce bandit --quick
    """
    if context.invoked_subcommand is not None and not list_:
        return
    if json_:
        from taskmix.cli._printing._display import print_json

        print_json([{"name": name, "what": what} for name, what in EXPERIMENTS.items()])
    else:
        for name, what in EXPERIMENTS.items():
            echo(f"{name:16} {what}")
    raise typer.Exit


@app.command()
def bandit(
    environments: Annotated[int, typer.Option("--environments", min=1)] = 20,
    seeds: Annotated[int, typer.Option("--seeds", min=1)] = 10,
    steps: Annotated[int, typer.Option("--steps", min=100)] = 10_000,
    entropy: Annotated[
        float, typer.Option("--entropy", help="Its weight in the paper's recipe.")
    ] = 0.2,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw Figure 1 into this .svg, .png or .html.")
    ] = None,
    quick: QuickOption = False,
    json_: JsonOption = False,
) -> None:
    """Policies on the multitask bandit, where the best division of the budget is known.

    Example: taskmix reproduce bandit --plot figure1.svg
    """
    from taskmix.papers import BanditOptions, bandit_figure, bandit_rows, play_bandit
    from taskmix.report import check_chart_path, write_chart

    if plot is not None:
        check_chart_path(plot)
    if quick:
        environments, seeds, steps = min(environments, 3), min(seeds, 3), min(steps, 2_000)
    begin = time.monotonic()
    options = BanditOptions(
        environments=environments, seeds=seeds, steps=steps, entropy=entropy, seed=seed
    )
    result = play_bandit(options, on_progress=_teller(json_))
    if plot is not None:
        write_chart(bandit_figure(result), plot)
    print_reproduction("bandit", bandit_rows(result), time.monotonic() - begin, as_json=json_)
    if plot is not None and not json_:
        echo(f"Drew {plot}.")


def glue(
    context: typer.Context,
    data: Annotated[
        Path, typer.Argument(help="The folder of GLUE tasks: cola/, mnli/, mrpc/, ... wnli/.")
    ],
    where: OneByOneOptions,
    encoder: Annotated[
        str, typer.Option("--encoder", help="A Hugging Face encoder's path or name.")
    ] = "bert-base-uncased",
    out: Annotated[Path, typer.Option("--out", help="The study to write to.")] = Path("glue-study"),
    steps: Annotated[int, typer.Option("--steps", min=1)] = 200_000,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 16,
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 2e-5,
    max_length: Annotated[int, typer.Option("--max-length", min=8)] = 256,
    seeds: Annotated[int, typer.Option("--seeds", min=1)] = 3,
    single: Annotated[
        bool, typer.Option("--single/--no-single", help="Fine-tune on each task alone as well.")
    ] = True,
    single_epochs: Annotated[float, typer.Option("--single-epochs", min=0)] = 3.0,
    precision: Annotated[Precision, typer.Option("--precision")] = Precision.FLOAT32,
    cache: CacheOption = None,
    quick: QuickOption = False,
    json_: JsonOption = False,
) -> None:
    """Eight GLUE tasks on one encoder: uniform, size, tempered, Exp3.S and counterfactual policies.

    Defaults are the paper's. Stop it and run it again: finished runs are not repeated.

    Example: taskmix reproduce glue glue/ --encoder minilm/ --steps 4000 --batch-size 32 --device cuda
    """
    from taskmix.engine import own_study
    from taskmix.papers import GlueOptions, reproduce_glue

    begin = time.monotonic()
    check_extras(model=encoder, where=where)
    where.join(context)
    options = GlueOptions(
        data=data,
        encoder=encoder,
        steps=min(steps, 20) if quick else steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        max_length=min(max_length, 32) if quick else max_length,
        seeds=1 if quick else seeds,
        single=single and not quick,
        single_epochs=single_epochs,
        device=where.choose_device(),
        precision=precision.value,
        cache=cache,
    )
    with where.executing("glue", quiet=json_) as executor:
        rows = reproduce_glue(options, own_study(out), executor)
    print_reproduction("glue", rows, time.monotonic() - begin, as_json=json_)


@app.command("transfer-theory")
def transfer_theory(
    seeds: Annotated[int, typer.Option("--seeds", min=2)] = 20,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    quick: QuickOption = False,
    json_: JsonOption = False,
) -> None:
    """Related and unrelated linear sources: can a surrogate of subsets tell them apart?

    Example: taskmix reproduce transfer-theory --json
    """
    from taskmix.papers import TransferTheoryOptions, reproduce_transfer_theory

    begin = time.monotonic()
    options = TransferTheoryOptions(seeds=seeds, error_seeds=min(seeds, 10), seed=seed)
    if quick:
        options = TransferTheoryOptions(
            seeds=2, error_seeds=2, counts=(160, 640), reference=4000, seed=seed
        )
    rows = reproduce_transfer_theory(options, on_progress=_teller(json_))
    print_reproduction("transfer-theory", rows, time.monotonic() - begin, as_json=json_)


app.command()(grouped(glue))
app.command()(grouped(census))
app.command("weak-supervision")(grouped(weak_supervision))
app.command()(grouped(nlp25))
app.command("laws-balanced")(grouped(laws_study))
app.command("laws-unbalanced")(grouped(laws_study))
app.command()(grouped(newsgroups))
app.command("sequences")(grouped(reproduce_generators))
app.command()(grouped(reviews))


def _teller(quiet: bool) -> Any:
    return None if quiet else lambda name: echo(f"... {name}", err=True)
