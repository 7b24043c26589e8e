from __future__ import annotations

import base64
import hashlib
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from taskmix.report import mixture_html, write_mixture_page
from taskmix.sequences import (
    Gaussian,
    GaussianHiddenMarkov,
    HiddenMarkov,
    LinearDynamics,
    Markov,
    Multinomial,
    Recurrent,
    SequenceMixture,
    calibrate_scores,
    score_held_out,
)

NAMES = ["anna", "bob", "ana", "bobo", "nan", "obo", "annan", "boob"]
ODD = '<b>"&'
OWNERS = ["a", ODD, "a", ODD, "a", ODD, "a", ODD]


def drawings(page: str) -> list[ElementTree.Element]:
    """Every drawing of a page, which must be well-formed."""
    found = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    return [ElementTree.fromstring(each) for each in found]


@pytest.mark.parametrize(
    "kind",
    [
        Markov(order=2),
        HiddenMarkov(states=3),
        Multinomial(),
        Recurrent(hidden=4, steps=1),
    ],
    ids=lambda kind: f"{type(kind).__name__} {getattr(kind, 'order', '')}",
)
def test_symbols_of_every_kind_are_drawn(kind: Any) -> None:
    model = SequenceMixture(kind, 2, n_init=1, max_iter=3, random_state=0).fit(NAMES, OWNERS)
    page = mixture_html(model, title=ODD, command="taskmix sequences <x>")
    assert len(drawings(page)) >= 3
    assert 'id="held-out"' not in page
    assert '<p class="verdict"></p>' in page
    assert "<script" not in page
    assert ODD not in page
    assert "&lt;b&gt;" in page


@pytest.mark.parametrize(
    "kind", [Gaussian(components=2), GaussianHiddenMarkov(states=2), LinearDynamics(states=2)]
)
def test_vectors_of_every_kind_are_drawn(kind: Any) -> None:
    generator = np.random.default_rng(0)
    sequences = [generator.normal(size=(5, 2)) for _ in range(8)]
    model = SequenceMixture(kind, 2, n_init=1, max_iter=3, random_state=0).fit(sequences, OWNERS)
    assert len(drawings(mixture_html(model, title="vectors"))) >= 4


def test_the_page_allows_no_script_and_only_its_own_style(tmp_path: Path) -> None:
    model = SequenceMixture(Markov(), 2, n_init=1, max_iter=1, random_state=0).fit(NAMES, OWNERS)
    page = write_mixture_page(model, tmp_path / "page.html", title="x").read_text()
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert found is not None
    policy = {
        words[0]: words[1:] for part in unescape(found[1]).split(";") if (words := part.split())
    }
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == []  # no source at all: none may run
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy["style-src"] == [f"'sha256-{digest}'"]
    assert "<script" not in page


def test_sequences_most_and_least_like_their_task_are_shown_and_who_is_taken_for_whom() -> None:
    model = SequenceMixture(Markov(), 2, n_init=1, max_iter=5, own=False, random_state=0)
    model.fit(NAMES * 3, OWNERS * 3)
    calibrate_scores(model, NAMES * 3, OWNERS * 3, folds=2)
    scores = score_held_out(model, ["anna", "bobo", "boob"], ["a", "a", ODD])
    assert [each.text for each in scores.typical["a"]] == ["anna"]
    assert [each.text for each in scores.surprising["a"]] == ["bobo"]
    np.testing.assert_array_equal(scores.confusion, [[1, 1], [0, 1]])
    assert scores.accuracy == pytest.approx(2 / 3)
    page = mixture_html(model, title="names", scores=scores)
    assert "Most typical and most surprising" in page
    assert re.search(r"<td>surprising</td><td><code>bobo</code></td>", page)
    assert "67% of the sequences are given to their own task" in page
    assert ODD not in page
    assert len(drawings(page)) > len(drawings(mixture_html(model, title="names")))
    assert "Most typical" not in mixture_html(model, title="names")
