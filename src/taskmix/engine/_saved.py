"""Trained models in a folder of their own: everything that is needed to answer for new rows.

`model.json` has for each model its architecture, what its encoding learned (the vocabulary, or the
layout of a table), its tasks with their labels, and which of them it is for; the parameters lie
beside it as safetensors. Nothing is pickled, and neither the study nor the task folder is needed.
A pretrained encoder lies there as Hugging Face writes it, with its tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

import taskmix.models as models
import taskmix.tasks as encodings
from taskmix.engine._described import undescribe
from taskmix.engine._model_folder import NAME, replacing_model
from taskmix.engine._run import Run, model_of_run
from taskmix.errors import InputError, RecordError, TaskmixError
from taskmix.files import read_plain
from taskmix.models import HardSharing, Transformer
from taskmix.records import Study, describe, load_state, save_state
from taskmix.tasks import (
    Question,
    TaskSet,
    encode_with,
    learned_by,
    load_pretrained,
    quiet_transformers,
)
from taskmix.training import TrainedModel, TrainedPart

VERSION = 1
NETWORK = "encoder.network."  # parameters that Hugging Face's files have already


def save_models(
    folder: Path,
    trained: Sequence[tuple[Run, Sequence[str]]],  # runs that are done, and what each is for
    study: Study,
    notes: Mapping[str, Any] | None = None,  # where they come from, for people
) -> Path:
    """Writes the best parameters of runs as one folder that `load_model` takes.

    >>> from pathlib import Path
    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> study = Study("study")
    >>> _ = Here(workers=1).run([run], study)
    >>> folder = save_models(Path("model"), [(run, ["parity"])], study)
    >>> load_model(folder).tasks
    ('parity',)
    """
    with replacing_model(folder) as (mark, publish):
        parts = [
            _save(folder, f"{place}-{mark}", run, answers, study)
            for place, (run, answers) in enumerate(trained)
        ]
        publish({"version": VERSION, "notes": dict(notes or {}), "models": parts})
    return folder


def _save(
    folder: Path, place: str, run: Run, answers: Sequence[str], study: Study
) -> dict[str, Any]:
    model, encoded = model_of_run(run, study)
    tasks, architecture = run.load(), run.architecture
    state = {name: value.cpu() for name, value in model.state_dict().items()}
    if isinstance(architecture, Transformer):
        state = {name: value for name, value in state.items() if not name.startswith(NETWORK)}
        path = f"encoder{place}"
        _save_pretrained(folder / path, model, architecture)
        architecture = replace(architecture, path=path)
    described: Any = describe(architecture)
    if "vectors" in described:  # the file of word vectors: they are among the parameters
        described["vectors"] = None
    file = f"model{place}.safetensors"
    save_state(folder / file, state)
    return {
        "file": file,
        "architecture": described,
        "learned": learned_by(run.architecture.encoding, tasks, encoded),
        "vectors": None if encoded.vectors is None else encoded.vectors.shape[1],
        "tasks": [asdict(Question.of(task)) for task in tasks],
        "answers": list(answers),
        "run": study.run(run.specification()).name,
        "seed": run.seed,
    }


def _save_pretrained(folder: Path, model: HardSharing, architecture: Transformer) -> None:
    network: Any = model.encoder.network
    tokenizer = load_pretrained("AutoTokenizer", architecture.path)
    with quiet_transformers():
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def load_model(path: Path | str) -> TrainedModel:
    """A folder that `save_models` wrote, or a study that has one in `model`.

    >>> load_model("nowhere")
    Traceback (most recent call last):
    taskmix.errors.InputError: `nowhere` should be a folder with a trained model, with `model.json` ...
    """
    folder = Path(path)
    if not (folder / NAME).is_file() and (folder / "model" / NAME).is_file():
        folder /= "model"
    try:
        document = json.loads(read_plain(folder / NAME))
    except OSError as error:
        raise InputError(
            f"`{path}` should be a folder with a trained model, with `{NAME}` in it. Found none. "
            "`taskmix advise` leaves one in the study, and so does `taskmix train --keep DIR`."
        ) from error
    except (ValueError, RecursionError) as error:  # brackets by the thousand are no JSON of ours
        raise RecordError(f"`{folder / NAME}` should be JSON. Found something else.") from error
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise RecordError(
            f"`{folder / NAME}` should be a model of version {VERSION}. Found another."
        )
    try:
        return TrainedModel([_read(folder, each) for each in document["models"]])
    except TaskmixError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
        OverflowError,
    ) as error:
        words = " ".join(str(error).split())[:200]
        raise RecordError(
            f"`{folder / NAME}` should describe the parameters beside it. Found something else "
            f"({words})."
        ) from error


def _read(folder: Path, document: Mapping[str, Any]) -> TrainedPart:
    described = dict(document["architecture"])
    if described["kind"] == "Transformer":
        described["path"] = str(folder / Path(described["path"]).name)
    architecture = undescribe(described, models, encodings)
    questions = tuple(
        Question(**{**each, "labels": tuple(each["labels"]), "columns": tuple(each["columns"])})
        for each in document["tasks"]
    )
    learned = document["learned"]
    empty = TaskSet(tuple(each.unanswered(_no_rows(each)) for each in questions))
    encoded = encode_with(architecture.encoding, learned, empty)
    if document["vectors"] is not None:
        vectors = torch.zeros(len(encoded.vocabulary), document["vectors"])
        encoded = replace(encoded, vectors=vectors)
    model = architecture.build(encoded)
    state = load_state(folder / Path(document["file"]).name)
    missing, unknown = model.load_state_dict(state, strict=False)
    if unknown or any(not name.startswith(NETWORK) for name in missing):
        raise KeyError(f"other parameters than the model's: {[*unknown, *missing][:3]}")
    return TrainedPart(
        model=model.eval(),
        architecture=architecture,
        learned=learned,
        questions=questions,
        answers=tuple(document["answers"]),
    )


def _no_rows(question: Question) -> Any:
    import pyarrow as pa

    kind = pa.list_(pa.string()) if question.inputs == "tokens" else pa.string()
    if question.inputs == "table":
        kind = pa.float64()
    names = {"text": ("text",), "pair": ("text", "text2"), "tokens": ("tokens",)}
    names |= {"prompt": ("prompt",), "passage": ("text",)}
    columns = names.get(question.inputs, question.columns)
    return pa.table({name: pa.array([], kind) for name in columns})
