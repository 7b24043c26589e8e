"""Every command and estimator still says and writes what the files in `data/` say, by meaning."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from compare import differences
from recording import DATA, NAMES, record


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_and_written_is_what_it_was(name: str, tmp_path: Path) -> None:
    golden = json.loads((DATA / f"{name}.json").read_text())
    changed = list(differences(golden, record(name, tmp_path)))
    assert not changed, (
        "\n".join(changed[:30])
        + f"\nIf this is as it should be: python tests/golden/renew.py {name}, and read the diff."
    )


def test_each_file_has_its_case() -> None:
    assert sorted(path.stem for path in DATA.glob("*.json")) == NAMES
