"""Builds the documentation site into build/site, strictly: a broken link or anchor is an error.

python docs/site/build.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from site_commands import command_pages
from site_methods import all_methods, method_pages
from site_pages import DOCS, ROOT, assets, example_pages, written_pages

HERE = Path(__file__).parent
WORK = ROOT / "build" / "docs"  # what the site is made of
SITE = ROOT / "build" / "site"


def main() -> None:
    count = prepare(WORK)
    if code := render(WORK):
        sys.exit(code)
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(WORK / "site", SITE)
    sys.stdout.write(f"{count} pages: {SITE / 'index.html'}\n")


def prepare(work: Path) -> int:
    """Writes all pages, the theme and the configuration; gives the number of pages."""
    shutil.rmtree(work, ignore_errors=True)
    pages = dict(written_pages()) | dict(example_pages())
    pages |= dict(method_pages(weighting_table())) | dict(command_pages())
    pages["decisions/index.md"] = _decisions(pages)
    for place, text in pages.items():
        _write(work / "pages" / place, text.encode())
    for place, content in assets():
        _write(work / "pages" / place, content)
    shutil.copytree(HERE / "theme", work / "theme")
    config = (HERE / "zensical.toml").read_text(encoding="utf-8")
    _write(
        work / "zensical.toml", config.replace("nav = []", f"nav = {_nav(config, pages)}").encode()
    )
    return len(pages)


def render(work: Path) -> int:
    """Makes the site of what was prepared; gives the program's exit code."""
    program = Path(sys.executable).with_name("zensical")
    command = [str(program), "build", "--strict", "--clean", "-f", str(work / "zensical.toml")]
    return subprocess.run(command, check=False).returncode


def weighting_table() -> dict[str, dict[str, str]]:
    """The rows of the table in docs/weighting.md, by method: word, needs, cost."""
    found = {}
    text = (DOCS / "weighting.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| `([^`]+)` \| `(\w+)` \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
    for word, name, needs, cost in row.findall(text):
        found[name] = {"word": word, "needs": needs.strip(), "cost": cost.strip()}
    return found


def _nav(config: str, pages: dict[str, str]) -> str:
    """The order of the site; a page that is nowhere in it comes last among the guides."""
    order: dict[str, list[str]] = tomllib.loads(config)["order"]
    sections = {name: [each for each in some if each in pages] for name, some in order.items()}
    inside = {"Methods": _methods(), "Reference": {"Each command": _commands(pages)}}
    folded = [place for parts in inside.values() for some in parts.values() for place in some]
    listed = {place for some in sections.values() for place in some} | set(folded)
    sections["Guides"] += [
        place
        for place in pages
        if place not in listed and not place.startswith(("examples/", "decisions/"))
    ]
    return _list(
        f'{{ "{name}" = {_list([_quoted(place) for place in some] + _folded(inside.get(name, {})))} }}'
        for name, some in sections.items()
    )


def _methods() -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    for method in all_methods():
        families.setdefault(method.family["title"], []).append(method.path)
    return families


def _commands(pages: dict[str, str]) -> list[str]:
    return [
        place for place in pages if place.startswith("commands/") and not place.endswith("index.md")
    ]


def _folded(parts: dict[str, list[str]]) -> list[str]:
    return [f'{{ "{title}" = {_list(map(_quoted, places))} }}' for title, places in parts.items()]


def _quoted(place: str) -> str:
    return f'"{place}"'


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _decisions(pages: dict[str, str]) -> str:
    lines = ["# Decisions", ""]
    for place, text in sorted(pages.items()):
        if place.startswith("decisions/"):
            title = text.splitlines()[0].removeprefix("# ")
            lines.append(f"- [{title}]({place.removeprefix('decisions/')})")
    return "\n".join(lines) + "\n"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
