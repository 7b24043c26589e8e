"""`swarm.json`: what a swarm was begun with, so that the same one is gone on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taskmix.errors import InputError, OptionError
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._table import Floats
from taskmix.records import read_document, write_document

NAME = "swarm.json"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class SwarmDocument:
    """Options, device and mixtures of a swarm.

    >>> SwarmDocument(options=SwarmOptions(), device="cpu", domains=("web",), shares=()).version
    1
    """

    version: int = VERSION
    options: SwarmOptions
    device: str
    domains: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]  # [member][domain]

    @property
    def mixtures(self) -> Floats:
        """[member, domain]."""
        return np.array(self.shares, dtype=np.float64).reshape(len(self.shares), len(self.domains))


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
    if not np.allclose(known.mixtures, asked.mixtures, atol=1e-9):
        raise InputError(
            f"The swarm in `{folder}` should go on with its mixtures. Found other ones. Choose another "
            "folder for these."
        )
