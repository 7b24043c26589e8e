"""`taskmix swarm`: from a folder of domains to a table that `taskmix mix` reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from .running import Program

TINY = (
    "--members", "5", "--layers", "1", "--width", "16", "--context", "16", "--batch-size", "4",
    "--tokens", "1280", "--dev-bytes", "200", "--replicates", "1", "--workers", "1",
    "--engine", "fleet", "--device", "cpu",
)  # fmt: skip


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Three domains, each of letters of its own."""
    random = np.random.default_rng(0)
    for name, letters in (("vowels", "aeiou "), ("digits", "0123456789"), ("tail", "uvwxyz ")):
        (tmp_path / "texts" / name).mkdir(parents=True)
        for split in ("train", "dev", "test"):
            rows = ["".join(random.choice(list(letters), 60)) for _ in range(20)]
            lines = "".join(json.dumps({"text": row}) + "\n" for row in rows)
            (tmp_path / "texts" / name / f"{split}.jsonl").write_text(lines)
    return tmp_path / "texts"


def test_a_swarm_that_ran_out_of_minutes_goes_on_with_the_same_command(
    texts: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("swarm", texts, *TINY, "--out", tmp_path / "swarm", "--json")
    assert "Run the same command again to go on" in cli.refused(*words, "--minutes", "0", code=1)
    found = cli.json(*words)
    assert found["domains"] == ["digits", "tail", "vowels"]
    assert np.array(found["values"]).shape == (5, 3)
    assert found["member_steps"] == 100
    again = cli.json(*words)
    assert again["values"] == found["values"]
    assert again["member_steps"] == 0


def test_mixtures_of_a_file_are_trained_under_their_names(
    texts: Path, tmp_path: Path, cli: Program
) -> None:
    file = tmp_path / "next.csv"
    file.write_text("run,tail,digits\nfirst,1,0\nsecond,0.25,0.75\n")
    tiny = [*TINY[:14], *TINY[16:]]  # without --replicates
    words = ["swarm", str(texts), *tiny, "--mixtures", str(file), "--json"]
    found = cli.json(*words, "--out", tmp_path / "swarm")
    assert found["runs"] == ["first", "second"]
    assert found["shares"] == [[0, 1, 0], [0.75, 0.25, 0]]
    file.write_text("run,tail,digits\nfirst,1,0\nsecond,0.5,0.5\n")
    assert "should go on with its mixtures" in cli.refused(*words, "--out", tmp_path / "swarm")
    file.write_text("run,tail,digits\nfirst,1,0\nsecond,0.5,0.2\n")
    assert "The shares of mixture `second` should be 0 or more and sum to 1" in cli.refused(
        *words, "--out", tmp_path / "other"
    )


def test_a_tokenizer_of_its_own_lies_in_the_study(
    texts: Path, tmp_path: Path, cli: Program
) -> None:
    pytest.importorskip("tokenizers", reason="the extra `text` is not installed")
    words = ("swarm", texts, *TINY, "--out", tmp_path / "swarm", "--tokenizer", "train:300")
    assert cli(*words, "--minutes", "0") == 1
    assert (tmp_path / "swarm" / "tokenizer-300" / "tokenizer.json").is_file()
    assert cli(*words) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--members", "3", "--replicates", "1"], "at least one mixture for each of its 3 domains"),
        (["--tokens", "10"], "`--tokens` should be enough for one step"),
        (["--tokens", "many"], "`--tokens` should be a number such as"),
        (["--layers", "1", "--width", "31"], "`--width` should be a multiple"),
        (["--tune", "adapters"], "`--tune` should go with --model"),
        (["--bound", "tail:0.3"], "`--bound` should be DOMAIN=LOW,HIGH"),
        (["--bound", "tail=0.5,0.1"], "a smallest and a largest share"),
        (["--only", "tail"], "two domains or more"),
        (["--tokenizer", "train:7"], "`--tokenizer` should have from 300"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    words: list[str], sentence: str, texts: Path, tmp_path: Path, cli: Program
) -> None:
    command = ("swarm", texts, *TINY, "--out", tmp_path / "swarm", *words)
    shown = cli.refused(*command)
    assert sentence in shown
    assert not (tmp_path / "swarm").exists()


def test_an_unknown_size_and_a_swarm_of_days_are_refused(
    texts: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("swarm", texts, "--device", "cpu", "--workers", "1", "--out", tmp_path / "swarm")
    assert "`--parameters` should be a number such as 1M" in cli.refused(
        *words, "--parameters", "giant"
    )
    assert "Give fewer `--members` or `--tokens`" in cli.refused(*words, "--tokens", "5000M")
    assert not (tmp_path / "swarm").exists()


def test_a_folder_of_labelled_tables_has_no_passages(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    assert "text" in cli.refused("swarm", tables, *TINY, "--out", tmp_path / "swarm")
