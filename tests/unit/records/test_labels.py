"""Labels lie beside a run: any number of them, added by anybody at any time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import SPECIFICATION, begin

from taskmix.records import Study, pack_labels, pack_run, unpack_run

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def ask(study: Study, label: str, *, finish: bool = True, fresh: bool = False) -> str:
    """Asks for the one run; what came of it."""
    with study.run(SPECIFICATION, label=label).claim(fresh=fresh) as claim:
        if claim.writer is not None:
            writer = begin(claim.writer, "a", label=label)
            if finish:
                writer.finish(scores=[("a", "dev", "f1", 0.5)], best_step=None)
            else:
                writer.stop()
        return claim.outcome


def labels_of(study: Study) -> tuple[str, ...]:
    summary = study.run(SPECIFICATION).summary()
    assert summary is not None
    return summary.labels


def test_a_finished_run_is_under_every_label_it_was_asked_for_under(tmp_path: Path) -> None:
    study = Study(tmp_path)
    assert [ask(study, label) for label in ("b", "a", "b", "c")] == ["claimed"] + ["finished"] * 3
    assert labels_of(study) == ("b", "a", "c"), "the first one first"
    assert study.scores()["label"].to_pylist() == ["b", "a", "c"]
    assert len(set(study.scores()["run"].to_pylist())) == 1
    (summary,) = study.summaries()
    assert [each.label for each in summary.under_each_label()] == ["b", "a", "c"]
    assert all(set(each.labels) == {"a", "b", "c"} for each in summary.under_each_label())


@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_that_goes_on_or_starts_over_keeps_its_labels(tmp_path: Path, fresh: bool) -> None:
    study = Study(tmp_path)
    ask(study, "first", finish=False)
    ask(study, "second", finish=False)
    assert ask(study, "third", fresh=fresh) == "claimed"
    assert labels_of(study) == ("first", "second", "third")
    assert study.scores().num_rows == 3


def test_a_run_that_another_process_is_at_gets_the_label_too(tmp_path: Path) -> None:
    study = Study(tmp_path)
    with study.run(SPECIFICATION, label="first").claim() as claim:
        assert ask(study, "second") == "busy", "before it has begun"
        writer = begin(claim.writer, "a", label="first")
        assert ask(study, "third") == "busy"
        writer.finish(scores=[], best_step=None)
    assert labels_of(study) == ("first", "second", "third")


@settings(max_examples=40, deadline=None)
@given(asked=st.lists(words, min_size=1, max_size=6))
def test_after_any_asking_the_labels_are_those_asked_for(
    asked: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    study = Study(tmp_path_factory.mktemp("study"))
    for label in asked:
        ask(study, label)
    found = labels_of(study)
    assert found[0] == asked[0]
    assert sorted(found) == sorted(set(asked))
    assert len(list(study.runs())) == 1


def test_labels_that_are_added_at_once_are_all_there(tmp_path: Path) -> None:
    study = Study(tmp_path)
    ask(study, "first")
    asked = [f"label {number % 10}" for number in range(60)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda label: study.run(SPECIFICATION, label=label).keep_label(), asked))
    assert labels_of(study) == ("first", *sorted(set(asked)))


def test_a_damaged_label_is_told_and_comes_back_when_it_is_asked_for(tmp_path: Path) -> None:
    study = Study(tmp_path)
    for label in ("first", "second", "third"):
        ask(study, label)
    folder = study.run(SPECIFICATION).path / "labels"
    damaged = next(path for path in folder.iterdir() if "second" in path.read_text())
    for content in ("", "{}", '{"label": 3}', '{"label": "other"}', "[" * 100_000, "\xff"):
        damaged.write_text(content)
        notes: list[str] = []
        assert [each.labels for each in study.summaries(note=notes.append)] == [("first", "third")]
        assert study.scores(note=notes.append)["label"].to_pylist() == ["first", "third"]
        assert len(notes) == 2
        assert all(f"`{damaged}` should be a label of the run" in note for note in notes)
        assert study.run(SPECIFICATION).is_finished, "whatever becomes of a label"
    ask(study, "second")
    assert labels_of(study) == ("first", "second", "third")


def test_a_packed_record_carries_its_labels(tmp_path: Path) -> None:
    study, other = Study(tmp_path / "one"), Study(tmp_path / "other")
    ask(study, "first")
    ask(study, "second")
    files = pack_run(study.run(SPECIFICATION))
    assert unpack_run(other.run(SPECIFICATION), files)
    assert labels_of(other) == ("first", "second")
    assert pack_labels(other.run(SPECIFICATION)).keys() == {
        name for name in files if "label" in name
    }


def test_a_record_that_arrives_leaves_the_labels_that_were_there(tmp_path: Path) -> None:
    here, far = Study(tmp_path / "here"), Study(tmp_path / "far")
    ask(here, "first", finish=False)
    ask(here, "second", finish=False)
    ask(far, "third")
    assert unpack_run(here.run(SPECIFICATION), pack_run(far.run(SPECIFICATION)))
    assert here.run(SPECIFICATION).is_finished
    assert set(labels_of(here)) == {"first", "second", "third"}
