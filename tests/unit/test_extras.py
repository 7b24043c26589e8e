from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from taskmix.errors import MissingExtraError
from taskmix.extras import PACKAGES, is_installed, load, missing, require

ROOT = Path(__file__).parents[2]


def test_every_package_is_of_the_extra_that_brings_it() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for package, extra in PACKAGES.values():
        named = [word.split(">")[0] for word in extras["optional-dependencies"][extra]]
        assert package in named, (package, extra)


def test_every_package_of_an_extra_for_users_is_known() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = {package for package, _ in PACKAGES.values()}
    for extra, packages in extras["optional-dependencies"].items():
        if extra not in ("dev", "docs", "ray"):
            own = {word for word in packages if word.startswith("taskmix[")}  # other extras of ours
            assert {word.split(">")[0] for word in packages} - own <= known, extra


def test_what_is_missing_is_told_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cmaes", None)
    assert not is_installed("cmaes")
    assert missing("json", purpose="It") is None
    with pytest.raises(MissingExtraError, match=r"It needs the package `cmaes`.*taskmix\[search\]"):
        require("json", "cmaes", purpose="It")
    with pytest.raises(MissingExtraError, match=r"which is not installed"):
        load("cmaes", purpose="It")


def test_a_folder_of_that_name_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "datasets").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "datasets", raising=False)
    assert not is_installed("datasets")


def test_a_package_that_is_broken_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cmaes").mkdir()
    (tmp_path / "cmaes" / "__init__.py").write_text("raise ImportError('no libfoo')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "cmaes"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"cannot be imported \(no libfoo\)"):
        load("cmaes.sub", purpose="It")
