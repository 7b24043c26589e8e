"""Every folder of the real data that is in one of our formats loads, and has the counts it should.

The data lie beside the repository, or where TASKMIX_DATA says. Counts are those of their README.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskmix.errors import InputError
from taskmix.tasks import TaskSet, load_tasks

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("TASKMIX_DATA", ROOT.parent / "shared" / "data"))

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the real data are not in {DATA}; TASKMIX_DATA says where they are"
)

# The source, its options, and how many tasks and rows (of all splits) it has.
Case = tuple[str, dict[str, Any], int, int]
FILES = "multilevel"
CASES: list[Case] = [
    # text
    ("agnews", {}, 1, 11_600),
    ("amazon5", {}, 1, 12_600),
    ("anli", {}, 3, 6_398),
    ("banking77", {}, 1, 13_083),
    ("fdu_mtl", {}, 16, 31_780),
    ("glue", {}, 9, 162_164),
    ("newsgroups20", {}, 1, 18_846),
    ("newsgroups20", {"settings": ROOT / "examples" / "newsgroups.toml"}, 4, 15_093),
    ("sick", {"label": ["label", "relatedness"]}, 2, 2 * 9_927),
    ("snli", {}, 1, 25_044),
    ("superglue", {}, 4, 12_142),
    ("tweeteval", {}, 11, 200_687),
    ("wrench", {}, 7, 24_058),
    # tokens
    ("brown_pos", {}, 15, 57_340),
    ("brown_pos", {"label": ["2", "3"]}, 30, 2 * 57_340),
    ("conll2000", {"label": ["2", "3"]}, 2, 2 * 10_948),
    ("conll2002", {}, 2, 35_651),
    ("conll2003", {"settings": ROOT / "examples" / "conll2003.toml"}, 3, 3 * 20_744),
    ("mtl_bio", {}, 14, 170_426),
    ("slu", {}, 2, 20_355),
    ("slu", {"label": ["label", "slots"]}, 4, 2 * 20_355),
    ("ud", {"label": ["2", "5"]}, 26, 2 * 32_136),
    ("wnut17", {}, 1, 5_690),
    # tables
    ("acs_income", {"task_column": "state", "ignore": ["row"]}, 51, 665_800),
    ("adult", {"task_column": "occupation", "label": ["income"]}, 15, 48_842),
    (
        "computer_survey_lenk",
        {"task_column": "person", "label": ["rating"], "kind": "regression"},
        190,
        3_800,
    ),
    (
        "mhc1_binding",
        {
            "task_column": "allele",
            "label": ["measurement_value"],
            "features": ["peptide", "measurement_inequality"],
        },
        218,
        234_295,
    ),
    (
        f"{FILES}/census2000.csv.gz",
        {"task_column": "state", "label": ["lweekinc"]},
        51,
        29_501,
    ),
    (
        f"{FILES}/chem97.csv.gz",
        {"task_column": "school", "label": ["score"]},
        2_410,
        31_022,
    ),
    (f"{FILES}/exam.csv.gz", {"task_column": "school", "label": ["normexam"]}, 65, 4_059),
    (f"{FILES}/hsb82.csv.gz", {"task_column": "school", "label": ["mAch"]}, 160, 7_185),
    (f"{FILES}/insteval.csv.gz", {"task_column": "d", "label": ["y"]}, 1_128, 73_421),
    (
        "parkinsons_telemonitoring",
        {"task_column": "subject#", "label": ["motor_UPDRS", "total_UPDRS"]},
        84,
        2 * 5_875,
    ),
    (
        "pew2008_by_state",
        {
            "task_column": "state",
            "label": ["vote_lean"],
            "labels": ["dem/lean dem", "rep/lean rep"],
            "ignore": ["weight"],
        },
        49,
        19_623,
    ),
    (
        "restaurant_consumer",
        {"task_column": "userID", "label": ["rating", "food_rating", "service_rating"]},
        3 * 138,
        3 * 1_161,
    ),
    ("school_ilea", {"task_column": "school", "label": ["score"]}, 139, 15_362),
    # sequences
    (
        "dna/splice_junction.csv.gz",
        {"task_column": "label", "sequence_column": "sequence", "symbols": "characters"},
        3,
        3_190,
    ),
    ("dna/splice_junction.csv.gz", {"text": ["sequence"]}, 1, 3_190),
    (
        "dna/promoters.csv.gz",
        {"task_column": "label", "sequence_column": "sequence", "symbols": "characters"},
        2,
        106,
    ),
    (
        "japanese_vowels",
        {"task_column": "speaker", "sequence_column": "utterance", "time_column": "frame"},
        9,
        640,
    ),
    ("msnbc", {}, 1, 989_818),
    (
        "names_by_language",
        {"task_column": "language", "sequence_column": "name", "symbols": "characters"},
        18,
        20_050,
    ),
    (
        "tinyshakespeare_roles",
        {"task_column": "role", "sequence_column": "speech", "symbols": "characters"},
        299,
        7_097,
    ),
    ("unix_user_commands", {"first_symbol_is_task": True}, 8, 8),
]


def check(tasks: TaskSet) -> None:
    """What holds for all tasks, whatever they are."""
    for task in tasks:
        for split in task.splits.values():
            assert len(split) > 0
            if task.labels:
                assert split.targets.dtype == np.int64
                assert split.targets.min() >= 0
                assert split.targets.max() < len(task.labels)
            elif task.kind == "regression":
                assert np.isfinite(split.targets).all()
        if "train" in task.splits and task.size > 1:
            assert "dev" in task.splits


@pytest.mark.parametrize(
    ("source", "options", "count", "rows"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case[3] > 30_000)) for case in CASES],
)
def test_a_folder_of_the_real_data_loads(
    source: str, options: dict[str, Any], count: int, rows: int
) -> None:
    if not (DATA / source).exists():
        pytest.skip(f"{DATA / source} is not there")
    tasks = load_tasks(DATA / source, **options)
    assert len(tasks) == count
    assert sum(sum(task.sizes.values()) for task in tasks) == rows
    check(tasks)


# Formats of their own, which are no task folders.
OTHERS = {"glove_6b_100d", "pautomac", "sarcos"}


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_a_folder_of_another_format_gets_a_sentence(name: str) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there")
    with pytest.raises(InputError):
        load_tasks(DATA / name)


def test_conll_2003_has_the_published_sizes_and_shares_its_tokens() -> None:
    tasks = load_tasks(DATA / "conll2003", settings=ROOT / "examples" / "conll2003.toml")
    assert tasks["ner"].sizes == {"train": 14_041, "dev": 3_250, "test": 3_453}
    assert len(tasks["ner"].splits["train"].targets) == 203_621
    assert tasks["ner"].labels[0] == "O"
    assert len(tasks["ner"].labels) == 9
    assert len(tasks["pos"].labels) == 45
    assert [task.metric for task in tasks] == ["accuracy", "entity_f1", "entity_f1"]
    assert len({id(task.splits["test"].inputs) for task in tasks}) == 1


def test_japanese_vowels_have_frames_of_twelve_values() -> None:
    tasks = load_tasks(
        DATA / "japanese_vowels",
        task_column="speaker",
        sequence_column="utterance",
        time_column="frame",
    )
    assert [task.sizes["test"] for task in tasks] == [31, 35, 88, 44, 29, 24, 40, 50, 29]
    for split in tasks[0].splits.values():
        lengths = [len(sequence) for sequence in split.inputs.column("values").to_pylist()]
        assert min(lengths) >= 7
        assert max(lengths) <= 29
    assert len(tasks[0].splits["train"].inputs.column("values")[0].as_py()[0]) == 12
