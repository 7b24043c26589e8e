"""What `make demo` would run, by uv and by pip."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lines_of(folder: Path, *words: str) -> str:
    """What make says that it would do in a bare checkout."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copyfile(ROOT / name, folder / name)
    clean = {key: value for key, value in os.environ.items() if key not in ("UV", "TORCH")}
    done = subprocess.run(
        ["make", "--dry-run", *words, ".venv/.demo-done"],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_uv_takes_torch_for_the_machine_and_the_pinned_packages(tmp_path: Path) -> None:
    said = lines_of(tmp_path, "UV=/bin/uv")
    assert "/bin/uv pip install" in said
    assert "--torch-backend=auto" in said
    assert (
        said.count("--constraint constraints.txt --editable '.[report]'") == 2
    )  # and pip after it


def test_the_choice_of_torch_may_be_left_to_uv(tmp_path: Path) -> None:
    said = lines_of(tmp_path, "UV=/bin/uv", "TORCH=")
    assert "/bin/uv pip install" in said
    assert "--torch-backend" not in said


def test_the_demo_installs_the_page_and_nothing_for_developers(tmp_path: Path) -> None:
    said = lines_of(tmp_path, "UV=")
    assert "[dev]" not in said
    assert "python -m pip install" in said
