from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from read_page import Page, check_charts
from synthetic_laws import laws_document, picture_of, results_table

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
