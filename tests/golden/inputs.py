"""Small inputs made from seeds: what the commands of the golden cases read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FRUIT = ("ripe", "sweet", "sour", "green")
TOOLS = ("sharp", "heavy", "rusty", "new")


def make_inputs(root: Path) -> None:
    """All of them, into a folder; each from a generator of its own."""
    _tables(root / "tables")
    _texts(root / "texts")
    _domains(root / "domains")
    _messy(root / "messy.csv")
    _mixtures(root)
    _results(root / "results.csv")
    _letters(root)
    _frames(root / "frames.csv")
    part = {
        "tasks": ["card", "fraud", "loan", "noise"],
        "share": 1.0,
        "shares": [0.229, 0.17, 0.181, 0.42],
    }
    _write(root / "plan.json", json.dumps({"version": 2, "name": "learned", "parts": [part]}))
    _write(root / "not_a_plan.json", json.dumps({"thesis": 1}))
    _write(root / "one_class.csv", "x,label\n" + "1,yes\n" * 30)
    _write(root / "empty.csv", "")


def _tables(root: Path) -> None:
    """Two tasks alike, one that is their opposite, and one whose labels mean nothing."""
    random = np.random.default_rng(1)
    for task, direction in {"card": 1.0, "loan": 0.9, "fraud": -1.0, "noise": 0.0}.items():
        for split, count in (("train", 48), ("dev", 40), ("test", 24)):
            inputs = random.normal(size=(count, 3)).round(3)
            side = direction * (inputs[:, 0] + 0.5 * inputs[:, 1]) + 0.3 * random.normal(size=count)
            rows = [[*row, "yes" if up else "no"] for row, up in zip(inputs, side > 0, strict=True)]
            _rows(root / task / f"{split}.csv", ["x", "y", "z", "label"], rows)


def _texts(root: Path) -> None:
    """Two tasks of sentences that a word decides, but for one in eight."""
    random = np.random.default_rng(2)
    for task, words in (("fruit", FRUIT), ("tools", TOOLS)):
        number = 0
        for split, count in (("train", 40), ("dev", 24), ("test", 16)):
            lines = []
            for word, other in random.integers([4, 8], size=(count, 2)):
                number += 1
                label = "good" if (word < 2) != (other == 0) else "bad"
                lines.append({"text": f"it is {words[word]} {number}", "label": label})
            _write(root / task / f"{split}.jsonl", "".join(json.dumps(e) + "\n" for e in lines))


def _domains(root: Path) -> None:
    """Three domains of text, each of letters of its own."""
    random = np.random.default_rng(3)
    for name, letters in (("vowels", "aeiou "), ("digits", "0123456789"), ("tail", "uvwxyz ")):
        for split in ("train", "dev", "test"):
            texts = ["".join(random.choice(list(letters), 60)) for _ in range(20)]
            lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
            _write(root / name / f"{split}.jsonl", lines)


def _messy(path: Path) -> None:
    """One table with a column for tasks, a copy of the label, a rare class and rows that are double."""
    random = np.random.default_rng(4)
    rows: list[list[Any]] = []
    for place in range(90):
        size = round(float(random.normal()), 2)
        label = "rare" if place == 7 else ("big" if size > 0 else "small")
        rows.append([place, "shoes" if place % 2 else "coats", size, label, f"is {label}"])
    rows += [[90 + place, *row[1:]] for place, row in enumerate(rows[:6])]
    _rows(path, ["id", "shop", "size", "label", "told"], rows)


def _mixtures(root: Path) -> None:
    """Runs on mixtures by a law that is known, and how much there is of each domain."""
    random = np.random.default_rng(5)
    shares = random.dirichlet(np.ones(3), size=20).round(4)
    prose = 2.0 + (0.1 + shares @ [1.0, 0.1, 0.6]) ** -0.5
    logic = 1.0 + (0.1 + shares @ [0.3, 1.0, 0.0]) ** -0.5
    values = np.column_stack([prose, logic]) + 0.002 * random.standard_normal((20, 2))
    _rows(root / "ratios.csv", ["run", "web", "code", "books"], _numbered(shares))
    _rows(root / "metrics.csv", ["run", "prose", "logic"], _numbered(values.round(5)))
    larger = np.where(np.arange(20) < 12, 60e6, 400e6)
    sized = np.column_stack([larger, shares, (values * (larger / 60e6)[:, None] ** -0.05).round(5)])
    _rows(
        root / "sizes.csv",
        ["run", "size", "web", "code", "books", "prose", "logic"],
        _numbered(sized),
    )
    _write(root / "changes.toml", '[merges]\ntext = ["web", "books"]\n')
    _rows(root / "asked.csv", ["name", "web", "code", "books"], [["half", 0.5, 0.5, 0.0]])


def _results(path: Path) -> None:
    """F1 = 0.02 sqrt(n) T^0.25 of two architectures, one a tenth better."""
    random = np.random.default_rng(6)
    rows = []
    for place in range(80):
        n, tasks = int(random.integers(10, 200)), int(random.integers(1, 16))
        score = 0.02 * n**0.5 * tasks**0.25 * (1 + 0.02 * random.normal())
        rows.append([n, tasks, f"net{place % 2}", round(score * (1.1 if place % 2 else 1.0), 5)])
    _rows(path, ["n", "T", "net", "f1"], rows)


def _letters(root: Path) -> None:
    """Four tasks of short strings, two of vowels and two of stops; and a new task."""
    random = np.random.default_rng(7)
    rows = []
    for task in range(4):
        for place in range(16):
            size = int(random.integers(2, 7))
            text = "".join(random.choice(list("aeiou" if task % 2 else "ptkbd"), size))
            rows.append([f"task{task}", text, "train" if place < 10 else "test"])
    _rows(root / "letters.csv", ["task", "sequence", "split"], rows)
    _write(root / "new.txt", "aeua\nptk\nioo\naaeu\n")


def _frames(path: Path) -> None:
    """Three tasks of short walks in the plane, one row a time."""
    random = np.random.default_rng(8)
    rows = []
    for task in range(3):
        for number in range(6):
            walk = np.cumsum(random.normal(0.4 * (task % 2), 0.5, size=(6, 2)), axis=0).round(3)
            rows += [[f"task{task}", f"s{task}{number}", t, *at] for t, at in enumerate(walk)]
    _rows(path, ["task", "sequence", "t", "x", "y"], rows)


def _numbered(values: Iterable[Iterable[float]]) -> list[list[Any]]:
    return [[f"r{place}", *row] for place, row in enumerate(values)]


def _rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
