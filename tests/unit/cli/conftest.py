from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two text tasks that a word decides."""
    root = tmp_path / "tasks"
    for name, word in (("fruit", "apple"), ("tool", "hammer")):
        (root / name).mkdir(parents=True)
        for split, rows in (("train", 40), ("dev", 12), ("test", 12)):
            lines = [
                json.dumps(
                    {
                        "text": f"this is {word if row % 2 else 'nothing'} {row % 5}",
                        "label": row % 2,
                    }
                )
                for row in range(rows)
            ]
            (root / name / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return root
