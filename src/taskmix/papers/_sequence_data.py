"""Real sets of sequences with natural tasks, each read from one file."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from taskmix.errors import InputError
from taskmix.sequences import GaussianHiddenMarkov, Generator, LinearDynamics, Markov
from taskmix.tasks import text_lines

By = dict[str, list[Any]]  # sequences of each task


@dataclass(frozen=True)
class SequenceSet:
    """A set, and the generators and the numbers of them that the models are chosen from."""

    file: str  # in the folder of data
    read: Callable[[Path], By]
    kinds: tuple[Generator, ...]
    counts: tuple[int, ...]  # of generators
    tests: int = 30  # held-out sequences of a task
    most: int = 200  # sequences of a task to train on, where all are asked for


def names(path: Path) -> By:
    """Surnames by language, letter by letter."""
    found: By = {}
    for row in _rows(path):
        found.setdefault(row["language"], []).append(list(row["name"].lower()))
    return found


def commands(path: Path, window: int = 20, kept: int = 60) -> By:
    """Twenty commands of a user in a row; rare commands are one symbol."""
    users = [line.split() for line in text_lines(path)]
    frequent = Counter(word for user in users for word in user[1:]).most_common(kept)
    known = {word for word, _ in frequent}
    found: By = {}
    for name, *words in users:
        mapped = [word if word in known else "(rare)" for word in words]
        found[name] = [mapped[at : at + window] for at in range(0, len(mapped) - window, window)]
    return found


def visits(path: Path, visitors: int = 60_000, longest: int = 30) -> By:
    """Pages of a visitor of a news site after the first one, which is the task."""
    found: By = {}
    for line in islice(text_lines(path), visitors):
        pages = line.split()
        if 2 <= len(pages) <= longest:
            found.setdefault(f"first page {pages[0]}", []).append(pages[1:])
    return found


def speeches(path: Path, longest: int = 80, least: int = 40) -> By:
    """The beginnings of a role's speeches, letter by letter."""
    found: By = {}
    for row in _rows(path):
        letters = [
            letter for letter in row["speech"].lower() if letter.isalpha() or letter in " ,.!?'"
        ]
        if letters:
            found.setdefault(row["role"], []).append(letters[:longest])
    return {role: said for role, said in found.items() if len(said) >= least}


def vowels(path: Path) -> By:
    """Utterances of a speaker: frames of twelve numbers."""
    frames: dict[tuple[str, str, str], list[list[float]]] = {}
    for row in _rows(path):
        key = (row["speaker"], row["split"], row["utterance"])
        frames.setdefault(key, []).append([float(row[f"lpc{place}"]) for place in range(1, 13)])
    found: By = {}
    for (speaker, _, _), values in frames.items():
        found.setdefault(f"speaker {speaker}", []).append(np.array(values))
    return found


_CHAINS: tuple[Generator, ...] = tuple(Markov(order=order) for order in range(1, 6))

SETS: dict[str, SequenceSet] = {
    "names": SequenceSet("names_by_language/names.csv.gz", names, _CHAINS, (4, 12)),
    "commands": SequenceSet("unix_user_commands/users.txt.gz", commands, _CHAINS[:4], (4, 12)),
    "visits": SequenceSet("msnbc/msnbc990928.seq.txt.gz", visits, _CHAINS[:4], (4, 12)),
    "speeches": SequenceSet(
        "tinyshakespeare_roles/speeches.csv.gz", speeches, _CHAINS[1:], (2, 8), tests=15
    ),
    "vowels": SequenceSet(
        "japanese_vowels/japanese_vowels.csv.gz",
        vowels,
        (
            GaussianHiddenMarkov(states=3, smoothing=0.3),
            GaussianHiddenMarkov(states=3, smoothing=3.0),
            GaussianHiddenMarkov(states=5, smoothing=3.0),
            LinearDynamics(states=2),
            LinearDynamics(states=4),
            LinearDynamics(states=6),
        ),
        (4, 12),
        tests=20,
    ),
}


def read_set(name: str, data: Path) -> By:
    """The sequences of a set, or a sentence that says what is missing."""
    path = data / SETS[name].file
    if not path.exists():
        raise InputError(
            f"`{data}` should have the file {SETS[name].file} for `{name}`. Found none. Choose others "
            "(`sets`)."
        )
    return SETS[name].read(path)


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(f"{line}\n" for line in text_lines(path)))
