"""What a shell offers when Tab is pressed: words of methods, and files and folders that fit.

`taskmix --install-completion` teaches it to bash, zsh, fish or PowerShell. Nothing here imports a
package that takes time, because the shell waits for every answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from taskmix.cli._options._methods import LEARNING, WORDS

POLICIES = ("uniform", "proportional", "tempered", "capped", "fixed:", "scheduled:", *LEARNING)
REWARDS = ("hard", "gain", "score")
TARGETS = (
    "datasets",
    "trl",
    "axolotl",
    "llamafactory",
    "torchtitan",
    "megatron",
    "nemo",
    "levanter",
)  # those of `taskmix.plans`, which takes a second to import


def _offering(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Gives those of the words that begin as was typed."""

    def offer(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return offer


policy_words = _offering(POLICIES)
reward_words = _offering(REWARDS)
weighting_words = _offering(WORDS)
plan_targets = _offering(TARGETS)


def task_folders(incomplete: str) -> list[str]:
    """Folders, and the tasks of the demo."""
    return [*_offering(["digits"])(incomplete), *_inside(incomplete, lambda entry: False)]


def study_folders(incomplete: str) -> list[str]:
    return _inside(incomplete, lambda entry: False)


def plan_files(incomplete: str) -> list[str]:
    """JSON files, and folders that may have some."""
    return _inside(incomplete, lambda entry: entry.name.endswith(".json"))


def _inside(incomplete: str, fits: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    """Folders and fitting files whose path begins so; hidden ones only if a dot was typed."""
    above, begin = os.path.split(incomplete)
    found = []
    try:
        with os.scandir(Path(above).expanduser() if above else ".") as entries:
            for entry in entries:
                hidden = entry.name.startswith(".") and not begin.startswith(".")
                if hidden or not entry.name.startswith(begin):
                    continue
                if entry.is_dir():
                    found.append(os.path.join(above, entry.name, ""))  # noqa: PTH118 - as it was typed
                elif fits(entry):
                    found.append(os.path.join(above, entry.name))  # noqa: PTH118
    except OSError:
        return []  # a shell is told nothing where there is nothing to read
    return sorted(found)
