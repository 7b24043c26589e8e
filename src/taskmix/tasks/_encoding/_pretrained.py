"""Networks and tokenizers of Hugging Face, loaded without a word to the terminal.

transformers draws bars and logs what it finds while it loads and saves. Of that one thing matters: a
network some of whose weights are not in its files, since those begin at random.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from taskmix.errors import TaskmixWarning
from taskmix.extras import load
from taskmix.files import check_plain_folder

UNTRAINED_LAYER = "pooler"  # a layer after the last one: whoever trains on other tasks never had it


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Neither bars nor warnings of transformers and of the hub for the length of a `with` block.

    >>> with quiet_transformers():  # doctest: +SKIP
    ...     network = load_pretrained("AutoModel", "bert-base-uncased")
    """
    settings = load("transformers.utils.logging", purpose="A pretrained encoder")
    hub = logging.getLogger("huggingface_hub")
    level, hub_level, bars = settings.get_verbosity(), hub.level, settings.is_progress_bar_enabled()
    settings.set_verbosity_error()
    settings.disable_progress_bar()
    hub.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        settings.set_verbosity(level)
        hub.setLevel(hub_level)
        if bars:
            settings.enable_progress_bar()


def load_pretrained(kind: Literal["AutoModel", "AutoTokenizer"], path: str) -> Any:
    """What a folder, or a name on the hub, has of this kind; OSError or ValueError where nothing.

    >>> tokenizer = load_pretrained("AutoTokenizer", "bert-base-uncased")  # doctest: +SKIP
    """
    import torch

    transformers = load("transformers", purpose="A pretrained encoder")
    check_plain_folder(Path(path))
    with quiet_transformers():
        loader = getattr(transformers, kind)
        if kind == "AutoTokenizer":
            return loader.from_pretrained(path)
        network, found = loader.from_pretrained(path, dtype=torch.float32, output_loading_info=True)
    absent = [
        name for name in sorted(found["missing_keys"]) if not name.startswith(UNTRAINED_LAYER)
    ]
    if absent:
        warnings.warn(
            f"`{path}` has no weights for {len(absent)} parameters of its encoder, such as "
            f"`{absent[0]}`: they begin at random.",
            TaskmixWarning,
            stacklevel=3,
        )
    return network
