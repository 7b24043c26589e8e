"""Pipes, devices, sockets, folders and sparse files in the place of every file that is read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from odd import KINDS, make_endless_device, make_link_to_itself, make_pipe
from readers import Reader, all_readers
from trial import attempt

from taskmix.errors import TaskmixError
from taskmix.files import read_plain

# They go on without the file: a cache is made anew, a run that cannot be read is told in a note, and
# before a checkpoint there is another.
GOES_ON = {"cached table", "cached encoding", "run.json", "summary of sequences", "state of a run"}


def _readers() -> list[Reader]:
    """All, and some of them with an odd file beside the one that is read."""
    known = {reader.name: reader for reader in all_readers() if reader.name != "formula"}
    model, entries = known["trained model"], known["list of checkpoints"]
    (weights,) = (name for name in model.beside if name.endswith(".safetensors"))
    others = [
        replace(
            model,
            name="weights of a model",
            file=weights,
            beside={**model.beside, model.file: model.seeds[0]},
        ),
        replace(entries, name="state of a run", file="1/checkpoint/state-4.safetensors"),
    ]
    return [*known.values(), *others]


READERS = _readers()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_what_is_no_plain_file_is_told_in_a_sentence(reader: Reader, tmp_path: Path) -> None:
    for make in KINDS:
        folder = tmp_path / make.__name__
        folder.mkdir()
        reader.prepare(folder)
        said: list[str] = []
        defect = attempt(reader, folder, make, told=said.append)
        assert defect is None, defect
        is_like_none = make is make_link_to_itself
        assert said or is_like_none or reader.name in GOES_ON, (reader.name, make.__name__)


def test_a_file_that_grows_while_it_is_read_is_read_up_to_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"12345")
    look = os.fstat

    def look_and_grow(descriptor: int) -> os.stat_result:
        found = look(descriptor)
        with path.open("ab") as file:
            file.write(b"6" * 1000)
        return found

    monkeypatch.setattr("taskmix.files._plain.os.fstat", look_and_grow)
    with pytest.raises(TaskmixError, match="at most 100 bytes"):
        read_plain(path, limit=100)
    assert read_plain(path, limit=10_000).startswith(b"123456")


def model_of(folder: Path) -> list[str]:
    (folder / "model").mkdir()
    make_endless_device(folder / "model" / "model.json")
    (folder / "rows.csv").write_text("x\n1\n")
    return ["predict", str(folder / "model"), str(folder / "rows.csv")]


def study_of(folder: Path) -> list[str]:
    (folder / "study" / "run").mkdir(parents=True)
    make_pipe(folder / "study" / "run" / "run.json")
    return ["report", str(folder / "study"), "--page", str(folder / "page.html")]


def tasks_of(folder: Path) -> list[str]:
    (folder / "tasks" / "a").mkdir(parents=True)
    make_pipe(folder / "tasks" / "a" / "train.jsonl")
    return ["train", str(folder / "tasks"), "--out", str(folder / "study")]


@pytest.mark.parametrize("place", [model_of, study_of, tasks_of], ids=lambda place: place.__name__)
def test_a_command_tells_it_and_ends(tmp_path: Path, place: Callable[[Path], list[str]]) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "taskmix", *place(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert said.returncode in (1, 2), said
    assert "Traceback" not in said.stderr
    assert "should" in said.stderr


def test_standard_input_without_end_is_told(tmp_path: Path) -> None:

    code = (
        "import taskmix.files as files; files.free_memory = lambda: 8 << 20\n"
        "from pathlib import Path\n"
        "from taskmix.cli._commands._predict import _copy_standard_input as copy\n"
        f"copy(Path({str(tmp_path / 'rows')!r}))"
    )
    with Path("/dev/zero").open("rb") as endless:
        said = subprocess.run(
            [sys.executable, "-c", code],
            stdin=endless,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert "Standard input should have at most" in said.stderr
