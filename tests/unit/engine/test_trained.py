"""Models that are kept: what they answer to a file is what was scored in training."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taskmix.engine import FolderSource, Run, execute, load_model, save_models
from taskmix.errors import InputError, OptionError, RecordError
from taskmix.models import Architecture, Perceptron, TextConvolution, WindowBiLSTM
from taskmix.records import Study
from taskmix.tasks import entity_counts, find_metric

SIZES = (("train", 40), ("dev", 15), ("test", 21))


def write(folder: Path, task: str, split: str, rows: list[dict[str, object]]) -> None:
    (folder / task).mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / task / f"{split}.jsonl").write_text(text)


def texts(folder: Path) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    generator = np.random.default_rng(0)
    for task in ("first", "second"):
        for split, count in SIZES:
            rows: list[dict[str, object]] = []
            for _ in range(count):
                chosen = generator.choice(words, size=generator.integers(2, 12))
                rows.append(
                    {"text": " ".join(chosen), "label": "long" if "one" in chosen else "short"}
                )
            write(folder, task, split, rows)


def pairs(folder: Path) -> None:
    generator = np.random.default_rng(1)
    for split, count in SIZES:
        rows: list[dict[str, object]] = []
        for _ in range(count):
            a, b = (generator.choice(["red", "blue", "green"]) for _ in range(2))
            rows.append({"text": f"it is {a}", "text2": f"it is {b}", "label": int(a == b)})
        write(folder, "same", split, rows)


def tables(folder: Path) -> None:
    generator = np.random.default_rng(2)
    for task in ("price", "kind"):
        for split, count in SIZES:
            rows: list[dict[str, object]] = []
            for number in range(count):
                size = None if number % 7 == 3 else float(generator.normal())
                colour = str(generator.choice(["red", "blue"]))
                price = 3.5 * (size or 0.0) + (colour == "red") + float(generator.normal(0, 0.1))
                label: object = price if task == "price" else colour[0]
                rows.append({"size": size, "colour": colour, "label": label})
            write(folder, task, split, rows)


def sentences(folder: Path) -> None:
    generator = np.random.default_rng(3)
    for split, count in SIZES:
        (folder / "names").mkdir(parents=True, exist_ok=True)
        lines = []
        for _ in range(count):
            for _ in range(int(generator.integers(1, 8))):
                word = str(generator.choice(["Ann", "Bob", "went", "home", "1999"]))
                lines.append(f"{word}\t{'B-PER' if word[0] in 'AB' else 'O'}")
            lines.append("")
        (folder / "names" / f"{split}.conll").write_text("\n".join(lines) + "\n")


def label_sets(folder: Path) -> None:
    generator = np.random.default_rng(4)
    for split, count in SIZES:
        rows: list[dict[str, object]] = []
        for _ in range(count):
            x, y = generator.normal(size=2).round(3).tolist()
            found = [name for name, said in (("up", y > 0), ("far", x > 0), ("odd", x > y)) if said]
            rows.append({"x": x, "y": y, "label": found})
        write(folder, "places", split, rows)


CASES: list[tuple[object, Architecture]] = [
    (texts, TextConvolution(filters=4, dimension=6, kernels=(3,))),
    (pairs, TextConvolution(filters=4, dimension=6, kernels=(3,))),
    (tables, Perceptron(hidden=(8,))),
    (label_sets, Perceptron(hidden=(8,))),
    (sentences, WindowBiLSTM(hidden=4, dimension=6)),
]


def trained(make: object, architecture: Architecture, tmp_path: Path) -> tuple[Run, Study]:
    make(tmp_path / "tasks")  # type: ignore[operator]
    run = Run(
        label="x",
        source=FolderSource(path=str(tmp_path / "tasks")),
        architecture=architecture,
        steps=30,
        seed=0,
        evaluate_every=10,
    )
    study = Study(tmp_path / "study")
    assert execute(run, study).outcome == "finished"
    save_models(tmp_path / "model", [(run, run.load().names)], study)
    return run, study


@pytest.fixture(scope="module")
def of_texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run, Study]:
    """A folder with two tasks of texts, a study of them and a model that is kept."""
    folder = tmp_path_factory.mktemp("texts")
    return folder, *trained(texts, CASES[0][1], folder)


@pytest.mark.parametrize(("make", "architecture"), CASES)
def test_what_is_predicted_for_the_test_file_has_the_recorded_score(
    make: object, architecture: Architecture, tmp_path: Path
) -> None:
    run, study = trained(make, architecture, tmp_path)
    summary = study.run(run.specification()).summary()
    assert summary is not None
    recorded = {s.task: s.value for s in summary.scores if s.split == "test" and s.metric != "loss"}
    model = load_model(tmp_path / "model")
    assert set(model.tasks) == set(recorded)
    for task in run.load():
        (path,) = (tmp_path / "tasks" / task.name).glob("test.*")
        answers = model.predict(path, task.name)
        true = task.splits["test"].targets
        if task.kind == "regression":
            values = np.array([answer["value"] for answer in answers])
            found = float(np.sqrt(np.mean((values - true) ** 2)))
            assert found == pytest.approx(recorded[task.name], rel=1e-5)
            continue
        if task.kind == "tagging":
            tags = [tag for answer in answers for tag in answer["tags"]]
            predicted = np.array([task.labels.index(tag) for tag in tags])
            sentences = np.cumsum([0, *(len(answer["tokens"]) for answer in answers)])
            counts = entity_counts(predicted, true, task.labels, sentences)
            assert counts.f1 == pytest.approx(recorded[task.name])
            continue
        if task.kind == "multilabel":
            said = np.array(
                [[label in answer["labels"] for label in task.labels] for answer in answers]
            )
            f1 = 2 * (said & (true == 1)).sum() / (said.sum() + true.sum())
            assert f1 == pytest.approx(recorded[task.name])
            for answer in answers:
                likely = [name for name, share in answer["probabilities"].items() if share > 0.5]
                assert likely == answer["labels"]
                assert tuple(answer["probabilities"]) == task.labels
            continue
        labels = np.array([task.labels.index(answer["label"]) for answer in answers])
        assert np.mean(labels == true) == pytest.approx(recorded[task.name])
        assert all(1 / len(task.labels) <= each["probability"] <= 1 for each in answers)


def test_rows_come_as_mappings_columns_or_files_and_need_no_label(
    of_texts: tuple[Path, Run, Study], tmp_path: Path
) -> None:
    model = load_model(of_texts[0] / "model")
    rows = [{"text": "one two"}, {"text": "nine ten eleven"}]
    found = model.predict(rows, "first")
    assert found == model.predict({"text": [row["text"] for row in rows]}, "first")
    path = tmp_path / "new.csv"
    path.write_text("text,other\none two,1\nnine ten eleven,2\n")
    assert found == model.predict(path, "first")
    assert model.predict(str(path), "second") != found
    assert "first, second" in repr(model)


def test_what_does_not_fit_is_told_in_a_sentence(
    of_texts: tuple[Path, Run, Study], tmp_path: Path
) -> None:
    folder, _, study = of_texts
    model = load_model(shutil.copytree(folder / "model", tmp_path / "model"))
    with pytest.raises(OptionError, match=r"first, second\. Found none"):
        model.predict([{"text": "x"}])
    with pytest.raises(OptionError, match="Found `third`"):
        model.predict([{"text": "x"}], "third")
    with pytest.raises(InputError, match=r"should have the columns `text`\. Found `words`"):
        model.predict([{"words": "x"}], "first")
    with pytest.raises(InputError, match="rows to predict for"):
        model.predict([], "first")
    notes: list[str] = []
    assert len(model.predict([{"text": "x"}, {"text": None}], "first", on_note=notes.append)) == 2
    assert notes == ["1 text is empty, and kept; the first is the rows given, row 2."]
    with pytest.raises(InputError, match="should be a folder with a trained model"):
        load_model(study.path)
    (tmp_path / "model" / "model.json").write_text("{}")
    with pytest.raises(RecordError, match="version"):
        load_model(tmp_path / "model")


def test_a_plan_with_groups_has_a_model_for_each_of_them(
    of_texts: tuple[Path, Run, Study], tmp_path: Path
) -> None:
    _, run, study = of_texts
    alone = replace(run, tasks=("second",))
    execute(alone, study)
    save_models(tmp_path / "model", [(run, ("first",)), (alone, ("second",))], study)
    both, one = load_model(tmp_path / "model"), tmp_path / "one"
    save_models(one, [(alone, ("second",))], study)
    rows = [{"text": "one two three"}]
    assert both.tasks == ("first", "second")
    assert both.predict(rows, "second") == load_model(one).predict(rows)
    assert not list(tmp_path.glob(".*partial"))
    assert find_metric(both.question("first").metric).higher_is_better
