"""The folder of a command that fits a mixture: its model, its figures, its page and its fits.

    OUT/fits/                      a study with a run for every fit, and the lock of the folder
    OUT/model-<name>.safetensors   the mixture; `load_mixture` reads it
    OUT/summary.json               the figures, those of the last command
    OUT/report.html                the page, likewise

All but the fits can be made again from them, and nothing in the folder is ever deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from taskmix.errors import InputError, RecordError, RunError
from taskmix.files import (
    check_output,
    check_output_folder,
    holding,
    list_folder,
    make_folder,
    open_plain,
    read_plain,
    remove_stale,
    write_bytes,
)
from taskmix.records import Study
from taskmix.sequences._figures import HeldOutFigures

FITS = "fits"
LOCK = ".lock"
SUMMARY = "summary.json"
PAGE = "report.html"
_MODELS = re.compile(r"model-[0-9a-f]{16}\.safetensors")
_OLD = "checkpoint.safetensors"  # of version 0.1; it is left alone


@dataclass(frozen=True)
class MixtureFolder:
    """Where a command writes what it finds."""

    path: Path

    @property
    def page(self) -> Path:
        return self.path / PAGE

    def model(self, name: str) -> Path:
        """The file of the mixture whose specification has this hash."""
        return self.path / f"model-{name}.safetensors"

    def last_model(self) -> Path:
        """The model that the figures are of, or the only one there is."""
        try:
            named = Path(SequenceReport.read(read_plain(self.path / SUMMARY)).model).name
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecordError):
            named = ""
        models = [name for name in list_folder(self.path) if _MODELS.fullmatch(name)]
        if named not in models and len(models) != 1:
            raise InputError(
                f"`{self.path}` should be the folder of a mixture, with a model in it. Found "
                f"{len(models)} models. Name the file itself, which ends in .safetensors."
            )
        return self.path / (named if named in models else models[0])

    def check(self, name: str) -> None:
        """Raises where a file of somebody else is in the way; looks only, and writes nothing."""
        check_output_folder(self.path, is_ours=_is_ours, what="the mixture")
        check_output(self.model(name), is_ours=_is_state, what="the mixture")
        check_output(self.path / SUMMARY, is_ours=_is_summary, what="the summary")
        check_output(self.page, is_ours=_is_page, what="the page")

    @contextmanager
    def claimed(self) -> Iterator[Study]:
        """Gives the study of the folder's fits to its only writer, for the length of the block."""
        fits = self.path / FITS
        make_folder(fits)
        with holding(fits / LOCK) as held:
            if not held:
                raise RunError(
                    f"`{self.path}` should be written to by one command at a time. Found it busy: "
                    "another one is at work. Wait until it is done, or choose another folder."
                )
            remove_stale(self.path)
            yield Study(fits)

    def document(self, name: str) -> SequenceReport | None:
        """The figures, where they are those of this name."""
        try:
            found = SequenceReport.read(read_plain(self.path / SUMMARY))
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
            return None  # none, or of another form: they can be made again
        except RecordError:
            return None  # no plain file, or one too large to be ours
        return found if found.name == name else None

    def write_document(self, document: SequenceReport) -> None:
        """Replaces the figures of the command before."""
        write_bytes(self.path / SUMMARY, document.written())


def _is_ours(folder: Path) -> bool:
    """Whether a command like this has made it, or one of version 0.1."""
    fits = folder / FITS
    if fits.is_dir() and (LOCK in list_folder(fits) or not list_folder(fits)):
        return True
    names = list_folder(folder)
    models = [name for name in names if name == _OLD or _MODELS.fullmatch(name)]
    return any(_begins(folder / name, _is_state) for name in models) or (
        SUMMARY in names and _begins(folder / SUMMARY, _is_summary)
    )


def _begins(path: Path, known: Callable[[bytes], bool]) -> bool:
    with open_plain(path) as file:
        return known(file.read(1 << 16))


def _is_state(data: bytes) -> bool:
    return data[8:].startswith(b'{"__metadata__":{"crc32":') and b'"taskmix":' in data


def _is_summary(data: bytes) -> bool:
    return data.startswith(b'{\n  "generators": ')


def _is_page(data: bytes) -> bool:
    return b'<meta name="generator" content="taskmix ' in data


@dataclass(frozen=True)
class SequenceReport:
    """`summary.json` of a mixture's folder, which `taskmix sequences --json` prints."""

    generators: int
    bound: float  # the evidence lower bound with the log-priors of the generators
    iterations: int
    alpha: tuple[float, ...]  # [generator]
    theta: Mapping[str, tuple[float, ...]]  # of each task, its shares of the generators
    rows: tuple[HeldOutFigures, ...]  # none where nothing was compared
    name: str  # of what determines the mixture: a hash
    command: str
    model: str  # the file of the mixture
    page: str | None  # the file of the page, where there is one
    kind: str = ""  # of generators, with their options
    own: bool = False  # whether tasks have something of their own
    tried: tuple[Mapping[str, object], ...] = ()  # what the choice was from, `TriedMixture.to_json`

    def to_json(self) -> dict[str, object]:
        """The document as it is written and printed, in this order of its names."""
        return {
            "generators": self.generators,
            "bound": self.bound,
            "iterations": self.iterations,
            "alpha": list(self.alpha),
            "theta": {task: list(shares) for task, shares in self.theta.items()},
            "rows": [row.to_json() for row in self.rows],
            "name": self.name,
            "command": self.command,
            "model": self.model,
            "page": self.page,
            "kind": self.kind,
            "own": self.own,
            "tried": [dict(each) for each in self.tried],
        }

    def written(self) -> bytes:
        """The file."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False)
        return text.encode("utf-8", "replace")

    @classmethod
    def read(cls, data: bytes) -> Self:
        """The document of a file; a LookupError, TypeError or ValueError where it is no such file."""
        found: dict[str, Any] = json.loads(data)
        return cls(
            generators=int(found["generators"]),
            bound=float(found["bound"]),
            iterations=int(found["iterations"]),
            alpha=tuple(float(each) for each in found["alpha"]),
            theta={
                task: tuple(float(each) for each in shares)
                for task, shares in dict(found["theta"]).items()
            },
            rows=tuple(HeldOutFigures.from_json(row) for row in found["rows"]),
            name=str(found["name"]),
            command=str(found["command"]),
            model=str(found["model"]),
            page=None if found["page"] is None else str(found["page"]),
            kind=str(found["kind"]),
            own=bool(found["own"]),
            tried=tuple(dict(each) for each in found["tried"]),
        )
