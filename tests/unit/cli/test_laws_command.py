from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taskmix.laws import learn_laws, read_laws

from .running import Program


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """F1 = 0.02 sqrt(n) of two architectures, one a tenth better."""
    generator = np.random.default_rng(0)
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = ["n", "T", "word", "same", "architecture", "f1"]
        writer.writerow([*names, "thrice", "copy", "gap", "huge"])
        for place in range(80):
            n, tasks = int(generator.integers(10, 200)), int(generator.integers(1, 16))
            value = 0.02 * n**0.5 * (1 + 0.02 * generator.normal())
            value *= 1.1 if place % 2 else 1.0
            gap, huge = ("" if place == 7 else n), ("inf" if place == 3 else n)
            row = [n, tasks, "text", 3, place % 2, value]
            writer.writerow([*row, 3 * n, value, gap, huge])
    return path


def test_python_and_the_command_find_the_same(table: Path, tmp_path: Path, cli: Program) -> None:
    words = ["--formula", "0.03*sqrt(n)", "--group", "architecture", "--at", "n=50"]
    words += ["--to", "n=400", "--document", str(tmp_path / "laws.json")]
    cli.out("laws", table, "--explain", "f1", "--inputs", "n", *words)
    written = read_laws(tmp_path / "laws.json")
    assert written.law.growth == {"n": "n^0.5"}
    first, second = (group.constants[0].value for group in written.groups or ())
    assert second / first == pytest.approx(1.1, abs=0.02)
    found = learn_laws(
        table,
        target="f1",
        inputs=["n"],
        compare=["0.03*sqrt(n)"],
        group="architecture",
        at={"n": 50},
        to={"n": 400},
    )
    same = replace(found.document, command=written.command, seconds=written.seconds)
    assert same.as_json() == written.as_json()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--inputs", "n,word"], "`word` should be numbers"),
        (["--inputs", "n,same"], "`same` should vary"),
        (["--inputs", "n,thrice"], "Found in `thrice` 3 times the values of `n`"),
        (["--inputs", "n,copy"], "Found the values of `f1` in `copy`"),
        (["--inputs", "T,gap"], "Found no value in row 8"),
        (["--inputs", "T,huge"], "Found inf in row 4"),
        (["--inputs", "n,nothing"], "a column `nothing`"),
        (["--inputs", "n,f1"], "none of them the target"),
        (["--inputs", "n", "--formula", "eval(n)"], "the function 'eval'"),
        (["--inputs", "n", "--formula", "T*2"], "columns that are there"),
        (["--inputs", "n", "--at", "T=2"], "`--at` should give inputs values"),
        (["--inputs", "n", "--box", "n=5"], "`--box` should give inputs ranges, such as n=1:100"),
        (["--inputs", "n", "--box", "n=5:2"], "a smaller and a larger number for `n`"),
        (["--inputs", "n", "--increasing", "T"], "`--increasing` should name inputs: n"),
        (["--inputs", "n", "--to", "n=2"], "should come with `at`"),
        (["--inputs", "n", "--plot", "front.doc"], "should be written to a file that ends in"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    table: Path, words: list[str], sentence: str, cli: Program
) -> None:
    shown = cli.refused("laws", table, "--explain", "f1", *words)
    assert sentence in shown


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a column `n`. Found no columns"),
        ("n,f1\n1,2\n", "at least 16 rows to be found in. Found 1"),
        ("n,f1\n" + "1,2\n2,2\n" * 20, "`f1` should vary. Found 2 in every row"),
    ],
)
def test_a_table_that_is_too_small_is_one_sentence(
    tmp_path: Path, text: str, sentence: str, cli: Program
) -> None:
    path = tmp_path / "small.csv"
    path.write_text(text)
    shown = cli.refused("laws", path, "--explain", "f1", "--inputs", "n")
    assert sentence in shown
