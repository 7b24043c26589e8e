"""Where the runs of a command execute: `--engine`, and the cluster of `--engine ray`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from taskmix.errors import OptionError


class Engine(StrEnum):
    """Where runs execute."""

    AUTO = "auto"
    HERE = "here"
    FLEET = "fleet"
    RAY = "ray"


EngineOption = Annotated[
    Engine,
    typer.Option(
        "--engine",
        help="here: one run a process; fleet: many models as one batch; auto: the faster of these; "
        "ray: a Ray cluster.",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address", help="The cluster of --engine ray: auto, or HOST:PORT [one of this machine]."
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", help="Copy finished runs of --engine ray to this fsspec path too: s3://..."
    ),
]


def join_cluster(
    context: typer.Context,
    engine: Engine,
    *,
    address: str | None,
    store: str | None,
    workers: int | None,
) -> None:
    """Joins the cluster of `--engine ray`, or starts one, until the command ends."""
    if engine is not Engine.RAY:
        for option, value in (("--address", address), ("--store", store)):
            if value is not None:
                raise OptionError(
                    f"`{option}` should go with --engine ray. Found it with {engine.value}. "
                    "Leave it out."
                )
        return
    from taskmix.engine import cluster

    context.with_resource(cluster(address, workers=workers, store=store))


def choose_device_on(engine: Engine, name: str) -> str:
    """The device of runs: on a cluster what its machines have, not what this one has."""
    from taskmix.engine import choose_cluster_device, choose_device

    return choose_cluster_device(name) if engine is Engine.RAY else choose_device(name)
