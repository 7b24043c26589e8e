"""What the shell is told when Tab is pressed, as bash asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from taskmix.cli._options._completing import POLICIES, REWARDS
from taskmix.cli._options._completing import TARGETS as TARGET_WORDS
from taskmix.cli._options._methods import parse_policy, parse_reward
from taskmix.errors import OptionError
from taskmix.plans import TARGETS

PROGRAM = "import sys; sys.argv = ['taskmix']; from taskmix._program import main; main()"


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
    assert completed("taskmix plan export plan.json --to l", tmp_path) == [
        "llamafactory",
        "levanter",
    ]


def test_the_words_offered_are_those_that_are_taken() -> None:
    assert tuple(TARGETS) == TARGET_WORDS
    for word in POLICIES:
        if not word.endswith(":"):  # what needs shares
            assert parse_policy(word)
        else:
            with pytest.raises(OptionError) as refused:
                parse_policy(word)
            assert "--policy` should be uniform" not in str(refused.value)
    for word in REWARDS:
        assert parse_reward(word, None)


def test_the_shell_can_be_taught() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "taskmix", "--help"], capture_output=True, text=True, timeout=60
    )
    assert "--install-completion" in done.stdout
