"""What the documentation says can be typed: Python compiles, commands have the options they use."""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?ms)^```(\w*)[^\n]*\n(.*?)^```\s*?$")
INDENTED = re.compile(r"(?m)(?:^(?: {4}.*)?\n)*^ {4}.*\n")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def code_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Language and code of every block; those that are merely indented have no language."""
    yield from FENCE.findall(text)
    for block in INDENTED.findall(FENCE.sub("", text)):
        yield "", textwrap.dedent(block)


def command_lines(text: str) -> Iterator[str]:
    """Every line of a block that calls taskmix, with the lines it continues on."""
    for language, code in code_blocks(text):
        if language in ("", "sh", "bash", "console"):
            for line in code.replace("\\\n", " ").splitlines():
                for part in line.removeprefix("$ ").split(" && "):
                    if part.startswith("taskmix "):
                        yield part


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_compiles(page: Path) -> None:
    for language, code in code_blocks(page.read_text(encoding="utf-8")):
        if language in ("python", "py"):
            ast.parse(textwrap.dedent(code))


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    from site_commands import all_commands

    return {name: context.command for name, context in all_commands()}


def parse(commands: dict[str, Any], line: str) -> None:
    """Raises where the line names a command or an option that is not there, or lacks an argument."""
    words = shlex.split(line, comments=True)
    name = " ".join(words[:1])
    rest = words[1:]
    while rest and f"{name} {rest[0]}" in commands:
        name = f"{name} {rest[0]}"
        rest = rest[1:]
    command = commands[name]
    if hasattr(command, "unless_named"):  # a group of which one command need not be named
        command = commands[f"{name} {command.unless_named}"]
    assert not hasattr(command, "commands") or not rest or rest[0].startswith("-"), line
    if "--help" not in rest and "--list" not in rest:
        command.make_context(name, rest)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_line_parses(page: Path, commands: dict[str, Any]) -> None:
    for line in command_lines(page.read_text(encoding="utf-8")):
        if "..." in line or "STUDY" in line:
            continue
        try:
            parse(commands, line)
        except Exception as error:
            raise AssertionError(f"`{line}`: {error}") from error


@pytest.mark.parametrize(
    "line", ["taskmix train reviews/ --polcy uniform", "taskmix tran reviews/", "taskmix advise"]
)
def test_a_line_with_a_slip_would_be_noticed(line: str, commands: dict[str, Any]) -> None:
    with pytest.raises(Exception):  # noqa: B017  # of the parser's own kinds
        parse(commands, line)


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert re.match("https?:", target) or (ROOT / target).exists(), target


PAPERS = ROOT / "docs" / "papers"
INDEX = (PAPERS / "index.md").read_text(encoding="utf-8").splitlines()
ROWS = [line.strip("| ").split(" | ") for line in INDEX if line.startswith("| [")]


def plain_section(link: str) -> str:
    """The words of a page, or of the section that the link names, without emphasis."""
    name, _, anchor = link.partition("#")
    text = (PAPERS / name).read_text(encoding="utf-8")
    sections = {"": text}
    for section in re.split(r"(?m)^##+ ", text)[1:]:
        heading, _, words = section.partition("\n")
        sections[re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")] = words
    return " ".join(sections[anchor].replace("*", "").split())


@pytest.mark.parametrize(("paper", "claim", "found"), ROWS)
def test_the_index_of_papers_says_what_their_pages_say(paper: str, claim: str, found: str) -> None:
    section = plain_section(re.findall(r"\]\((.+?)\)", paper)[0])
    for words in found.split(" … "):
        assert words in section
    for figure in re.findall(r"\d+(?:\.\d+)?", claim):
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)", section), figure
