from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from read_page import Page, check_charts
from synthetic_laws import laws_document, picture_of, results_table, stacked

from taskmix.errors import InputError
from taskmix.laws import LawsDocument, fit_formula, read_laws, write_laws
from taskmix.report import check_laws_page, laws_page_html, write_laws_page


@pytest.fixture(scope="module")
def document() -> LawsDocument:
    return laws_document()


@pytest.fixture(scope="module")
def page(document: LawsDocument) -> Page:
    return Page(laws_page_html(document))


def test_the_page_has_the_law_its_alternatives_and_what_they_foretell(
    document: LawsDocument, page: Page
) -> None:
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
        assert part in page.source, part
    for row in document.front:
        assert row.formula in page.source
    check_charts(page)


def test_the_page_says_why_a_law_is_disqualified_and_has_the_weights_of_a_stack(
    document: LawsDocument, page: Page
) -> None:
    first, *others = document.front
    assert "disqualified" not in page.source
    why = "has a pole at n = 9000, within the range asked for"
    front = (replace(first, disqualified=why), *others)
    text = laws_page_html(replace(stacked(document), front=front))
    assert f"disqualified: {why}" in text
    assert "3*log(n)" in text
    assert "0.38" in text
    assert "The mean of tied laws there: 0.5 (0.25 to 0.75)." in text


def test_curves_go_beyond_the_data_and_what_lies_beyond_is_shaded(
    document: LawsDocument, page: Page
) -> None:
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
    shading = page.spec("chart-curve-0")["layer"][0]["data"]["values"]
    assert shading == [{"begin": 8000.0, "end": 16000.0}]


def test_a_share_is_not_drawn_beyond_one() -> None:
    table = results_table()
    for largest in (0.8, 1.0):
        share = {"ami": table["T"] / 8 * largest}
        picture = picture_of(fit_formula("1 + ami", share, table["f1"], name="f1"), share)
        assert picture.curves[0].at[-1] == 1.0
    assert picture.far_ends == ()


def axis(document: LawsDocument) -> tuple[float, float]:
    """The ends of the first curve's axis."""
    spec = Page(laws_page_html(document)).spec("chart-curve-0")
    low, high = spec["layer"][2]["encoding"]["y"]["scale"]["domain"]
    return low, high


def test_a_pole_is_told_and_leaves_the_axis_as_it_is(document: LawsDocument) -> None:
    table = results_table()
    few = np.array([1.0, 2.0, 3.0, 4.0])
    exact = fit_formula("1/(12 - T)", {"T": few}, 1 / (12 - few), name="y")
    fitted = fit_formula("1/(12 - T)", {"T": table["T"]}, table["f1"], name="score")
    picture = picture_of(replace(fitted, expression=exact.expression), {"T": table["T"]})
    (words,) = picture.warnings
    assert "beyond the data" in words
    assert "pole" in words
    low, high = axis(replace(document, target="score", picture=picture, front=document.front[-1:]))
    assert -1 < low < high < 2


def test_no_axis_goes_beyond_what_the_target_can_be(document: LawsDocument) -> None:
    picture = document.picture
    assert picture is not None
    values = tuple(value + 0.2 for value in picture.curves[0].values)
    high = replace(picture, curves=(replace(picture.curves[0], values=values),))
    assert axis(replace(document, picture=high))[1] == 1.0
    assert axis(replace(document, target="points", picture=high))[1] > 1.0


def test_the_chosen_law_is_marked_on_the_front(document: LawsDocument, page: Page) -> None:
    columns = page.chart("chart-front")
    assert columns["series"].count("chosen") == 1
    assert columns["formula"][columns["series"].index("chosen")] in document.law.formula


def test_laws_that_fit_alike_say_how_far_they_differ_beyond_the_data(
    document: LawsDocument,
) -> None:
    alike = tuple(replace(row, held_out_mse=1e-4) for row in document.front)
    words = f"The {len(alike)} laws whose held-out error is within 10 %"
    assert words in laws_page_html(replace(document, front=alike))
    apart = tuple(replace(row, held_out_mse=1e-4 if row.chosen else 1.0) for row in document.front)
    assert "whose held-out error is within" not in laws_page_html(replace(document, front=apart))


def test_a_document_that_was_kept_gives_the_same_page(
    document: LawsDocument, page: Page, tmp_path: Path
) -> None:
    kept = read_laws(write_laws(document, tmp_path / "laws.json"))
    assert laws_page_html(kept) == page.source
    without = laws_page_html(replace(document, picture=None))  # one of an earlier version
    assert 'id="curves"' not in without
    assert 'id="front"' in without


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
