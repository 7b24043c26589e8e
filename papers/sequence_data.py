r"""Real sets of sequences with natural tasks.

Names, commands, speeches and vowels were looked at while the models were built. `PUT_ASIDE` were not,
but the models were changed after their first run. `NEVER_SEEN` were first run after that, and once. In
both, what a task and a symbol is was written down before the first run.

The strings of the PAutomaC competition have a true probability (Verwer, Eyraud and de la Higuera,
Machine Learning 2014, section 2): in state q a string ends with probability F(q); otherwise a symbol a
comes with S(q, a), and the next state with T(q, a, q'). The sum over all paths is one product of a row
and a matrix for each symbol.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.sequences import GaussianHiddenMarkov, Generator, LinearDynamics, Markov
from taskmix.tasks import text_lines

Floats = NDArray[np.float64]
By = dict[str, list[Any]]  # sequences of each task
Truth = Callable[[str, Any], float]  # the true log-probability of a task's sequence


@dataclass(frozen=True)
class SequenceSet:
    """A set, and the generators and the numbers of them that the models are chosen from."""

    files: tuple[str, ...]  # in the folder of data
    read: Callable[..., By]  # of their paths
    kinds: tuple[Generator, ...]
    counts: tuple[int, ...]  # of generators
    tests: int = 30  # held-out sequences of a task
    most: int = 200  # sequences of a task to train on, where all are asked for
    truth: Callable[..., Truth] | None = None  # of their paths, where it is known what made them


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


def genes(splices: Path, promoters: Path) -> By:
    """Letters of DNA around splice junctions (EI, IE or N, neither) and in promoters (+) or not (-)."""
    found: By = {}
    for path, kind in ((splices, "junction"), (promoters, "promoter")):
        for row in _rows(path):
            found.setdefault(f"{kind} {row['label']}", []).append(list(row["sequence"].lower()))
    return found


def automata(*paths: Path, strings: int = 2000, longest: int = 40) -> By:
    """Strings of one automaton a task, all with the same number of symbols; half of the paths are
    those of the automata themselves. The first strings, without those that are empty or long."""
    found: By = {}
    for path in paths[: len(paths) // 2]:
        for line in islice(text_lines(path), 1, strings + 1):
            size, *symbols = line.split()
            if 1 <= int(size) <= longest:
                found.setdefault(_problem(path), []).append(symbols)
    return found


def true_automata(*paths: Path, longest: int = 40) -> Truth:
    """Of a string given that its length is between 1 and `longest`, as those of `automata` are."""
    known = {_problem(path): read_automaton(path) for path in paths[len(paths) // 2 :]}
    mass = {name: each.log_mass(longest) for name, each in known.items()}
    return lambda task, string: (
        known[task].log_probability([int(symbol) for symbol in string]) - mass[task]
    )


def melodies(*paths: Path, longest: int = 100) -> By:
    """The highest note of each of the first steps of a piece, or none; a corpus is a task."""
    found: By = {}
    for path in paths:
        parts = json.loads("\n".join(text_lines(path)))
        found[path.name.split(".")[0]] = [
            [str(max(step)) if step else "(none)" for step in piece[:longest]]
            for part in ("train", "valid", "test")
            for piece in parts[part]
            if piece
        ]
    return found


def peptides(path: Path, strongest: float = 500.0, tasks: int = 12) -> By:
    """Peptides that bind (at most 500 nM), by the allele they bind to, amino acid by amino acid: the
    alleles with the most of them, and as many drawn among those with 20 to 100."""
    bound: dict[str, dict[str, None]] = {}
    for row in _rows(path):
        if float(row["measurement_value"]) <= strongest:
            bound.setdefault(row["allele"], {})[row["peptide"]] = None  # each once
    by_size = sorted(bound, key=lambda allele: (-len(bound[allele]), allele))
    small = sorted(allele for allele in by_size[tasks:] if 20 <= len(bound[allele]) <= 100)
    drawn = np.random.default_rng(0).permutation(len(small))[:tasks]
    kept = by_size[:tasks] + [small[place] for place in sorted(drawn.tolist())]
    return {allele: [list(peptide) for peptide in bound[allele]] for allele in kept}


def treebanks(*paths: Path) -> By:
    """The parts of speech of a sentence's words; a treebank is a task."""
    return {path.parent.name: _column(path, 1) for path in paths}


def genres(*paths: Path) -> By:
    """The tags of the Brown corpus of a sentence's words, without what is added to a tag behind a mark
    (NN-TL is NN); a genre is a task."""
    return {
        path.parent.name: [
            [re.split(r"(?<=.)[-+*$]", tag)[0] for tag in sentence] for sentence in _column(path, 1)
        ]
        for path in paths
    }


def _column(path: Path, place: int) -> list[list[str]]:
    """A column of tab-separated words; an empty line ends a sentence."""
    found: list[list[str]] = [[]]
    for line in text_lines(path):
        if line.strip():
            found[-1].append(line.split("\t")[place])
        elif found[-1]:
            found.append([])
    return [sentence for sentence in found if sentence]


def _problem(path: Path) -> str:
    return f"automaton {path.name.split('.')[0]}"


_SIX_SYMBOLS = (5, 6, 26, 28, 29)  # the problems of the most frequent number of symbols above 4
_TREEBANKS = (
    "af_afribooms", "el_gdt", "en_lines", "en_partut", "fr_partut", "fr_sequoia", "gl_treegal",
    "hu_szeged", "it_partut", "ta_ttb", "te_mtg", "tr_imst", "vi_vtb",
)  # fmt: skip
_GENRES = (
    "adventure", "belles_lettres", "editorial", "fiction", "government", "hobbies", "humor", "learned",
    "lore", "mystery", "news", "religion", "reviews", "romance", "science_fiction",
)  # fmt: skip
_CHAINS: tuple[Generator, ...] = tuple(Markov(order=order) for order in range(1, 6))

SETS: dict[str, SequenceSet] = {
    "names": SequenceSet(("names_by_language/names.csv.gz",), names, _CHAINS, (4, 12)),
    "commands": SequenceSet(("unix_user_commands/users.txt.gz",), commands, _CHAINS[:4], (4, 12)),
    "visits": SequenceSet(("msnbc/msnbc990928.seq.txt.gz",), visits, _CHAINS[:4], (4, 12)),
    "speeches": SequenceSet(
        ("tinyshakespeare_roles/speeches.csv.gz",), speeches, _CHAINS[1:], (2, 8), tests=15
    ),
    "vowels": SequenceSet(
        ("japanese_vowels/japanese_vowels.csv.gz",),
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
    "dna": SequenceSet(
        ("dna/splice_junction.csv.gz", "dna/promoters.csv.gz"), genes, _CHAINS, (4, 12)
    ),
    "automata": SequenceSet(
        (
            *(f"pautomac/{problem}.pautomac.train.txt.gz" for problem in _SIX_SYMBOLS),
            *(f"pautomac/{problem}.pautomac_model.txt.gz" for problem in _SIX_SYMBOLS),
        ),
        automata,
        _CHAINS,
        (4, 12),
        tests=100,
        truth=true_automata,
    ),
    "melodies": SequenceSet(
        tuple(
            f"polyphonic_music/{corpus}.json.gz"
            for corpus in ("jsb_chorales", "nottingham", "piano_midi", "musedata")
        ),
        melodies,
        _CHAINS[:4],
        (4, 12),
    ),
    "peptides": SequenceSet(("mhc1_binding/mhc1_affinity.csv.gz",), peptides, _CHAINS, (4, 12)),
    "treebanks": SequenceSet(
        tuple(f"ud/{treebank}/train.conll.gz" for treebank in _TREEBANKS),
        treebanks,
        _CHAINS,
        (4, 12),
    ),
    "genres": SequenceSet(
        tuple(f"brown_pos/{genre}/train.conll.gz" for genre in _GENRES),
        genres,
        _CHAINS[:4],
        (4, 12),
    ),
}
PUT_ASIDE = ("visits", "dna", "automata", "melodies")
NEVER_SEEN = ("peptides", "treebanks", "genres")


def read_set(name: str, data: Path) -> By:
    """The sequences of a set, or a sentence that says what is missing."""
    return SETS[name].read(*set_paths(name, data))


def set_paths(name: str, data: Path) -> list[Path]:
    """The files of a set."""
    paths = [data / file for file in SETS[name].files]
    for path, file in zip(paths, SETS[name].files, strict=True):
        if not path.exists():
            raise InputError(
                f"`{data}` should have the file {file} for `{name}`. Found none. Choose others "
                "(`sets`)."
            )
    return paths


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(f"{line}\n" for line in text_lines(path)))


@dataclass(frozen=True, eq=False)
class Automaton:
    """Where strings begin and end, and how they go on."""

    begin: Floats  # [state]
    end: Floats  # [state]
    moves: Floats  # [symbol, state, state], for a string that has not ended

    def log_probability(self, string: Sequence[int]) -> float:
        """Of the whole string with its end."""
        at, level = self.begin, 0.0
        for symbol in string:
            at = at @ self.moves[symbol]
            total = at.sum()
            if total == 0:
                return -np.inf
            at, level = at / total, level + float(np.log(total))
        return level + float(np.log(at @ self.end))

    def log_mass(self, longest: int) -> float:
        """The probability of all strings of 1 to `longest` symbols."""
        at, mass, step = self.begin, 0.0, self.moves.sum(axis=0)
        for _ in range(longest):
            at = at @ step
            mass += float(at @ self.end)
        return float(np.log(mass))


def read_automaton(path: Path) -> Automaton:
    """A `pautomac_model` file: sections I, F, S and T of `(place, ...) number` lines."""
    cells: dict[str, dict[tuple[int, ...], float]] = {}
    section = ""
    for line in text_lines(path):
        if line[:1].isalpha():
            section = line[0]
        elif line.strip():
            place, number = line.strip().removeprefix("(").split(")")
            key = tuple(int(part) for part in place.split(","))
            cells.setdefault(section, {})[key] = float(number)
    states = 1 + max(max(key[0], key[2]) for key in cells["T"])
    symbols = 1 + max(key[1] for key in cells["S"])
    begin, end = np.zeros(states), np.zeros(states)
    moves = np.zeros((symbols, states, states))
    for (state,), share in cells["I"].items():
        begin[state] = share
    for (state,), share in cells.get("F", {}).items():
        end[state] = share
    for (state, symbol, after), share in cells["T"].items():
        moves[symbol, state, after] = (
            (1 - end[state]) * cells["S"].get((state, symbol), 0.0) * share
        )
    return Automaton(begin, end, moves)
