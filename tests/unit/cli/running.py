"""Runs a command in this process."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from taskmix.cli import run_command


def run_cli(*words: str | Path | int) -> int:
    """The exit code of a command."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["taskmix", *map(str, words)])
        run_command()
    return int(ended.value.code or 0)


@dataclass(frozen=True)
class Program:
    """Commands in this process, and what they say."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str | Path | int) -> int:
        return run_cli(*words)

    def said(self) -> Any:
        """What was printed since this was asked last: `out` and `err`."""
        return self.capsys.readouterr()

    def out(self, *words: str | Path | int) -> str:
        """Standard output of a command that ends well."""
        self.said()
        assert run_cli(*words) == 0
        return str(self.said().out)

    def json(self, *words: str | Path | int) -> Any:
        """The one object that a command prints."""
        return json.loads(self.out(*words))

    def refused(self, *words: str | Path | int, code: int = 2) -> str:
        """The sentence of a command that ends with code 2; or click's words, in one line."""
        self.said()
        assert run_cli(*words) == code
        *before, last = lines = self.said().err.splitlines()
        if "taskmix: " not in "".join(lines):
            return " ".join(" ".join(lines).split())
        assert last.startswith("taskmix: ")
        assert all(line.startswith(("Note: ", "... ")) for line in before), lines
        return str(last)
