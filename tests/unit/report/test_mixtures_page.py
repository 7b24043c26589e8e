"""The page of a mixture says what its document says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from read_page import Page, check_charts
from synthetic_mixtures import around, mixtures_document

from taskmix.errors import InputError
from taskmix.mixtures import MixtureReport, read_mixtures_document, write_mixtures
from taskmix.report import check_mixtures_page, mixtures_page_html, write_mixtures_page

SECTIONS = ("mixture", "compared", "left_out", "effects", "distance", "front", "carry", "next")


@pytest.fixture(scope="module")
def document() -> MixtureReport:
    return mixtures_document()


def test_the_page_has_the_answer_first_and_every_part_that_there_is(
    document: MixtureReport,
) -> None:
    page = mixtures_page_html(document)
    assert page.index(document.answer) < page.index('id="mixture"')
    for name in (*SECTIONS, "predictions", "metrics", "laws", "about"):
        assert f'<section id="{name}"' in page, name
        assert f'<a href="#{name}">' in page, name
    for words in (*document.notes, "effective data", "the laws disagree most there"):
        assert words in page
    assert "<code>run 3</code>" in page


def test_an_effect_is_better_only_where_its_interval_is_clear_of_zero(
    document: MixtureReport,
) -> None:
    first, second, third, *rest = document.domains
    rows = (
        replace(first, effect=around(-0.5, 0.1)),
        replace(second, effect=around(0.5, 0.1)),
        replace(third, effect=around(0.05, 0.1)),
        *(replace(row, effect=None) for row in rest),
    )
    shown = replace(document, domains=rows)
    falling = Page(mixtures_page_html(shown)).chart("chart-effects")
    assert falling["series"] == ["better", "cannot tell", "worse"]
    page = Page(mixtures_page_html(replace(shown, larger_is_better=True)))
    rising = page.chart("chart-effects")
    assert rising["series"] == ["better", "cannot tell", "worse"]
    assert rising["name"] == [second.domain, third.domain, first.domain]
    assert "Right of zero is better" in page.text
    none = replace(document, domains=tuple(rest[-1:]))
    assert "chart-effects" not in Page(mixtures_page_html(none)).payload()["charts"]


def test_a_document_that_was_kept_gives_the_same_page(
    document: MixtureReport, tmp_path: Path
) -> None:
    kept = read_mixtures_document(write_mixtures(document, tmp_path / "mix.json"))
    assert mixtures_page_html(kept) == mixtures_page_html(document)


def test_a_page_of_somebody_else_is_not_written_over(
    document: MixtureReport, tmp_path: Path
) -> None:
    theirs = tmp_path / "mix.html"
    theirs.write_text("<html>mine</html>")
    for call in (check_mixtures_page, lambda path: write_mixtures_page(document, path)):
        with pytest.raises(InputError, match=r"mix\.html"):
            call(theirs)
    assert theirs.read_text() == "<html>mine</html>"
    ours = write_mixtures_page(document, tmp_path / "own.html")
    assert write_mixtures_page(document, ours) == ours


def test_every_chart_about_mixtures_is_valid_vega_lite(document: MixtureReport) -> None:
    check_charts(Page(mixtures_page_html(document)))
