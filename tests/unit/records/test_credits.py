"""What each row adds to a run's scores is kept with the run, and goes when the run is done anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import SPECIFICATION, begin

from taskmix.errors import RecordError
from taskmix.records import RunFolder, Study, _credits, pack_run, unpack_run

CREDITS = {"news": np.array([0.0, 1.0, np.nan]), "sums": np.array([0.1, 1e6])}


def finished(folder: RunFolder, credits_of_rows: dict[str, Any], *, fresh: bool = False) -> None:
    with folder.claim(fresh=fresh) as claim:
        begin(claim.writer, "news", "sums").finish(
            scores=[], best_step=None, step=1, row_credits=credits_of_rows
        )


def test_credits_are_read_as_they_were_given_to_single_precision(tmp_path: Path) -> None:
    folder = Study(tmp_path).run(SPECIFICATION)
    assert folder.credits() == {}
    finished(folder, CREDITS)
    found = folder.credits()
    assert list(found) == ["news", "sums"]
    for task, rows in CREDITS.items():
        assert found[task].dtype == np.float32
        np.testing.assert_array_equal(found[task], rows.astype(np.float32))


def test_what_rows_add_to_the_loss_is_kept_beside_the_metric(tmp_path: Path) -> None:
    folder = Study(tmp_path).run(SPECIFICATION)
    finished(folder, {"news": np.array([[0.0, 1.0], [0.7, 0.1]]), "sums": np.array([3.0, 4.0])})
    assert folder.credits()["news"].tolist() == [0.0, 1.0]
    assert folder.credits("loss")["news"].tolist() == np.float32([0.7, 0.1]).tolist()
    # As runs of earlier versions have it: the metric alone.
    assert folder.credits()["sums"].tolist() == [3.0, 4.0]
    assert list(folder.credits("loss")) == ["news"]


@pytest.mark.parametrize("why", ["lean", "none given", "too many"])
def test_no_file_is_written_where_there_is_nothing_to_keep(
    tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Study(tmp_path, lean=why == "lean").run(SPECIFICATION)
    if why == "too many":
        monkeypatch.setattr(_credits, "MOST", 4)
    finished(folder, {} if why == "none given" else CREDITS)
    assert folder.credits() == {}
    assert not (folder.path / "scores/credits.safetensors").exists()


def test_a_run_that_starts_over_has_no_credits_of_before(tmp_path: Path) -> None:
    folder = Study(tmp_path).run(SPECIFICATION)
    finished(folder, CREDITS)
    with folder.claim(fresh=True) as claim:
        assert claim.writer is not None
        assert folder.credits() == {}
    finished(folder, {})
    assert folder.credits() == {}


def test_an_unfinished_run_has_no_credits_even_if_a_file_is_there(tmp_path: Path) -> None:
    folder = Study(tmp_path).run(SPECIFICATION)
    with folder.claim() as claim:
        begin(claim.writer, "news")
        _credits.write_credits(folder.path, CREDITS)  # killed before `run.json` says it is over
    assert folder.credits() == {}
    finished(folder, {})
    assert folder.credits() == {}


def test_credits_travel_with_the_run(tmp_path: Path) -> None:
    sent = Study(tmp_path / "far").run(SPECIFICATION)
    finished(sent, CREDITS)
    here = Study(tmp_path / "home").run(SPECIFICATION)
    assert unpack_run(here, pack_run(sent))
    np.testing.assert_array_equal(here.credits()["sums"], sent.credits()["sums"])
    assert pack_run(here) == pack_run(sent)


def test_a_damaged_file_is_told_in_words(tmp_path: Path) -> None:
    folder = Study(tmp_path).run(SPECIFICATION)
    finished(folder, CREDITS)
    path = folder.path / "scores/credits.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(RecordError, match="what each row adds"):
        folder.credits()
