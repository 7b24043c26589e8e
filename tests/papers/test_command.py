"""What is typed: `python -m papers NAME`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from papers.__main__ import EXPERIMENTS, find_experiment
from papers.runner import make_parser

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["laws-balanced", "--part", "half"], "k/m"),
        (["laws-balanced", "--part", "5/4"], "k from 1 to m"),
        (["laws-balanced", "--shared-layers", "wide"], "should be numbers with commas"),
        (["laws-balanced", "--table", "rows.txt"], "written to .csv or .parquet"),
        (["laws-unbalanced", "--plot", "figure.svg"], "should go with laws-balanced"),
        (["laws-balanced", "--store", "s3://x"], "should go with --engine ray"),
        (["laws-balanced", "--engine", "magic"], "--engine"),
        (["luck"], "An experiment should be one of bandit, glue"),
    ],
)
def test_bad_words_are_told_before_anything_begins(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, *rest = words
    assert command(name, tmp_path, *rest, "--device", "cpu") == 2
    assert sentence in capsys.readouterr().err


def test_the_experiments_are_listed_and_all_can_be_imported(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--list", "--json") == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert len(names) == 11
    for name in names:
        assert command(name, "--help") == 0
        assert "--quick" in capsys.readouterr().out


def test_every_command_line_of_the_pages_parses() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    lines = [
        line
        for page in pages
        for line in re.findall(
            r"^python -m papers (\S.*)$", page.read_text().replace("\\\n", ""), re.M
        )
    ]
    assert {line.split()[0] for line in lines} >= set(EXPERIMENTS)
    for line in lines:
        name, *rest = shlex.split(line, comments=True)
        make_parser(name, find_experiment(name)).parse_args(rest)
