from __future__ import annotations

import math

from taskmix.training import Watch


def test_the_best_is_the_first_of_equals_and_patience_counts_what_follows() -> None:
    watch = Watch(patience=2)
    seen = [watch.see(mean, step) for step, mean in enumerate([0.5, 0.7, 0.7, 0.6], start=1)]
    assert seen == [True, True, False, False]
    assert (watch.step, watch.score, watch.waited) == (2, 0.7, 2)
    assert watch.over
    assert not Watch(patience=None, waited=99).over


def test_without_scores_the_latest_is_the_best() -> None:
    watch = Watch(patience=1)
    assert [watch.see(math.nan, step) for step in (1, 2, 3)] == [True] * 3
    assert watch.step == 3
    assert not watch.over


def test_a_watch_goes_on_from_what_a_checkpoint_keeps() -> None:
    watch = Watch(patience=3)
    for step, mean in enumerate([0.5, 0.4], start=1):
        watch.see(mean, step)
    again = Watch(patience=3)
    again.restore(watch.state())
    assert again == watch
