from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_laws import laws_document, results_table

from taskmix.errors import InputError
from taskmix.laws import LawsDocument, fit_formula, read_laws, write_laws
from taskmix.laws._judging import Front, StackRow
from taskmix.laws._learning._document import PredictionRow
from taskmix.laws._learning._picture import picture_laws
from taskmix.report import check_laws_page, laws_page_html, write_laws_page
from taskmix.report._laws._contents import laws_contents
from taskmix.report._laws._figures import curve_figure_of_laws, front_figure, observed_figure

FIGURES = (curve_figure_of_laws, front_figure, observed_figure)


@pytest.fixture(scope="module")
def document() -> LawsDocument:
    return laws_document()


def test_the_page_has_the_law_its_alternatives_and_what_they_foretell(
    document: LawsDocument,
) -> None:
    page = laws_page_html(document)
    for part in (
        document.law.formula,
        'id="curves"',
        'id="front"',
        'id="alternatives"',
        'id="observed"',
        "at n = 16000",
        "Outside the range of the data: n = 32000.",
        "At n = 8000 and T = 2: 0.916 (0.914 to 0.918).",
    ):
        assert part in page, part
    for row in document.front:
        assert row.formula in page


def test_the_page_says_why_a_law_is_disqualified_and_has_the_weights_of_a_stack(
    document: LawsDocument,
) -> None:
    first, *others = document.front
    assert "disqualified" not in laws_page_html(document)
    why = "has a pole at n = 9000, within the range asked for"
    page = laws_page_html(
        replace(
            document,
            front=(replace(first, disqualified=why), *others),
            stack=(StackRow("2*n", 0.625, True), StackRow("3*log(n)", 0.375, False)),
            stack_prediction=PredictionRow({"n": 8000.0}, 0.5, 0.25, 0.75, ""),
        )
    )
    assert f"disqualified: {why}" in page
    assert "3*log(n)" in page
    assert "0.38" in page
    assert "The mean of tied laws there: 0.5 (0.25 to 0.75)." in page


def test_curves_go_beyond_the_data_and_what_lies_beyond_is_shaded(document: LawsDocument) -> None:
    assert document.picture is not None
    first, second = document.picture.curves
    assert (first.input, second.input) == ("n", "T"), "n changes f1 most"
    assert first.inside == (250.0, 8000.0)
    assert first.at[0] == 250
    assert first.at[-1] == 16000
    assert 8000 in first.at
    assert first.by_logarithm
    assert not second.by_logarithm
    assert all(
        low <= value <= high
        for low, value, high in zip(first.low, first.values, first.high, strict=True)
    )
    figure = curve_figure_of_laws(document)
    assert figure is not None
    shading = figure.specs["curve-0"]["layer"][0]["data"]["values"]
    assert shading == [{"begin": 8000.0, "end": 16000.0}]


def test_a_share_is_not_drawn_beyond_one() -> None:
    table = results_table()
    share = {"ami": table["T"] / 10}  # up to 0.8
    law = fit_formula("1 + ami", share, table["f1"], name="f1")
    picture = picture_laws(Front((law,), 0, "ami", 1, 1), share, table["f1"])
    assert picture.curves[0].at[-1] == 1.0
    whole = {"ami": table["T"] / 8}
    law = fit_formula("1 + ami", whole, table["f1"], name="f1")
    picture = picture_laws(Front((law,), 0, "ami", 1, 1), whole, table["f1"])
    assert picture.curves[0].at[-1] == 1.0
    assert picture.far_ends == ()


def test_a_pole_is_told_and_leaves_the_axis_as_it_is() -> None:
    table = results_table()
    law = fit_formula("1/(12 - T)", {"T": table["T"]}, table["f1"], name="score")
    wild = replace(
        law,
        expression=fit_formula(
            "1/(12 - T)", {"T": [1.0, 2.0, 3.0, 4.0]}, [1 / 11, 1 / 10, 1 / 9, 1 / 8], name="y"
        ).expression,
    )
    picture = picture_laws(Front((wild,), 0, "T", 1, 1), {"T": table["T"]}, table["f1"])
    (words,) = picture.warnings
    assert "beyond the data" in words
    assert "pole" in words
    found = curve_figure_of_laws(replace(laws_document(), target="score", picture=picture))
    assert found is not None
    low, high = found.specs["curve-0"]["layer"][2]["encoding"]["y"]["scale"]["domain"]
    assert -1 < low < high < 2


def test_no_axis_goes_beyond_what_the_target_can_be(document: LawsDocument) -> None:
    picture = document.picture
    assert picture is not None
    high = replace(
        picture.curves[0], values=tuple(value + 0.2 for value in picture.curves[0].values)
    )
    found = curve_figure_of_laws(replace(document, picture=replace(picture, curves=(high,))))
    assert found is not None
    assert found.specs["curve-0"]["layer"][2]["encoding"]["y"]["scale"]["domain"][1] == 1.0
    other = curve_figure_of_laws(
        replace(document, target="points", picture=replace(picture, curves=(high,)))
    )
    assert other is not None
    assert other.specs["curve-0"]["layer"][2]["encoding"]["y"]["scale"]["domain"][1] > 1.0


def test_the_chosen_law_is_marked_on_the_front(document: LawsDocument) -> None:
    figure = front_figure(document)
    assert figure is not None
    columns = figure.panels[0].columns
    assert columns["series"].count("chosen") == 1
    chosen = columns["series"].index("chosen")
    assert columns["formula"][chosen] in document.law.formula


def test_laws_that_fit_alike_say_how_far_they_differ_beyond_the_data(
    document: LawsDocument,
) -> None:
    first, *_ = document.front
    alike = tuple(replace(row, held_out_mse=1e-4) for row in document.front)
    found = laws_contents(replace(document, front=alike), {})
    assert found.disagreement.startswith(
        f"The {len(alike)} laws whose held-out error is within 10 %"
    )
    apart = tuple(replace(row, held_out_mse=1e-4 if row.chosen else 1.0) for row in document.front)
    assert laws_contents(replace(document, front=apart), {}).disagreement == ""
    assert math.isfinite(first.held_out_mse)


def test_a_document_that_was_kept_gives_the_same_page(
    document: LawsDocument, tmp_path: Path
) -> None:
    kept = read_laws(write_laws(document, tmp_path / "laws.json"))
    assert laws_page_html(kept) == laws_page_html(document)


def test_an_earlier_document_without_a_picture_has_a_page_without_curves(
    document: LawsDocument,
) -> None:
    page = laws_page_html(replace(document, picture=None))
    assert 'id="curves"' not in page
    assert 'id="front"' in page


def test_a_page_of_somebody_else_is_not_written_over(
    document: LawsDocument, tmp_path: Path
) -> None:
    theirs = tmp_path / "laws.html"
    theirs.write_text("<html>mine</html>")
    with pytest.raises(InputError, match=r"laws\.html"):
        check_laws_page(theirs)
    with pytest.raises(InputError, match=r"laws\.html"):
        write_laws_page(document, theirs)
    assert theirs.read_text() == "<html>mine</html>"
    ours = write_laws_page(document, tmp_path / "own.html")
    assert write_laws_page(document, ours) == ours


def test_every_chart_about_laws_is_valid_vega_lite(document: LawsDocument) -> None:
    altair = pytest.importorskip("altair")
    for make in FIGURES:
        figure = make(document)
        assert figure is not None
        for spec in figure.specs.values():
            altair.LayerChart.from_dict({"data": {"values": []}, **spec}, validate=True)
