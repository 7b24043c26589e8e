"""A tokenizer for a swarm: pairs of bytes that are often together become one piece.

    Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016, on
    bytes as in Radford et al., "GPT-2", 2019.

All domains have the same say, whatever their sizes: the mixture of the next run is not known yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from taskmix.errors import OptionError
from taskmix.extras import load
from taskmix.files import making_folder, write_bytes
from taskmix.mixtures._swarm._options import as_count
from taskmix.tasks import TaskSet

SMALLEST, LARGEST = 300, 200_000  # pieces
USUAL_PIECES = 4096
SAMPLE = 1 << 20  # characters of each domain that are read
TRAINED = "train"  # in place of a folder: `train`, or `train:SIZE`
PURPOSE = "A tokenizer of one's own"


def train_tokenizer(tasks: TaskSet, folder: Path, *, size: int = USUAL_PIECES) -> Path:
    """Learns pieces from the beginning of each domain and writes them to `folder`, if it is not there.

    >>> train_tokenizer(tasks, Path("swarm/tokenizer-4096"))  # doctest: +SKIP
    PosixPath('swarm/tokenizer-4096')
    """
    _check_pieces(size)
    if (folder / "tokenizer.json").is_file():
        return folder
    tokenizers = load("tokenizers", purpose=PURPOSE)
    made: Any = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator(_texts(tasks), trainer=trainer)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    with making_folder(folder) as aside:
        write_bytes(aside / "tokenizer.json", made.to_str().encode())
        write_bytes(aside / "tokenizer_config.json", json.dumps(settings, indent=1).encode())
    return folder


def pieces_to_learn(words: str | None) -> int | None:
    """How many pieces `train` or `train:SIZE` ask for; None where the words name a tokenizer.

    >>> pieces_to_learn("train"), pieces_to_learn("train:8k"), pieces_to_learn("my/tokenizer")
    (4096, 8000, None)
    """
    if words is None or words.partition(":")[0] != TRAINED:
        return None
    size = words.partition(":")[2]
    return _check_pieces(as_count(size, name="tokenizer") if size else USUAL_PIECES)


def _check_pieces(size: int) -> int:
    if not SMALLEST <= size <= LARGEST:
        raise OptionError(
            f"`tokenizer` should have from {SMALLEST} to {LARGEST} pieces. Found {size}."
        )
    return size


def _texts(tasks: TaskSet) -> Iterator[str]:
    for task in tasks:
        left = SAMPLE
        for text in task.splits["train"].inputs["text"].to_pylist():
            if left <= 0:
                break
            if text:
                yield text[:left]
                left -= len(text)
