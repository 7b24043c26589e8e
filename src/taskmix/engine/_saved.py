"""Trained models in a folder of their own: everything that is needed to answer for new rows.

`model.json` has for each model its architecture, what its encoding learned (the vocabulary, or the
layout of a table), its tasks with their labels, and which of them it is for; the parameters lie
beside it as safetensors. Nothing is pickled, and neither the study nor the task folder is needed.
A pretrained model of which every weight was trained lies there as Hugging Face writes it, with its
tokenizer. Adapters lie there as PEFT writes them; the model that they, or heads on vectors, belong to
is named and not copied. On demand there is also that model with the adapters added into its weights.

Heads and adapters are small beside the model that they belong to, so that one is named and not copied:
by its path, and by a mark of its weights, since another model may lie at the same path later.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast
from warnings import warn

import torch

import taskmix.models as models
import taskmix.tasks as encodings
from taskmix.engine._from_spec import from_spec
from taskmix.engine._model_folder import NAME, replacing_model
from taskmix.engine._run import Run, model_of_run
from taskmix.errors import InputError, OptionError, RecordError, TaskmixError, TaskmixWarning
from taskmix.files import list_folder, open_plain, read_plain
from taskmix.models import (
    Architecture,
    FittedPeer,
    Perceptron,
    Transformer,
    fill_adapters,
    merged_network,
    outline_of,
    save_adapters,
    tuning_of,
)
from taskmix.records import Study, describe, load_state, save_state
from taskmix.tasks import (
    FeatureEncoding,
    Question,
    TaskSet,
    encode_with,
    find_pooling,
    learned_by,
    load_pretrained,
    quiet_transformers,
)
from taskmix.training import Blend, PeerPart, TrainedModel, TrainedPart

VERSION = 2  # 1, which is written still where it can be, has neither peers nor blends
# Parameters that lie in files of Hugging Face's and PEFT's formats.
LEARNED = "learned."  # what the names of tensors begin with that an encoding learned
ELSEWHERE = ("encoder.network.", "encoder.adapters.")


def save_models(
    folder: Path,
    trained: Sequence[tuple[Run, Sequence[str]]],  # runs that are done, and what each is for
    study: Study,
    notes: Mapping[str, Any] | None = None,  # where they come from, for people
    *,
    merged: bool = False,
    peers: Sequence[tuple[FittedPeer, Sequence[str]]] = (),  # and what each is for
    blends: Mapping[str, Blend] | None = None,  # by task; members are runs, then peers, by place
) -> Path:
    """Writes the best parameters of runs, and fitted peers, as one folder that `load_model` takes.

    With `merged` there is also, for models with adapters, a folder in the format of Hugging Face that
    needs no adapters: `model.json` has its name.

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
    if merged:
        check_mergeable([run for run, _ in trained])
    with replacing_model(folder) as (mark, publish):
        parts = [
            _save(folder, f"{place}-{mark}", run, answers, study, merged=merged)
            for place, (run, answers) in enumerate(trained)
        ]
        document: dict[str, Any] = {"version": 1, "notes": dict(notes or {}), "models": parts}
        if peers or blends:
            document |= {
                "version": VERSION,
                "peers": [
                    _save_peer(folder, f"{place}-{mark}", fitted, answers)
                    for place, (fitted, answers) in enumerate(peers, len(parts))
                ],
                "blends": {task: asdict(blend) for task, blend in (blends or {}).items()},
            }
        publish(document)
    return folder


def _save_peer(
    folder: Path, place: str, fitted: FittedPeer, answers: Sequence[str]
) -> dict[str, Any]:
    more: dict[str, Any] = {}
    base = fitted.features.base
    if base is not None:
        pooling = base.pooling or find_pooling(base.path)
        more["base"] = {"path": lasting_path(base.path), "mark": mark_of(base.path)}
        base = replace(base, path=lasting_path(base.path), pooling=pooling)
        fitted = replace(fitted, features=fitted.features.with_base(base))
    file = f"model{place}.safetensors"
    save_state(folder / file, fitted.state())
    return {"file": file, **more, "description": fitted.describe(), "answers": list(answers)}


def check_mergeable(runs: Sequence[Run]) -> None:
    """Raises where a model has no adapters that could be added into its weights.

    >>> from taskmix.models import Perceptron
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> check_mergeable([run])
    Traceback (most recent call last):
    taskmix.errors.OptionError: A merged model should be made of one with adapters. Found Perceptron. ...
    """
    for run in runs:
        if tuning_of(run.architecture) != "adapters":
            raise OptionError(
                "A merged model should be made of one with adapters. Found "
                f"{_told(run.architecture)}. Leave `merged` out, or tune adapters.",
                arguments=("merged",),
            )


def _told(architecture: Architecture) -> str:
    tuning = tuning_of(architecture)
    return type(architecture).__name__ if tuning is None else f"one that tunes {tuning}"


def _save(
    folder: Path,
    place: str,
    run: Run,
    answers: Sequence[str],
    study: Study,
    *,
    merged: bool,
) -> dict[str, Any]:
    model, encoded = model_of_run(run, study)
    tasks, architecture = run.load(), with_pooling(run.architecture)
    state = {name: value.cpu() for name, value in model.state_dict().items()}
    more: dict[str, Any] = {}
    base = base_of(architecture)
    if base is not None:
        architecture = with_base(architecture, lasting_path(base))
        more["base"] = {"path": lasting_path(base), "mark": mark_of(base)}
    if isinstance(architecture, Transformer):
        state = {name: value for name, value in state.items() if not name.startswith(ELSEWHERE)}
        encoder: Any = model.encoder
        path = run.architecture.encoding.path
        if architecture.tune == "all":
            architecture = replace(architecture, path=f"encoder{place}")
            _save_pretrained(folder / architecture.path, encoder.network, path)
        else:
            more["adapters"] = save_adapters(folder / f"adapter{place}", encoder).name
            architecture = replace(
                architecture, adapters=replace(architecture.adapters, start=None)
            )
        if merged:
            more["merged"] = f"merged{place}"
            _save_pretrained(folder / more["merged"], merged_network(encoder), path)
    described: Any = describe(architecture)
    if "vectors" in described:  # the file of word vectors: they are among the parameters
        described["vectors"] = None
    learned = learned_by(run.architecture.encoding, tasks, encoded)
    tensors = {name: value for name, value in learned.items() if isinstance(value, torch.Tensor)}
    file = f"model{place}.safetensors"
    save_state(folder / file, {**state, **{LEARNED + name: each for name, each in tensors.items()}})
    return {
        "file": file,
        **more,
        "architecture": described,
        "learned": {name: each for name, each in learned.items() if name not in tensors},
        "vectors": None if encoded.vectors is None else encoded.vectors.shape[1],
        "tasks": [asdict(Question.of(task)) for task in tasks],
        "answers": list(answers),
        "run": study.run(run.specification()).name,
        "seed": run.seed,
    }


def _save_pretrained(folder: Path, network: Any, path: str) -> None:
    tokenizer = load_pretrained("AutoTokenizer", path)
    with quiet_transformers():
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def load_model(path: Path | str, *, base: Path | str | None = None) -> TrainedModel:
    """A folder that `save_models` wrote, or a study that has one in `model`.

    Heads and adapters need the pretrained model that they were trained on: `base` says where it lies
    now, where that is not its old place.

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
    if not isinstance(document, dict) or document.get("version") not in (1, VERSION):
        raise RecordError(
            f"`{folder / NAME}` should be a model of version 1 or {VERSION}. Found another."
        )
    try:
        given = None if base is None else str(base)
        if given is not None and not _needs_base(document):
            raise OptionError(
                f"`base` should be given for heads or adapters of a pretrained model. Found `{folder}`, "
                "which needs none. Leave it out.",
                arguments=("base",),
            )
        parts: list[TrainedPart | PeerPart] = [
            _read(folder, each, given) for each in document["models"]
        ]
        parts += [_read_peer(folder, each, given) for each in document.get("peers", ())]
        blends = {
            str(task): Blend(**{key: tuple(value) for key, value in each.items()})
            for task, each in document.get("blends", {}).items()
        }
        return TrainedModel(parts, blends)
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


def _needs_base(document: Mapping[str, Any]) -> bool:
    networks = [from_spec(each["architecture"], models, encodings) for each in document["models"]]
    return any(map(base_of, networks)) or any("base" in each for each in document.get("peers", ()))


def _read_peer(folder: Path, document: Mapping[str, Any], given: str | None) -> PeerPart:
    state = load_state(folder / Path(document["file"]).name)
    fitted = FittedPeer.restore(document["description"], state)
    base = fitted.features.base
    if base is not None:
        path = find_base(folder, base.path, given, document.get("base", {}).get("mark"))
        features = fitted.features.with_base(replace(base, path=path))
        fitted = replace(fitted, features=features)
    return PeerPart(fitted=fitted, answers=tuple(document["answers"]))


def _read(folder: Path, document: Mapping[str, Any], given: str | None) -> TrainedPart:
    architecture = from_spec(document["architecture"], models, encodings)
    needed = base_of(architecture)
    if needed is not None:
        base = find_base(folder, needed, given, document.get("base", {}).get("mark"))
        architecture = with_base(architecture, base)
    elif isinstance(architecture, Transformer):
        architecture = replace(architecture, path=str(folder / Path(architecture.path).name))
    questions = tuple(
        Question(**{**each, "labels": tuple(each["labels"]), "columns": tuple(each["columns"])})
        for each in document["tasks"]
    )
    state = load_state(folder / Path(document["file"]).name)
    names = [name for name in state if name.startswith(LEARNED)]
    learned = document["learned"] | {name.removeprefix(LEARNED): state.pop(name) for name in names}
    empty = TaskSet(tuple(each.unanswered(_no_rows(each)) for each in questions))
    encoded = encode_with(architecture.encoding, learned, empty)
    if document["vectors"] is not None:
        vectors = torch.zeros(len(encoded.vocabulary), document["vectors"])
        encoded = replace(encoded, vectors=vectors)
    model = architecture.build(encoded)
    try:
        missing, unknown = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        if given is None:
            raise
        raise InputError(
            f"`{given}` should be the model that the one in `{folder}` was trained on, `{needed}`. "
            "Found another, whose states have another size."
        ) from error
    if unknown or any(not name.startswith(ELSEWHERE) for name in missing):
        raise KeyError(f"other parameters than the model's: {[*unknown, *missing][:3]}")
    if tuning_of(architecture) == "adapters":
        adapters = cast("Any", model.encoder).adapters
        fill_adapters(adapters, folder / Path(document["adapters"]).name, base)
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
