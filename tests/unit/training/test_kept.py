from __future__ import annotations

import math

from taskmix.training import Watches, best_state
from taskmix.training._kept import KeptParameters


def kept_after(*evaluations: dict[str, float]) -> KeptParameters:
    kept = KeptParameters(Watches.of("each", ["a", "b", "c"], patience=None))
    for step, scores in enumerate(evaluations, start=1):
        mean = sum(scores.values()) / len(scores)
        kept.see(mean, scores, step, {"weight": step})
    return kept


def test_copies_that_no_task_needs_any_more_are_dropped() -> None:
    kept = kept_after(
        {"a": 0.1, "b": 0.1}, {"a": 0.2, "b": 0.5}, {"a": 0.3, "b": 0.4}, {"a": 0.0, "b": 0.0}
    )
    tree = kept.tree()
    assert tree is not None
    assert set(tree["states"]) == {2, 3}  # the best of b, and of a; 2 and 3 have equal means
    assert best_state(tree, "b") == {"weight": 2}
    assert best_state(tree, "a") == {"weight": 3}


def test_a_task_without_dev_scores_is_served_by_the_best_mean() -> None:
    kept = kept_after({"a": 0.9, "b": 0.1}, {"a": 0.8, "b": 0.8})
    assert best_state(kept.tree() or {}, "c") == {"weight": 2}
    served = {tuple(places): state["weight"] for state, places in kept.serving(["a", "b", "c"])}
    assert served == {(0,): 1, (1, 2): 2}


def test_a_score_that_is_not_defined_is_no_best_moment_once_there_was_one() -> None:
    watches = Watches.of("each", ["a"], patience=None)
    for step, score in enumerate((math.nan, 0.4, math.nan), start=1):
        watches.see(0.0, {"a": score}, step)
    assert watches.step_for("a") == 2


def test_watches_go_on_from_a_checkpoint() -> None:
    before = kept_after({"a": 0.9, "b": 0.1}, {"a": 0.8, "b": 0.8})
    again = KeptParameters(Watches.of("each", ["a", "b", "c"], patience=None))
    again.restore(before.watches.state(), before.tree())
    for kept in (before, again):
        kept.see(0.5, {"a": 0.95, "b": 0.05}, 3, {"weight": 3})
    assert again.tree() == before.tree()
