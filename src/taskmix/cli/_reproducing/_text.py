"""`taskmix reproduce newsgroups` and `reviews`: loss weightings on two sets of text tasks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from taskmix.cli._commands._train import Precision
from taskmix.cli._options import CacheOption, OneByOneOptions
from taskmix.cli._printing._display import echo
from taskmix.cli._printing._reproduced import print_reproduction
from taskmix.errors import OptionError

JsonOption = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="A small version, to see it work.")]
DataArgument = Annotated[Path, typer.Argument(help="The folder of the data set.")]
VectorsOption = Annotated[
    Path | None, typer.Option("--vectors", help="Word vectors: GloVe text, or .npz.")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="The study [NAME-study].")]
MethodsOption = Annotated[
    str | None,
    typer.Option("--methods", help="Names with commas [the paper's and modern ones]."),
]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1)]
EpochsOption = Annotated[
    float, typer.Option("--epochs", min=0.01, help="Passes over the largest task.")
]
StepsOption = Annotated[int | None, typer.Option("--steps", min=1, help="Steps instead of epochs.")]
BatchOption = Annotated[int, typer.Option("--batch-size", min=1)]
LengthOption = Annotated[int, typer.Option("--max-length", min=7, help="Words of a text.")]
RadiiOption = Annotated[
    str | None,
    typer.Option("--radii", help="Values of a sweep of BanditMTL's radius, with commas."),
]
StepSizesOption = Annotated[
    str | None,
    typer.Option("--step-sizes", help="Values of a sweep of BanditMTL's step size, with commas."),
]
PrecisionOption = Annotated[Precision, typer.Option("--precision")]
PlotOption = Annotated[
    Path | None,
    typer.Option("--plot", help="Draw variance and weights into this .svg, .png or .html."),
]


def newsgroups(
    context: typer.Context,
    data: DataArgument,
    where: OneByOneOptions,
    vectors: VectorsOption = None,
    out: OutOption = None,
    methods: MethodsOption = None,
    seeds: SeedsOption = 10,
    epochs: EpochsOption = 3000.0,
    steps: StepsOption = None,
    batch_size: BatchOption = 256,
    max_length: LengthOption = 500,
    radii: RadiiOption = None,
    step_sizes: StepSizesOption = None,
    precision: PrecisionOption = Precision.FLOAT32,
    cache: CacheOption = None,
    plot: PlotOption = None,
    quick: QuickOption = False,
    json_: JsonOption = False,
) -> None:
    """Loss weightings on four 4-class tasks made of 20 Newsgroups.

    Example: taskmix reproduce newsgroups newsgroups20/ --vectors glove.npz --methods equal,bandit
    """
    _text(dict(locals()), "newsgroups")


def reviews(
    context: typer.Context,
    data: DataArgument,
    where: OneByOneOptions,
    vectors: VectorsOption = None,
    out: OutOption = None,
    methods: MethodsOption = None,
    seeds: SeedsOption = 10,
    epochs: EpochsOption = 3000.0,
    steps: StepsOption = None,
    batch_size: BatchOption = 256,
    max_length: LengthOption = 500,
    radii: RadiiOption = None,
    step_sizes: StepSizesOption = None,
    precision: PrecisionOption = Precision.FLOAT32,
    cache: CacheOption = None,
    plot: PlotOption = None,
    quick: QuickOption = False,
    json_: JsonOption = False,
) -> None:
    """Loss weightings on 14 domains of Amazon reviews, with and without test rows seen in training.

    Example: taskmix reproduce reviews fdu_mtl/ --vectors glove.npz --methods equal,bandit
    """
    _text(dict(locals()), "reviews")


def _text(given: dict[str, Any], name: str) -> None:
    """Runs one of the two text experiments with the options of its command."""
    from taskmix.engine import own_study
    from taskmix.papers import (
        NewsgroupsOptions,
        ReviewsOptions,
        reproduce_newsgroups,
        reproduce_reviews,
        text_figure,
    )
    from taskmix.report import check_chart_path, write_chart

    begin = time.monotonic()
    quick, as_json, plot = given["quick"], given["json_"], given["plot"]
    if plot is not None:
        check_chart_path(plot)
    kept = ("data", "vectors", "batch_size", "cache", "epochs", "steps", "seeds", "max_length")
    options: dict[str, Any] = {key: given[key] for key in kept}
    if given["methods"]:
        options["methods"] = tuple(word.strip() for word in given["methods"].split(","))
    for key in ("radii", "step_sizes"):
        options[key] = _numbers(given[key], key)
    if quick:
        options |= {"steps": 4, "seeds": 2, "batch_size": 8, "max_length": 30}
        options["methods"] = options.get("methods", ("equal", "bandit"))
    where: OneByOneOptions = given["where"]
    where.join(given["context"])
    options |= {"device": where.choose_device(), "precision": given["precision"].value}
    study = own_study(given["out"] or Path(f"{name}-study"))
    with where.executing(name, quiet=as_json) as executor:
        asked: NewsgroupsOptions | ReviewsOptions
        if name == "newsgroups":
            asked = NewsgroupsOptions(**options)
            rows = reproduce_newsgroups(asked, study, executor)
        else:
            asked = ReviewsOptions(**options)
            rows = reproduce_reviews(asked, study, executor)
    if plot is not None:
        write_chart(text_figure(asked, study), plot)
    print_reproduction(name, rows, time.monotonic() - begin, as_json=as_json)
    if plot is not None and not as_json:
        echo(f"Drew {plot}.")


def _numbers(text: str | None, name: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        option = name.replace("_", "-")
        raise OptionError(f"`--{option}` should be numbers with commas. Found {text!r}.") from None
