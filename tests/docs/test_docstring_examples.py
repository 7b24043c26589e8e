"""The examples in docstrings of public functions and classes run, and print what they say.

A dataclass needs none: its fields say what is in it. An example has the public names of its own
package, `np` and `torch`; the rest it imports.
"""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import taskmix


def public_objects() -> Iterator[tuple[str, object]]:
    """Every function and class that a package lists in `__all__`, under its public path."""
    for module in pkgutil.iter_modules(taskmix.__path__, "taskmix."):
        if not module.ispkg:
            continue
        package = importlib.import_module(module.name)
        for name in package.__all__:
            value = getattr(package, name)
            if value is not Any and (inspect.isclass(value) or inspect.isroutine(value)):
                yield f"{module.name}.{name}", value


def example_of(name: str, value: object) -> doctest.DocTest | None:
    words = inspect.getdoc(value) or ""
    package = importlib.import_module(name.rpartition(".")[0])
    known = {public: getattr(package, public) for public in package.__all__}
    known |= {"np": np, "torch": torch}
    found = doctest.DocTestParser().get_doctest(words, known, name, None, None)
    return found if found.examples else None


CLUSTER = "needs a cluster: docs/cluster.md has examples"
PAGE = (
    "needs the packages of the page, and gives a file to look at: its docstring names the command"
)
WITHOUT_EXAMPLE = {
    "taskmix.cli.run_command": "is the program itself: `taskmix --help` shows what it does",
    "taskmix.engine.choose_cluster_device": CLUSTER,
    "taskmix.engine.cluster": CLUSTER,
    "taskmix.report.laws_page_html": PAGE,
    "taskmix.report.mixture_html": PAGE,
    "taskmix.report.mixtures_page_html": PAGE,
    "taskmix.report.report_html": PAGE,
    "taskmix.report.write_chart": PAGE,
    "taskmix.report.write_laws_page": PAGE,
    "taskmix.report.write_mixture_page": PAGE,
    "taskmix.report.write_mixtures_page": PAGE,
    "taskmix.report.write_report": PAGE,
}

EXAMPLES = [found for name, value in public_objects() if (found := example_of(name, value))]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_of_a_docstring_prints_what_it_says(
    example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # what an example writes does not stay
    said: list[str] = []
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=options).run(example, out=said.append)
    assert result.failed == 0, "".join(said)


def test_every_public_function_and_class_has_an_example() -> None:
    """Dataclasses need none: most are what a function gives back, and its example shows them."""
    lacking = {
        name
        for name, value in public_objects()
        if example_of(name, value) is None
        and not getattr(value, "_is_protocol", False)
        and not dataclasses.is_dataclass(value)
    }
    assert sorted(lacking - WITHOUT_EXAMPLE.keys()) == []
    assert sorted(WITHOUT_EXAMPLE.keys() - lacking) == [], "these have one now"
