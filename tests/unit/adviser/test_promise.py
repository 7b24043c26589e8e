from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_up_advice import TASKS, TEMPLATE, MadeUpStudy, _entry, candidates

from taskmix.adviser._expect import expect_score
from taskmix.adviser._promise import promised_scores
from taskmix.adviser._scores import Entry
from taskmix.plans import Expected

STEPS = range(100, 801, 100)


def entries_of(*scores: float, way: str = "uniform", batches: int = 800) -> list[Entry]:
    return [_entry(candidates()[way], seed, score, batches) for seed, score in enumerate(scores)]


def promised(
    entries: list[Entry], study: Any = None, *, end: int = 800, **other: Any
) -> tuple[Expected, ...]:
    values: dict[str, Any] = {"every": {"uniform": entries}, "begin": 800, "middle": 0} | other
    return promised_scores(
        entries,
        values.pop("every"),
        TEMPLATE.load(),
        TASKS,
        study or MadeUpStudy(),
        end=end,
        noise=0.01,
        level=0.9,
        **values,
    )


def curves_of(score: Callable[[int], float], seeds: int = 2) -> Any:
    curve = [(step, score(step)) for step in STEPS]
    return MadeUpStudy({seed: dict.fromkeys(TASKS, curve) for seed in range(seeds)})


def test_without_curves_it_is_what_the_runs_at_hand_have() -> None:
    scores = [0.88, 0.9, 0.9, 0.92]
    parity, half = promised(entries_of(*scores))
    expected = expect_score(scores, "accuracy", dev_rows=400, test_rows=497)
    assert (parity.task, half.task) == TASKS
    assert (parity.value, parity.low, parity.high) == pytest.approx(
        (expected.mean, expected.low, expected.high)
    )


def test_seeds_scatter_as_those_of_all_ways_do() -> None:
    entries, others = entries_of(0.9, 0.9), entries_of(0.7, 0.8, way="size")
    alone, beside = promised(entries), promised(entries, every={"uniform": entries, "size": others})
    assert beside[0].high - beside[0].low > alone[0].high - alone[0].low


def test_scores_are_moved_along_the_curves_of_the_tasks() -> None:
    study = curves_of(lambda step: 0.9 - 20 / step)
    now, later = (promised(entries_of(0.875, 0.875), study, end=end)[0] for end in (800, 1600))
    assert now.value == pytest.approx(0.875)
    assert later.value == pytest.approx(0.875 + 20 / 800 - 20 / 1600, abs=1e-6)
    assert later.high - later.low == pytest.approx(now.high - now.low, rel=0.1), "a law that held"


def test_a_law_that_did_not_hold_makes_a_wide_promise() -> None:
    study = curves_of(lambda step: 0.85 - 20 / min(step, 400))  # it stops half-way
    now, later = (promised(entries_of(0.8, 0.8), study, end=end)[0] for end in (800, 3200))
    assert later.high - later.low > 1.15 * (now.high - now.low)


def test_longer_runs_are_where_the_promise_begins() -> None:
    study = curves_of(lambda step: 0.9 - 20 / step)
    long = entries_of(0.95, 0.95, batches=1600)
    entries = entries_of(0.875, 0.875)
    found = promised(entries, study, end=1600, long=long, middle=1600)[0]
    assert found.value == pytest.approx(0.95)
    further = promised(entries, study, end=3200, long=long, middle=1600)[0]
    assert further.value == pytest.approx(0.95 + 20 / 1600 - 20 / 3200, abs=1e-6)


def test_credits_of_rows_make_a_promise_as_narrow_as_they_are() -> None:
    entries = entries_of(0.5, 0.5)
    even = MadeUpStudy(credits=dict.fromkeys(TASKS, np.full(400, 0.5) + np.tile([0.1, -0.1], 200)))
    wide, narrow = promised(entries)[0], promised(entries, even)[0]
    assert narrow.high - narrow.low < 0.3 * (wide.high - wide.low)
