from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from papers.sequence_data import (
    automata,
    commands,
    names,
    read_automaton,
    read_set,
    speeches,
    true_automata,
    visits,
    vowels,
)
from papers.sequence_models import draw_known, fit_known, recovery
from papers.sequences import SequencesOptions, reproduce_sequences
from taskmix.errors import InputError, OptionError, RecordError


def compressed(path: Path, text: str) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.write(text)
    return path


def test_sets_are_read_as_sequences_of_their_tasks(tmp_path: Path) -> None:
    path = compressed(tmp_path / "names.gz", "language,name\nIrish,Ó B\nGreek,Ax\nIrish,Cy\n")
    assert names(path) == {"Irish": [list("ó b"), list("cy")], "Greek": [list("ax")]}
    path = compressed(tmp_path / "users.gz", "U1 " + "ls cd " * 25 + "odd\nU2 " + "vi " * 41 + "\n")
    found = commands(path, kept=3)
    assert [len(window) for window in found["U1"]] == [20, 20]
    assert found["U2"][0] == ["vi"] * 20
    path = compressed(tmp_path / "visits.gz", "1 2 3\n2\n1 4\n")
    assert visits(path) == {"first page 1": [["2", "3"], ["4"]]}
    path = compressed(tmp_path / "speeches.gz", 'role,speech\nA,"Hi, you!"\nB,-\n')
    assert speeches(path, least=1) == {"A": [list("hi, you!")]}
    header = "split,utterance,speaker,frame," + ",".join(f"lpc{i}" for i in range(1, 13))
    row = ",".join(["0.5"] * 12)
    path = compressed(tmp_path / "vowels.gz", f"{header}\ntrain,1,3,1,{row}\ntrain,1,3,2,{row}\n")
    assert vowels(path)["speaker 3"][0].shape == (2, 12)


def test_the_truth_of_an_automaton_is_the_sum_over_its_paths(tmp_path: Path) -> None:
    lines = "I: (state)\n\t(0) 0.5\n\t(1) 0.5\nF: (state)\n\t(0) 0.2\n\t(1) 1.0\n"
    lines += "S: (state,symbol)\n\t(0,0) 0.75\n\t(0,1) 0.25\n"
    lines += "T: (state,symbol,state)\n\t(0,0,0) 0.5\n\t(0,0,1) 0.5\n\t(0,1,1) 1.0\n"
    model = compressed(tmp_path / "5.model.txt.gz", lines)
    strings = compressed(tmp_path / "5.train.txt.gz", "3 2\n2 0 1\n0\n1 0\n")
    assert automata(strings, model) == {"automaton 5": [["0", "1"], ["0"]]}
    found = read_automaton(model)
    # "0" by hand: begin in 0, go on (0.8), say 0 (0.75), then end in 0 (0.2) or in 1 (1), half each.
    assert np.exp(found.log_probability([0])) == pytest.approx(0.5 * 0.8 * 0.75 * 0.6)
    assert found.log_probability([1, 1]) == -np.inf
    truth = true_automata(strings, model, longest=1)
    # Strings of one symbol: "0" as above, and "1", 0.5 * 0.8 * 0.25, which always ends then.
    assert np.exp(truth("automaton 5", ["0"])) == pytest.approx(0.18 / (0.18 + 0.1))


def test_a_set_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names_by_language"):
        read_set("names", tmp_path)
    with pytest.raises(OptionError, match="Found colours"):
        SequencesOptions(sets=("colours",))
    with pytest.raises(OptionError, match="at least 2"):
        SequencesOptions(seeds=1)


def test_known_generators_are_found_again_and_better_with_more_tasks() -> None:
    errors = {}
    for tasks in (4, 60):
        found = []
        for seed in range(3):
            known = draw_known(
                generators=3,
                symbols=5,
                tasks=tasks,
                each=20,
                alpha=0.3,
                generator=np.random.default_rng([seed, tasks]),
            )
            found.append(recovery(known, fit_known(known, generators=3, seed=seed)))
        errors[tasks] = np.mean(found, axis=0)
    assert errors[60][1] < 0.5 * errors[4][1]
    assert errors[60][1] < 0.05
    assert errors[60][0] < errors[60][2] + 0.02


def test_the_synthetic_part_has_rows_and_keeps_draws(tmp_path: Path) -> None:
    options = SequencesOptions(
        seeds=2,
        synthetic_seeds=2,
        synthetic_tasks=(5,),
        synthetic_sizes=(5,),
        generators=2,
        symbols=3,
        out=tmp_path / "draws",
    )
    told: list[str] = []
    rows = reproduce_sequences(options, told.append)
    quantities = {row.quantity: row for row in rows}
    assert {"synthetic/5_tasks/error/theta", "synthetic/5/gain/pooled"} <= set(quantities)
    assert quantities["synthetic/5/perplexity/shared"].n == 2
    assert any("choosing" in sentence for sentence in told)
    told.clear()
    assert reproduce_sequences(options, told.append) == rows
    assert not any("choosing" in sentence for sentence in told)
    first, second = sorted((tmp_path / "draws").iterdir())
    second.unlink()  # as if it had been killed before that
    assert reproduce_sequences(options) == rows
    first.write_text("[1]")
    with pytest.raises(RecordError, match="figures of a draw"):
        reproduce_sequences(options)
