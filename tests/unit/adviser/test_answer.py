"""The first words of an answer, and the plan that comes with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_up_advice import MadeUpStudy, made_up_advice, made_up_race

from taskmix.adviser._advice import Advice
from taskmix.adviser._answer import Answer, answer, plan_of
from taskmix.adviser._learned import Learned

SCORES = {
    "tempered": [0.9, 0.9],
    "uniform": [0.9, 0.9],
    "size": [0.88, 0.88],
    "equal": [0.8, 0.8],
    "single": [0.7, 0.7],
}
NO_RUNS: Any = MadeUpStudy()


def advice_of(
    behind: dict[str, float], out: tuple[str, ...] = (), *, seeds: int = 2, **other: Any
) -> Advice:
    race = made_up_race(behind, out=out, seeds=seeds)
    scores = {name: SCORES[name][:seeds] for name in behind}
    return made_up_advice(scores, race=race, **other)


def answered(*what: Any, **other: Any) -> Answer:
    return answer(advice_of(*what, **other), NO_RUNS)


def test_a_settled_race_begins_with_the_way() -> None:
    found = answered({"size": 0.0, "uniform": 0.05, "single": 0.1}, ("uniform", "single"))
    assert found.lines[0] == (
        "Train together: all tasks (90 %: every other way that was tried is worse)."
    )
    assert found.lines[-1] == "Not worth it: significantly worse (90 %): uniform, single."
    assert found.chosen.name == "size"
    assert found.settling is None


def test_an_open_race_begins_with_cannot_tell() -> None:
    behind = {"tempered": 0.0, "uniform": 0.005, "equal": 0.05, "single": 0.1}
    found = answered(behind, ("equal", "single"))
    assert found.lines[:2] == (
        "Cannot tell yet: any of 2 ways of 4 may be the best. What is known: equal, single are worse.",
        "Until then, the simplest of them: train together: all tasks.",
    )
    assert found.settling is not None
    assert found.lines[2] == found.settling.words
    assert found.lines[2].startswith("To settle it: a budget of ")
    assert found.chosen.name == "uniform", "it may be the best, and is as good for all one knows"


def test_one_that_is_worse_is_said_in_the_singular() -> None:
    found = answered({"uniform": 0.0, "size": 0.005, "single": 0.1}, ("single",))
    assert found.lines[0].endswith("What is known: single is worse.")


def test_a_simple_way_that_may_be_the_best_but_hardly_is_is_not_chosen() -> None:
    found = answered({"tempered": 0.0, "uniform": 0.025, "single": 0.1}, ("single",))
    assert found.chosen.name == "tempered"
    assert found.lines[1].startswith("Until then, the leader so far: ")


def test_of_simple_ways_that_may_be_the_best_the_better_one_is_chosen() -> None:
    found = answered({"tempered": 0.0, "size": 0.002, "uniform": 0.005})
    assert found.chosen.name == "size"


def test_two_ways_are_either() -> None:
    found = answered({"uniform": 0.0, "single": 0.005})
    assert found.lines[0] == "Cannot tell yet: either way may be the best."


def test_one_seed_each_is_said() -> None:
    found = answered({"uniform": 0.0, "size": 0.005, "single": 0.1}, seeds=1)
    assert (
        found.lines[0] == "Cannot tell yet: any of 3 ways of 3 may be the best after one seed each."
    )
    assert found.lines[2] == "A second seed of each would take a budget of 10400-steps."


def test_of_one_task_nothing_is_compared() -> None:
    advice = advice_of({"single": 0.0})
    advice = replace(advice, tasks=advice.tasks.select(("parity",)), targets=("parity",))
    first = advice.entries["single"][0].candidate
    part = replace(first.parts[0], share=1.0)
    alone = replace(first, parts=(part,))
    entries = [
        replace(entry, candidate=alone, runs=entry.runs[:1], dev={"parity": 0.9}, test={})
        for entry in advice.entries["single"]
    ]
    found = answer(replace(advice, entries={"single": entries}), NO_RUNS)
    assert found.lines[0] == "One task: there is nothing to train it with, so nothing is compared."
    assert not any("worse" in line for line in found.lines)
    assert "Expect a mean dev score of 0.900." in found.lines


@pytest.mark.parametrize("verdict", ["no", "cannot tell"])
def test_where_nothing_was_learned_no_way_of_training_is_advised(verdict: Any) -> None:
    learned = tuple(
        Learned(
            task=task,
            answer=verdict,
            metric="accuracy",
            best=0.5,
            guess=0.5,
            rows=400,
            rows_needed=1000,
            words="",
        )
        for task in ("parity", "half")
    )
    advice = advice_of({"size": 0.0, "uniform": 0.05}, ("uniform",), learned=learned)
    found = answer(advice, NO_RUNS)
    text = " ".join(found.lines)
    assert "Train together" not in text
    assert "Train each task alone" not in text
    assert "Not worth it" not in text
    assert "no advice" in found.lines[-1]
    assert "more rows to train on" in found.lines[0]
    assert plan_of(advice, found).evidence["settled"] is False


def test_the_length_for_which_it_is_said_is_in_words_and_in_the_plan() -> None:
    behind, out = {"uniform": 0.0, "single": 0.1}, ("single",)
    short = answered(behind, out)
    assert "This holds for runs of 800 batches, as long as those that were made." in short.lines
    advice = advice_of(behind, out, length=6400)
    gain, line = (line for line in answer(advice, NO_RUNS).lines if "6,400" in line)
    assert "changes by +0.200 in runs of 800 batches" in gain
    assert gain.endswith("; for 6,400 batches +0.100 is foretold.")
    assert line == (
        "This is said of a training of 6,400 batches (until the curves are flat), from runs of 800 "
        "batches and their learning curves."
    )
    named = replace(advice, options=replace(advice.options, train_batches=6400))
    named = replace(named, long={"uniform": advice.entries["uniform"]}, long_batches=1600)
    found = answer(named, NO_RUNS)
    _, line = (line for line in found.lines if "6,400" in line)
    assert "(the training you named), from runs of 800 batches, one of 1,600 of uniform," in line
    length = plan_of(named, found).length
    assert length is not None
    assert length.batches == 6400
