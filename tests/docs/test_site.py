"""The built site: whole, and without a request to anywhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from build import HERE, prepare, render
from site_commands import all_commands, path_of


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "docs"
    assert prepare(folder) > 80
    assert render(folder) == 0
    return folder


@pytest.mark.parametrize(
    ("link", "sound"),
    [
        ("other.md", True),
        ("other.md#there", True),
        ("nowhere.md", False),
        ("other.md#nothing", False),
    ],
)
def test_a_broken_link_or_anchor_fails_the_build(link: str, sound: bool, tmp_path: Path) -> None:
    pages = {"index.md": f"# Home\n\n[link]({link})\n", "other.md": "# Other\n\n## There\n"}
    (tmp_path / "pages").mkdir()
    for name, text in pages.items():
        (tmp_path / "pages" / name).write_text(text)
    shutil.copytree(HERE / "theme", tmp_path / "theme")
    shutil.copy(HERE / "zensical.toml", tmp_path)
    assert (render(tmp_path) == 0) is sound


def test_no_page_fetches_anything_from_outside(work: Path) -> None:
    fetched = re.compile(r"<(?:script|img|iframe|source)[^>]+src=\"(?:https?:)?//[^\"]+")
    linked = re.compile(r"<link[^>]+rel=\"(?:stylesheet|preconnect|icon|preload)\"[^>]*//[^>]+>")
    for path in (work / "site").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not fetched.findall(text), path
        assert not linked.findall(text), path


def test_every_command_has_a_page_with_all_its_options_and_a_line_in_the_list(work: Path) -> None:
    pages = work / "pages"
    listed = (pages / "commands" / "index.md").read_text(encoding="utf-8")
    commands = list(all_commands())[1:]  # the first is the program itself
    assert {"taskmix train", "taskmix laws simulate"} <= {name for name, _ in commands}
    for name, context in commands:
        assert f"| [`{name}`]({Path(path_of(name)).name}) | " in listed
        text = (pages / path_of(name)).read_text(encoding="utf-8")
        for part in context.command.params:
            if part.param_type_name == "option" and not part.hidden:
                rows = re.findall(rf"\n\| `{part.opts[0]}[ ,`]", text)
                assert len(rows) == 1, f"{name} {part.opts[0]}"


def test_everything_a_page_points_to_is_there(work: Path) -> None:
    pointed = re.compile(r"<(?:a|img|script|link)\b[^>]*?\b(?:href|src)=\"([^\"#?]+)")
    for path in (work / "site").rglob("*.html"):
        for target in pointed.findall(path.read_text(encoding="utf-8")):
            if not re.match(r"(?:[a-z]+:|//|/)", target) and path.name != "404.html":
                assert (path.parent / target).exists(), f"{path.name}: {target}"
