from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_study import synthetic_data, task_names, write_study
from synthetic_transfer import transfer_document

from taskmix.errors import InputError
from taskmix.report import gather_report, report_html
from taskmix.report._transfer._figures import effect_figure, prediction_figure, transfer_figure
from taskmix.transfer import save_transfer

NAMES = ("first", "second", "third", "last")


def test_every_pair_has_a_cell_and_what_cannot_be_told_a_question_mark() -> None:
    figure = transfer_figure(transfer_document(NAMES))
    assert figure is not None
    (panel,) = figure.panels
    columns = panel.columns
    assert len(columns["source"]) == len(NAMES) * (len(NAMES) - 1)
    for verdict, told, shown in zip(
        columns["series"], columns["told"], columns["shown"], strict=True
    ):
        assert told == (verdict != "cannot tell")
        assert shown.endswith("?") == (verdict == "cannot tell")
    assert max(columns["strength"]) == 1.0
    assert "first helps" in panel.description
    assert "first + second + third; last" in figure.caption


def test_one_target_has_one_column_and_no_row_of_its_own() -> None:
    figure = transfer_figure(transfer_document(NAMES, targets=["second"]))
    assert figure is not None
    assert set(figure.panels[0].columns["target"]) == {"second"}
    assert set(figure.panels[0].columns["source"]) == {"first", "third", "last"}


def test_gains_are_in_order_and_say_what_to_train_with() -> None:
    figure = effect_figure(transfer_document(NAMES))
    assert figure is not None
    panel = figure.panels[1]
    assert panel.columns["source"] == ["first", "third", "last"]
    assert panel.note == "30 runs on 30 subsets; train with: first"


def test_held_out_subsets_are_drawn_where_there_are_any() -> None:
    document = transfer_document(NAMES)
    figure = prediction_figure(document)
    assert figure is not None
    assert len(figure.panels) == len(NAMES)
    assert figure.panels[0].columns["sources"][1] == "second, third"
    targets = tuple(replace(target, held_out=()) for target in document.targets)
    assert prediction_figure(replace(document, targets=targets)) is None
    assert [make(None) for make in (transfer_figure, effect_figure, prediction_figure)] == [
        None
    ] * 3


def test_a_study_with_lessons_of_transfer_shows_them(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", labels=("alone", "4 together"), steps=20)
    assert gather_report(study).transfer is None
    names = [task.name for task in gather_report(study).tasks]
    path = tmp_path / "study" / "transfer.json"
    assert save_transfer(path.parent, transfer_document(names)) == path
    page = report_html(gather_report(study))
    for section in ("transfer", "effects", "predictions"):
        assert f'<section id="{section}">' in page
    path.write_text("{}")
    with pytest.raises(InputError, match=r"transfer.json.*should be a JSON file"):
        gather_report(study)


def test_names_of_tasks_cannot_break_out_of_the_page() -> None:
    data = synthetic_data(labels=("uniform",), steps=40)
    hostile = "</script><script>alert(1)</script>"
    names = [hostile, *task_names(len(data.tasks))[1:]]
    page = report_html(replace(data, transfer=transfer_document(names)))
    assert hostile not in page
    assert r"\u003c/script\u003e\u003cscript\u003ealert(1)" in page, "it is there, as data"


def test_the_charts_hold_to_the_schema_of_vega_lite() -> None:
    altair = pytest.importorskip("altair")
    document = transfer_document(NAMES)
    for make in (transfer_figure, effect_figure, prediction_figure):
        figure = make(document)
        assert figure is not None
        for spec in figure.specs.values():
            whole = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", **spec}
            altair.LayerChart.from_dict(whole | {"data": {"values": []}}, validate=True)
