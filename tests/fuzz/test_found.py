"""One input for each defect that fuzzing has shown, so that none comes back."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bombs import peak_of
from readers import Reader, all_readers, refit_encoding, replacing_model

from taskmix.errors import InputError, RecordError, TaskFileError
from taskmix.records import load_state, save_state
from taskmix.sequences import load_mixture
from taskmix.tasks import TableEncoding, load_tasks, read_rows, read_word_vectors

READERS = {reader.name: reader for reader in all_readers()}


def prepared(name: str, folder: Path, data: bytes | None = None) -> Reader:
    reader = READERS[name]
    reader.prepare(folder)
    (folder / reader.file).write_bytes(reader.seeds[0] if data is None else data)
    return reader


def archive(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return sink.getvalue()


def array(values: object) -> bytes:
    sink = io.BytesIO()
    np.save(sink, np.asarray(values))
    return sink.getvalue()


WORDS = array(np.frombuffer(b"a\nb", dtype=np.uint8))


@pytest.mark.parametrize(
    "data",
    [
        archive(words=b"", vectors=b""),
        archive(words=b"\x93NUMPY\x01\x00v\x00{'descr': [", vectors=WORDS),
        archive(words=WORDS, vectors=array([[1j], [2j]])),
        archive(words=WORDS, vectors=array([["x"], ["y"]])),
        archive(words=array(["\ud800", "b"]), vectors=array([[1.0], [2.0]])),
        archive(words=WORDS, vectors=array([[1.0], [2.0]]))[:-30] + bytes(30),
        b"PK\x05\x06" + b"\xff" * 18,
    ],
    ids=["empty", "cut header", "complex", "text", "half a character", "zeroed end", "no members"],
)
def test_an_archive_that_numpy_trips_over_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "v.npz").write_bytes(data)
    with pytest.raises(TaskFileError, match=r"Copy it again|Save|Word vectors are read"):
        read_word_vectors(tmp_path / "v.npz")


@pytest.mark.parametrize("body", [b"", b"ARROW1\0\0 and no more", b"\xff" * 100])
def test_a_cached_table_that_another_wrote_is_made_again(tmp_path: Path, body: bytes) -> None:
    reader = prepared("cached table", tmp_path, hashlib.sha256(body).digest() + body)
    reader.read(tmp_path)
    assert (tmp_path / reader.file).read_bytes()[32:] != body


@pytest.mark.parametrize("text", ["[]", "{}", '{"inputs": 3}', "[" * 100_000, "null"])
def test_a_cached_encoding_that_another_wrote_is_made_again(tmp_path: Path, text: str) -> None:
    from safetensors.numpy import save

    data = save({"x": np.zeros(2)}, {"taskmix": f"00000000 {text}"})
    prepared("cached encoding", tmp_path, refit_encoding(bytes(data)))
    tasks = load_tasks(tmp_path / "tasks")
    cached = TableEncoding().encode(tasks, cache=tmp_path / "cache")
    assert cached.names == TableEncoding().encode(tasks).names


@pytest.mark.parametrize(
    "tree",
    [
        {"version": 1},
        {"version": 1, "options": 3, "fitted": {}},
        {"version": 1, "options": {"nothing": 1}, "fitted": {}},
        {"version": 1, "options": {}, "fitted": {"fit": 1}},
        {"version": 1, "options": {}, "fitted": {"bank_": {"dataclass": "Bank", "fields": {}}}},
        [1],
    ],
    ids=str,
)
def test_a_mixture_of_another_form_is_refused(tmp_path: Path, tree: object) -> None:
    save_state(tmp_path / "m", tree)
    assert load_state(tmp_path / "m") == tree
    with pytest.raises(RecordError, match="mixture"):
        load_mixture(tmp_path / "m")


def test_names_in_a_sentence_stay_on_its_line(tmp_path: Path) -> None:
    document = json.loads(READERS["plan"].seeds[0])
    document["parts"][0]["scored"] = ["a\nTraceback"]
    prepared("plan", tmp_path, json.dumps(document).encode())
    with pytest.raises(InputError) as refused:
        READERS["plan"].read(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    name = "x" * 3000
    settings = f'[[task]]\nname = "a"\nfolder = "{name}"\n'.encode()
    with pytest.raises(InputError, match="one that a file can have") as refused:
        prepared("settings of tasks", tmp_path, settings).read(tmp_path)
    assert len(str(refused.value)) < 1000
    for long in (name, "/".join(["name"] * 2000)):
        with pytest.raises(InputError, match="one that a file can have"):
            load_tasks(long)


def odd_model(change: Callable[[dict[str, Any]], None]) -> bytes:
    document = json.loads(READERS["trained model"].seeds[0])
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "data",
    [
        b'{"version": 1, "models": ' + b"[" * 100_000,
        b'{"a":' * 100_000,
        odd_model(lambda document: document["models"][0].update(file="\0")),
        odd_model(lambda document: document["models"][0].update(file="\ud800")),
        odd_model(lambda document: document["models"][0]["tasks"][0].update(columns=["\ud800"])),
        odd_model(lambda document: document["models"][0]["architecture"].update(head_dropout=7.0)),
    ],
    ids=["arrays", "objects", "NUL", "half a pair", "half a pair as a column", "dropout"],
)
def test_a_model_of_another_form_is_refused(tmp_path: Path, data: bytes) -> None:
    reader = prepared("trained model", tmp_path, data)
    with pytest.raises((InputError, RecordError)) as refused:
        reader.read(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["\ud800", "a" * 5000, "/etc/passwd", "\0", "no-such-file", "config.json/deeper"]
)
def test_a_list_of_a_models_files_may_name_what_no_file_is_called(
    tmp_path: Path, name: str
) -> None:
    old = "0123456789abcdef"
    (tmp_path / f"encoder0-{old}").mkdir()
    (tmp_path / f"encoder0-{old}" / "config.json").write_text("{}")
    (tmp_path / f"encoder0-{old}" / "notes.txt").write_text("mine")
    files = [f"encoder0-{old}/{name}", f"encoder0-{old}/config.json"]
    (tmp_path / "model.json").write_text(
        json.dumps({"version": 1, "models": [], "files": files}), encoding="utf-8"
    )
    with replacing_model(tmp_path) as (mark, publish):
        (tmp_path / f"model0-{mark}.safetensors").touch()
        publish({"version": 1, "models": []})
    assert (tmp_path / f"encoder0-{old}" / "notes.txt").exists()
    assert not (tmp_path / f"encoder0-{old}" / "config.json").exists()
    assert json.loads((tmp_path / "model.json").read_text())["files"] == [
        f"model0-{mark}.safetensors"
    ]


def test_a_footer_that_ends_the_process_inside_of_arrow_is_told(tmp_path: Path) -> None:
    """Sizes of texts, said of a column of numbers: Arrow raises where nothing catches it."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": pa.array([b"a", b"bc"])}), path, store_schema=False)
    data = path.read_bytes()
    # The schema says 6, bytes, and then whether there may be none; with 2 it says whole numbers.
    place = data.index(b"\x15\x0c\x25\x02\x18\x04text")
    path.write_bytes(data[: place + 1] + b"\x04" + data[place + 2 :])
    said, _ = peak_of(lambda: read_rows(path))
    assert "should be whole Parquet" in said


@pytest.mark.parametrize("wrong", [{"size": {}}, {"size": "9"}, {"size": 1.5}, {"crc32": 3}])
def test_a_list_of_checkpoints_with_sizes_of_another_type_is_told(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    reader = next(each for each in all_readers() if each.name == "list of checkpoints")
    reader.prepare(tmp_path)
    document = json.loads(reader.seeds[0])
    document["checkpoints"][0]["state"] |= wrong
    assert reader.refit is not None
    (tmp_path / reader.file).write_bytes(reader.refit(json.dumps(document).encode()))
    with pytest.raises(RecordError, match="another form"):
        reader.read(tmp_path)
