"""A run is what determines it: its label is beside it, not in it."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from taskmix.engine import DigitsSource, Run, execute
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.weighting import Equal

RUN = Run(
    label="first",
    source=DigitsSource(),
    tasks=("parity", "half"),
    architecture=Perceptron(hidden=(4,)),
    steps=20,
    batch_size=4,
    evaluate_every=10,
    checkpoint_every=5,
    weighting=Equal(),
    seed=0,
)
OTHER = replace(RUN, label="second")


def _ask(path: str, label: str) -> tuple[str, str]:
    result = execute(replace(RUN, label=label, steps=60), Study(path))
    return label, result.outcome


def test_processes_that_ask_at_once_under_labels_of_their_own_train_once(tmp_path: Path) -> None:
    labels = [f"label {number}" for number in range(4)]
    with get_context("fork").Pool(4) as pool:
        outcomes = dict(pool.starmap(_ask, [(str(tmp_path), label) for label in labels]))
    assert list(outcomes.values()).count("finished") == 1
    assert set(outcomes.values()) <= {"finished", "already finished", "busy"}
    (summary,) = Study(tmp_path).summaries()
    assert sorted(summary.labels) == labels


def test_settings_of_ones_own_that_are_called_label_still_tell_runs_apart(tmp_path: Path) -> None:
    study = Study(tmp_path)
    mine = {"label": "a", "x": 1}
    with study.run(mine).claim() as claim:
        assert claim.writer is not None
        claim.writer.start(specification=mine, seed=0, label="a", tasks=[{"name": "t"}], steps=1)
        claim.writer.finish(scores=[], best_step=None)
    assert not Study(tmp_path).run({"x": 1}, label="a").is_finished
    assert Study(tmp_path).run(mine).is_finished
