"""The pages that were written by hand, made fit for the site.

On the site there is nothing outside its folder, so links to files of the repository become links to
pages that show them, and a comment such as `<!-- file: examples/own_loop.py -->` becomes the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from site_methods import maths

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OUTSIDE = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
_LINK = re.compile(r"(?<!!)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_FILE = re.compile(r"<!-- file: (\S+) -->")
_CODE = re.compile(r"(`[^`]*`)")
_FENCED = re.compile(r"(?ms)^(```.*?^```\s*?$)")
_LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json"}


def written_pages() -> Iterator[tuple[str, str]]:
    """Path and text of every hand-written page."""
    for path in sorted(DOCS.rglob("*.md")):
        place = path.relative_to(DOCS).as_posix()
        yield place, _fit(path.read_text(encoding="utf-8"), f"docs/{place}")
    for place, path in OUTSIDE.items():
        yield place, _fit((ROOT / path).read_text(encoding="utf-8"), path)


def example_pages() -> Iterator[tuple[str, str]]:
    """A page for every example, with the whole file."""
    for path in sorted((ROOT / "examples").iterdir()):
        if path.suffix in _LANGUAGES:
            yield f"examples/{path.name}.md", f"# {path.name}\n\n{_shown(path)}\n"


def assets() -> Iterator[tuple[str, bytes]]:
    """Pictures, tables and schemas beside the pages."""
    for path in sorted(DOCS.rglob("*")):
        if path.suffix in (".svg", ".png", ".json", ".csv"):
            yield path.relative_to(DOCS).as_posix(), path.read_bytes()


def _fit(text: str, place: str) -> str:
    """The page at `place` of the repository, with links that hold on the site."""
    parts = _FENCED.split(text)
    return "".join(part if part.startswith("```") else _fit_prose(part, place) for part in parts)


def _fit_prose(text: str, place: str) -> str:
    text = "".join(part if part.startswith("`") else maths(part) for part in _CODE.split(text))
    text = _LINK.sub(lambda match: f"]({_target(match[1], place)}{match[2] or ''})", text)
    return _FILE.sub(lambda match: _shown(ROOT / match[1]), text)


def _target(link: str, place: str) -> str:
    """Where a link of a page points on the site."""
    if re.match(r"[a-z]+:", link):
        return link
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    here = _place_on_site(place)
    return posixpath.relpath(_place_on_site(wanted), posixpath.dirname(here) or ".")


def _place_on_site(path: str) -> str:
    outside = {file: place for place, file in OUTSIDE.items()}
    if path in outside:
        return outside[path]
    if path == "README.md":
        return "index.md"
    if path == "docs/decisions":
        return "decisions/index.md"
    if path.startswith("examples/"):
        return f"{path}.md"
    return path.removeprefix("docs/")


def _shown(path: Path) -> str:
    code = path.read_text(encoding="utf-8").rstrip()
    return f"```{_LANGUAGES[path.suffix]}\n{code}\n```"
