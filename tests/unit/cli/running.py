"""Runs a command in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from taskmix.cli import run_command


def run_cli(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> int:
    """The exit code of a command."""
    monkeypatch.setattr(sys, "argv", ["taskmix", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        run_command()
    return int(ended.value.code or 0)
