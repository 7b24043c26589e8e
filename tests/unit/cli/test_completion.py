"""What the shell is told when Tab is pressed, as bash asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from taskmix.plans import TARGETS

PROGRAM = (
    "import runpy, sys; sys.argv = ['taskmix']; runpy.run_module('taskmix', run_name='__main__')"
)


def completed(line: str, folder: Path) -> list[str]:
    """What bash offers for the last word of a line; a blank at its end begins a new one."""
    words = line.split()
    place = len(words) if line.endswith(" ") else len(words) - 1
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={
            **os.environ,
            "_TASKMIX_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(place),
        },
    )
    return done.stdout.split()


def test_methods_plans_and_folders_are_offered(tmp_path: Path) -> None:
    (tmp_path / "reviews").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "plan.json").touch()
    (tmp_path / "notes.txt").touch()
    assert completed("taskmix train reviews --policy te", tmp_path) == ["tempered"]
    assert "pcgrad" in completed("taskmix train reviews --weighting ", tmp_path)
    assert completed("taskmix train ", tmp_path) == ["digits", "reviews/"]
    assert completed("taskmix plan show ", tmp_path) == ["plan.json", "reviews/"]
    assert completed("taskmix plan export plan.json --to ", tmp_path) == list(TARGETS)
    shown = help_of("train").replace("\n", " ")
    for option in ("policy", "reward", "weighting"):
        offered = completed(f"taskmix train reviews --{option} ", tmp_path)
        assert offered
        assert all(word.partition(":")[0] in shown for word in offered)


def help_of(*words: str) -> str:
    command = [sys.executable, "-m", "taskmix", *words, "--help"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
