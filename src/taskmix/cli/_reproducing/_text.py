"""`taskmix reproduce newsgroups` and `reviews`: loss weightings on two sets of text tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from taskmix.cli._commands._train import Precision
from taskmix.cli._options import CacheOption, OneByOneOptions, WhereOptions
from taskmix.cli._printing._display import echo
from taskmix.cli._printing._reproduced import print_reproduction
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.engine import Executor
    from taskmix.papers import PaperRow
    from taskmix.records import Study

T = TypeVar("T")
JsonOption = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="A small version, to see it work.")]
BatchOption = Annotated[int, typer.Option("--batch-size", min=1)]


@dataclass(frozen=True, kw_only=True)
class TextExperimentOptions:
    """What the two experiments on texts have in common."""

    data: Annotated[Path, typer.Argument(help="The folder of the data set.")]
    vectors: Annotated[
        Path | None,
        typer.Option("--vectors", help="Word vectors: GloVe or fastText text, or .npz."),
    ] = None
    out: Annotated[Path | None, typer.Option("--out", help="The study [NAME-study].")] = None
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="Names with commas [the paper's and modern ones]."),
    ] = None
    seeds: Annotated[int, typer.Option("--seeds", min=1)] = 10
    epochs: Annotated[
        float, typer.Option("--epochs", min=0.01, help="Passes over the largest task.")
    ] = 3000.0
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Steps instead of epochs.")
    ] = None
    batch_size: BatchOption = 256
    max_length: Annotated[int, typer.Option("--max-length", min=7, help="Words of a text.")] = 500
    radii: Annotated[
        str | None,
        typer.Option("--radii", help="Values of a sweep of BanditMTL's radius, with commas."),
    ] = None
    step_sizes: Annotated[
        str | None,
        typer.Option(
            "--step-sizes", help="Values of a sweep of BanditMTL's step size, with commas."
        ),
    ] = None
    precision: Annotated[Precision, typer.Option("--precision")] = Precision.FLOAT32
    cache: CacheOption = None
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw variance and weights into this .svg, .png or .html."),
    ] = None
    quick: QuickOption = False
    json_: JsonOption = False

    def settings(self, kind: type[T], where: WhereOptions) -> T:
        """The same as options of an experiment; with `--quick` a small one."""
        names = tuple(word.strip() for word in self.methods.split(",")) if self.methods else None
        given: dict[str, Any] = {
            "data": self.data,
            "vectors": self.vectors,
            "epochs": self.epochs,
            "steps": 4 if self.quick else self.steps,
            "seeds": 2 if self.quick else self.seeds,
            "batch_size": 8 if self.quick else self.batch_size,
            "max_length": 30 if self.quick else self.max_length,
            "radii": _numbers(self.radii, "radii"),
            "step_sizes": _numbers(self.step_sizes, "step_sizes"),
            "precision": self.precision.value,
            "cache": self.cache,
            "device": where.choose_device(),
        }
        if names or self.quick:
            given["methods"] = names or ("equal", "bandit")
        return kind(**given)


def newsgroups(
    context: typer.Context, asked: TextExperimentOptions, where: OneByOneOptions
) -> None:
    """Loss weightings on four 4-class tasks made of 20 Newsgroups.

    Example: taskmix reproduce newsgroups newsgroups20/ --vectors glove.npz --methods equal,bandit
    """
    from taskmix.papers import NewsgroupsOptions, reproduce_newsgroups

    _reproduce("newsgroups", NewsgroupsOptions, reproduce_newsgroups, context, asked, where)


def reviews(context: typer.Context, asked: TextExperimentOptions, where: OneByOneOptions) -> None:
    """Loss weightings on 14 domains of Amazon reviews, with and without test rows seen in training.

    Example: taskmix reproduce reviews fdu_mtl/ --vectors glove.npz --methods equal,bandit
    """
    from taskmix.papers import ReviewsOptions, reproduce_reviews

    _reproduce("reviews", ReviewsOptions, reproduce_reviews, context, asked, where)


def _reproduce(
    name: str,
    kind: type[T],
    reproduce: Callable[[T, Study, Executor], list[PaperRow]],
    context: typer.Context,
    asked: TextExperimentOptions,
    where: OneByOneOptions,
) -> None:
    from taskmix.engine import own_study
    from taskmix.papers import text_figure
    from taskmix.report import check_chart_path, write_chart

    begin = time.monotonic()
    if asked.plot is not None:
        check_chart_path(asked.plot)
    where.join(context)
    settings: Any = asked.settings(kind, where)
    study = own_study(asked.out or Path(f"{name}-study"))
    with where.executing(name, quiet=asked.json_) as executor:
        rows = reproduce(settings, study, executor)
    if asked.plot is not None:
        write_chart(text_figure(settings, study), asked.plot)
    print_reproduction(name, rows, time.monotonic() - begin, as_json=asked.json_)
    if asked.plot is not None and not asked.json_:
        echo(f"Drew {asked.plot}.")


def _numbers(text: str | None, name: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        option = name.replace("_", "-")
        raise OptionError(f"`--{option}` should be numbers with commas. Found {text!r}.") from None
