from __future__ import annotations

from pathlib import Path

import pytest

from taskmix.errors import InputError
from taskmix.files import check_output, check_output_folder


def looks_ours(data: bytes) -> bool:
    return data.startswith(b"ours")


def test_a_free_name_and_a_file_of_ours_may_be_written(tmp_path: Path) -> None:
    check_output(tmp_path / "new" / "plan.json", is_ours=looks_ours, what="the plan")
    (tmp_path / "plan.json").write_text("ours, earlier")
    check_output(tmp_path / "plan.json", is_ours=looks_ours, what="the plan")


def test_somebodys_file_a_link_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("chapter 1")
    (tmp_path / "ours").write_text("ours")
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    for name, found in [("thesis.txt", "another file"), ("link", "another file"), (".", "folder")]:
        with pytest.raises(InputError, match=found):
            check_output(tmp_path / name, is_ours=looks_ours, what="the plan")
    with pytest.raises(InputError, match="is a file"):
        check_output(tmp_path / "ours" / "plan.json", is_ours=looks_ours, what="the plan")


def test_a_folder_with_other_files_and_a_file_in_its_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    check_output_folder(tmp_path / "theirs", is_ours=lambda path: False, what="the model")
    (tmp_path / "theirs" / "thesis.txt").write_text("chapter 1")
    with pytest.raises(InputError, match="The model should be written into a folder that is new"):
        check_output_folder(tmp_path / "theirs", is_ours=lambda path: False, what="the model")
    check_output_folder(tmp_path / "theirs", is_ours=lambda path: True, what="the model")
    for path in (tmp_path / "theirs" / "thesis.txt", tmp_path / "theirs" / "thesis.txt" / "x"):
        with pytest.raises(InputError, match="is a file"):
            check_output_folder(path, is_ours=lambda path: True, what="the model")
