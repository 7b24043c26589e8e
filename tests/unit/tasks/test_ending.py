"""A process that ends right after it has read a file ends with the code it was given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

READ = """
import sys
from pathlib import Path
from taskmix.tasks._formats._csv import read_csv
from taskmix.tasks._formats._jsonl import read_jsonl
path = Path(sys.argv[1])
(read_csv if path.suffix == ".csv" else read_jsonl)(path, 2**30)
sys.exit(2)
"""


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_no_thread_of_the_reader_is_left_to_abort_the_process(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    line = "1,2,3\n" if name.endswith(".csv") else '{"a": 1, "b": 2}\n'
    path.write_text(("a,b,c\n" if name.endswith(".csv") else "") + line * 50_000)
    command = [sys.executable, "-c", READ, str(path)]
    for _ in range(5):
        assert subprocess.run(command, capture_output=True, timeout=60).returncode == 2
