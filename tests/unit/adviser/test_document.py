from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from earlier_advice import FIRST, OUTLOOK, finished, of_one_seed
from made_up_advice import TASKS, made_up_advice
from plain_leaves import leaves

from taskmix.adviser import Advised
from taskmix.adviser._advice import Advice
from taskmix.adviser._answer import answer
from taskmix.adviser._document import advice_document
from taskmix.adviser._history import History
from taskmix.errors import InputError
from taskmix.plans import AdviceDocument, Outlook, load_advice, race_rows, save_advice
from taskmix.records import Study, to_plain

EARLIER = json.loads((Path(__file__).parent / "earlier_documents.json").read_text())


def document_of(advice: Advice, history: History, last: Outlook | None = None) -> AdviceDocument:
    return advice_document(
        advice,
        answer(advice),
        title="Advice for digits",
        seconds=1.5,
        history=history,
        outlook=last,
        commands={"Train by the plan": "taskmix train digits"},
    )


@pytest.mark.parametrize(
    ("name", "make", "last"),
    [("finished", finished, OUTLOOK), ("of one seed", of_one_seed, None)],
)
def test_programs_find_in_the_file_what_they_found_before(
    name: str, make: Callable[[], tuple[Advice, History]], last: Outlook | None, tmp_path: Path
) -> None:
    path = save_advice(tmp_path, document_of(*make(), last))
    now, before = (
        {place: value for place, value in leaves(document) if not place.startswith(".lines[")}
        for document in (json.loads(path.read_text()), EARLIER[name])
    )  # words may become better ones
    assert list(now) == list(before), "the same entries in the same order, null where they were"
    assert now == pytest.approx(before, rel=1e-9)


def test_stages_are_told_by_what_is_new_and_those_that_cost_nothing_are_none() -> None:
    _, history = finished()
    assert [(each.stage, each.spent) for each in history.milestones] == [
        ("baselines", 3000.0),
        ("candidates", 6000.0),
        ("race", 7500.0),
    ]
    assert [each.leader for each in history.milestones] == ["uniform", "size", "size"]
    assert history.milestones[2].seeds == 3


def test_a_loser_is_out_from_the_stage_after_which_it_never_could_win() -> None:
    _, history = finished()
    assert history.out_after("single") == 0
    assert history.out_after("equal") == 1, "it was not there before"
    assert history.out_after("size") is None


def test_the_document_comes_back_as_it_was_written(tmp_path: Path) -> None:
    document = document_of(*finished())
    save_advice(tmp_path, document)
    assert load_advice(tmp_path) == document
    assert document.version == 1
    assert document.chosen == "size"
    assert document.outlook is None
    assert [row.task for row in document.expected] == list(TASKS)
    # Test scores were made up as one point below dev: 0.92, 0.93, 0.92.
    test = document.expected[0].test
    assert test is not None
    assert test.mean == pytest.approx(0.9233, abs=1e-4)
    rows = {row.name: row for row in document.candidates}
    assert len(rows["size"].runs) == 3
    assert (rows["single"].open, rows["single"].out_after) == (False, 0)


def test_a_notebook_shows_the_race_as_the_terminal_does(tmp_path: Path) -> None:
    advice, history = finished()
    advised = Advised(advice, answer(advice), Study(tmp_path), document_of(advice, history))
    header, *rows = advised.table()
    assert header == ("way of training", "score", "behind", "seeds", "batches", "s", "standing")
    assert [row[-1] for row in rows] == [
        "leads",
        "out after candidates",
        "out after baselines",
        "out after candidates",
    ]
    assert rows[0][2] == "", "the leader is behind nobody"
    first = race_rows(advised.document)[2]
    assert rows[2][2] == f"{first.behind} ({first.interval})"
    page = advised._repr_html_()
    assert all(f"<td>{escape(cell)}</td>" in page for row in rows for cell in row)


def test_one_seed_has_no_interval_and_the_document_says_null() -> None:
    document = document_of(*of_one_seed())
    plain = to_plain(document)
    assert plain["candidates"][1]["behind"]["low"] is None
    assert plain["expected"][0]["test"]["low"] is None
    assert race_rows(document)[1].interval == ""


def test_a_file_of_another_form_is_told(tmp_path: Path) -> None:
    assert load_advice(tmp_path) is None
    document = to_plain(document_of(*finished()))
    for broken in ({**document, "version": 2}, {**document, "lines": 3}, {"version": 1}, [1]):
        (tmp_path / "advice.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match="`taskmix advise` wrote"):
            load_advice(tmp_path)


def test_what_is_known_half_way_is_a_document_too() -> None:
    advice = replace(made_up_advice(FIRST), notes=("A run failed.",))
    document = document_of(advice, History())
    assert document.milestones == ()
    assert document.notes == ("A run failed.",)


def test_brackets_without_end_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "advice.json").write_bytes(b"[" * 200_000)
    with pytest.raises(InputError, match=r"advice.json` should be a JSON file .* that is no JSON"):
        load_advice(tmp_path)
