from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from taskmix.engine import DigitsSource, Executed, Run
from taskmix.errors import RunError
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.transfer import SubsetDesign, TransferStudy, train_trials


def test_runs_that_a_full_disk_refused_are_not_taken_for_failures_of_the_tasks(
    tmp_path: Path,
) -> None:
    template = Run(
        label="x", source=DigitsSource(), architecture=Perceptron(hidden=(4,)), steps=2, seed=0
    )
    described = TransferStudy(template=template, targets=("parity",), design=SubsetDesign(count=8))

    class FullDisk:
        at_once = 1

        def run(self, runs: Sequence[Run], study: Study, **how: object) -> list[Executed]:
            error = "There should be room on the disk."
            result = Executed(outcome="failed", summary=None, error=error, recorded=False)
            return [result for _ in runs]

    with pytest.raises(RunError, match=r"could not be recorded\. There should be room"):
        train_trials(described, Study(tmp_path), executor=FullDisk())
