"""Which of the models here suits some tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskmix.errors import OptionError
from taskmix.extras import require
from taskmix.models._causal import CausalTransformer
from taskmix.models._perceptron import Perceptron
from taskmix.models._sharing import Architecture
from taskmix.models._text_convolution import TextConvolution
from taskmix.models._transformer import Transformer
from taskmix.models._window_bilstm import WindowBiLSTM
from taskmix.tasks import WRITTEN, TaskSet


def choose_architecture(
    word: str, tasks: TaskSet, vectors: Path | None = None, max_length: int | None = None
) -> tuple[Architecture, bool]:
    """The model a word stands for, and whether it is pretrained; `auto` goes by the inputs.

    >>> import pyarrow as pa
    >>> from taskmix.tasks import tables_as_tasks
    >>> texts = pa.table({"text": ["good film", "bad film"], "label": ["yes", "no"]})
    >>> architecture, pretrained = choose_architecture("auto", tables_as_tasks({"a": {"train": texts}}))
    >>> architecture.kernels, pretrained  # texts are read by a convolution
    ((3, 5, 7), False)
    """
    kinds = {task.inputs for task in tasks}
    if "sequences" in kinds:
        raise OptionError(
            "The tasks should have labels to train a shared model on. Found sequences without "
            "labels. Load them with the column of their labels."
        )
    written = next((task.name for task in tasks if task.kind in WRITTEN), None)
    if written is not None and word in ("auto", "perceptron", "convolution", "bilstm"):
        raise OptionError(
            f"Text should be written by a causal language model. Found the task `{written}` and the "
            f"model `{word}`. Name the folder, the GGUF file or the hub's name of such a model."
        )
    if word == "auto":
        if kinds <= {"text", "pair"}:
            word = "convolution"
        elif kinds == {"table"}:
            word = "perceptron"
        elif kinds == {"tokens"}:
            word = "bilstm"
        elif kinds == {"passage"}:
            word = "causal"
        else:
            raise OptionError(
                "One shared model should read all tasks, so their inputs should be of one kind. "
                f"Found {', '.join(sorted(kinds))}. Give `tasks` of one kind, or name a Hugging Face "
                "encoder, which reads text, pairs and tokens."
            )
    length: dict[str, Any] = {} if max_length is None else {"max_length": max_length}
    if length and word in ("perceptron", "bilstm"):
        raise OptionError(
            f"`max_length` should go with a model that reads whole texts. Found it with {word}. "
            "Leave it out."
        )
    match word:
        case "perceptron":
            return Perceptron(), False
        case "convolution":
            return TextConvolution(vectors=vectors, **length), False
        case "bilstm":
            return WindowBiLSTM(vectors=vectors), False
        case "causal" | "causal-5M" | "causal-20M":
            context = {} if max_length is None else {"context": max_length}
            return CausalTransformer.of_size(
                word.removeprefix("causal")[1:] or "1M", **context
            ), False
        case _:
            require("transformers", "tokenizers", purpose=f"The Hugging Face encoder `{word}`")
            return Transformer(path=word, **length), True
