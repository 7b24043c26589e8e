from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import taskmix

PACKAGES = sorted(
    module.name for module in pkgutil.iter_modules(taskmix.__path__, "taskmix.") if module.ispkg
)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_lists_its_public_names_and_has_them(name: str) -> None:
    package = importlib.import_module(name)
    missing = [public for public in package.__all__ if not hasattr(package, public)]
    assert not missing


@pytest.mark.parametrize("name", PACKAGES)
def test_what_a_package_defines_without_an_underscore_is_listed(name: str) -> None:
    package = importlib.import_module(name)
    unlisted = [
        public
        for public, value in vars(package).items()
        if not public.startswith("_")
        and getattr(value, "__module__", "").startswith(name)
        and public not in package.__all__
    ]
    assert not unlisted


def test_the_core_imports_without_any_extra() -> None:
    extras = ["altair", "vl_convert", "jinja2", "cmaes", "numba"]
    extras += ["transformers", "tokenizers", "datasets", "sympy", "ray"]
    code = (
        "import sys\n"
        f"for name in {extras}: sys.modules[name] = None\n"
        f"import importlib\nfor name in {PACKAGES}: importlib.import_module(name)\n"
    )
    # torch itself imports jinja2 only when it compiles, so blocking it must not matter.
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


SOURCE = Path(taskmix.__file__).parent
# Every lesson is learned by a function of this name, so that they are used alike:
# `counterfactual.learn(study).plan()`, `transfer.learn(...).plan()`.
SHARED_NAMES = {"learn"}


def test_no_two_files_define_the_same_public_name() -> None:
    places: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() == SHARED_NAMES, twice


def layers() -> dict[str, int]:
    """How high each package lies, by the contract of import-linter."""
    settings = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return {
        name.strip(" ()"): height
        for height, layer in enumerate(reversed(contract["layers"]))
        for name in layer.split("|")
    }


def test_no_module_names_a_package_above_it_even_in_a_string() -> None:
    """A string that is a module's name can be imported, which import-linter does not see."""
    heights, upward = layers(), []
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if own not in heights:  # `__init__` and `__main__`, which lie above everything
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = re.fullmatch(r"taskmix\.(\w+)[\w.]*", node.value)
                if found and heights.get(found[1], -1) > heights[own]:
                    upward.append(f"{path.relative_to(SOURCE)}: {node.value}")
    assert not upward


def test_a_string_that_names_a_package_above_would_be_found() -> None:
    heights = layers()
    assert heights["cli"] > heights["adviser"] > heights["report"] > heights["plans"]
    assert heights["plans"] > heights["engine"] > heights["tasks"] > heights["errors"]


def test_importing_taskmix_imports_next_to_nothing() -> None:
    code = (
        "import sys, taskmix\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "assert 'advise' in dir(taskmix) and taskmix.load_tasks\n"
        "import inspect\n"
        "assert 'budget' in inspect.signature(taskmix.advise).parameters, 'its true signature'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        taskmix.nothing  # type: ignore[attr-defined]  # noqa: B018
