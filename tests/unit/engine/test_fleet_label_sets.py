"""Rows with several labels, and steps without a target of some task: a fleet does as runs do alone."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fleet_toys import (
    RUN,
    SPLITS,
    WORDS,
    MarkedRows,
    changed,
    must_meet_half_way,
    runs_of,
    side_by_side,
    together,
)
from test_fleet_adapters import adapted
from test_fleet_learning import BY_MEMBER, STACKED, name_of

from taskmix.engine import FolderSource
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.weighting import FAMO, Equal, FixedWeights, PCGrad

DECISIONS: list[Any] = [Equal(), None]


SUBSETS = (("many", "kind", "sum"), ("two", "many"), ("kind", "two"), ("many",))


def genres(folder: Path, *, tagged: bool = False) -> FolderSource:
    """Texts with several labels and texts with one; with `tagged`, words with a tag as well."""
    chance = random.Random(0)
    for name, rows in (("sets", 40), ("one", 30), ("tags", 12 if tagged else 0)):
        for split, count in zip(SPLITS, (rows, 12, 12) if rows else (0, 0, 0), strict=True):
            lines = []
            for _ in range(count):
                words = chance.choices(WORDS, k=chance.randint(1, 9))
                numbers = [int(word[1:]) for word in words]
                row: dict[str, Any] = {"text": " ".join(words)}
                if name == "sets":
                    row["label"] = sorted({"low" if n < 20 else "high" for n in numbers if n % 3})
                elif name == "one":
                    row["label"] = ("x", "y", "z")[numbers[0] % 3]
                else:
                    row = {"tokens": words, "tags": [("N", "V")[n % 2] for n in numbers]}
                lines.append(json.dumps(row) + "\n")
            if lines:
                path = folder / "genres" / name / f"{split}.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(lines))
    return FolderSource(path=str(folder / "genres"))


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
def test_perceptrons_learn_label_sets_as_they_do_alone(tmp_path: Path, weighting: Any) -> None:
    dropping = Perceptron(hidden=(12,), dropout=0.1, head_dropout=0.2)
    base = changed(RUN, dropping, source=MarkedRows())
    side_by_side(together(runs_of(base, SUBSETS, weighting=weighting)), tmp_path)


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
def test_adapters_learn_label_sets_beside_tags_as_they_do_alone(
    tmp_path: Path, weighting: Any
) -> None:
    base = adapted(tmp_path, source=genres(tmp_path, tagged=True))
    subsets = (("sets", "tags"), ("one", "sets"), ("tags", "one", "sets"))
    side_by_side(runs_of(base, subsets, weighting=weighting), tmp_path, tolerance=1e-4)


@pytest.mark.parametrize(
    "weighting",
    [Equal(), FixedWeights(weights=(1.0, 3.0)), *STACKED[:2], STACKED[3], *BY_MEMBER],
    ids=name_of,
)
def test_a_task_without_a_target_in_a_step_has_no_loss_and_no_weight_there(
    tmp_path: Path, weighting: Any
) -> None:
    base = replace(RUN, source=MarkedRows(rare=True), batch_size=6, checkpoint_every=10)
    subsets = (("many", "sum"), ("sum", "two"), ("kind", "sum"))
    runs = together(runs_of(base, subsets, weighting=weighting))
    side_by_side(runs, tmp_path)
    for run in runs:
        rows = Study(tmp_path / "together").run(run.specification()).steps()
        by_step: dict[int, dict[str, float]] = {}
        for row in rows.to_pylist():
            assert np.isfinite(row["loss"])
            by_step.setdefault(row["step"], {})[row["task"]] = row["weight"]
        assert set(by_step) == set(range(1, run.steps + 1))
        alone = [weights for weights in by_step.values() if len(weights) == 1]
        assert len(alone) > 3  # else nothing was tried
        assert all(weights == {"sum": pytest.approx(1.0)} for weights in alone)
        seconds = rows["seconds"].to_numpy()
        assert seconds.min() > 0


def test_a_run_with_missing_losses_is_gone_on_with_by_either_engine(tmp_path: Path) -> None:
    base = replace(RUN, source=MarkedRows(rare=True), batch_size=6, checkpoint_every=10)
    runs = runs_of(base, (("many", "sum"), ("sum", "two")), weighting=STACKED[1])
    side_by_side(runs, tmp_path)
    must_meet_half_way(runs, Study(tmp_path / "alone"), tmp_path)


def test_a_method_of_gradients_does_without_a_task_and_one_of_every_task_passes_rows_over(
    tmp_path: Path,
) -> None:
    from taskmix.engine import Here

    base = replace(RUN, source=MarkedRows(rare=True), batch_size=6)
    runs = [replace(base, tasks=("many", "sum"), weighting=each) for each in (PCGrad(), FAMO())]
    results = Here(workers=1).run(runs, study := Study(tmp_path))
    assert [result.outcome for result in results] == ["finished", "finished"]
    counts = [study.run(run.specification()).steps().num_rows for run in runs]
    assert RUN.steps < counts[0] < 2 * RUN.steps == counts[1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("weighting", [Equal(), None, STACKED[1], BY_MEMBER[0]], ids=name_of)
@pytest.mark.parametrize("rare", [False, True])
def test_on_a_gpu_steps_with_label_sets_and_missing_losses_are_those_of_runs_alone(
    tmp_path: Path, weighting: Any, rare: bool
) -> None:
    base = replace(RUN, source=MarkedRows(rare=rare), batch_size=6, device="cuda")
    subsets = (("many", "sum"), ("sum", "two"), ("kind", "sum"))
    side_by_side(runs_of(base, subsets, weighting=weighting), tmp_path, tolerance=1e-3)
