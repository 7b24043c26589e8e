"""A pretrained network that stays as it is and reads texts, every one once, the shortest first.

It reads on a GPU where there is one. A vector has mean square 1, so that a perceptron's first layer
finds it in the range that it expects, and is rounded to half precision.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.tasks._encoding._inputs import SubwordInputs
from taskmix.tasks._encoding._pooling import Pooling, pool
from taskmix.tasks._encoding._pretrained import load_pretrained, reading_model
from taskmix.tasks._encoding._subwords import Words, load_tokenizer, subword_inputs

ReadingPrecision = Literal["float32", "bfloat16"]

# In a batch: what a processor keeps in its caches, and what fills a GPU without filling its memory.
CPU_BATCH_PIECES, CUDA_BATCH_PIECES = 2048, 32768


class FrozenReader:
    """A network with its tokenizer, loaded once for all that is to be read."""

    def __init__(self, path: str, *, max_length: int, pooling: Pooling, dtype: torch.dtype) -> None:
        self._path, self._tokenizer = path, load_tokenizer(path)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._network = load_pretrained("AutoModel", path, dtype=dtype).to(self._device).eval()
        self._max_length, self._pooling = max_length, pooling
        self.width = int(self._network.config.hidden_size)

    def read_texts(self, texts: Sequence[str], tell: Callable[[int], None]) -> Tensor:
        """[text, feature]; `tell` hears how many more are done."""
        found = torch.zeros(len(texts), self.width, dtype=torch.float16)
        if not texts:
            return found
        inputs = self._inputs(self._pieces(texts))
        for rows, batch, states in self._states(inputs):
            code = pool(states, batch["attention_mask"], self._pooling)
            found[rows] = _scaled(code).cpu()
            tell(len(rows))
        return found

    def read_words(
        self, sentences: Sequence[list[str]], tell: Callable[[int], None]
    ) -> tuple[Tensor, NDArray[np.bool_]]:
        """[word, feature] of all sentences, and [word], whether the word has a piece of its own."""
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        found = torch.zeros(int(lengths.sum()), self.width, dtype=torch.float16)
        if not sentences:
            return found, np.zeros(0, dtype=np.bool_)
        pieces = self._pieces(sentences, is_split_into_words=True)
        words = Words.find(pieces, list(sentences))
        first = torch.from_numpy(np.cumsum(lengths) - lengths)
        for rows, batch, states in self._states(self._inputs(pieces, words)):
            places = batch["word_starts"].unsqueeze(-1).expand(-1, -1, states.shape[-1])
            inside = torch.from_numpy(words.inside)[rows]
            code = states.gather(1, places)[inside.to(states.device)]
            numbers = first[rows].unsqueeze(1) + torch.arange(inside.shape[1])
            found[numbers[inside]] = _scaled(code).cpu()
            tell(len(rows))
        return found, words.read[words.inside]

    def speed(self, texts: Sequence[str]) -> tuple[float, float]:
        """Pieces a second, on some texts, and how many pieces a text has."""
        inputs = self._inputs(self._pieces(texts))
        few = torch.arange(min(len(texts), 8))
        with torch.inference_mode(), reading_model(self._path):
            self._network(**inputs.batch(few.to(self._device)))  # the first one warms up
        begin = time.perf_counter()
        for _ in self._states(inputs):
            pass
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        seconds = max(time.perf_counter() - begin, 1e-6)
        return len(inputs.ids) / seconds, len(inputs.ids) / len(texts)

    def _pieces(self, rows: Sequence[Any], **more: Any) -> Any:
        with reading_model(self._path):
            return self._tokenizer(
                list(rows),
                truncation=True,
                max_length=self._max_length,
                return_attention_mask=False,
                **more,
            )

    def _inputs(self, pieces: Any, words: Words | None = None) -> SubwordInputs:
        return subword_inputs(pieces, self._tokenizer.pad_token_id or 0, words).to(self._device)

    def _states(self, inputs: SubwordInputs) -> Iterator[tuple[Tensor, dict[str, Tensor], Tensor]]:
        """Rows, their batch and the last states [row, place, feature], as float32."""

        def read(rows: Tensor) -> tuple[Tensor, dict[str, Tensor], Tensor]:
            with torch.inference_mode(), reading_model(self._path):
                batch = inputs.batch(rows.to(self._device))
                given = {name: value for name, value in batch.items() if name != "word_starts"}
                return rows, batch, self._network(**given).last_hidden_state.float()

        on_cpu = self._device.type == "cpu"
        batches = _batches(
            inputs.offsets.diff().cpu(), CPU_BATCH_PIECES if on_cpu else CUDA_BATCH_PIECES
        )
        threads = torch.get_num_threads() if on_cpu else 1
        if threads == 1:
            yield from map(read, batches)
            return
        # A batch a thread, not threads within a batch: those wait for each other after every layer,
        # which on cores that others use too takes longer than the work.
        alone = partial(torch.set_num_threads, 1)
        with ThreadPoolExecutor(threads, initializer=alone) as pool_of_threads:
            yield from pool_of_threads.map(read, batches)


def usual_precision() -> ReadingPrecision:
    """What a frozen network should compute in here: bfloat16 where the device does so by itself.

    That is twice as fast or more, on GPUs and on newer processors, and changes a vector by less than
    the texts it stands for differ.

    >>> usual_precision() in ("float32", "bfloat16")
    True
    """
    if torch.cuda.is_available():
        return "bfloat16"
    native = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    fast = any(getattr(torch.cpu, name, lambda: False)() for name in native)
    return "bfloat16" if fast else "float32"


def _scaled(
    code: Tensor,  # [row, feature]
) -> Tensor:
    return (torch.nn.functional.normalize(code, dim=1) * math.sqrt(code.shape[1])).half()


def _batches(
    lengths: Tensor,  # [text]
    most: int,
) -> Iterator[Tensor]:
    """Texts of like length together, in batches of at most so many pieces, or of one text."""
    order = torch.argsort(lengths, stable=True)
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and (end + 1 - begin) * int(lengths[order[end]]) <= most:
            end += 1
        yield order[begin:end]
        begin = end
