"""`taskmix sequences` killed and stopped at random moments, and run again until it is done."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from taskmix import _program
from taskmix.cli import run_command
from taskmix.files import _atomic
from taskmix.sequences import RecordedFits, load_mixture

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
COMMANDS = {  # and how many files are replaced, at most, until a signal comes
    "letters.csv --characters --generators auto": 120,
    "vectors.csv --generator gru --hidden 3 --generators 2 --annealing 2 --no-baselines": 20,
}

EVERY_KIND = (
    "letters.csv --characters --generator markov --order 2 --generators 3",
    "letters.csv --characters --generator hmm --states 5 --generators 3 --annealing 3",
    "letters.csv --characters --generator multinomial --generators 2",
    "letters.csv --characters --generator gru --hidden 3 --generators 2",
    "letters.csv --characters --generator markov --generators 3 --batch-size 7",
    "vectors.csv --generator gaussian --components 2 --generators 2",
    "vectors.csv --generator hmm --states 2 --generators 2 --diagonal",
    "vectors.csv --generator lds --states 1 --generators 2",
    "vectors.csv --generator gru --hidden 3 --generators 2 --batch-size 4",
    "letters.csv --characters --generator hmm --states 3 --generators auto",
    "vectors.csv --generator lds --states 1 --generators auto",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a folder: thousands of files are replaced here."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        generator = np.random.default_rng(0)
        with (Path(name) / "letters.csv").open("w", newline="") as lines:
            rows = csv.writer(lines)
            rows.writerow(["task", "sequence", "split"])
            for number in range(4):
                for place in range(12):
                    text = "".join(generator.choice(list("aeptk"), generator.integers(2, 7)))
                    rows.writerow([f"task {number}", text, "train" if place < 8 else "test"])
        with (Path(name) / "vectors.csv").open("w", newline="") as lines:
            rows = csv.writer(lines)
            rows.writerow(["task", "split", "sequence", "t", "x"])
            for number in range(3):
                for place in range(8):
                    for moment in range(4):
                        value = round(float(generator.normal(number)), 3)
                        split = "train" if place < 5 else "test"
                        rows.writerow([f"task {number}", split, place, moment, value])
        yield Path(name)


def work(words: list[str], number: int, last: int) -> None:
    """The command in this process, which gets a signal around the call that replaces a file."""
    given, calls = os.replace, 0

    def replace(*paths: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == last and last % 2:
            os.kill(os.getpid(), number)
        given(*paths)
        if calls == last and not last % 2:
            os.kill(os.getpid(), number)

    _atomic.os = _Disk(replace)  # type: ignore[assignment]
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    program(words)


class _Disk:
    """`os` that need not wait for the disk: the kernel outlives a killed process."""

    def __init__(self, replace: Any) -> None:
        self.replace = replace

    def __getattr__(self, name: str) -> Any:
        return (lambda descriptor: None) if name == "fsync" else getattr(os, name)


def command(words: list[str]) -> None:
    sys.argv = ["taskmix", "sequences", *words]
    run_command()


def program(words: list[str]) -> None:
    """As it is started by users, with ears for signals."""
    sys.argv = ["taskmix", "sequences", *words]
    _program.main()


def run(words: list[str], number: int, last: int) -> int:
    """The exit code of the command, or minus the signal that ended it."""
    process = multiprocessing.get_context("fork").Process(target=work, args=(words, number, last))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def outcome(out: Path) -> tuple[dict[str, Any], bytes]:
    summary = json.loads((out / "summary.json").read_text())
    (model,) = out.glob("model-*.safetensors")
    load_mixture(model)
    kept = {key: summary[key] for key in summary.keys() - {"command", "page", "model"}}
    return kept, model.read_bytes()


def disturb(words: str, most: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How the command ended each time, until it was done, in `out`; `whole` is left undisturbed."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    assert RecordedFits.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(RecordedFits.__init__.__kwdefaults__, "save_every", 0.0)
    given = [
        *words.split(),
        "--restarts",
        "2",
        "--tries",
        "2",
        "--seed",
        str(seed),
        "--json",
        "--out",
    ]
    with pytest.raises(SystemExit) as ended:  # here, so that the others find everything imported
        command([*given, "whole"])
    assert not ended.value.code
    chance, codes = random.Random(seed), list[int]()
    for number in cycle(SIGNALS):
        codes.append(run([*given, "out"], number, chance.randint(3, most)))
        if codes[-1] == 0:
            break
        assert codes[-1] in (130, -signal.SIGKILL), codes
    return codes


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("words", COMMANDS)
def test_killed_and_stopped_at_random_moments_it_ends_with_the_same_bits(
    folder: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    codes = disturb(f"{words} --iterations 3", COMMANDS[words], 7, monkeypatch)
    assert codes.count(-signal.SIGKILL) >= 2
    assert 130 in codes
    assert outcome(folder / "out") == outcome(folder / "whole")
    assert not list((folder / "out").rglob("*.tmp"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("words", EVERY_KIND)
def test_so_it_does_with_every_kind_of_generator(
    folder: Path, words: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    codes = disturb(f"{words} --iterations 5", 150, seed, monkeypatch)
    assert -signal.SIGKILL in codes
    assert outcome(folder / "out") == outcome(folder / "whole")
