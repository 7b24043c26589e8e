from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_study import synthetic_data, task_names, write_study
from synthetic_transfer import transfer_document

from taskmix.errors import InputError
from taskmix.report import gather_report, report_html
from taskmix.report._transfer_figures import effect_figure, prediction_figure
from taskmix.report._transfer_words import SHADES, transfer_map
from taskmix.transfer import save_transfer

NAMES = ("first", "second", "third", "last")


def test_every_pair_has_a_cell_and_what_cannot_be_told_a_question_mark() -> None:
    found = transfer_map(transfer_document(NAMES))
    cells = [cell for row in found.rows for cell in row.cells]
    assert len([cell for cell in cells if cell.kind]) == len(NAMES) * (len(NAMES) - 1)
    for cell in cells:
        assert (cell.shade > 0) == (cell.kind in ("helps", "harms"))
        assert cell.shown.endswith("?") == (cell.kind == "untold")
    assert max(cell.shade for cell in cells) == SHADES
    assert "first helps second: 0.200 (0.160 to 0.240)" in [cell.title for cell in cells]


def test_the_page_answers_before_it_draws() -> None:
    data = synthetic_data(NAMES, labels=("alone", "4 together"), steps=40)
    page = report_html(replace(data, transfer=transfer_document(NAMES)))
    first = "Of 12 pairs of a source and a target, 3 help, 3 hurt and 6 cannot be told."
    assert f'<p class="verdict">{first}</p>' in page
    assert "first helps second by 0.20 (0.16 to 0.24); last hurts it by 0.15 (0.11 to 0.19)" in page
    places = [page.index(f'<section id="{name}"') for name in ("answers", "transfer", "effects")]
    assert places == sorted(places)
    assert '<section id="scores" class="folded">' in page, "the runs are details"
    assert "has the best mean" not in page, "a label of a subset is no way of training"


def test_no_axis_goes_beyond_what_a_metric_can_be() -> None:
    document = transfer_document(NAMES)
    targets = tuple(
        replace(
            target,
            sources=tuple(replace(row, low=-3.0, high=2.0) for row in target.sources),
            held_out=(
                *(replace(row, observed=0.99, predicted=1.2) for row in target.held_out),
                replace(target.held_out[0], observed=0.5, predicted=0.6),
            ),
        )
        for target in document.targets
    )
    shares = replace(document, measure="accuracy", targets=targets)
    effects, predictions = effect_figure(shares), prediction_figure(shares)
    assert effects is not None
    assert predictions is not None
    columns = effects.panels[0].columns
    assert (min(columns["low"]), max(columns["high"])) == (-1.0, 1.0)
    assert "2.000" in columns["interval"][0], "words say what was found"
    assert max(predictions.panels[0].columns["predicted"]) == 1.0
    (spec, *_) = predictions.specs.values()
    assert spec["layer"][1]["encoding"]["x"]["scale"]["domain"][1] == 1.0
    losses = effect_figure(replace(shares, measure="margin"))
    assert losses is not None
    assert max(losses.panels[0].columns["high"]) == 2.0


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
    for make in (effect_figure, prediction_figure):
        figure = make(document)
        assert figure is not None
        for spec in figure.specs.values():
            whole = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", **spec}
            altair.LayerChart.from_dict(whole | {"data": {"values": []}}, validate=True)
