from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from read_page import Page
from synthetic_study import synthetic_data, write_study

from taskmix.errors import InputError
from taskmix.records import Study
from taskmix.report import gather_report, report_html

LABELS = ("single", "uniform", "proportional", "weighted")


def test_records_give_the_tables_they_were_made_from(tmp_path: Path) -> None:
    study = write_study(tmp_path, labels=LABELS, count=4, steps=300)
    wanted = synthetic_data(labels=LABELS, count=4, steps=300)
    found = gather_report(study, labels=LABELS)

    assert found.labels == wanted.labels
    assert [task.name for task in found.tasks] == [task.name for task in wanted.tasks]
    assert [task.size for task in found.tasks] == [task.size for task in wanted.tasks]
    assert set(found.scores) == set(wanted.scores)
    assert len(found.runs) == len(wanted.runs)
    traces = {(trace.label, trace.seed, trace.tasks): trace for trace in found.traces}
    assert len(traces) == len(wanted.traces)
    for trace in wanted.traces:
        other = traces[trace.label, trace.seed, trace.tasks]
        for name in ("losses", "weights", "examples", "probabilities"):
            np.testing.assert_allclose(getattr(other, name), getattr(trace, name), err_msg=name)
        assert list(other.scores) == list(trace.scores)
        for task, (steps, values) in trace.scores.items():
            np.testing.assert_array_equal(other.scores[task][0], steps)
            np.testing.assert_array_equal(other.scores[task][1], values)


def test_a_probability_that_changes_at_every_step_is_averaged_in_its_bin(tmp_path: Path) -> None:
    study = Study(tmp_path)
    described = {"seed": 0}
    vectors = np.linspace([0.9, 0.1], [0.1, 0.9], 100)
    with study.run(described).claim() as claim:
        assert claim.writer is not None
        tasks = [{"name": "a"}, {"name": "b"}]
        claim.writer.start(specification=described, seed=0, label="x", tasks=tasks, steps=100)
        for part in (slice(0, 37), slice(37, 100)):  # a part of the record begins within a bin
            claim.writer.add_steps(
                np.arange(1, 101)[part],
                np.zeros(100, dtype=int)[part],
                loss=1.0,
                seconds=0.0,
                examples=1,
                probabilities=vectors[part],
            )
            claim.writer.commit(part.stop, {}, best=None, best_step=None, best_changed=False)
        claim.writer.finish(scores=[], best_step=None, step=100)
    (trace,) = gather_report(study).traces
    np.testing.assert_allclose(trace.probabilities, vectors.reshape(50, 2, 2).mean(axis=1).T)


def test_a_run_that_failed_is_listed_and_its_score_is_not_missed(tmp_path: Path) -> None:
    study = write_study(tmp_path, count=2, steps=60, failing=[("uniform", 1)])
    data = gather_report(study)
    failed = [run for run in data.runs if run.status == "failed"]
    assert [(run.label, run.seed) for run in failed] == [("uniform", 1)]
    assert failed[0].error is not None
    assert "should be finite" in failed[0].error
    page = Page(report_html(data))
    assert "1 run did not finish." in page.text
    assert "mean over 2 to 3 seeds" in page.text


def test_damage_to_one_run_costs_that_run_only(tmp_path: Path) -> None:
    study = write_study(tmp_path, labels=("uniform", "proportional"), count=2, steps=60)
    first, second, *_ = study.runs()
    (first.path / "run.json").write_text("{")
    part = next((second.path / "steps").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    data = gather_report(study)
    assert len(data.runs) == 5
    assert len(data.traces) == 4
    assert sum("should describe a run" in note for note in data.notes) == 1
    assert len(data.notes) == 2


def test_a_folder_without_runs_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="should be a study"):
        gather_report(tmp_path / "nowhere")


def test_labels_can_be_chosen_and_put_in_order(tmp_path: Path) -> None:
    study = write_study(tmp_path, count=2, steps=40, seeds=1)
    data = gather_report(study, labels=["uniform", "unknown", "single"])
    assert data.labels == ("uniform", "single")
    assert {run.label for run in data.runs} == {"uniform", "single"}
