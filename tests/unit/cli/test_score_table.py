"""The table of final scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskmix.cli._printing._tables import score_table
from taskmix.records import Study


@pytest.mark.parametrize(
    ("metrics", "mean"),
    [
        (("accuracy", "exact_match"), 1.0),
        (("rmse", "rmse"), 1.0),
        (("exact_match", "bits_per_byte"), None),  # higher is better for one of them only
        (("accuracy", "rmse"), None),
    ],
)
def test_a_mean_is_given_where_scores_can_be_averaged(
    metrics: tuple[str, str], mean: float | None, tmp_path: Path
) -> None:
    study = Study(tmp_path / "study")
    with study.run({"rate": 0.1}).claim() as claim:
        claim.writer.start(
            specification={"rate": 0.1},
            seed=7,
            label="x",
            tasks=[{"name": "a"}, {"name": "b"}],
            steps=1,
        )
        scores = [("a", "dev", metrics[0], 0.5), ("b", "dev", metrics[1], 1.5)]
        claim.writer.finish(scores=scores, best_step=None)
    found = score_table(study.summaries(), "dev").means
    assert {label: interval.mean for label, interval in found.items()} == (
        {} if mean is None else {"x": mean}
    )
