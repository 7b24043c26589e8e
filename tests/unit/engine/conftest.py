"""Makes `fleet_toys` importable, whichever file the tests are started from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
# Ray's own is 15: its workers would wait behind every other process of a busy machine.
os.environ.setdefault("RAY_worker_niceness", "0")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Sums have one order, and processes that are started do not fight for cores."""
    torch.set_num_threads(1)
