from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from taskmix.report import mixture_html, write_mixture_page
from taskmix.report._mixture_svg import bars_svg, graph_svg, line_svg, map_svg, shares_svg
from taskmix.sequences import (
    Gaussian,
    GaussianHiddenMarkov,
    HiddenMarkov,
    LinearDynamics,
    Markov,
    Multinomial,
    Recurrent,
    SequenceMixture,
    compare_with_baselines,
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
        Markov(order=0),
        Markov(),
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


def test_the_verdict_says_what_the_intervals_say(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    sequences, tasks = [], []
    for task in range(6):
        letters = "ab" if task % 2 else "cd"
        for _ in range(16):
            sequences.append("".join(generator.choice(list(letters), 6)))
            tasks.append(f"task {task}")
    compared = compare_with_baselines(
        SequenceMixture(Markov(), 2, n_init=1, random_state=0),
        sequences[::2],
        tasks[::2],
        sequences[1::2],
        tasks[1::2],
    )
    model = compared.models["shared generators"]
    out = write_mixture_page(model, tmp_path / "page.html", title="x", comparison=compared)
    page = out.read_text()
    assert "better than" in page
    assert "one pooled model" in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "script-src ;" in policy[1] or "script-src" in policy[1]


def test_drawings_are_well_formed_whatever_the_names() -> None:
    names = [ODD, "a very long name of a task", "c"]
    square = np.array([[0.2, 0.8, 0.0], [0.5, 0.0, 0.5], [0.0, 0.05, 0.95]])
    for drawn in (
        shares_svg(square, names),
        graph_svg(square, names, np.array([0.5, 0.3, 0.2])),
        bars_svg([(ODD, 0.5), ("b", -1.0)]),
        map_svg(square, names, ODD),
        line_svg([1.0], "x"),
        line_svg([1.0, 1.0], "x"),
    ):
        ElementTree.fromstring(drawn)
