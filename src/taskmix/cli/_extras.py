"""Packages that a command may have to do without, asked for before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taskmix.cli._display import note
from taskmix.cli._engines import Engine
from taskmix.extras import missing, require

# Words of `--model` for models of our own.
OWN_MODELS = ("auto", "perceptron", "convolution", "bilstm")


def check_extras(
    *,
    model: str = "auto",
    engine: Engine = Engine.HERE,
    store: str | None = None,
    tensorboard: Path | None = None,
    mlflow: str | None = None,
) -> None:
    """Refuses what was asked for by name where its package is missing."""
    if model not in OWN_MODELS:
        require("transformers", "tokenizers", purpose=f"The Hugging Face encoder `{model}`")
    if engine is Engine.RAY:
        require("ray", purpose="`--engine ray`")
    if store is not None:
        require("fsspec", purpose="`--store`")
    if tensorboard is not None:
        require("tensorboard", purpose="`--tensorboard`")
    if mlflow is not None:
        require("mlflow", purpose="`--mlflow`")


def can_write_page(packages: Sequence[str]) -> bool:
    """Whether the page that comes with an answer can be written; says so where it cannot."""
    error = missing(*packages, purpose="It")
    if error is not None:
        note(f"There will be no report page. {error}")
    return error is None


def tell_slowness() -> None:
    """Says what makes the fit of sequences faster, where it is missing."""
    error = missing("numba", purpose="The fast one")
    if error is not None:
        note(f"The fit will be a slower one with the same results. {error}")
