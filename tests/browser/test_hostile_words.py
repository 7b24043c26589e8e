"""Names of files and of symbols that are HTML, on pages that commands made of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from opened_page import LIGHT, SCRIPT_NAME, Open, Opened
from synthetic_laws import laws_document
from synthetic_mixtures import mixtures_document

from taskmix.cli import run_command
from taskmix.report import write_laws_page, write_mixture_page, write_mixtures_page
from taskmix.sequences import Markov, SequenceMixture

pytestmark = pytest.mark.browser

IMAGE = '<img src=x onerror="alert(2)">'


def must_be_harmless(opened: Opened) -> None:
    opened.page.wait_for_timeout(300)
    assert opened.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in opened.requests)
    assert opened.page.locator("img").count() == 0


def test_a_page_of_a_mixture_shows_hostile_names_as_text(tmp_path: Path, opened: Open) -> None:
    sequences = [[SCRIPT_NAME, IMAGE, SCRIPT_NAME], [IMAGE, IMAGE], [SCRIPT_NAME, "a"]]
    model = SequenceMixture(Markov(), 2, n_init=1, max_iter=2, random_state=0)
    model.fit(sequences, [SCRIPT_NAME, IMAGE, SCRIPT_NAME])
    page = write_mixture_page(
        model, tmp_path / "page.html", title=SCRIPT_NAME, command=IMAGE, notes=[SCRIPT_NAME, IMAGE]
    )
    shown = opened(page, LIGHT)
    must_be_harmless(shown)
    assert shown.page.title().startswith(SCRIPT_NAME)
    assert shown.page.locator("script").count() == 0


def test_a_page_of_mixtures_shows_hostile_domains_as_text(tmp_path: Path, opened: Open) -> None:
    names = [SCRIPT_NAME, IMAGE, "`x`", '" onmouseover="alert(3)']
    document = mixtures_document(names, [IMAGE, SCRIPT_NAME])
    page = write_mixtures_page(replace(document, command=IMAGE), tmp_path / "page.html")
    shown = opened(page, LIGHT)
    shown.all_drawn()
    must_be_harmless(shown)
    found = shown.page.locator("#mixture tbody th").all_inner_texts()
    assert sorted(found) == sorted(names)
    assert shown.page.locator("[onmouseover]").count() == 0


def test_a_page_of_laws_shows_hostile_columns_as_text(tmp_path: Path, opened: Open) -> None:
    document = laws_document(names={"n": SCRIPT_NAME, "T": IMAGE, "f1": '"><b>'})
    document = replace(document, command=IMAGE, notes=(SCRIPT_NAME, IMAGE))
    path = write_laws_page(document, tmp_path / "laws.html")
    shown = opened(path, LIGHT)
    shown.all_drawn()
    must_be_harmless(shown)
    assert SCRIPT_NAME in shown.page.locator("h1").inner_text()
    assert shown.page.locator("script").count() == 3
    assert shown.page.locator("#curves h3").all_inner_texts() == [SCRIPT_NAME, IMAGE]


def test_a_task_folder_with_a_hostile_name_goes_all_the_way_to_the_page(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "x,y,label\n" + "".join(f"{n},{n % 3},{n % 2}\n" for n in range(12))
    for name in (IMAGE, "plain"):
        (tmp_path / "tasks" / name).mkdir(parents=True)
        for split in ("train", "dev"):
            (tmp_path / "tasks" / name / f"{split}.csv").write_text(rows)
    study = tmp_path / IMAGE
    for words in (
        ["train", str(tmp_path / "tasks"), "--steps", "4", "--out", str(study)],
        ["report", str(study), "--page", str(tmp_path / "page.html")],
    ):
        monkeypatch.setattr(sys, "argv", ["taskmix", *words])
        with pytest.raises(SystemExit) as ended:
            run_command()
        assert not ended.value.code
    shown = opened(tmp_path / "page.html", LIGHT)
    shown.all_drawn()
    must_be_harmless(shown)
    assert shown.page.get_by_text(IMAGE).count() > 0
