"""The pages of the documentation at two widths: nothing cut, nothing on top of anything, no complaint.

With `--screenshots docs/pictures` the same tests write the pictures that the documentation shows.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from opened_page import DARK, WIDTHS, Open, screen
from photographs import Photographer
from synthetic_advice import advice_document, comparison_document
from synthetic_laws import laws_document
from synthetic_mixtures import mixtures_document
from synthetic_study import synthetic_data
from synthetic_transfer import digits_transfer, transfer_document

from taskmix.report import laws_page_html, mixture_html, mixtures_page_html, report_html
from taskmix.sequences import Markov, SequenceMixture

pytestmark = pytest.mark.browser

# Pixels across, and down in a picture; how fine the picture is.
TASKS = ["ten_digits", "parity", "half", "prime", "loop", "remainder"]
WAYS = ("tempered", "equal", "uniform", "size", "single")
NAMES = ["anna", "hannah", "joanna", "susanna", "otto", "bob", "lotto", "roberto", "toto", "nana"]
LONG = [
    f"customer complaints about {what}, translated from {language} ({year})"
    for what in ("delivery", "an invoice that was wrong", "guarantees")
    for language in ("Lithuanian", "Portuguese")
    for year in ("2019-2024", "before")
]


def advice_page() -> str:
    data = synthetic_data(TASKS, WAYS, steps=240)
    advice = advice_document(TASKS, WAYS)
    rows = tuple(
        replace(row, value=row.value + shift, low=row.low + shift, high=min(row.high + shift, 1.0))
        for row, shift in zip(advice.expected, (0.06, 0.05, 0.02, 0.0, -0.05, -0.1), strict=True)
    )
    return report_html(
        replace(
            data,
            title="Advice for digits",
            advice=replace(advice, expected=rows),
            comparison=comparison_document(rows),
            transfer=digits_transfer(),
        )
    )


def transfer_page() -> str:
    data = synthetic_data(TASKS, ("alone", "4 together"), steps=80)
    return report_html(
        replace(data, title="Which digits tasks help which", transfer=digits_transfer())
    )


def laws_page() -> str:
    return laws_page_html(laws_document())


def mixtures_page() -> str:
    return mixtures_page_html(mixtures_document())


def sequences_page() -> str:
    tasks = ["women" if name.endswith("a") or "nn" in name else "men" for name in NAMES]
    model = SequenceMixture(Markov(), 2, n_init=1, max_iter=20, random_state=0)
    model.fit(NAMES, tasks)
    return mixture_html(model, title="Names", command="taskmix sequences names/ --characters")


def crowded_advice_page() -> str:
    ways = (*WAYS, *(f"a way whose name is long, number {place}" for place in range(4)))
    data = synthetic_data(LONG, ways, steps=80)
    advice = advice_document(LONG, ways)
    return report_html(
        replace(
            data,
            title="-".join(LONG[:3]),
            advice=advice,
            comparison=comparison_document(advice.expected),
            transfer=transfer_document(LONG),
        )
    )


def crowded_transfer_page() -> str:
    names = [f"{name} {place}" for place in range(4) for name in LONG]
    data = synthetic_data(names, ("alone",), steps=60)
    return report_html(replace(data, transfer=transfer_document(names)))


def wide_transfer_page() -> str:
    data = synthetic_data(LONG, ("alone",), steps=60)
    return report_html(replace(data, transfer=transfer_document(LONG)))


def long_laws_page() -> str:
    names = {
        "n": "rows_of_the_training_split_in_thousands",
        "T": "number_of_tasks_trained_together",
    }
    return laws_page_html(laws_document(names=names))


def crowded_mixtures_page() -> str:
    metrics = [f"bits per byte of {name}" for name in LONG]
    return mixtures_page_html(mixtures_document(LONG, metrics))


SHOWN = {
    "advice": advice_page,
    "transfer": transfer_page,
    "laws": laws_page,
    "mixtures": mixtures_page,
    "sequences": sequences_page,
}
SMALL = "--steps 200 --learning-rate 0.005 --subsets 24 --prefixes 2 --alone 4 --engine fleet"
REAL = (  # what the pictures are of
    "advise digits --budget 60000-steps --out advice",
    "train digits --plan advice/plan.json --steps 13328 --seeds 2 --engine fleet --out trained",
    "report advice --delivered trained --page advice.html",
    f"transfer digits --all --outcome metric {SMALL} --out transfer",
    "report transfer --page transfer.html",
)
CROWDED = (
    crowded_advice_page,
    crowded_transfer_page,
    wide_transfer_page,
    long_laws_page,
    crowded_mixtures_page,
)


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[], str]], Path]:
    """The page that a function makes, as a file, made once."""
    made: dict[str, Path] = {}

    def of(make: Callable[[], str]) -> Path:
        if make.__name__ not in made:
            path = tmp_path_factory.mktemp("pages") / f"{make.__name__}.html"
            path.write_text(make(), encoding="utf-8")
            made[make.__name__] = path
        return made[make.__name__]

    return of


@pytest.fixture(scope="session")
def real_studies(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], dict[str, Path]]:
    """The advice of the demo with a training by it, and a study of transfer: some minutes of training.

    Pictures are of these; tests that take none read pages of made-up numbers, which take seconds.
    """
    made: dict[str, Path] = {}

    def make() -> dict[str, Path]:
        if not made:
            kept = request.config.getoption("--studies", default=None)
            folder = Path(kept).resolve() if kept else tmp_path_factory.mktemp("studies")
            folder.mkdir(parents=True, exist_ok=True)
            for words in REAL:
                subprocess.run(
                    [sys.executable, "-m", "taskmix", *words.split()],
                    cwd=folder,
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
            made.update(advice=folder / "advice.html", transfer=folder / "transfer.html")
        return made

    return make


@pytest.mark.timeout(1200)  # with pictures, the studies are trained first
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SHOWN)
def test_a_page_of_the_documentation_reads_well(
    name: str,
    width: str,
    page_file: Callable[[Callable[[], str]], Path],
    real_studies: Callable[[], dict[str, Path]],
    opened: Open,
    photographer: Photographer,
) -> None:
    across, down, fineness = WIDTHS[width]
    path = page_file(SHOWN[name])
    if photographer.folder is not None and name in ("advice", "transfer"):
        path = real_studies()[name]
    view = opened(path, screen(across) | {"device_scale_factor": fineness})
    view.must_be_readable()
    photographer.take(view.page, f"{name}-{width}", height=down)


@pytest.mark.parametrize("across", [375, 1280])
@pytest.mark.parametrize("make", CROWDED, ids=lambda make: make.__name__)
def test_long_names_and_many_tasks_stay_inside_the_page(
    make: Callable[[], str],
    across: int,
    page_file: Callable[[Callable[[], str]], Path],
    opened: Open,
) -> None:
    opened(page_file(make), screen(across)).must_be_readable()


@pytest.mark.parametrize("name", ["transfer", "laws", "mixtures"])
def test_in_the_dark_words_are_light_and_paper_is_dark(
    name: str, page_file: Callable[[Callable[[], str]], Path], opened: Open
) -> None:
    view = opened(page_file(SHOWN[name]), DARK)
    view.must_be_readable()
    view.must_be_heard()
    paper, ink = view.page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert paper == "rgb(16, 21, 26)"
    assert ink == "rgb(228, 232, 236)"
