"""Packages that a command may have to do without, asked for before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taskmix.cli._options import EngineName, ModelOptions, TrackingOptions, WhereOptions
from taskmix.cli._printing._display import note
from taskmix.errors import OptionError
from taskmix.extras import missing, require

# Words of `--model` for models of our own.
OWN_MODELS = ("auto", "perceptron", "convolution", "bilstm")


def check_encoder(word: str) -> None:
    """Refuses a folder that is not there before anything is opened; other words are names on the hub."""
    is_path = Path(word).is_absolute() or word.startswith(".")
    if is_path and not Path(word).exists():
        raise OptionError(
            f"`encoder` should be a folder with a Hugging Face model, or a name on the hub. Found "
            f"nothing in {word}. Check the path."
        )


def check_extras(
    *,
    model: ModelOptions | str = "auto",
    where: WhereOptions | None = None,
    tracking: TrackingOptions | None = None,
) -> None:
    """Refuses what was asked for by name where its package is missing."""
    word = model if isinstance(model, str) else model.model
    where, tracking = where or WhereOptions(), tracking or TrackingOptions()
    if word not in OWN_MODELS:
        require("transformers", "tokenizers", purpose=f"The Hugging Face encoder `{word}`")
        if word.lower().endswith(".gguf"):
            require("gguf", purpose=f"The GGUF file `{word}`")
    if where.engine is EngineName.RAY:
        require("ray", purpose="`--engine ray`")
    if where.store is not None:
        require("fsspec", purpose="`--store`")
    if tracking.tensorboard is not None:
        require("tensorboard", purpose="`--tensorboard`")
    if tracking.mlflow is not None:
        require("mlflow", purpose="`--mlflow`")
    if tracking.wandb is not None:
        require("wandb", purpose="`--wandb`")


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
