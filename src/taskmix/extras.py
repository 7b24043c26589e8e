"""Packages that are not always there: which extra brings each, and whether it is installed.

A command asks before it begins. What was asked for by name is then refused (`require`), what only adds
to an answer is left out and told (`missing`); where a package is used it is imported by `load`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from taskmix.errors import MissingExtraError

__all__ = ["PACKAGES", "is_installed", "load", "missing", "require"]

PACKAGES = {  # what is imported: the package as it is installed, and the extra that has it
    "vl_convert": ("vl-convert-python", "report"),
    "jinja2": ("jinja2", "report"),
    "cmaes": ("cmaes", "search"),
    "numba": ("numba", "sequences"),
    "transformers": ("transformers", "text"),
    "tokenizers": ("tokenizers", "text"),
    "yaml": ("pyyaml", "text"),
    "gguf": ("gguf", "gguf"),
    "sympy": ("sympy", "laws"),
    "datasets": ("datasets", "hub"),
    "openpyxl": ("openpyxl", "excel"),
    "ray": ("ray", "cluster"),
    "fsspec": ("fsspec", "cluster"),
    "tensorboard": ("tensorboard", "tracking"),
    "mlflow": ("mlflow-skinny", "tracking"),
    "wandb": ("wandb", "wandb"),
}


def is_installed(name: str) -> bool:
    """Whether a package can be found; it is not imported, which takes some of them seconds."""
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    # Any folder of that name that lies where Python is started would be a package without a file.
    return spec is not None and spec.origin is not None


def missing(*names: str, purpose: str) -> MissingExtraError | None:
    """What should be said of the first of these packages that is not installed."""
    for name in names:
        if not is_installed(name):
            return MissingExtraError(*PACKAGES[name], purpose)
    return None


def require(*names: str, purpose: str) -> None:
    """Refuses to begin where one of these packages is not installed."""
    error = missing(*names, purpose=purpose)
    if error is not None:
        raise error


def load(module: str, *, purpose: str, needs: str | None = None) -> Any:
    """A module of a package that may be missing, or broken; or one that `needs` such a package."""
    name = needs or module.partition(".")[0]
    require(name, purpose=purpose)
    try:
        return import_module(module)
    except ImportError as error:
        package, extra = PACKAGES[name]
        raise MissingExtraError(package, extra, purpose, reason=str(error)) from error
