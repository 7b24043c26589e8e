"""What a swarm is, as options of its command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._mixtures import read_shares_of
from taskmix.cli._options._model import Schedule, TuneName
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.mixtures import SwarmOptions
    from taskmix.tasks import TaskSet


class Prior(StrEnum):
    """The shares around which mixtures are drawn."""

    NATURAL = "natural"
    UNIFORM = "uniform"


@dataclass(frozen=True, kw_only=True)
class MemberOptions:
    """The models of a swarm, and how each is trained."""

    members: Annotated[int, typer.Option("--members", min=2, help="Models, each on a mixture.")] = (
        512
    )
    parameters: Annotated[
        str, typer.Option("--parameters", help="Of a model: 1M, 5M, 20M, or about 300k.")
    ] = "1M"
    layers: Annotated[
        int | None, typer.Option("--layers", min=1, help="With --width, in place of --parameters.")
    ] = None
    width: Annotated[int | None, typer.Option("--width", min=2)] = None
    tokens: Annotated[
        str,
        typer.Option("--tokens", help="That each model reads: bytes, or pieces of --tokenizer."),
    ] = "20M"
    context: Annotated[int, typer.Option("--context", min=2, help="Tokens of a row.")] = 128
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Rows in a step.")] = 8
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="[0.001 for 1M, less for wider ones]")
    ] = None
    schedule: Annotated[Schedule, typer.Option("--schedule")] = Schedule.LINEAR
    warmup: Annotated[float, typer.Option("--warmup", help="Share of the steps.")] = 0.05
    weight_decay: Annotated[float, typer.Option("--weight-decay", min=0)] = 0.1
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            help="train[:SIZE] learns pieces from all domains; or the folder of one [bytes].",
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="A pretrained causal model: members are adapters on it [from scratch]."
        ),
    ] = None
    tune: Annotated[
        TuneName | None, typer.Option("--tune", help="With --model: adapters, of each member.")
    ] = None
    rank: Annotated[int | None, typer.Option("--rank", min=1, help="Of adapters [8].")] = None

    def check(self) -> None:
        """Options that go together, or do not."""
        for name, value in (("--tune", self.tune), ("--rank", self.rank)):
            if value is not None and self.model is None:
                raise OptionError(f"`{name}` should go with --model. Found it alone. Leave it out.")
        if self.model is None:
            return
        if self.tune not in (None, TuneName.ADAPTERS):
            raise OptionError(
                "`--tune` should be adapters in a swarm: its members share the rest of the model. Found "
                f"{self.tune}. Leave it out."
            )
        for name, given in (("--tokenizer", self.tokenizer), ("--layers", self.layers)):
            if given is not None:
                raise OptionError(
                    f"`{name}` should go with models from scratch. Found it with --model, which has its "
                    "own. Leave it out."
                )


@dataclass(frozen=True, kw_only=True)
class MixtureDesignOptions:
    """Which mixtures are trained, and what members are scored on."""

    mixtures: Annotated[
        Path | None,
        typer.Option(
            "--mixtures", help="A file of mixtures to train, a row each, as ratios.csv [drawn]."
        ),
    ] = None
    replicates: Annotated[
        int | None,
        typer.Option("--replicates", min=0, help="Members that repeat a mixture [one in 16]."),
    ] = None
    prior: Annotated[
        Prior, typer.Option("--prior", help="Draw mixtures around shares by size, or equal ones.")
    ] = Prior.NATURAL
    bound: Annotated[
        list[str] | None,
        typer.Option("--bound", help="DOMAIN=LOW,HIGH: limits of a share; may be repeated."),
    ] = None
    dev_bytes: Annotated[
        int, typer.Option("--dev-bytes", min=1, help="Of each domain's dev set that are scored.")
    ] = 32_768
    checkpoints: Annotated[
        int, typer.Option("--checkpoints", min=0, help="While training, to go on from.")
    ] = 4
    seed: Annotated[
        int, typer.Option("--seed", help="Of the mixtures, and the first member's.")
    ] = 0

    def given(self, domains: Sequence[str]) -> dict[str, dict[str, float]] | None:
        """Of each member that the file names its shares; None where they are drawn."""
        if self.mixtures is None:
            return None
        for name, value in (("--bound", self.bound), ("--replicates", self.replicates)):
            if value:
                raise OptionError(
                    f"`{name}` should go with mixtures that are drawn. Found it with --mixtures. Leave "
                    "one of them out."
                )
        return read_shares_of(self.mixtures, domains)

    def bounds(self) -> tuple[tuple[str, float, float], ...]:
        """Domain, smallest and largest share."""
        found = []
        for words in self.bound or ():
            name, _, limits = words.rpartition("=")
            try:
                low, high = map(float, limits.split(","))
            except ValueError:
                raise OptionError(
                    f"`--bound` should be DOMAIN=LOW,HIGH, as in code=0,0.3. Found {words!r}."
                ) from None
            found.append((name, low, high))
        return tuple(found)


def swarm_options(
    members: MemberOptions,
    design: MixtureDesignOptions,
    tokenizer: str | None = None,
    given: int | None = None,  # mixtures that were not drawn
) -> SwarmOptions:
    """The same as an object."""
    from taskmix.mixtures import SwarmOptions, as_count

    return SwarmOptions(
        members=given or members.members,
        parameters=members.parameters,
        layers=members.layers,
        width=members.width,
        tokens=as_count(members.tokens, name="tokens"),
        context=members.context,
        batch_size=members.batch_size,
        learning_rate=members.learning_rate,
        schedule=members.schedule.value,
        warmup=members.warmup,
        weight_decay=members.weight_decay,
        tokenizer=tokenizer,
        model=members.model,
        rank=members.rank,
        dev_bytes=design.dev_bytes,
        replicates=0 if given else design.replicates,
        prior=design.prior.value,
        bounds=design.bounds(),
        checkpoints=design.checkpoints,
        seed=design.seed,
    )


def find_tokenizer(words: str | None, tasks: TaskSet, study: Path) -> str | None:
    """The folder of the tokenizer, which is learned into the study where that was asked for.

    It names every run, so it is the same one wherever the command is started from.
    """
    from taskmix.mixtures import pieces_to_learn, train_tokenizer

    size = pieces_to_learn(words)
    if size is not None:
        return str(train_tokenizer(tasks, study.resolve() / f"tokenizer-{size}", size=size))
    return str(Path(words).resolve()) if words is not None and Path(words).is_dir() else words
