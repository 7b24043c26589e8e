"""`swarm.json`: what a swarm was begun with, so that the same one is gone on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taskmix.errors import InputError, OptionError
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.records import read_document, write_document

NAME = "swarm.json"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class SwarmDocument:
    """Options, device and mixtures of a swarm.

    >>> about = {"options": SwarmOptions(), "device": "cpu", "domains": ("web", "code")}
    >>> SwarmDocument(members=("a",), shares=((0.25, 0.75),), **about).mixtures()
    {'a': {'web': 0.25, 'code': 0.75}}
    """

    version: int = VERSION
    options: SwarmOptions
    device: str
    domains: tuple[str, ...]
    members: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]  # [member][domain]

    def mixtures(self) -> dict[str, dict[str, float]]:
        """Of each member the share of each domain."""
        return {
            name: dict(zip(self.domains, shares, strict=True))
            for name, shares in zip(self.members, self.shares, strict=True)
        }


def read_swarm(folder: Path) -> SwarmDocument | None:
    """What the swarm in a folder was begun with; None where there is none."""
    return read_document(folder / NAME, SwarmDocument, version=VERSION, command="taskmix swarm")


def write_swarm(folder: Path, document: SwarmDocument) -> None:
    """Says what the swarm in a folder is, once."""
    if read_swarm(folder) is None:
        write_document(folder / NAME, document)


def check_same(known: SwarmDocument, asked: SwarmDocument, folder: Path) -> None:
    """Raises where another swarm is asked for than the folder holds."""
    name = asked.options.changed(known.options)
    if name is not None:
        raise OptionError(
            f"`{name}` should be as when the swarm in `{folder}` was begun, "
            f"{getattr(known.options, name)}. Found {getattr(asked.options, name)}. Give that again to "
            "go on with it, or another folder for another swarm."
        )
    if known.device != asked.device:
        raise OptionError(
            f"`device` should be as when the swarm in `{folder}` was begun, {known.device}. Found "
            f"{asked.device}. Give that again to go on with it, or another folder for another swarm."
        )
    if known.domains != asked.domains:
        raise InputError(
            f"The swarm in `{folder}` should go on with its domains, {', '.join(known.domains)}. Found "
            f"{', '.join(asked.domains)}. Choose another folder for these."
        )
    if known.members != asked.members or not np.allclose(known.shares, asked.shares, atol=1e-9):
        raise InputError(
            f"The swarm in `{folder}` should go on with its mixtures. Found other ones. Choose another "
            "folder for these."
        )
