"""Benchmarks are run seldom; that the names they use are still there is seen at once."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# They measure a part that has no public name: a step of the fleet without its records, a log written
# faster than a run can write it.
OF_PRIVATE_PARTS = {
    "fleet.py",
    "counterfactual.py",
}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.name
)
def test_the_names_that_a_benchmark_imports_are_there_and_public(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("taskmix"):
            continue
        module = importlib.import_module(str(node.module))
        missing = [each.name for each in node.names if not hasattr(module, each.name)]
        assert not missing
        private = "._" in str(node.module) or any(each.name[0] == "_" for each in node.names)
        assert not private or path.name in OF_PRIVATE_PARTS, node.module
