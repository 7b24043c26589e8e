"""Causal transformers in a fleet: each member learns what it learns alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fleet_toys import passage_runs, side_by_side

from taskmix.engine import Fleet, Here
from taskmix.models import CausalTransformer
from taskmix.policies import Tempered
from taskmix.records import Study
from taskmix.weighting import Equal, FixedWeights, GroupDRO


@pytest.mark.parametrize(
    ("weighting", "tied"), [(Equal(), True), (None, False)], ids=["all", "drawn, untied"]
)
def test_members_train_as_they_do_alone(tmp_path: Path, weighting: Any, tied: bool) -> None:
    tiny = CausalTransformer(layers=2, width=16, attention_heads=2, context=16, tied=tied)
    side_by_side(passage_runs(tmp_path, architecture=tiny, weighting=weighting), tmp_path)


def test_rows_beyond_what_attention_takes_at_once_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskmix.engine._fleet._causal.MOST_ROWS", 5)
    side_by_side(passage_runs(tmp_path), tmp_path)


def test_members_have_policies_weights_and_clipping_of_their_own(tmp_path: Path) -> None:
    runs = passage_runs(tmp_path, weighting=None)
    runs = [
        replace(run, policy=policy, clip_norm=norm)
        for run, policy, norm in zip(
            runs, (Tempered(temperature=2.0), None, None), (None, 0.1, 0.5), strict=True
        )
    ]
    side_by_side(runs, tmp_path / "drawn")
    weights = ((1.0, 3.0), (1.0,), (1.0, 0.0, 2.0))
    runs = [
        replace(run, policy=None, weighting=FixedWeights(weights=given))
        for run, given in zip(runs, weights, strict=True)
    ]
    side_by_side(runs, tmp_path / "all")
    side_by_side([replace(run, weighting=GroupDRO()) for run in runs], tmp_path / "by losses")


def test_a_member_that_stops_leaves_the_others_as_they_are_alone(tmp_path: Path) -> None:
    runs = passage_runs(tmp_path, steps=40, evaluate_every=4, patience=1)
    wild = replace(runs[1].optimization, learning_rate=0.05)
    runs = [runs[0], replace(runs[1], optimization=wild), runs[2]]
    side_by_side(runs, tmp_path, tolerance=1e-4)


def test_lower_precision_is_as_near_as_it_lets_members_be(tmp_path: Path) -> None:
    runs = passage_runs(tmp_path, precision="bfloat16", steps=10)
    alone = Here(workers=1).run(runs, Study(tmp_path / "alone"))
    together = Fleet(workers=1).run(runs, Study(tmp_path / "together"))
    for solo, member in zip(alone, together, strict=True):
        assert solo.summary is not None
        assert member.summary is not None
        for mine, its in zip(member.summary.scores, solo.summary.scores, strict=True):
            assert mine.value == pytest.approx(its.value, rel=0.02)
