"""Which of the models here suits some tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from taskmix.errors import OptionError
from taskmix.extras import require
from taskmix.models._causal import CausalTransformer
from taskmix.models._peft import base_of_adapters, is_adapter_folder
from taskmix.models._perceptron import Perceptron
from taskmix.models._sharing import Architecture
from taskmix.models._text_convolution import TextConvolution
from taskmix.models._tuning import Tuning, check_tuning, pretrained, usual_tuning
from taskmix.models._window_bilstm import WindowBiLSTM
from taskmix.tasks import WRITTEN, InputKind, NgramEncoding, TaskSet

WRITTEN_INPUTS: set[InputKind] = {"prompt", "passage"}  # inputs whose answers are text


def choose_architecture(
    word: str,
    tasks: TaskSet,
    vectors: Path | None = None,
    max_length: int | None = None,
    *,
    tune: str | None = None,  # of a pretrained model; None: as is usual on the device
    rank: int | None = None,  # of adapters
    adapter: str | None = None,  # a folder of PEFT, whose adapters are trained on
    device: str = "cpu",
) -> tuple[Architecture, Tuning | None]:
    """The model a word stands for, and what is tuned of a pretrained one; `auto` goes by the inputs.

    >>> import pyarrow as pa
    >>> from taskmix.tasks import tables_as_tasks
    >>> texts = pa.table({"text": ["good film", "bad film"], "label": ["yes", "no"]})
    >>> architecture, tuning = choose_architecture("auto", tables_as_tasks({"a": {"train": texts}}))
    >>> architecture.reads, tuning  # texts are read as n-grams
    (NgramEncoding(width=256), None)
    """
    kinds = {task.inputs for task in tasks}
    if "sequences" in kinds:
        raise OptionError(
            "The tasks should have labels to train a shared model on. Found sequences without "
            "labels. Load them with the column of their labels."
        )
    if word == "auto":
        if kinds <= {"text", "pair"}:  # by words in their order where something is said of them
            word = "perceptron" if vectors is None and max_length is None else "convolution"
        elif kinds == {"table"}:
            word = "perceptron"
        elif kinds == {"tokens"}:
            word = "bilstm"
        elif kinds == {"passage"}:
            word = "causal"
        elif kinds & WRITTEN_INPUTS:
            raise OptionError(
                "Answers should be written by a pretrained language model. Found no `model`. Give the "
                "folder, the GGUF file or the hub's name of a causal one.",
                arguments=("model",),
            )
        else:
            raise OptionError(
                "One shared model should read all tasks, so their inputs should be of one kind. "
                f"Found {', '.join(sorted(kinds))}. Give `tasks` of one kind, or name a Hugging Face "
                "encoder, which reads text, pairs and tokens."
            )
    written = next((task.name for task in tasks if task.kind in WRITTEN), None)
    if written is not None and word in ("perceptron", "convolution", "bilstm"):
        raise OptionError(
            f"Text should be written by a causal language model. Found the task `{written}` and the "
            f"model `{word}`. Name the folder, the GGUF file or the hub's name of such a model."
        )
    length: dict[str, Any] = {} if max_length is None else {"max_length": max_length}
    if length and word in ("perceptron", "bilstm"):
        raise OptionError(
            f"`max_length` should go with a model that reads whole texts. Found it with {word}. "
            "Leave it out."
        )
    match word:
        case "perceptron":
            texts = kinds <= {"text", "pair"}
            made: Architecture = Perceptron(reads=NgramEncoding()) if texts else Perceptron()
        case "convolution":
            made = TextConvolution(vectors=vectors, **length)
        case "bilstm":
            made = WindowBiLSTM(vectors=vectors)
        case "causal" | "causal-5M" | "causal-20M":
            context = {} if max_length is None else {"context": max_length}
            made = CausalTransformer.of_size(word.removeprefix("causal")[1:] or "1M", **context)
        case _:
            return _pretrained(word, kinds, max_length, tune, rank, adapter, device)
    for name, given in (("tune", tune), ("rank", rank), ("adapter", adapter)):
        if given is not None:
            raise OptionError(
                f"`{name}` should go with a pretrained model. Found it with {word}. Give `model` the "
                "folder or the name of one, or leave it out.",
                arguments=(name,),
            )
    return made, None


def _pretrained(
    path: str,
    kinds: set[InputKind],
    max_length: int | None,
    tune: str | None,
    rank: int | None,
    adapter: str | None,
    device: str,
) -> tuple[Architecture, Tuning]:
    require("transformers", "tokenizers", purpose=f"The Hugging Face encoder `{path}`")
    if adapter is None and is_adapter_folder(path):
        path, adapter = _named_base(path), path
    if tune is not None:
        check_tuning(tune)
    written = sorted(kinds & WRITTEN_INPUTS)
    if written and tune == "heads":
        raise OptionError(
            "Heads on vectors should be given tasks with labels. Found tasks of text to be generated. "
            "Tune adapters, or all.",
            arguments=("tune",),
        )
    # A rank or an adapter says what is meant; text is generated by the model itself, not by a head.
    is_meant = written or rank is not None or adapter is not None
    usual = "adapters" if is_meant else usual_tuning(device)
    how = cast("Tuning", tune or usual)
    pairs = "pair" in kinds and len(kinds) > 1
    made = pretrained(path, how, max_length=max_length, rank=rank, adapter=adapter, as_pairs=pairs)
    return made, how


def _named_base(folder: str) -> str:
    """The model that adapters in a folder say they belong to."""
    named = base_of_adapters(folder)
    is_path = named is not None and (Path(named).is_absolute() or named.startswith("."))
    if not named or (is_path and not Path(named).exists()):
        found = f"`{named}`, which is not here" if named else "none"
        raise OptionError(
            f"The adapters in `{folder}` should name the model that they were trained on. Found "
            f"{found}. Give that model as `model`, and this folder as `adapter`.",
            arguments=("model", "adapter"),
        )
    return named
