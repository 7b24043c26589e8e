"""The census: tasks from people, accuracies of groups, and the whole on a few made-up states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from papers.census import CensusOptions, group_accuracies, reproduce_census
from papers.census_data import ANSWERS, CensusSource, features_of
from taskmix.engine import Auto, Fleet
from taskmix.errors import InputError, OptionError
from taskmix.records import Study

STATES = ("AA", "BB", "CC", "DD", "EE", "FF", "ZZ")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Seven states of 200 people; the old earn more, but in ZZ the young do."""
    generator = np.random.default_rng(0)
    count = 200 * len(STATES)
    columns: dict[str, object] = {"state": np.repeat(STATES, 200)}
    least = {"AGEP": 17, "COW": 1, "SCHL": 1, "MAR": 1, "OCCP": 10, "POBP": 1, "RELP": 0}
    most = {"AGEP": 90, "COW": 8, "SCHL": 24, "MAR": 5, "OCCP": 9920, "POBP": 554, "RELP": 17}
    least |= {"WKHP": 1, "SEX": 1, "RAC1P": 1}
    most |= {"WKHP": 99, "SEX": 2, "RAC1P": 3}
    for name in ANSWERS:
        columns[name] = generator.integers(least[name], most[name] + 1, size=count)
    old = np.asarray(columns["AGEP"]) > 50
    columns["label"] = np.where(np.asarray(columns["state"]) == "ZZ", ~old, old).astype(np.int64)
    folder = tmp_path / "census"
    folder.mkdir()
    parquet.write_table(pa.table(columns), folder / "people.parquet")
    return folder


def small(people: Path) -> CensusOptions:
    return CensusOptions(
        data=people,
        rows=60,
        steps=12,
        batch_size=16,
        learning_rate=0.02,
        hidden=(4,),
        size=2,
        subsets=9,
        held_out=3,
        repeats=2,
        alone=3,
        seeds=2,
        smallest_group=10,
        own_group_dro=True,
    )


def test_a_persons_features_by_hand() -> None:
    person = dict.fromkeys(ANSWERS, 1) | {"AGEP": 58, "SCHL": 22, "WKHP": 38}
    person |= {"OCCP": 520, "POBP": 303, "RELP": 0, "SEX": 2}
    found = features_of(np.array([[person[name] for name in ANSWERS]]))[0]
    assert found[:4].tolist() == [1.0, 1.0, 0.0, 0.0]  # age, school, hours; age squared less 1
    assert found.shape == (4 + 9 + 24 + 5 + 18 + 9 + 2 + 26 + 8,)
    assert found[4:].sum() == 8, "one indicator for each answer that is a code"
    blocks = np.split(found[4:], np.cumsum([9, 24, 5, 18, 9, 2, 26]))
    assert [int(block.argmax()) for block in blocks] == [0, 21, 0, 0, 0, 1, 1, 5]


def test_states_are_divided_without_overlap_and_the_same_every_time(people: Path) -> None:
    source = CensusSource(path=str(people), rows=100, dev_rows=30)
    tasks = source.load()
    assert tasks.names == STATES
    # 30 dev rows, since they are fewer than a fifth; two fifths for test; at most 100 of the rest.
    assert tasks["AA"].sizes == {"train": 90, "dev": 30, "test": 80}
    assert source.load().content == tasks.content
    assert replace(source, seed=1).load().content != tasks.content
    some = replace(source, states=("BB",)).load()
    assert some["BB"].splits["test"].inputs.equals(tasks["BB"].splits["test"].inputs)


def test_the_worst_group_is_among_those_with_enough_rows() -> None:
    right = np.array([1, 1, 1, 0, 1, 0, 0, 0], dtype=bool)
    groups = np.array([1, 1, 1, 1, 2, 2, 2, 9])
    assert group_accuracies(right, groups, 3) == (0.5, pytest.approx(1 / 3))
    assert group_accuracies(right, groups, 1) == (0.5, 0.0)
    assert group_accuracies(right, groups, 100) == (0.5, 0.75), "at least the largest group counts"


def test_the_whole_experiment_finds_the_state_that_is_the_other_way_round(
    people: Path, tmp_path: Path
) -> None:
    study, executor = Study(tmp_path / "study"), Fleet(workers=1)
    rows = {row.quantity: row for row in reproduce_census(small(people), study, executor)}
    assert rows["f1_transfer/census"].paper == 0.8
    assert rows["census/worst_group/selected_minus_group_dro"].paper == 1.29
    for method in ("single", "pooled", "all_sources", "group_dro", "group_dro_own", "selected"):
        assert 0 <= rows[f"census/worst_group/{method}"].ours <= 100
        assert rows[f"census/accuracy/{method}"].n == 7
    # Pooled training and group DRO cannot answer for ZZ and for the others at once.
    selected = rows["census/accuracy/selected"].ours
    assert selected > rows["census/accuracy/pooled"].ours + 5
    assert rows["census/failed_runs"].ours == 0
    before = {folder.name for folder in study.runs()}
    again = {row.quantity: row for row in reproduce_census(small(people), study, executor)}
    assert again == rows, "finished runs are not repeated"
    assert {folder.name for folder in study.runs()} == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--only", "AA,BB,QQ,ZZ"], "A state should be one of AA, BB, CC, DD, EE, FF, ZZ"),
        (["--only", "AA,,BB"], "different names with commas"),
        (["--seeds", "9", "--alone", "3"], "from 2 to `alone`"),
        (["--only", "AA,BB"], "at least 3 source tasks"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    people: Path,
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    study = tmp_path / "study"
    assert command("census", people, *words, "--out", study) == 2
    assert sentence in capsys.readouterr().err


def test_what_is_no_census_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="should hold one Parquet file"):
        CensusSource(path=str(tmp_path)).load()
    parquet.write_table(pa.table({"state": ["AA"]}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match="should have the columns state, AGEP"):
        CensusSource(path=str(tmp_path)).load()
    with pytest.raises(OptionError, match="should be 1 or more"):
        CensusSource(path="x", rows=0)


@pytest.mark.paper
@pytest.mark.timeout(7200)
def test_held_out_subsets_of_real_states_are_told(real_data: Path, tmp_path: Path) -> None:
    study, executor = Study(tmp_path / "study"), Auto()
    found = reproduce_census(CensusOptions(data=real_data / "acs_income"), study, executor)
    rows = {row.quantity: row for row in found}
    assert rows["f1_transfer/census"].n >= 10
    assert rows["f1_transfer/census"].ours >= 0.80
    assert rows["f1_transfer/census"].ours > rows["f1_transfer/census/always"].ours
    assert rows["census/worst_group/selected_minus_group_dro"].low > 0
