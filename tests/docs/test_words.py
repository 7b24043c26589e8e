"""Pages are written as an engineer would say it: no phrase that sounds translated, quaint or vague."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs" / "design.md"}),  # for maintainers
    ROOT / "docs" / "site" / "methods.toml",
]
# A pattern, and what to write instead.
AVOIDED = {
    r"\bsurely\b": "significantly (95 %), with the level that was used",
    r"\bless (?:it|the (?:best|average)|each|uniform|size|single|equal|one as)\b": "minus",
    r"\bthe document(?:'s)?\b": "the paper",
    r"\bby leave of\b": "if you allow it",
    r"\bworse company\b": "worse for",
    r"\bcompany\b": "other tasks",
    r"\btold\b": "printed, reported, known, predicted",
    r"\bhands\b": "workers, gives, passes",
    r"\bpurse\b": "budget",
    r"\bone's own\b": "your own",
    r"\bforeseen?\b": "predicted",
    r"\bmended\b": "fixed",
    r"\bby heart\b": "memorised",
    r"\b(?:as|too|so) dear\b": "expensive",
    r"\bwithout a word\b": "silently",
    r"\bthe same bits\b": "exactly the same results",
    r"\bstands in \[": "is in [",
    r"\bgo(?:es)? on with\b": "continues",
    r"\breckoned\b": "computed",
}
CODE = re.compile(r"(?ms)^```.*?^```$|`[^`\n]+`|^(?: {4}[^\n]*\n)+")


def prose_of(path: Path) -> str:
    """The words of a page, without code and without what a program printed."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        families = tomllib.loads(text)["family"]
        methods = [method for family in families for method in family["method"]]
        said = [family["words"] for family in families]
        said += [method[key] for method in methods for key in ("when", "cost") if key in method]
        return "\n".join(said)
    return CODE.sub(" ", text)


def phrases_to_avoid(text: str) -> list[str]:
    """Each as it stands, with what to write instead."""
    return [
        f"{' '.join(found[0].split())!r}: write {better}"
        for phrase, better in AVOIDED.items()
        for found in re.finditer(phrase.replace(" ", r"\s+"), text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_uses_no_phrase_that_we_avoid(page: Path) -> None:
    assert phrases_to_avoid(prose_of(page)) == []
