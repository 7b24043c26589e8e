from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_advice import TASKS, made_up_advice

from taskmix.adviser._answer import answer
from taskmix.adviser._document import advice_document
from taskmix.adviser._history import History
from taskmix.errors import InputError
from taskmix.plans import load_advice, save_advice

FIRST = {"uniform": [0.90, 0.91], "single": [0.80, 0.81]}
THEN = FIRST | {"size": [0.93, 0.94], "equal": [0.70, 0.71]}
LAST = THEN | {"size": [0.93, 0.94, 0.93], "uniform": [0.90, 0.91, 0.92]}


def collected() -> History:
    history = History()
    for scores, spent in ((FIRST, 3000.0), (FIRST, 3000.0), (THEN, 6000.0), (LAST, 7500.0)):
        history.add(made_up_advice(scores, spent=spent))
    return history


def test_stages_are_told_by_what_is_new_and_those_that_cost_nothing_are_none() -> None:
    history = collected()
    assert [(each.stage, each.spent) for each in history.milestones] == [
        ("baselines", 3000.0),
        ("candidates", 6000.0),
        ("race", 7500.0),
    ]
    assert [each.leader for each in history.milestones] == ["uniform", "size", "size"]
    assert history.milestones[2].seeds == 3


def test_a_loser_is_out_from_the_stage_after_which_it_never_could_win() -> None:
    history = collected()
    assert history.out_after("single") == 0
    assert history.out_after("equal") == 1, "it was not there before"
    assert history.out_after("size") is None


def test_the_document_comes_back_as_it_was_written(tmp_path: Path) -> None:
    history, advice = collected(), made_up_advice(LAST, spent=7500.0)
    document = advice_document(
        advice,
        answer(advice),
        title="Advice for digits",
        seconds=1.5,
        history=history,
        commands={"Train by the plan": "taskmix train digits"},
    )
    save_advice(tmp_path, document)
    assert load_advice(tmp_path) == document
    assert document["version"] == 1
    assert document["chosen"] == "size"
    assert document["outlook"] is None
    assert [row["task"] for row in document["expected"]] == list(TASKS)
    # Test scores were made up as one point below dev: 0.92, 0.93, 0.92.
    assert document["expected"][0]["test"]["mean"] == pytest.approx(0.9233, abs=1e-4)
    size = next(row for row in document["candidates"] if row["name"] == "size")
    assert len(size["runs"]) == 3
    single = next(row for row in document["candidates"] if row["name"] == "single")
    assert (single["open"], single["out_after"]) == (False, 0)
    json.dumps(document, allow_nan=False)


def test_one_seed_has_no_interval_and_the_document_says_null() -> None:
    advice = made_up_advice({"uniform": [0.9], "single": [0.8]})
    history = History()
    history.add(advice)
    document = advice_document(
        advice, answer(advice), title="", seconds=0.0, history=history, commands={}
    )
    assert document["candidates"][1]["behind"]["low"] is None
    assert document["expected"][0]["test"]["low"] is None


def test_a_file_of_another_form_is_told(tmp_path: Path) -> None:
    assert load_advice(tmp_path) is None
    advice = made_up_advice(LAST)
    document = advice_document(
        advice, answer(advice), title="", seconds=0.0, history=collected(), commands={}
    )
    for broken in ({**document, "version": 2}, {**document, "lines": 3}, {"version": 1}, [1]):
        (tmp_path / "advice.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match="`taskmix advise` wrote"):
            load_advice(tmp_path)


def test_what_is_known_half_way_is_a_document_too() -> None:
    advice = replace(made_up_advice(FIRST), notes=("A run failed.",))
    document = advice_document(
        advice, answer(advice), title="", seconds=0.0, history=History(), commands={}
    )
    assert document["milestones"] == []
    assert document["notes"] == ["A run failed."]


def test_brackets_without_end_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "advice.json").write_bytes(b"[" * 200_000)
    with pytest.raises(InputError, match=r"advice.json` should be a JSON file .* that is no JSON"):
        load_advice(tmp_path)
