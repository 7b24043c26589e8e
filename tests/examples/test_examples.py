from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from taskmix.tasks import load_tasks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PACKAGES = {"balancer_lightning.py": "lightning", "balancer_trainer.py": "accelerate"}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs_and_says_something(name: str) -> None:
    if name in PACKAGES:
        reason = f"{name} needs {PACKAGES[name]}, which is not installed"
        pytest.importorskip(PACKAGES[name], reason=reason)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_settings_of_the_newsgroups_make_four_tasks_of_four_classes(tmp_path: Path) -> None:
    import json
    import tomllib

    settings = EXAMPLES / "newsgroups.toml"
    groups = [
        group for task in tomllib.loads(settings.read_text())["task"] for group in task["labels"]
    ]
    assert len(groups) == len(set(groups)) == 16
    for split in ("train", "test"):
        rows = [
            {"text": f"about {g} {n}", "label": 0, "group": g} for g in groups for n in range(5)
        ]
        lines = "\n".join(json.dumps(row) for row in rows)
        (tmp_path / f"{split}.jsonl").write_text(lines + "\n")
    tasks = load_tasks(tmp_path, settings=settings)
    assert tasks.names == ("comp", "rec", "sci", "talk")
    assert [len(task.labels) for task in tasks] == [4, 4, 4, 4]
