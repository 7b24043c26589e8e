"""Encoded tasks on disk, found again by what they were made from.

An entry is one safetensors file: the tensors, and a JSON description in its header. Its name is a
hash of the rows, the options and the format, so an entry is never out of date. It is written aside
and renamed; its sum is checked when it is read, and an entry that does not check is made again.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import RecordError, TaskmixWarning
from taskmix.files import check_plain, free_memory, make_folder, open_plain, replacing
from taskmix.tasks._encoding._inputs import (
    DenseInputs,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    Inputs,
    PairInputs,
    RaggedInputs,
    SubwordInputs,
    WindowInputs,
)
from taskmix.tasks._task import TaskSet

FORMAT = 1  # of an entry and of what every encoding gives: raise it when either changes

_CLASSES: Mapping[str, Callable[..., Inputs]] = {
    kind.__name__: kind
    for kind in (DenseInputs, PairInputs, RaggedInputs, SubwordInputs, WindowInputs)
}


def cached(
    build: Callable[[], EncodedTasks],
    tasks: TaskSet,
    options: str,  # all else that the encoding depends on
    cache: Path | None,
) -> EncodedTasks:
    """What `build` gives for these tasks and options, from the folder `cache` where it is known."""
    if cache is None:
        return build()
    sources = [task.source for task in tasks]
    sharing = [sources.index(source) for source in sources]  # which tasks share, not where they lie
    key = repr((FORMAT, options, tasks.content, sharing))
    path = cache / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.safetensors"
    found = _read(path, tasks)
    if found is None:
        found = build()
        try:
            _write(path, found)
        except RecordError as error:  # a full or forbidden disk costs time later, not the run now
            words = f"The encoding was not kept in {cache}: {error}"
            warnings.warn(words, TaskmixWarning, stacklevel=3)
    return found


def file_hash(path: Path) -> str:
    """A hash of the bytes of a file."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, encoded: EncodedTasks) -> None:
    from safetensors.numpy import save

    tensors: dict[str, Tensor] = {}
    numbers: dict[int, int] = {}
    inputs: list[Any] = []
    places: dict[str, dict[str, int]] = {}
    for position, task in enumerate(encoded):
        places[task.name] = {}
        for split_name, split in task.splits.items():
            if id(split.inputs) not in numbers:
                numbers[id(split.inputs)] = len(inputs)
                if split.sentences is not None:
                    tensors[f"sentences/{len(inputs)}"] = split.sentences
                if split.target_bytes is not None:
                    tensors[f"target_bytes/{len(inputs)}"] = split.target_bytes
                inputs.append(_describe(split.inputs, f"inputs/{len(inputs)}", tensors))
            places[task.name][split_name] = numbers[id(split.inputs)]
            tensors[f"targets/{position}/{split_name}"] = split.targets
    if encoded.vectors is not None:
        tensors["vectors"] = encoded.vectors
    description = {
        "features": encoded.features,
        "vocabulary": encoded.vocabulary,
        "extra": dict(encoded.extra),
        "inputs": inputs,
        "places": places,
    }
    text = json.dumps(description, ensure_ascii=False)
    arrays = {name: tensor.contiguous().numpy() for name, tensor in tensors.items()}
    make_folder(path.parent)
    with replacing(path, sync=False) as sink:
        sink.write(save(arrays, metadata={"taskmix": f"{_sum(text, arrays)} {text}"}))


def _read(path: Path, tasks: TaskSet) -> EncodedTasks | None:
    from safetensors import SafetensorError, safe_open

    try:
        check_plain(path, limit=free_memory() // 2)  # which is mapped as a whole
        with safe_open(path, "pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RecordError):  # not there, cut short or not such a file
        return None
    found, _, text = metadata.get("taskmix", "").partition(" ")
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    if found != _sum(text, arrays):
        return None
    try:
        return _restored(text, tensors, tasks)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # another's entry
        return None


def _restored(text: str, tensors: dict[str, Tensor], tasks: TaskSet) -> EncodedTasks:
    description = _tuples(json.loads(text))
    inputs = [
        _restore(item, f"inputs/{number}", tensors)
        for number, item in enumerate(description["inputs"])
    ]

    def split(position: int, task_name: str, split_name: str) -> EncodedSplit:
        number = description["places"][task_name][split_name]
        targets = tensors[f"targets/{position}/{split_name}"]
        sentences = tensors.get(f"sentences/{number}")
        return EncodedSplit(
            inputs[number], targets, sentences, tensors.get(f"target_bytes/{number}")
        )

    pieces = description["extra"].get("vocabulary_size", 0)
    encoded = tuple(
        EncodedTask.of(task, {name: split(at, task.name, name) for name in task.splits}, pieces)
        for at, task in enumerate(tasks)
    )
    return EncodedTasks(
        encoded,
        features=description["features"],
        vocabulary=description["vocabulary"],
        vectors=tensors.get("vectors"),
        extra=description["extra"],
    )


def _describe(inputs: Inputs, prefix: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """The class and plain fields of some inputs; their tensors are put among `tensors`."""
    description: dict[str, Any] = {"class": type(inputs).__name__}
    for field in fields(inputs):  # type: ignore[arg-type]
        value = getattr(inputs, field.name)
        if isinstance(value, Tensor):
            tensors[f"{prefix}/{field.name}"] = value
        elif type(value).__name__ in _CLASSES:
            description[field.name] = _describe(value, f"{prefix}/{field.name}", tensors)
        else:
            description[field.name] = value
    return description


def _restore(description: dict[str, Any], prefix: str, tensors: dict[str, Tensor]) -> Inputs:
    own = len(prefix) + 1
    values: dict[str, Any] = {
        name[own:]: tensor
        for name, tensor in tensors.items()
        if name.startswith(f"{prefix}/") and "/" not in name[own:]
    }
    for name, value in description.items():
        if isinstance(value, dict):
            values[name] = _restore(value, f"{prefix}/{name}", tensors)
        elif name != "class":
            values[name] = value
    return _CLASSES[description["class"]](**values)


def _sum(text: str, arrays: dict[str, NDArray[Any]]) -> str:
    total = zlib.crc32(text.encode())
    for name in sorted(arrays):
        data: Any = arrays[name].reshape(-1).view("u1")
        total = zlib.crc32(data, zlib.crc32(name.encode(), total))
    return f"{total:08x}"


def _tuples(value: Any) -> Any:
    """JSON has lists where the encodings give tuples."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return value
