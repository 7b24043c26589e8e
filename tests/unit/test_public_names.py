from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

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
    extras += ["transformers", "tokenizers", "datasets", "gplearn", "pyoperon", "ray"]
    code = (
        "import sys\n"
        f"for name in {extras}: sys.modules[name] = None\n"
        f"import importlib\nfor name in {PACKAGES}: importlib.import_module(name)\n"
    )
    # torch itself imports jinja2 only when it compiles, so blocking it must not matter.
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
