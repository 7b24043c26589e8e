"""`taskmix reproduce census`, `weak-supervision` and `nlp25`: the transfer paper's applications."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taskmix.cli._commands._transfer import OutcomeName
from taskmix.cli._options import CacheOption, WhereOptions
from taskmix.cli._options._extras import check_encoder, check_extras
from taskmix.cli._options._model import TuneName
from taskmix.cli._printing._display import echo
from taskmix.cli._printing._reproduced import print_reproduction
from taskmix.cli._reproducing._text import (
    BatchOption,
    JsonOption,
    QuickOption,
)
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.engine import Executor
    from taskmix.records import Study


StepsOption = Annotated[int, typer.Option("--steps", min=1, help="Batches of every task in a run.")]
RateOption = Annotated[float, typer.Option("--learning-rate")]
HeldOutOption = Annotated[
    int, typer.Option("--held-out", min=3, help="Subsets of a target to be tried on.")
]
AloneOption = Annotated[int, typer.Option("--alone", min=2, help="Runs of each target alone.")]
SeedsOption = Annotated[
    int, typer.Option("--seeds", min=2, help="Of the methods that are compared.")
]
LengthOption = Annotated[int, typer.Option("--max-length", min=4, help="Pieces of a text.")]
MinutesOption = Annotated[
    float | None,
    typer.Option("--minutes", min=0.0, help="Stop after so many; the same command goes on."),
]


class AbstainsName(StrEnum):
    """What becomes of rows on which a function that knows one class does not vote."""

    LEFT_OUT = "left out"
    OTHER_CLASS = "other class"


@dataclass(frozen=True, kw_only=True)
class SubsetExperimentOptions:
    """What the three experiments on subsets of sources have in common."""

    batch_size: BatchOption = 32
    repeats: Annotated[
        int, typer.Option("--repeats", min=2, help="Runs of each subset that is tried on.")
    ] = 3
    seed: Annotated[int, typer.Option("--seed", help="Of the subsets, and the first one.")] = 0
    out: Annotated[Path | None, typer.Option("--out", help="The study [NAME-study].")] = None
    quick: QuickOption = False
    json_: JsonOption = False


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """A pretrained encoder, whose vectors are kept."""

    encoder: Annotated[
        str, typer.Option("--encoder", help="A Hugging Face encoder's path or name.")
    ]
    cache: CacheOption = None


def census(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="The Parquet file of ACSIncome, or its folder.")],
    asked: SubsetExperimentOptions,
    where: WhereOptions,
    only: Annotated[
        str | None, typer.Option("--only", help="Names of the states to keep, with commas.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Of a state to train on.")] = 3000,
    hidden: Annotated[int, typer.Option("--hidden", min=1, help="Width of the network.")] = 32,
    steps: StepsOption = 400,
    learning_rate: RateOption = 1e-3,
    size: Annotated[int, typer.Option("--size", min=1, help="Sources in a subset.")] = 3,
    subsets: Annotated[
        int, typer.Option("--subsets", min=1, help="Of each target, to learn from.")
    ] = 150,
    held_out: HeldOutOption = 24,
    alone: AloneOption = 10,
    seeds: SeedsOption = 5,
    own_group_dro: Annotated[
        bool, typer.Option("--own-group-dro", help="Group DRO on each state alone too; slow.")
    ] = False,
) -> None:
    """Which states help to predict income in which: F1 of telling, and accuracy by racial group.

    Stop it and run it again: finished runs are not repeated.

    Example: taskmix reproduce census acs_income/ --only AK,CA,HI,NJ,NY,PR,TX,WY --subsets 40
    """
    from taskmix.papers import CensusOptions, reproduce_census

    where.join(context)
    options = _kept(locals(), "data rows steps learning_rate size subsets held_out")
    options |= _kept(locals(), "alone seeds own_group_dro") | _common(asked)
    options |= {
        "states": _names(only, "only"),
        "hidden": (hidden,),
        "device": where.choose_device(),
    }
    if asked.quick:
        options |= {
            "states": options["states"] or ("CA", "HI", "NJ", "PR", "TX", "WY"),
            "rows": 300,
        }
        options |= {"steps": min(steps, 50), "subsets": 10, "held_out": 4, "repeats": 2}
        options |= {"alone": 3, "seeds": 2, "size": min(size, 2)}
    with _executing("census", asked.out, where, quiet=asked.json_) as (kept, executor, _):
        begin = time.monotonic()
        found = reproduce_census(CensusOptions(**options), kept, executor)
    print_reproduction("census", found, time.monotonic() - begin, as_json=asked.json_)


def weak_supervision(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="The folder of WRENCH: youtube/, sms/, ...")],
    encoder: Annotated[
        str, typer.Option("--encoder", help="A Hugging Face encoder's path or name.")
    ],
    where: WhereOptions,
    set_: Annotated[str, typer.Option("--set", help="One of its sets.")] = "youtube",
    abstains: Annotated[
        AbstainsName,
        typer.Option("--abstains", help="Rows on which a function of one class does not vote."),
    ] = AbstainsName.LEFT_OUT,
    size: Annotated[int, typer.Option("--size", min=1, help="Functions in a subset.")] = 3,
    subsets: Annotated[int, typer.Option("--subsets", min=1, help="To learn from.")] = 200,
    runs: Annotated[int, typer.Option("--repeats", min=1, help="Runs of each subset.")] = 3,
    subset_steps: Annotated[
        int, typer.Option("--subset-steps", min=1, help="Batches in a run of a subset.")
    ] = 100,
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Batches in a run of a method.")
    ] = 300,
    batch_size: BatchOption = 32,
    learning_rate: RateOption = 5e-4,
    max_length: LengthOption = 48,
    seeds: SeedsOption = 5,
    seed: Annotated[int, typer.Option("--seed", help="Of the subsets, and the first one.")] = 0,
    minutes: MinutesOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="The study [NAME-study].")] = None,
    quick: QuickOption = False,
    json_: JsonOption = False,
) -> None:
    """Which labelling functions to learn from, without true labels.

    Stop it and run it again: finished runs are not repeated.

    Example: taskmix reproduce weak-supervision wrench/ --set youtube --encoder minilm/
    """
    from taskmix.papers import WeakOptions, reproduce_weak_supervision

    check_extras(model=encoder, where=where)
    check_encoder(encoder)
    where.join(context)
    options = _kept(locals(), "encoder size subsets runs subset_steps steps batch_size")
    options |= _kept(locals(), "learning_rate max_length seeds seed")
    options |= {
        "data": data / set_,
        "abstains": abstains.value,
        "device": where.choose_device(),
    }
    if quick:
        options |= {"steps": min(steps, 30), "subset_steps": min(subset_steps, 10), "runs": 1}
        options |= {"seeds": 2}
    with _executing("weak-supervision", out, where, quiet=json_, minutes=minutes, lean=True) as (
        kept,
        executor,
        _,
    ):
        begin = time.monotonic()
        found = reproduce_weak_supervision(WeakOptions(**options), kept, executor)
    print_reproduction("weak-supervision", found, time.monotonic() - begin, as_json=json_)


def nlp25(
    context: typer.Context,
    data: Annotated[
        Path, typer.Argument(help="The folder that has glue/, superglue/ and tweeteval/ in it.")
    ],
    text: EncoderOptions,
    asked: SubsetExperimentOptions,
    where: WhereOptions,
    tune: Annotated[
        TuneName, typer.Option("--tune", help="Of the encoder; heads read its frozen vectors.")
    ] = TuneName.HEADS,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Of a task to train on.")] = 1000,
    dev_rows: Annotated[int, typer.Option("--dev-rows", min=1)] = 500,
    test_rows: Annotated[int, typer.Option("--test-rows", min=1)] = 1000,
    hidden: Annotated[int, typer.Option("--hidden", min=1, help="Width of the network.")] = 64,
    steps: StepsOption = 300,
    learning_rate: Annotated[
        float | None,
        typer.Option("--learning-rate", help="[1e-3; with --tune adapters 5e-4, with all 2e-5]."),
    ] = None,
    max_length: LengthOption = 128,
    size: Annotated[int, typer.Option("--size", min=1, help="Sources in a subset.")] = 4,
    subsets: Annotated[
        int, typer.Option("--subsets", min=1, help="Of each target, to learn from.")
    ] = 92,
    outcome: Annotated[OutcomeName, typer.Option("--outcome", help="On dev.")] = OutcomeName.LOSS,
    held_out: HeldOutOption = 24,
    alone: AloneOption = 10,
    seeds: SeedsOption = 5,
    minutes: MinutesOption = None,
) -> None:
    """Which of some 25 text tasks to learn each of them with.

    Stop it and run it again: finished runs are not repeated.

    Example: taskmix reproduce nlp25 data/ --encoder minilm/ --rows 300 --subsets 60
    """
    from taskmix.engine import Optimization
    from taskmix.papers import Nlp25Options, reproduce_nlp25

    check_extras(model=text.encoder, where=where)
    check_encoder(text.encoder)
    where.join(context)
    study = asked.out or Path("nlp25-study")
    tunings: dict[TuneName, Literal["adapters", "all"]] = {
        TuneName.ADAPTERS: "adapters",
        TuneName.ALL: "all",
    }
    tuning = tunings.get(tune)
    options = _kept(locals(), "data rows dev_rows test_rows steps max_length")
    options |= _kept(locals(), "size subsets held_out alone seeds") | _common(asked)
    options |= {
        "hidden": (hidden,),
        "device": where.choose_device(),
        "encoder": text.encoder,
        "cache": text.cache or study / "features",
        "outcome": outcome.value,
        "tune": tuning,
        "learning_rate": Optimization.usual_rate(learning_rate, tuning=tuning),
    }
    if asked.quick:
        options |= {"rows": 64, "dev_rows": 32, "test_rows": 32, "steps": min(steps, 20)}
        options |= {"subsets": 46, "held_out": 4, "repeats": 2, "alone": 3, "seeds": 2}
        options |= {"max_length": min(max_length, 32)}
    with _executing("nlp25", study, where, quiet=asked.json_, minutes=minutes) as (
        kept,
        executor,
        tell,
    ):
        begin = time.monotonic()
        found = reproduce_nlp25(Nlp25Options(**options), kept, executor, on_texts=tell)
    print_reproduction("nlp25", found, time.monotonic() - begin, as_json=asked.json_)


@contextmanager
def _executing(
    name: str,
    out: Path | None,
    where: WhereOptions,
    *,
    quiet: bool,
    minutes: float | None = None,
    lean: bool = False,  # final scores alone are written
) -> Iterator[tuple[Study, Executor, Callable[[int, int], None]]]:
    """The study, an executor that can be stopped, and what tells of texts that are encoded."""
    from taskmix.engine import Until, own_study

    begin = time.monotonic()

    told = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal told
        if not quiet and (done == total or done / total >= told + 0.1):
            told = done / total
            echo(f"... {done:,} of {total:,} texts encoded", err=True)

    def is_over() -> bool:
        return minutes is not None and time.monotonic() - begin > 60 * minutes

    with where.executing(name, quiet=quiet) as executor:
        study = own_study(out or Path(f"{name}-study"), lean=lean)
        yield study, Until(executor, is_over) if minutes is not None else executor, tell


def _common(asked: SubsetExperimentOptions) -> dict[str, Any]:
    return {"batch_size": asked.batch_size, "repeats": asked.repeats, "seed": asked.seed}


def _kept(given: dict[str, Any], names: str) -> dict[str, Any]:
    return {name: given[name] for name in names.split()}


def _names(text: str | None, option: str) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(word.strip() for word in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise OptionError(f"`--{option}` should be different names with commas. Found {text!r}.")
    return names
