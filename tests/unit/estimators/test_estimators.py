"""The estimators in scikit-learn's own hands."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from taskmix import MultitaskClassifier, MultitaskRegressor
from taskmix.errors import InputError, OptionError, ShapeError, TaskmixWarning
from taskmix.plans import Part, Plan, Shares
from taskmix.policies import Exp3
from taskmix.weighting import PCGrad

QUICK: dict[str, Any] = {"steps": 40, "learning_rate": 0.03, "random_state": 0}
# Checks of scikit-learn that are expected to fail, and why.
NOT_FOR_US = {
    "check_methods_subset_invariance": "a batch of another size rounds the last bit of 32 otherwise",
}


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fit has a study of its own, gone with it: nothing of it needs to survive."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.parametrize("kind", [MultitaskClassifier, MultitaskRegressor])
def test_scikit_learn_accepts_it(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(
            kind(**QUICK), expected_failed_checks=NOT_FOR_US, on_fail=None, on_skip=None
        )
    failed = {each["check_name"]: each["exception"] for each in found if each["status"] == "failed"}
    assert not failed
    assert sum(each["status"] == "passed" for each in found) > 40


def rows(count: int = 120) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(count, 3))
    tasks = np.where(np.arange(count) % 2, "loan", "card")
    # The two tasks ask the same in opposite ways: who does not know the task is right half of the time.
    answers = (inputs[:, 0] > 0) ^ (tasks == "card")
    return inputs, np.where(answers, 7, 3), tasks


def test_a_row_is_answered_by_its_own_task() -> None:
    inputs, answers, tasks = rows()
    model = MultitaskClassifier(**(QUICK | {"steps": 120})).fit(inputs, answers, tasks=tasks)
    assert model.tasks_ == ("card", "loan")
    assert model.classes_.tolist() == [3, 7]
    assert model.score(inputs, answers, tasks=tasks) > 0.9
    assert model.predict(inputs, tasks[::-1]).tolist() != answers.tolist()
    with pytest.raises(OptionError, match="`tasks` should name the task of each row"):
        model.predict(inputs)
    with pytest.raises(ShapeError, match="120 rows"):
        model.predict(inputs, ["card"])


def test_classes_that_a_task_does_not_have_get_nothing() -> None:
    inputs, _, tasks = rows()
    answers = np.where(tasks == "card", "yes", np.where(inputs[:, 0] > 0, "up", "down"))
    answers[:4] = ["no", answers[1], "no", answers[3]]
    model = MultitaskClassifier(**QUICK).fit(inputs, answers, tasks=tasks)
    shares = model.predict_proba(inputs, tasks)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert model.classes_.tolist() == ["down", "no", "up", "yes"]
    assert (shares[tasks == "card"][:, [0, 2]] == 0).all()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_frame_brings_its_tasks_and_targets_along(package: str) -> None:
    module = pytest.importorskip(package, reason=f"{package} is not installed")
    inputs, answers, tasks = rows()
    frame = module.DataFrame(
        {
            "product": tasks,
            "amount": inputs[:, 0],
            "channel": np.where(inputs[:, 1] > 0, "web", "phone"),
            "category": answers,
        }
    )
    model = MultitaskClassifier(**(QUICK | {"steps": 120}))
    model.fit(frame, task_column="product", label="category")
    assert model.score(frame, answers) > 0.9
    assert model.feature_names_in_.tolist() == ["amount", "channel"]
    with pytest.raises(OptionError, match="should have the column `kind`"):
        clone(model).fit(frame, task_column="kind", label="category")


def test_a_task_column_holds_in_cross_validation() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    inputs, answers, tasks = rows()
    frame = pandas.DataFrame({"product": tasks, "amount": inputs[:, 0]})
    model = MultitaskClassifier(task_column="product", **(QUICK | {"steps": 120}))
    assert cross_val_score(model, frame, answers, cv=2).mean() > 0.8
    frame["product"] = np.repeat(["card", "cash", "debt", "loan"], 30)  # sorted, as folds are not
    with pytest.warns(TaskmixWarning, match="the mean answer of all learned tasks"):
        scores = cross_val_score(model, frame, answers, cv=3)
    assert np.isfinite(scores).all()
    piped = make_pipeline(StandardScaler(), MultitaskClassifier(**QUICK))
    one = (inputs[:, 0] > 0).astype(int)
    assert cross_val_score(piped, inputs, one, cv=2).mean() > 0.8


def test_a_task_whose_rows_have_one_class_is_answered_by_the_others() -> None:
    inputs = np.random.default_rng(0).normal(size=(150, 2))
    answers, tasks = (inputs[:, 0] > 0).astype(int), np.repeat(["a", "b", "c"], 50)
    seen = (tasks != "c") | ((np.arange(150) > 140) & (answers == 0))  # a few rows of c, all 0
    model = MultitaskClassifier(**(QUICK | {"steps": 120}))
    with pytest.warns(TaskmixWarning, match="Found one in `c`, whose rows get the mean answer"):
        model.fit(inputs[seen], answers[seen], tasks=tasks[seen])
    assert model.score(inputs[tasks == "c"], answers[tasks == "c"], tasks=["c"] * 50) > 0.9
    # A class that nobody else has can only be its own.
    own = np.where(tasks == "c", 5, answers)
    assert (
        model.fit(inputs, own, tasks=tasks).predict(inputs[tasks == "c"], ["c"] * 50) == 5
    ).all()


def test_texts_are_read_as_texts() -> None:
    texts = ["a very good film", "a bad film", "good", "so bad"] * 10
    model = MultitaskClassifier(**QUICK).fit(texts, ["up", "down"] * 20)
    assert model.predict(["good good film", "bad bad"]).tolist() == ["up", "down"]


def test_a_text_column_of_a_frame_is_read_as_the_same_texts_in_a_list() -> None:
    generator = np.random.default_rng(0)
    good = generator.random(120) > 0.5
    tasks = np.where(np.arange(120) % 3, "film", "book")
    texts = [f"number {n} was a {'good' if each else 'bad'} one" for n, each in enumerate(good)]
    answers = np.char.add(tasks, np.where(good, " liked", " disliked"))
    listed = MultitaskClassifier(**QUICK).fit(texts, answers, tasks=tasks)
    frame = {"about": tasks, "review": texts, "pages": generator.normal(size=120)}
    model = MultitaskClassifier(task_column="about", **QUICK)
    with pytest.warns(TaskmixWarning, match=r"does not learn from `pages` \(beside the text\)"):
        found = model.fit(frame, answers).predict_proba(frame)
    assert model.score(frame, answers) > 0.9
    assert found.tolist() == listed.predict_proba(texts, tasks).tolist()
    assert model.predict(texts, tasks).tolist() == listed.predict({"text": texts}, tasks).tolist()
    frame["remark"] = texts[::-1]
    with pytest.raises(InputError, match="sentences in the columns review, remark"):
        model.fit(frame, answers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            clone(model).set_params(text="review").fit(frame, answers).score(frame, answers) > 0.9
        )
    with pytest.raises(InputError, match="There should be a column `body`"):
        model.fit(frame, answers, text="body")


@pytest.mark.parametrize("kind", [MultitaskClassifier, MultitaskRegressor])
def test_a_frame_of_numbers_alone_is_read_by_the_names_of_its_columns(kind: Any) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    inputs, _, _ = rows()
    frame = pandas.DataFrame(inputs, columns=["x", "y", "z"]).assign(row=np.arange(len(inputs)))
    target = (inputs[:, 0] > 0).astype(int)
    with pytest.warns(TaskmixWarning, match=r"`row` \(numbers the rows\)"):
        model = kind(**(QUICK | {"steps": 120})).fit(frame, target)
    assert model.score(frame, target) > 0.5
    assert model.model_.question().columns == ("x", "y", "z")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"x": "w"}))


def test_a_task_not_seen_in_fit_gets_the_mean_of_what_the_others_answer() -> None:
    inputs, answers, tasks = rows()
    learned = ~((tasks == "loan") & (inputs[:, 1] > 0))  # so that the tasks differ in their rows
    shares = np.unique(tasks[learned], return_counts=True)[1] / learned.sum()
    model = MultitaskClassifier(**QUICK)
    model.fit(inputs[learned], answers[learned], tasks=tasks[learned])
    by_card, by_loan = (
        model.predict_proba(inputs, np.full(len(inputs), name)) for name in ("card", "loan")
    )
    asked = np.where(np.arange(len(inputs)) % 2, "card", "house")
    with pytest.warns(TaskmixWarning, match="among card, loan. Found `house`"):
        found = model.predict_proba(inputs, asked)
    mean = shares[0] * by_card + shares[1] * by_loan
    assert found == pytest.approx(np.where(asked[:, None] == "card", by_card, mean))
    numbers = np.where(tasks == "card", 100.0, 10.0) + inputs[:, 0]
    regressor = MultitaskRegressor(**QUICK).fit(inputs, numbers, tasks=tasks)
    with pytest.warns(TaskmixWarning, match="Found `house`"):
        assert 50 < regressor.predict(inputs[:1], ["house"])[0] < 60


def test_rows_without_a_task_or_a_target_are_named() -> None:
    inputs, answers, tasks = rows(40)
    frame = {"kind": [None, *tasks[1:]], "x": inputs[:, 0], "yes": [*tasks[:39], None]}
    with pytest.raises(InputError, match=r"should name the task of every row\..*row 1"):
        MultitaskClassifier(**QUICK).fit(frame, answers, task_column="kind")
    for kind in (MultitaskClassifier, MultitaskRegressor):
        with pytest.raises(InputError, match=r"should have a target\. Found none in row 40"):
            kind(**QUICK).fit({"x": inputs[:, 0], "yes": [*range(39), None]}, label="yes")
    with pytest.raises(ValueError, match="contains infinity"):
        MultitaskRegressor(**QUICK).fit({"x": inputs[:, 0]}, np.full(40, np.inf))


def test_numbers_of_each_task_keep_their_own_scale() -> None:
    inputs, _, tasks = rows()
    numbers = np.where(tasks == "card", 1000 + 50 * inputs[:, 0], 0.01 * inputs[:, 0])
    model = MultitaskRegressor(**(QUICK | {"steps": 200})).fit(inputs, numbers, tasks=tasks)
    for task in ("card", "loan"):
        own = tasks == task
        assert model.score(inputs[own], numbers[own], tasks=tasks[own]) > 0.9


def test_it_trains_by_a_policy_a_weighting_or_a_plan() -> None:
    inputs, answers, tasks = rows()
    plan = Plan(
        parts=tuple(
            Part(tasks=(name,), scored=(name,), share=0.5, division=Shares.equal(1))
            for name in ("loan", "card")
        )
    )
    for how in ({"policy": Exp3(exploration=0.5)}, {"weighting": PCGrad()}, {"plan": plan}):
        model = MultitaskClassifier(**(QUICK | {"steps": 160}), **how)
        model.fit(inputs, answers, tasks=tasks)
        assert model.score(inputs, answers, tasks=tasks) > 0.8, how
    with pytest.raises(OptionError, match="Leave one of them out"):
        MultitaskClassifier(plan=plan, weighting=PCGrad(), **QUICK).fit(
            inputs, answers, tasks=tasks
        )
