"""Promises beside scores: which runs count for a task, and what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from taskmix.engine import DigitsSource, Optimization, Run
from taskmix.models import Adapters, Perceptron, TextConvolution, Transformer
from taskmix.plans import (
    ComparisonDocument,
    Expected,
    Length,
    Part,
    Plan,
    Shares,
    compare_with_promise,
    settings_of,
    training_script,
)
from taskmix.records import FinalScore, RunSummary

RUN = Run(label="", source=DigitsSource(), architecture=Perceptron(), steps=100, seed=0)
TASKS = tuple("abcdefghij")


def plan_for(*parts: tuple[str, ...], metric: str = "accuracy", **evidence: Any) -> Plan:
    names = [name for part in parts for name in part]
    return Plan(
        parts=tuple(
            Part(tasks=part, scored=part, share=1 / len(parts), division=Shares.equal(len(part)))
            for part in parts
        ),
        length=Length(batches=100, batch_size=32),
        expected=tuple(
            Expected(task=name, metric=metric, value=0.8, low=0.7, high=0.9) for name in names
        ),
        evidence={"settings": settings_of(RUN), **evidence},
    )


def summary(
    scores: dict[str, float], *, split: str = "test", status: str = "finished"
) -> RunSummary:
    return RunSummary(
        name="0" * 16,
        status=status,  # type: ignore[arg-type]
        label="plan",
        seed=0,
        step=1,
        steps=1,
        seconds=0.0,
        best_step=None,
        error=None,
        created="",
        updated="",
        scores=tuple(
            each
            for task, value in scores.items()
            for each in (
                FinalScore(task, split, "accuracy", value),
                FinalScore(task, split, "loss", 9.0),
            )
        ),
        tasks=(),
        versions={},
        specification={},
        kept=None,
    )


def compared(plan: Plan, *summaries: RunSummary | None, run: Run = RUN) -> ComparisonDocument:
    found = compare_with_promise(plan, "plan.json", run, summaries)
    assert found is not None
    return found


def test_a_task_is_scored_by_the_part_that_is_for_it_and_seeds_by_their_mean() -> None:
    plan = plan_for(("a",), ("b",))
    runs = [
        summary({"a": 0.7, "b": 0.0}),
        summary({"b": 0.6}),
        summary({"a": 0.9, "b": 0.0}),
        summary({"b": 0.5}),
    ]
    rows = compared(plan, *runs).rows
    assert [(row.task, row.found, row.seeds, row.inside) for row in rows] == [
        ("a", pytest.approx(0.8), 2, True),
        ("b", pytest.approx(0.55), 2, False),
    ]


def test_a_run_that_did_not_finish_does_not_count() -> None:
    plan = plan_for(("a",), ("b",))
    found = compared(plan, summary({"a": 0.8}), summary({"b": 0.8}, status="stopped"))
    assert [row.task for row in found.rows] == ["a"]
    assert found.lines == ("The score of `a` is inside its 90 % interval.",)
    assert compare_with_promise(plan, "plan.json", RUN, [None, None]) is None


def test_dev_scores_stand_in_where_there_are_no_test_rows() -> None:
    (row,) = compared(plan_for(("a",)), summary({"a": 0.8}, split="dev")).rows
    assert (row.split, row.inside) == ("dev", True)


def test_of_an_error_a_lower_one_is_better() -> None:
    (row,) = compared(plan_for(("a",), metric="rmse"), summary({"a": 0.5})).rows
    assert (row.inside, row.better) == (False, True)


def test_more_outside_than_chance_has_is_called_too_sure() -> None:
    values = dict.fromkeys(TASKS, 0.8)
    sound = compared(plan_for(TASKS), summary({**values, "a": 0.5, "b": 0.95}))
    assert sound.lines[0] == (
        "8 of 10 tasks are inside their 90 % intervals; worse than promised: `a`; "
        "better than promised: `b`."
    )
    assert sound.lines[1] == "So many outside may be chance."
    bad = compared(plan_for(TASKS), summary({**values, **dict.fromkeys(TASKS[:6], 0.5)}))
    assert "`d` and 2 more" in bad.lines[0]
    assert "about 9 of 10, so this one was too sure of itself" in bad.lines[1]
    assert len(compared(plan_for(TASKS), summary(values)).lines) == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": 300}, "it was trained for 300 batches, more than the 100 of the promise"),
        ({"batch_size": 8}, "batches had 8 rows, not 32"),
        ({"architecture": TextConvolution()}, "the model was TextConvolution, not Perceptron"),
        ({"architecture": Perceptron(hidden=(8,))}, "the `hidden` was [8], not"),
        (
            {"architecture": Transformer(path="bert", tune="adapters", adapters=Adapters())},
            "the tuning was adapters, not None",
        ),
        (
            {"optimization": Optimization(learning_rate=0.5)},
            "the learning rate was 0.5, not 0.001",
        ),
    ],
)
def test_how_the_training_differs_from_the_promised_one_is_said(
    changed: dict[str, Any], words: str
) -> None:
    found = compared(plan_for(("a",)), summary({"a": 0.1}), run=replace(RUN, **changed))
    assert len(found.differences) == 1
    assert found.differences[0].startswith(words)
    assert "says little about the promise" in found.lines[1]


def test_a_script_is_the_run_itself() -> None:
    model = Transformer(path="bert", tune="adapters", adapters=Adapters(rank=4))
    rate = Optimization(learning_rate=0.5)
    run = replace(RUN, architecture=model, optimization=rate, precision="bfloat16", clip_norm=1.0)
    script = training_script(run, plan="a plan.json", seeds=(3,))
    assert script is not None
    names: dict[str, Any] = {}
    begin, end = script.index("    run = Run("), script.index("    study = ")
    exec(script[: script.index("\nif __name__")], names)
    exec("if True:\n" + script[begin:end], names)
    assert replace(names["run"], device="cpu") == replace(run, label="plan", seed=3)
    assert "Plan.load('a plan.json').runs(run, seeds=[3])" in script


def test_what_has_no_words_has_no_script() -> None:
    class Held:
        def load(self) -> Any: ...

    assert training_script(replace(RUN, source=Held()), plan="plan.json") is None
