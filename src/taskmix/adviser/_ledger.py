"""What was decided by the clock, kept in the study as `ledger.json`.

Time passes differently the second time: an adviser that goes on after a stop finds its runs done at
once. So each decision that the clock had a part in is written down and followed from then on.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from taskmix.errors import RecordError
from taskmix.files import make_folder, read_plain, write_bytes
from taskmix.records import parse_whole_number

NAME = "ledger.json"
VERSION = 2


class Ledger:
    """Decisions by name, all of them about what was asked for; another question starts over."""

    def __init__(self, folder: Path, asked: Mapping[str, Any]) -> None:
        self._path = folder / NAME
        self._asked = dict(asked)
        self.decisions: dict[str, Any] = {}
        self.seconds = 0.0  # used so far, over all sessions
        with contextlib.suppress(FileNotFoundError):
            state = _read(read_plain(self._path), NAME)
            if state["asked"] == json.loads(json.dumps(self._asked)):
                self.decisions, self.seconds = state["decisions"], state["seconds"]

    def decide(self, name: str, make: Callable[[], Any], *, seconds: float) -> Any:
        """What was decided, or else is now and is written down, after so many seconds."""
        if name not in self.decisions:
            self.settle(name, make(), seconds=seconds)
        return self.decisions[name]

    def settle(self, name: str, value: Any, *, seconds: float) -> None:
        """Writes a decision down, in place of an earlier one of that name."""
        self.decisions[name] = value
        self.take_time(seconds)

    def take_time(self, seconds: float) -> None:
        """Notes how much time has been used."""
        self.seconds = max(seconds, self.seconds)
        if not self.decisions:
            return  # nothing is written before anything is decided
        state = {
            "version": VERSION,
            "asked": self._asked,
            "seconds": self.seconds,
            "decisions": self.decisions,
        }
        make_folder(self._path.parent)
        write_bytes(self._path, (json.dumps(state, indent=2) + "\n").encode())


def _read(data: bytes, name: str) -> dict[str, Any]:
    try:
        state = json.loads(data, parse_int=parse_whole_number)
        fine = state["version"] == VERSION and isinstance(state["decisions"], dict)
        if not fine or not math.isfinite(state["seconds"]) or "asked" not in state:
            raise KeyError("version")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordError(
            f"`{name}` should say what the adviser was asked for and what it has decided. Found "
            "something else. Choose another `out`, or remove the file.",
            arguments=("out",),
        ) from error
    return dict(state)
