"""Runs to learn from are chosen by any label that they were asked for under."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from taskmix.counterfactual._recorded import recorded_runs
from taskmix.engine import DigitsSource, Run, execute
from taskmix.errors import InputError
from taskmix.models import Perceptron
from taskmix.policies import HardProgress, Uniform
from taskmix.records import Study

RUN = Run(
    label="first",
    source=DigitsSource(),
    tasks=("parity", "half"),
    architecture=Perceptron(hidden=(4,)),
    policy=Uniform(),
    reward=HardProgress(),
    steps=4,
    seed=0,
)


def test_a_run_of_two_labels_is_chosen_by_either_and_learned_from_once(tmp_path: Path) -> None:
    study = Study(tmp_path)
    for label in ("first", "second"):
        execute(replace(RUN, label=label), study)
    for labels in (["first"], ["second"], ["first", "second"], None):
        found, notes = recorded_runs([study], labels)
        assert [run.summary.labels for run in found] == [("first", "second")]
        assert notes == ()
    with pytest.raises(InputError, match="runs labelled first, second"):
        recorded_runs([study], ["third"])
