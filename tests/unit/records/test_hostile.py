"""Records that somebody has changed on purpose: checksums fit, and what they say is not believed."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import SPECIFICATION, begin

from taskmix.errors import RecordError
from taskmix.records import RunFolder, Study, _checkpoint, load_state, save_state


@pytest.fixture
def finished(tmp_path: Path) -> RunFolder:
    return written(tmp_path, finish=True)


@pytest.fixture
def unfinished(tmp_path: Path) -> RunFolder:
    return written(tmp_path, finish=False)


def written(study: Path, *, finish: bool) -> RunFolder:
    folder = Study(study).run(SPECIFICATION)
    with folder.claim() as claim:
        writer = begin(claim.writer, "a")
        writer.add_scores(1, [("a", "dev", "accuracy", 0.5)])
        state = {"weights": torch.ones(2)}
        writer.commit(1, state, best=state, best_step=1)
        if finish:
            writer.finish(scores=[("a", "test", "accuracy", 0.5)], best_step=1)
    return folder


def change(folder: RunFolder, **entries: Any) -> None:
    """Rewrites a description as somebody would who knows to leave its checksum out."""
    path = folder.path / "run.json"
    document = json.loads(path.read_text()) | entries
    del document["crc32"]
    path.write_text(json.dumps(document))


def test_a_run_of_version_0_1_is_refused_in_a_sentence_that_says_what_reads_it(
    finished: RunFolder,
) -> None:
    settings = ("format", "tasks", "architecture", "optimization", "seed", "label")
    change(finished, specification=dict.fromkeys(settings, 1))
    notes: list[str] = []
    study = Study(finished.path.parent)
    assert study.summaries(note=notes.append) == []
    assert study.scores(note=notes.append).num_rows == 0
    assert [note.count("Read it with taskmix 0.1") for note in notes] == [1, 1]
    with pytest.raises(RecordError, match=r"Found one of version 0\.1"), finished.claim():
        pass


def test_every_changed_bit_of_a_description_is_seen(finished: RunFolder) -> None:
    path = finished.path / "run.json"
    sound, told = path.read_bytes(), finished.summary()
    unseen = []
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with contextlib.suppress(RecordError):
            assert finished.summary() == told
            unseen.append(place)
    # One bit of the checksum's own name makes it another entry, and all the others are sound.
    name = sound.rindex(b"crc32")
    assert all(name <= place < name + len("crc32") for place in unseen)


@pytest.mark.parametrize(
    "entries",
    [
        {"seconds": 10**400},
        {"scores": [{"task": "a", "split": "dev", "metric": "m", "value": 10**400}]},
        {"tasks": [{"name": "\ud800"}]},
        {"crc32": ""},
        {"crc32": 7},
    ],
    ids=["endless seconds", "endless score", "half a character", "empty sum", "number as sum"],
)
def test_odd_entries_are_refused_in_a_sentence(finished: RunFolder, entries: Any) -> None:
    path = finished.path / "run.json"
    document = json.loads(path.read_text())
    del document["crc32"]
    path.write_text(json.dumps(document | entries))
    with pytest.raises(RecordError, match=r"run\.json"):
        finished.summary()


@pytest.mark.parametrize(
    "entries", [{"seed": 2**63}, {"best_step": -(2**70)}, {"label": "\udc80"}], ids=str
)
def test_one_odd_run_does_not_keep_the_scores_of_the_others(
    tmp_path: Path, finished: RunFolder, entries: Any
) -> None:
    other = Study(tmp_path).run_named("other").path
    other.mkdir()
    (other / "run.json").write_bytes((finished.path / "run.json").read_bytes())
    change(RunFolder(other), **entries)
    told: list[str] = []
    assert Study(tmp_path).scores(note=told.append).num_rows == 1
    assert len(told) == 1


@pytest.mark.parametrize(
    "name", ["../../secret", "/etc/passwd", "..", "state-1.safetensors/../x", "other", "", "\0"]
)
@pytest.mark.parametrize("kind", ["state", "best"])
def test_a_list_of_checkpoints_cannot_name_files_elsewhere(
    unfinished: RunFolder, name: str, kind: str
) -> None:
    path = unfinished.path / "checkpoint" / "latest.json"
    document = json.loads(path.read_text())
    document["checkpoints"][0][kind]["file"] = name
    del document["crc32"]
    path.write_text(json.dumps(document | {"crc32": _checkpoint._sum(document)}))
    with pytest.raises(RecordError, match=r"latest\.json"):
        unfinished.checkpoint()


def test_a_finished_run_cannot_keep_a_file_elsewhere(finished: RunFolder) -> None:
    kept = json.loads((finished.path / "run.json").read_text())["kept"]
    kept["best"]["file"] = "../../secret"
    change(finished, kept=kept)
    with pytest.raises(RecordError, match=r"run\.json"):
        finished.best()


def test_the_best_state_of_a_run_with_a_damaged_description_is_not_taken_for_none(
    finished: RunFolder,
) -> None:
    (finished.path / "run.json").write_text("{")
    with pytest.raises(RecordError, match=r"run\.json"):
        finished.best()


def misshapen(path: Path, change: Callable[[Any], Any]) -> None:
    """A state with another structure, whose checksum fits."""
    save_state(path, {"a": np.arange(4, dtype=np.uint16), "b": torch.ones(2).to(torch.complex64)})
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    structure = json.loads(header["__metadata__"]["taskmix"])
    header["__metadata__"] = {
        "crc32": "00000000",
        "taskmix": json.dumps(change(structure)),
    }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    blank = len(encoded).to_bytes(8, "little") + encoded + data[end:]
    path.write_bytes(blank.replace(b"00000000", b"%08x" % zlib.crc32(blank), 1))


@pytest.mark.parametrize(
    "structure",
    [
        {"array": ["a", "|O", [1]]},  # pointers out of the file
        {"array": ["a", "<f8", [9, 9]]},
        {"array": ["a", "(99999999)f8", [1]]},
        {"array": ["a", "<f8, (", [1]]},
        {"array": ["a", 8, [1]]},
        {"tensor": ["b", "load", [2]]},
        {"tensor": ["b", "nn", [2]]},
        {"tensor": ["b", "complex64", [7]]},
        {"tensor": ["missing", "complex64", [2]]},
        {"scalar": ["|O", "00" * 8]},
        {"scalar": ["<f8", "00"]},
        {"float": "00"},
        {"dict": [[[], 1]]},
        {"dict": 5},
        {"unknown": 1},
        {"tuple": None},
        {},
        {"a": 1, "b": 2},
    ],
    ids=lambda structure: json.dumps(structure)[:40],
)
def test_a_state_of_another_structure_is_refused(tmp_path: Path, structure: Any) -> None:
    misshapen(tmp_path / "state", lambda sound: structure)
    with pytest.raises(RecordError, match="state that taskmix wrote"):
        load_state(tmp_path / "state")


def test_the_structure_is_what_is_refused(tmp_path: Path) -> None:
    misshapen(tmp_path / "state", lambda sound: sound)
    assert load_state(tmp_path / "state")["a"].tolist() == [0, 1, 2, 3]


def test_what_a_file_says_cannot_break_a_sentence_or_steer_a_terminal() -> None:
    error = RecordError("Found `\x1b[31m\nred\u202e` there." + "x" * 10_000)
    assert str(error).startswith("Found `\\x1b[31m\\nred\\u202e` there.")
    assert len(str(error)) < 2100
