"""`check_tasks` names what is there and what is wrong, each in a table made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from taskmix.tasks import Finding, TaskCheck, check_tasks

from .test_label_guess import table

GENERATOR = np.random.default_rng(0)
COUNT = 400
TEXTS = [f"the film number {n} was seen by us" for n in range(COUNT)]
LABELS = GENERATOR.choice(["good", "bad"], COUNT).tolist()
NUMBERS = GENERATOR.normal(size=COUNT).tolist()
PLAIN: dict[str, Sequence[object]] = {"x": NUMBERS, "label": LABELS}


def split_files(folder: Path, **splits: dict[str, Sequence[object]]) -> Path:
    for split, columns in splits.items():
        table(folder, columns).rename(folder / f"{split}.csv")
    return folder


def rows(
    columns: dict[str, Sequence[object]], start: int, stop: int
) -> dict[str, Sequence[object]]:
    return {name: cells[start:stop] for name, cells in columns.items()}


def of_kind(check: TaskCheck, kind: str) -> list[Finding]:
    return [each for each in check.findings if each.kind == kind]


def test_a_sound_table_has_no_findings(tmp_path: Path) -> None:
    assert check_tasks(table(tmp_path, PLAIN)).findings == ()


def test_like_names_of_tasks_and_classes_that_look_like_several_are_mentioned(
    tmp_path: Path,
) -> None:
    labels = ["a|b"] * 20 + ["d;e"] * 20 + ["c"] * (COUNT - 40)
    for name in ("A", "a", "b ", "c"):
        (tmp_path / name).mkdir()
        table(tmp_path / name, {"x": NUMBERS, "label": labels if name == "c" else LABELS})
    found = check_tasks(tmp_path)
    like = of_kind(found, "like names")
    assert [each.tasks for each in like] == [("A", "a"), ("b ",)]
    assert like[0].words.endswith("Found `A` and `a`.")
    (joined,) = of_kind(found, "joined labels")
    assert joined.tasks == ("c",)
    assert "classes with `|` or `;` in them: a|b, d;e." in joined.words


def test_files_tasks_and_columns_are_listed_with_what_they_were_taken_for(tmp_path: Path) -> None:
    columns: dict[str, Sequence[object]] = {
        "id": range(COUNT),
        "review": TEXTS,
        "day": [f"2021-03-{1 + n % 28:02}" for n in range(COUNT)],
        "shelf": [("a", "b", "c")[n % 3] for n in range(COUNT)],
        "sentiment": LABELS,
    }
    found = check_tasks(table(tmp_path, columns), ignore="day")
    ((file,), (task,)) = (found.files, found.tasks)
    assert (file.path, file.rows, file.format) == (str(tmp_path / "rows.csv"), COUNT, "csv")
    assert (task.kind, task.label, task.classes) == ("classification", "sentiment", 2)
    assert dict(task.sizes) == {"train": 320, "dev": 40, "test": 40}
    assert [(each.name, each.kind, each.use) for each in found.columns] == [
        ("id", "id", "left out (beside the text)"),
        ("review", "text", "text"),
        ("day", "date", "left out (as asked)"),
        ("shelf", "category", "left out (beside the text)"),
        ("sentiment", "category", "label"),
    ]
    assert found.columns[3].values == 3
    assert found.columns[1].example.startswith("the film number 0")
    assert any("`sentiment` was taken for the label" in note for note in found.notes)
    assert any('`task_column="shelf"` (3 values)' in note for note in found.notes)


def test_contradictions_are_counted_and_two_rows_and_the_best_accuracy_named(
    tmp_path: Path,
) -> None:
    # 90 rows of their own; "twice" is good, good, bad: at best 92 of 93 rows can be right.
    texts = [*(f"text number {n} of them" for n in range(90)), "twice", "twice", "twice"]
    labels = [*(("good", "bad")[n % 2] for n in range(90)), "good", "good", "bad"]
    train: dict[str, Sequence[object]] = {"text": texts, "label": labels}
    dev: dict[str, Sequence[object]] = {"text": ["quite new", "also new"], "label": ["good", "bad"]}
    (finding,) = of_kind(check_tasks(split_files(tmp_path, train=train, dev=dev)), "contradiction")
    assert "has 1 input that occurs with different labels in training" in finding.words
    assert "'good' in train.csv, line 92 and 'bad' in train.csv, line 94" in finding.words
    assert "cannot exceed 0.989" in finding.words  # 92 / 93 = 0.98925, rounded down


def test_doubles_within_a_split_are_counted_with_the_first_two(tmp_path: Path) -> None:
    train = rows(PLAIN, 0, 100)
    doubled = {name: [*cells, *cells[3:13]] for name, cells in train.items()}
    path = split_files(tmp_path, train=doubled, dev=rows(PLAIN, 200, 300))
    (finding,) = of_kind(check_tasks(path), "duplicates")
    assert "has 10 of its 110 train rows (9.1%) more than once" in finding.words
    assert "the first is train.csv, line 5, again in train.csv, line 102" in finding.words
    assert finding.is_warning


def test_an_id_that_is_sorted_by_label_is_told(tmp_path: Path) -> None:
    path = table(tmp_path, {"id": range(COUNT), "x": NUMBERS, "label": sorted(LABELS)})
    (finding,) = of_kind(check_tasks(path), "telling id")
    assert "`id`, which numbers the rows, tells 100% of the labels" in finding.words
    shuffled = check_tasks(table(tmp_path, {"id": range(COUNT), **PLAIN}))
    assert of_kind(shuffled, "telling id") == []


def test_classes_with_hardly_a_row_and_classes_that_dev_does_not_have_are_named(
    tmp_path: Path,
) -> None:
    train = {"x": NUMBERS[:200], "label": [*LABELS[:150], *["ugly"] * 48, "odd", "odd"]}
    path = split_files(tmp_path, train=train, dev=rows(PLAIN, 200, 400))
    found = check_tasks(path)
    (finding,) = of_kind(found, "few of a class")
    assert "1 of 4 classes with fewer than 3 rows to train on: odd." in finding.words
    (finding,) = of_kind(found, "missing from dev")
    assert "2 of 4 classes that no dev row has" in finding.words
    assert finding.words.endswith(": odd, ugly.")
    assert finding.is_warning


def test_constant_empty_and_many_valued_columns_are_told(tmp_path: Path) -> None:
    columns: dict[str, Sequence[object]] = {
        **PLAIN,
        "same": ["a"] * COUNT,
        "blank": [""] * COUNT,
        "town": [f"town {n % 90}" for n in range(COUNT)],
    }
    found = check_tasks(table(tmp_path, columns))
    assert "`same` has the same value in every row" in of_kind(found, "constant column")[0].words
    assert "`blank` has no values" in of_kind(found, "empty column")[0].words
    assert "`town` has 90 categories" in of_kind(found, "many categories")[0].words
    assert found.warnings == ()


@pytest.mark.parametrize(("share", "warned"), [(0.2, False), (0.6, True)])
def test_missing_cells_are_told_and_warned_of_where_most_are(
    tmp_path: Path, share: float, warned: bool
) -> None:
    cells = ["" if n < share * COUNT else n % 17 for n in range(COUNT)]
    (finding,) = of_kind(check_tasks(table(tmp_path, {**PLAIN, "y2": cells})), "missing cells")
    assert f"`y2` ({share:.0%})" in finding.words
    assert finding.is_warning is warned


def test_texts_that_are_empty_or_very_long_are_counted_over_all_files(tmp_path: Path) -> None:
    columns: dict[str, Sequence[object]] = {"text": TEXTS, "label": LABELS}
    for name in "ab":
        (tmp_path / name).mkdir()
        train = {"text": [" ", "word " * 700, *TEXTS[2:100]], "label": LABELS[:100]}
        split_files(tmp_path / name, train=train, dev=rows(columns, 100, 200))
    found = check_tasks(tmp_path)
    (finding,) = of_kind(found, "empty texts")
    assert "is empty in 2 of 400 rows; the first is train.csv, line 2 of `a`" in finding.words
    (finding,) = of_kind(found, "long texts")
    assert "over 3,000 characters in 2 of 400 rows (the longest has 3,500)" in finding.words


def test_splits_that_differ_are_told_by_column_and_by_label(tmp_path: Path) -> None:
    train = {"x": NUMBERS[:200], "c": ["a", "b"] * 100, "label": ["no", "yes"] * 100}
    shifted = [number + 3 for number in NUMBERS[200:]]
    test = {"x": shifted, "c": ["a"] * 200, "label": ["no"] * 190 + ["yes"] * 10}
    dev = {"x": NUMBERS[200:], "c": ["b", "a"] * 100, "label": ["yes", "no"] * 100}
    found = of_kind(check_tasks(split_files(tmp_path, train=train, dev=dev, test=test)), "shift")
    assert len(found) == 2
    columns, labels = found
    assert columns.words.startswith("Rows of test are unlike those of train in `x` (0.")
    assert "`c` (0.50)" in columns.words
    assert "'no' has 50% of train and 95% of test" in labels.words


def test_other_kinds_of_tasks_can_be_checked_too(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("a\tX\nb\tY\n\n" * 30 + "c\tX\nd\tY\n\n")
    found = check_tasks(tmp_path)
    assert found.tasks[0].kind == "tagging"
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "train.txt").write_text("a b c\nb c d\n" * 20)
    assert check_tasks(tmp_path / "lines").tasks[0].kind == "sequences"
    asked = {"prompt": TEXTS, "answer": [f"it is {n}" for n in range(COUNT)]}
    (tmp_path / "asked").mkdir()
    (task,) = check_tasks(table(tmp_path / "asked", asked)).tasks
    assert (task.kind, task.label) == ("generation", "answer")
