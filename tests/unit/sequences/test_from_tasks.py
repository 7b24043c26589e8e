"""From a task set to a mixture, its document and its page, as the command does it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from taskmix.errors import InputError, OptionError
from taskmix.numerics import Interval
from taskmix.sequences import (
    Gaussian,
    HeldOutFigures,
    Markov,
    MixtureFolder,
    MixtureRecipe,
    MixtureWork,
    SequenceMixture,
    SequenceReport,
    continue_sequence,
    split_sequences,
)
from taskmix.tasks import TaskSet, load_tasks

DOCUMENT = SequenceReport(
    generators=2,
    bound=-9.5,
    iterations=3,
    alpha=(0.5, 0.25),
    theta={"task é": (0.25, 0.75)},
    rows=(HeldOutFigures("one pooled model", 6.5, 0.3, None, Interval(0.2, 0.1, 0.3, 9)),),
    name="0123456789abcdef",
    command="taskmix sequences x",
    model="out/model-0123456789abcdef.safetensors",
    page=None,
)


def letters(path: Path, *splits: str) -> TaskSet:
    """Two tasks, x of a and b, y of c and d, with four sequences in each split."""
    generator = np.random.default_rng(0)
    with path.open("w", newline="") as lines:
        rows = csv.writer(lines)
        rows.writerow(["task", "sequence", "split"])
        for task, alphabet in (("x", "ab"), ("y", "cd")):
            for split in splits:
                for _ in range(4):
                    rows.writerow([task, "".join(generator.choice(list(alphabet), 4)), split])
    return load_tasks(path, kind="sequences", symbols="characters")


def work_on(tmp_path: Path, **options: Any) -> MixtureWork:
    recipe = MixtureRecipe(generator=Markov(), generators=2, iterations=4, restarts=1)
    data = split_sequences(letters(tmp_path / "letters.csv", "train", "test"))
    folder = MixtureFolder(tmp_path / "out")
    return MixtureWork(**{"recipe": recipe, "data": data, "folder": folder, **options})


def test_test_is_held_out_and_dev_where_there_is_no_test(tmp_path: Path) -> None:
    whole = split_sequences(letters(tmp_path / "a.csv", "train", "dev", "test"))
    assert (len(whole.train.sequences), len(whole.held_out.sequences)) == (8, 8)
    assert set(whole.held_out.sequences[0]) <= set("ab")
    assert whole.held_out.tasks == ["x"] * 4 + ["y"] * 4
    tasks = letters(tmp_path / "b.csv", "train", "dev")
    dev = tasks["x"].splits["dev"].inputs.column("symbols").to_pylist()
    assert split_sequences(tasks).held_out.sequences[:4] == dev
    assert (whole.observes, whole.content != split_sequences(tasks).content) == ("symbols", True)


def test_tasks_that_are_no_sequences_are_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("task,text,label\na,one,x\na,two,y\na,three,x\na,four,y\n")
    with pytest.raises(InputError, match=r"Tasks should be sequences. Found that `a` is"):
        split_sequences(load_tasks(tmp_path / "t.csv"))


def test_a_name_changes_with_everything_that_changes_the_mixture_and_with_nothing_else() -> None:
    recipe = MixtureRecipe(generator=Markov(), generators=8)
    others = [
        replace(recipe, **change)
        for change in (
            {"generator": Markov(order=2)},
            {"generators": 4},
            {"generators": None},
            {"generator": None},
            {"generators": None, "budget": 3},
            {"own": False},
            {"iterations": 5},
            {"restarts": 1},
            {"annealing": 1},
            {"batch_size": 3},
            {"seed": 1},
        )
    ]
    names = {each.name("data") for each in (recipe, *others)} | {recipe.name("other data")}
    assert len(names) == len(others) + 2
    # Files are found by it: another name, and everything is learned again.
    assert recipe.name("data") == "478f09357e01b4e1"


def test_neither_torch_nor_numba_is_imported_before_it_is_used() -> None:
    words = "import sys, taskmix.sequences; print({'torch', 'numba'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", words], capture_output=True, check=True)
    assert found.stdout.split() == [b"set()"]


def test_a_recipe_of_no_generators_is_refused_by_its_argument() -> None:
    with pytest.raises(OptionError, match="`generators` should be a whole number of at least 1"):
        MixtureRecipe(generator=Gaussian(), generators=0)


def test_documents_of_another_name_or_form_are_none(tmp_path: Path) -> None:
    folder = MixtureFolder(tmp_path)
    assert folder.document(DOCUMENT.name) is None
    folder.write_document(DOCUMENT)
    assert folder.document(DOCUMENT.name) == DOCUMENT
    assert folder.document("another") is None
    whole = json.loads(DOCUMENT.written())
    wrong = [{key: value for key, value in whole.items() if key != lost} for lost in whole]
    wrong += [whole | {"rows": [{}]}, whole | {"theta": 5}, whole | {"alpha": ["x"]}]
    for each in (*wrong, [], None, 7, "x"):
        (tmp_path / "summary.json").write_text(json.dumps(each))
        assert folder.document(DOCUMENT.name) is None, each


def test_what_is_done_is_not_done_again_and_the_page_comes_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[str] = []
    work = work_on(tmp_path, on_fit=fitted.append)
    plain = work.describe(baselines=False)
    assert (plain.rows, plain.page, fitted) == ((), None, [])
    whole = work.describe(command="again")
    assert [row.model for row in whole.rows][:2] == ["shared generators", "one model per task"]
    assert fitted == [row.model for row in whole.rows]
    assert (whole.command, whole.theta) == ("again", plain.theta)

    def refuse(*given: Any, **options: Any) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(SequenceMixture, "fit_states", refuse)
    assert work.describe(command="third") == whole

    def page(model: SequenceMixture, figures: Any, tried: tuple[str, ...], path: Path) -> Path:
        assert tried == ()  # nothing was left to choose
        path.write_text(f"{model.tasks_} {len(figures)}")
        return path

    found = work.describe(command="fourth", write_page=page)
    assert found == replace(whole, command="fourth", page=str(tmp_path / "out" / "report.html"))
    assert (tmp_path / "out" / "report.html").read_text() == "('x', 'y') 6"
    np.testing.assert_array_equal(work.learn().theta_, list(whole.theta.values()))


def test_how_a_sequence_goes_on_is_what_the_model_says() -> None:
    model = SequenceMixture(Markov(), 2, random_state=0).fit(["aab", "aab", "bba"], ["x", "x", "y"])
    found = continue_sequence(model, "aa", "x", shown=2)
    ahead = model.predict_next("aa", "x").probabilities
    assert ahead is not None
    assert len(found.next) == 2
    assert dict(found.next)["b"] == ahead[1] == max(ahead)
    way, level = model.complete("aa", "x")
    assert (found.text, found.log_probability) == (way, level)
    assert found.probability == pytest.approx(np.exp(level))
    words = SequenceMixture(Markov(), 1, random_state=0).fit([["go", "on"]] * 2, ["x"] * 2)
    assert continue_sequence(words, ["go"], "x").text == "go on"
    codes = SequenceMixture(Markov(), 1, random_state=0).fit([[0, 1]] * 2, ["x"] * 2)
    with pytest.raises(InputError, match="Found codes of symbols"):
        continue_sequence(codes, ["a"], "x")
    vectors = SequenceMixture(Gaussian(), 1, random_state=0).fit([[0.0, 1.0]] * 2, ["x"] * 2)
    with pytest.raises(InputError, match="Found vectors"):
        continue_sequence(vectors, ["a"], "x")
    with pytest.raises(NotFittedError):
        continue_sequence(SequenceMixture(), ["a"], "x")
