"""The Python on a page runs, from its first block to its last.

A block that cannot run says why in a comment above it: `<!-- not run: it needs a cluster -->`.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from page_setups import SETUPS, SHORTER

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(?ms)^(<!-- not run: [^\n]+ -->\n)?```python\n(.*?)^```$")
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if BLOCK.search(path.read_text(encoding="utf-8"))
]


def blocks_to_run(text: str) -> list[str]:
    """The code of each block, with what makes it quick, unless the page says that it is not run."""
    found = []
    for excuse, code in BLOCK.findall(text):
        for long, short in SHORTER.items():
            code = code.replace(long, short)
        if not excuse:
            found.append(code)
    return found


@pytest.fixture(autouse=True)
def _packages_as_before() -> Iterator[None]:
    """A stand-in for a package that is missing does not stay for other tests."""
    before = sys.modules.get("datasets")
    yield
    sys.modules.pop("datasets", None)
    if before is not None:
        sys.modules["datasets"] = before


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # without workers, which take seconds to start
    given = SETUPS[page](tmp_path) if page in SETUPS else {}
    names = {"__name__": "__main__"}
    for code in blocks_to_run((ROOT / page).read_text(encoding="utf-8")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names |= given
            exec(compile(code, page, "exec"), names)


def test_most_blocks_run_and_every_setup_is_of_a_page() -> None:
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
    all_blocks = sum(len(BLOCK.findall(text)) for text in texts)
    assert sum(len(blocks_to_run(text)) for text in texts) >= 0.8 * all_blocks
    assert set(SETUPS) <= set(PAGES)
