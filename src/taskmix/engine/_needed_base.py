"""The pretrained model that a kept one needs and does not have in its folder.

Heads and adapters are small beside the model that they belong to, so that one is named and not copied:
by its path, and by a mark of its weights, since another model may lie at the same path later.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import warn

from taskmix.errors import InputError, TaskmixWarning
from taskmix.files import list_folder, open_plain
from taskmix.models import Architecture, Perceptron, Transformer, outline_of
from taskmix.tasks import FeatureEncoding, find_pooling

WEIGHTS = (".safetensors", ".gguf", ".bin")
LOOKED_AT = 1 << 16  # bytes at the begin and at the end of a file: two models differ in them


def base_of(architecture: Architecture) -> str | None:
    """The path of the pretrained model that is not among the parameters; None where there is none."""
    if isinstance(architecture, Transformer):
        return architecture.path if architecture.tune == "adapters" else None
    reads = getattr(architecture, "reads", None)
    return reads.path if isinstance(reads, FeatureEncoding) else None


def with_base(architecture: Architecture, path: str) -> Architecture:
    """The same over the model of another path."""
    if isinstance(architecture, Transformer):
        return replace(architecture, path=path)
    assert isinstance(architecture, Perceptron)
    assert isinstance(architecture.reads, FeatureEncoding)
    return replace(architecture, reads=replace(architecture.reads, path=path))


def with_pooling(architecture: Architecture) -> Architecture:
    """The same with its pooling written out: the file that says it may not be beside a copy."""
    if isinstance(architecture, Transformer):
        pooling = architecture.pooling or find_pooling(architecture.path)
        return replace(architecture, pooling=pooling)
    if isinstance(architecture, Perceptron) and isinstance(architecture.reads, FeatureEncoding):
        reads = architecture.reads
        pooling = reads.pooling or find_pooling(reads.path)
        return replace(architecture, reads=replace(reads, pooling=pooling))
    return architecture


def lasting_path(path: str) -> str:
    """A path that is the same from every folder; a name on the hub as it is."""
    return str(Path(path).resolve()) if Path(path).exists() else path


def mark_of(path: str) -> str | None:
    """Tells the weights of a model from those of another one; None where they are not on this disk."""
    place = Path(path)
    files = [place]
    if not place.is_file():
        files = [place / name for name in list_folder(place) if name.endswith(WEIGHTS)]
    found = hashlib.sha256()
    for file in files:
        with open_plain(file) as content:
            size = os.fstat(content.fileno()).st_size
            found.update(f"{size} ".encode() + content.read(LOOKED_AT))
            content.seek(max(0, size - LOOKED_AT))
            found.update(content.read(LOOKED_AT))
    return found.hexdigest()[:16] if files else None


def find_base(folder: Path, named: str, given: str | None, mark: Any) -> str:
    """Where the model lies that a kept one in `folder` needs: where it was, or where it is `given`."""
    path = named if given is None else given
    try:
        outline_of(path)
    except InputError as error:
        what = f"`{named}`, the model that it was trained on"
        found = "it" if given is None else f"one at `{given}`"
        raise InputError(
            f"The model in `{folder}` should find {what}. Did not find {found}. Say where it lies: "
            f"load_model(..., base=PATH), or taskmix predict --base PATH. ({error})"
        ) from error
    if mark is not None and mark_of(path) != mark:
        warn(
            f"The weights of `{path}` are not those that the model in `{folder}` was trained on, or are "
            "in other files: its answers may be others.",
            TaskmixWarning,
            stacklevel=4,
        )
    return path
