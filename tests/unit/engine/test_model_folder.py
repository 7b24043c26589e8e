"""The folder of a trained model: nothing of others is touched, and it is replaced at one moment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from taskmix.engine._model_folder import check_model_folder, replacing_model
from taskmix.errors import InputError, RecordError
from taskmix.files import _atomic


def save(folder: Path, content: str) -> None:
    with replacing_model(folder) as (mark, publish):
        (folder / f"model0-{mark}.safetensors").write_text(content)
        (folder / f"encoder0-{mark}").mkdir()
        (folder / f"encoder0-{mark}" / "config.json").write_text(content)
        document = {"file": f"model0-{mark}.safetensors", "encoder": f"encoder0-{mark}"}
        publish({"version": 1, "models": [document]})


def content(folder: Path) -> str:
    """What a reader finds, who goes by `model.json` alone."""
    [model] = json.loads((folder / "model.json").read_text())["models"]
    found = {
        (folder / model["file"]).read_text(),
        (folder / model["encoder"] / "config.json").read_text(),
    }
    assert len(found) == 1, "parts of two models"
    return found.pop()


def files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize("study", [False, True])
def test_a_folder_of_something_else_is_refused_and_untouched(tmp_path: Path, study: bool) -> None:
    name = "0f0f0f0f0f0f/run.json" if study else "thesis.txt"
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    for attempt in (check_model_folder, lambda folder: save(folder, "new")):
        with pytest.raises(InputError, match="other files"):
            attempt(tmp_path)
    assert files(tmp_path) == {name}


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text("a,b")
    with pytest.raises(InputError, match="is a file"):
        check_model_folder(tmp_path / "some.csv")


def test_a_document_of_others_called_model_json_is_not_taken_for_ours(tmp_path: Path) -> None:
    for text in ("[" * 100_000, "{}", '{"name": "other"}', "no JSON"):
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(InputError, match="other files"):
            check_model_folder(tmp_path)


def test_files_of_others_in_a_model_folder_stay(tmp_path: Path) -> None:
    save(tmp_path, "old")
    [encoder] = tmp_path.glob("encoder*")
    (encoder / "notes.txt").write_text("mine")
    (tmp_path / "README.md").write_text("mine")
    save(tmp_path, "new")
    assert content(tmp_path) == "new"
    assert {f"{encoder.name}/notes.txt", "README.md"} < files(tmp_path)
    assert len(files(tmp_path)) == 5


def test_a_list_that_names_files_of_others_deletes_none(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    folder = tmp_path / "model"
    save(folder, "old")
    document = json.loads((folder / "model.json").read_text())
    document["files"] = [
        "../thesis.txt",
        "/etc/hostname",
        "encoder0-" + "0" * 16 + "/../../thesis.txt",
    ]
    (folder / "model.json").write_text(json.dumps(document))
    save(folder, "new")
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert content(folder) == "new"


def test_two_writers_at_once_are_told_apart(tmp_path: Path) -> None:
    with (
        replacing_model(tmp_path),
        pytest.raises(RecordError, match="another process"),
        replacing_model(tmp_path),
    ):
        pass


class Killed(BaseException):
    """The process is no more."""


@pytest.mark.parametrize("done", [False, True], ids=["before the call", "after the call"])
def test_a_kill_at_any_call_leaves_one_of_the_two_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    outcomes = []
    for number in range(1, 60):
        folder = tmp_path / str(number)
        save(folder, "old")
        calls = 0

        class Disk:
            def __getattr__(self, name: str) -> Any:
                real = getattr(os, name)
                if name not in ("open", "write", "fsync", "replace", "unlink", "rmdir"):
                    return real

                def call(*arguments: Any, **options: Any) -> Any:
                    nonlocal calls
                    calls += 1
                    if calls >= number and not done:  # noqa: B023
                        raise Killed
                    result = real(*arguments, **options)
                    if calls >= number:  # noqa: B023
                        raise Killed
                    return result

                return call

        with monkeypatch.context() as patch:
            patch.setattr(_atomic, "os", Disk())
            try:
                save(folder, "new")
                killed = False
            except Killed:
                killed = True
        outcomes.append(content(folder))
        save(folder, "last")  # whatever was left is no obstacle, and is swept
        assert content(folder) == "last"
        assert len({name for name in files(folder) if not name.startswith(".")}) == 3
        if not killed:
            break
    assert outcomes[0] == "old"
    assert outcomes[-1] == "new"
    assert len(outcomes) > 5
