"""Folders of `save_to_disk` are read without the package that wrote them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from taskmix.errors import InputError, TaskFileError
from taskmix.tasks import load_tasks

FEATURES = {
    "text": {"dtype": "string", "_type": "Value"},
    "label": {"names": ["bad", "good"], "_type": "ClassLabel"},
}
ROWS = {"text": ["a b", "b c"] * 20, "label": [1, 0] * 20}


def save(folder: Path, rows: dict[str, list[object]] | None = None, files: int = 1) -> Path:
    """What `datasets` 5.2 writes, as far as it is read."""
    folder.mkdir(parents=True)
    table = pa.table(rows or ROWS)
    names = [f"data-{place:05}-of-{files:05}.arrow" for place in range(files)]
    for place, name in enumerate(names):
        part = table.slice(place * len(table) // files, len(table) // files)
        with pa.ipc.new_stream(folder / name, part.schema) as writer:
            writer.write_table(part)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "x"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    return folder


def test_a_saved_data_set_is_a_task_with_the_names_of_its_classes(tmp_path: Path) -> None:
    tasks = load_tasks(save(tmp_path / "films", files=2))
    assert tasks.names == ("films",)
    assert tasks["films"].labels == ("bad", "good")
    assert tasks["films"].sizes == {"train": 32, "dev": 4, "test": 4}


def test_a_saved_dict_has_its_splits_and_a_folder_of_them_its_tasks(tmp_path: Path) -> None:
    for task in ("books", "films"):
        for split in ("train", "validation"):
            save(tmp_path / task / split)
        (tmp_path / task / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    assert load_tasks(tmp_path / "books")["books"].sizes == {"train": 40, "dev": 40}
    assert load_tasks(tmp_path).names == ("books", "films")


def test_it_is_what_the_package_writes(tmp_path: Path) -> None:
    hub = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    hub.disable_progress_bars()
    features = hub.Features(
        {"text": hub.Value("string"), "label": hub.ClassLabel(names=["bad", "good"])}
    )
    dataset = hub.Dataset.from_dict(ROWS, features=features)
    hub.DatasetDict(train=dataset, test=dataset.select([3, 1])).save_to_disk(tmp_path / "films")
    code = (
        "import sys\nsys.modules['datasets'] = None\n"
        "from taskmix.tasks import load_tasks\n"
        "task = load_tasks('films')['films']\n"
        "assert task.labels == ('bad', 'good') and task.sizes['test'] == 2, task.sizes\n"
        "assert task.splits['test'].targets.tolist() == [0, 0]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, cwd=tmp_path)
    assert load_tasks({"films": dataset})["films"].labels == ("bad", "good")


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "state.json",
            '{"_data_files": [{"filename": "../other.arrow"}]}',
            "should name the Arrow",
        ),
        ("state.json", "[]", "should be a JSON object"),
        ("state.json", "{", "should be JSON"),
        ("state.json", '{"_data_files": []}', "should name the Arrow"),
        ("state.json", '{"_data_files": 3}', "should name the Arrow"),
        (
            "state.json",
            '{"_data_files": [{"filename": "a.arrow"}, {"filename": "a.arrow"}]}',
            "once",
        ),
        ("state.json", '{"_data_files": [{"filename": "\\ud800.arrow"}]}', "should be JSON"),
        ("dataset_info.json", '{"features": [1]}', "should be a JSON object"),
        ("dataset_info.json", '{"features": {"label": {"names": [0, 1]}}}', "list of texts"),
        (
            "dataset_info.json",
            '{"features": {"label": {"feature": {"names": "ab"}}}}',
            "list of texts",
        ),
        ("dataset_info.json", '{"features": {"label": {"names": ["\\ud800"]}}}', "should be JSON"),
        ("data-00000-of-00001.arrow", "nothing", "should be whole"),
    ],
)
def test_a_damaged_folder_gets_a_sentence(tmp_path: Path, file: str, text: str, said: str) -> None:
    folder = save(tmp_path / "films")
    (folder / file).write_text(text)
    with pytest.raises(TaskFileError, match=said):
        load_tasks(folder)


def test_classes_of_lists_have_their_names(tmp_path: Path) -> None:
    folder = save(tmp_path / "films")
    classes = {"names": ["A", "B"], "_type": "ClassLabel"}
    features = {name: {"feature": classes} for name in ("short", "long")}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    rows = {
        "tokens": [["a", "b"]] * 20,
        "short": pa.array([[0, 1]] * 20, pa.list_(pa.int64(), 2)),
        "long": pa.array([[1, 1]] * 20, pa.large_list(pa.uint8())),
    }
    with pa.ipc.new_stream(folder / "data-00000-of-00001.arrow", pa.table(rows).schema) as writer:
        writer.write_table(pa.table(rows))
    short, long = load_tasks(folder, label=["short", "long"])
    assert (short.labels, long.labels) == (("A", "B"), ("B",))


def test_names_of_splits_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    save(tmp_path / "secret")
    folder = save(tmp_path / "films")
    (folder / "dataset_dict.json").write_text('{"splits": ["../secret"]}')
    with pytest.raises(InputError, match="`splits` should name folders"):
        load_tasks(folder)
