"""A label column of another name is taken where only one can be meant, and asked for otherwise."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import Finding, TaskCheck, check_tasks, load_tasks

COUNT = 60
TEXTS = [f"the film number {n} was seen by us" for n in range(COUNT)]
STARS = [1 + n % 5 for n in range(COUNT)]
PRODUCTS = [("books", "music", "toys")[n % 3] for n in range(COUNT)]
DAYS = [f"2021-03-{1 + n % 28:02}" for n in range(COUNT)]
NUMBERS = [0.5 * (n % 13) for n in range(COUNT)]


def table(folder: Path, columns: dict[str, Sequence[object]]) -> Path:
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return folder / "rows.csv"


@pytest.mark.parametrize("name", ["target", "Class", "Y", " LABELS ", "gold_label", "outcome"])
def test_a_usual_name_is_taken_in_a_table_and_said(tmp_path: Path, name: str) -> None:
    tasks = load_tasks(table(tmp_path, {"x": NUMBERS, name: PRODUCTS}))
    assert tasks[0].reading.label is not None
    assert tasks[0].reading.label.strip() == name.strip()
    assert any("was taken for the label" in note for note in tasks.notes)
    assert any("`label=...` names another" in note for note in tasks.notes)


def test_the_only_column_beside_text_ids_and_dates_is_the_label(tmp_path: Path) -> None:
    columns = {"id": range(COUNT), "day": DAYS, "review": TEXTS, "opinion": STARS}
    tasks = load_tasks(table(tmp_path, columns))
    assert (tasks[0].columns, tasks[0].reading.label) == (("review",), "opinion")
    assert any("as it is the only column beside the text" in n for n in tasks.notes)


def test_a_column_called_like_a_task_is_set_aside(tmp_path: Path) -> None:
    tasks = load_tasks(table(tmp_path, {"product": PRODUCTS, "review": TEXTS, "opinion": STARS}))
    assert tasks[0].reading.label == "opinion"
    named = load_tasks(
        table(tmp_path, {"shop": PRODUCTS, "review": TEXTS, "opinion": STARS}), task_column="shop"
    )
    assert {task.reading.label for task in named} == {"opinion"}


@pytest.mark.parametrize(
    "columns",
    [
        {"review": TEXTS, "opinion": STARS, "mood": PRODUCTS},  # either may be meant
        {"review": TEXTS, "sentiment": STARS, "rating": STARS},
        {"x": NUMBERS, "target": STARS, "class": PRODUCTS},
        {"x": NUMBERS, "rating": STARS},  # in a table a rating may be a feature
        {"x": NUMBERS, "opinion": STARS},
    ],
)
def test_two_candidates_are_a_question_that_lists_the_columns(
    tmp_path: Path, columns: dict[str, Sequence[object]]
) -> None:
    with pytest.raises(TaskFileError, match="There should be a column named label") as found:
        load_tasks(table(tmp_path, columns))
    assert all(f"`{name}` (" in str(found.value) for name in columns)
    assert str(found.value).endswith("Name the column with `label`.")
    assert found.value.arguments == ("label",)
    assert load_tasks(tmp_path / "rows.csv", label=list(columns)[-1])


# A column that looks like the task is suggested where one task was found, and hardly any other.

MANY = 400
GENERATOR = np.random.default_rng(0)
MANY_TEXTS = [f"the film number {n} was seen by us" for n in range(MANY)]
MANY_LABELS = GENERATOR.choice(["good", "bad"], MANY).tolist()
FIELDS = GENERATOR.choice(["physics", "biology", "law"], MANY).tolist()
MANY_NUMBERS = GENERATOR.normal(size=MANY).tolist()


def suggestions(path: Path, **how: object) -> list[str]:
    return [note for note in load_tasks(path, **how).notes if "did you mean" in note]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["field", "Domain", "PRODUCT", "source", "language", "genre", "dataset", "category"]
)
def test_a_column_that_is_called_like_tasks_is_suggested_beside_a_text(
    tmp_path: Path, name: str
) -> None:
    path = table(
        tmp_path,
        {
            "text": MANY_TEXTS,
            "label": MANY_LABELS,
            name: FIELDS,
            "who": MANY_NUMBERS,
        },
    )
    assert suggestions(path) == [f'1 task found; did you mean `task_column="{name}"` (3 values)?']
    assert suggestions(path, task_column=name) == []
    assert len(load_tasks(path, task_column=name)) == 3


def test_the_only_other_category_beside_a_text_is_suggested_whatever_its_name(
    tmp_path: Path,
) -> None:
    columns: dict[str, Sequence[object]] = {
        "text": MANY_TEXTS,
        "label": MANY_LABELS,
        "shelf": FIELDS,
    }
    assert len(suggestions(table(tmp_path, columns))) == 1
    assert suggestions(table(tmp_path, {**columns, "shop": FIELDS[::-1]})) == []


NOT_TASKS: dict[str, dict[str, Sequence[object]]] = {
    "a feature of a table": {"x": MANY_NUMBERS, "colour": FIELDS},
    "a category of a table": {"x": MANY_NUMBERS, "category": FIELDS},
    "numbers of few values": {
        "x": MANY_NUMBERS,
        "product": GENERATOR.integers(0, 3, MANY).tolist(),
    },
    "yes and no": {
        "text": MANY_TEXTS,
        "source": GENERATOR.choice(["yes", "no"], MANY).tolist(),
    },
    "true and false": {
        "text": MANY_TEXTS,
        "source": GENERATOR.choice(["True", "False"], MANY).tolist(),
    },
    "two values of another name": {
        "text": MANY_TEXTS,
        "asks": ["cause", "effect"] * (MANY // 2),
    },
    "many values": {
        "text": MANY_TEXTS,
        "source": [f"page {n % 100}" for n in range(MANY)],
    },
    "a rare value": {
        "text": MANY_TEXTS,
        "source": ["a"] * (MANY - 2) + ["b", "c"],
    },
    "the label in other words": {
        "text": MANY_TEXTS,
        "field": [f"is {each}" for each in MANY_LABELS],
    },
    "a number beside a text": {
        "text": MANY_TEXTS,
        "votes": GENERATOR.integers(0, 5, MANY).tolist(),
    },
    "long words": {
        "text": MANY_TEXTS,
        "source": [f"{each} " * 12 for each in FIELDS],
    },
}


@pytest.mark.parametrize("case", NOT_TASKS)
def test_columns_that_name_no_tasks_are_not_suggested(tmp_path: Path, case: str) -> None:
    assert suggestions(table(tmp_path, {**NOT_TASKS[case], "label": MANY_LABELS})) == []


def test_nothing_is_suggested_where_there_are_several_tasks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = table(tmp_path / name, {"text": MANY_TEXTS, "label": MANY_LABELS, "field": FIELDS})
        path.rename(tmp_path / name / "train.csv")
    assert suggestions(tmp_path) == []
    path = table(
        tmp_path,
        {"text": MANY_TEXTS, "label": MANY_LABELS, "mood": MANY_LABELS[::-1], "field": FIELDS},
    )
    assert suggestions(path, label=["label", "mood"]) == []


# `check_tasks` names what is there and what is wrong, each in a table made by hand.

PLAIN: dict[str, Sequence[object]] = {"x": MANY_NUMBERS, "label": MANY_LABELS}


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


def test_files_tasks_and_columns_are_listed_with_what_they_were_taken_for(tmp_path: Path) -> None:
    columns: dict[str, Sequence[object]] = {
        "id": range(MANY),
        "review": MANY_TEXTS,
        "day": [f"2021-03-{1 + n % 28:02}" for n in range(MANY)],
        "shelf": [("a", "b", "c")[n % 3] for n in range(MANY)],
        "sentiment": MANY_LABELS,
    }
    found = check_tasks(table(tmp_path, columns), ignore="day")
    ((file,), (task,)) = (found.files, found.tasks)
    assert (file.path, file.rows, file.format) == (
        str(tmp_path / "rows.csv"),
        MANY,
        "csv",
    )
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
    path = table(
        tmp_path,
        {"id": range(MANY), "x": MANY_NUMBERS, "label": sorted(MANY_LABELS)},
    )
    (finding,) = of_kind(check_tasks(path), "telling id")
    assert "`id`, which numbers the rows, tells 100% of the labels" in finding.words
    shuffled = check_tasks(table(tmp_path, {"id": range(MANY), **PLAIN}))
    assert of_kind(shuffled, "telling id") == []


def test_classes_with_hardly_a_row_and_classes_that_dev_does_not_have_are_named(
    tmp_path: Path,
) -> None:
    train = {
        "x": MANY_NUMBERS[:200],
        "label": [*MANY_LABELS[:150], *["ugly"] * 48, "odd", "odd"],
    }
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
        "same": ["a"] * MANY,
        "blank": [""] * MANY,
        "town": [f"town {n % 90}" for n in range(MANY)],
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
    cells = ["" if n < share * MANY else n % 17 for n in range(MANY)]
    (finding,) = of_kind(check_tasks(table(tmp_path, {**PLAIN, "y2": cells})), "missing cells")
    assert f"`y2` ({share:.0%})" in finding.words
    assert finding.is_warning is warned


def test_texts_that_are_empty_or_very_long_are_counted_over_all_files(tmp_path: Path) -> None:
    columns: dict[str, Sequence[object]] = {"text": MANY_TEXTS, "label": MANY_LABELS}
    for name in "ab":
        (tmp_path / name).mkdir()
        train = {
            "text": [" ", "word " * 700, *MANY_TEXTS[2:100]],
            "label": MANY_LABELS[:100],
        }
        split_files(tmp_path / name, train=train, dev=rows(columns, 100, 200))
    found = check_tasks(tmp_path)
    (finding,) = of_kind(found, "empty texts")
    assert "is empty in 2 of 400 rows; the first is train.csv, line 2 of `a`" in finding.words
    (finding,) = of_kind(found, "long texts")
    assert "over 3,000 characters in 2 of 400 rows (the longest has 3,500)" in finding.words


def test_splits_that_differ_are_told_by_column_and_by_label(tmp_path: Path) -> None:
    train = {"x": MANY_NUMBERS[:200], "c": ["a", "b"] * 100, "label": ["no", "yes"] * 100}
    shifted = [number + 3 for number in MANY_NUMBERS[200:]]
    test = {"x": shifted, "c": ["a"] * 200, "label": ["no"] * 190 + ["yes"] * 10}
    dev = {"x": MANY_NUMBERS[200:], "c": ["b", "a"] * 100, "label": ["yes", "no"] * 100}
    found = of_kind(check_tasks(split_files(tmp_path, train=train, dev=dev, test=test)), "shift")
    assert len(found) == 2
    columns, labels = found
    assert columns.words.startswith("Rows of test are unlike those of train in `x` (0.")
    assert "`c` (0.50)" in columns.words
    assert "'no' has 50% of train and 95% of test" in labels.words


def test_like_names_of_tasks_and_classes_that_look_like_several_are_mentioned(
    tmp_path: Path,
) -> None:
    labels = ["a|b"] * 20 + ["d;e"] * 20 + ["c"] * (MANY - 40)
    for name in ("A", "a", "b ", "c"):
        (tmp_path / name).mkdir()
        table(
            tmp_path / name,
            {"x": MANY_NUMBERS, "label": labels if name == "c" else MANY_LABELS},
        )
    found = check_tasks(tmp_path)
    like = of_kind(found, "like names")
    assert [each.tasks for each in like] == [("A", "a"), ("b ",)]
    assert like[0].words.endswith("Found `A` and `a`.")
    (joined,) = of_kind(found, "joined labels")
    assert joined.tasks == ("c",)
    assert "classes with `|` or `;` in them: a|b, d;e." in joined.words


def test_other_kinds_of_tasks_can_be_checked_too(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("a\tX\nb\tY\n\n" * 30 + "c\tX\nd\tY\n\n")
    found = check_tasks(tmp_path)
    assert found.tasks[0].kind == "tagging"
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "train.txt").write_text("a b c\nb c d\n" * 20)
    assert check_tasks(tmp_path / "lines").tasks[0].kind == "sequences"
    asked = {"prompt": MANY_TEXTS, "answer": [f"it is {n}" for n in range(MANY)]}
    (tmp_path / "asked").mkdir()
    (task,) = check_tasks(table(tmp_path / "asked", asked)).tasks
    assert (task.kind, task.label) == ("generation", "answer")
