"""Renews the golden outputs: `python tests/golden/renew.py [case ...]`. Read the diff.

A file is only written again where it means something else, so that the diff has no wording and no noise.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from compare import differences
from recording import DATA, NAMES, record


def renew(name: str) -> str:
    """Runs a case; says what became of its file."""
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        found = record(name, Path(folder).resolve())
    took = f"{time.process_time() - began:.1f} s of CPU"
    path = DATA / f"{name}.json"
    if path.exists():
        changed = list(differences(json.loads(path.read_text()), found))
        if not changed:
            return f"{name}: as it was ({took})"
        sys.stdout.write("\n".join(f"  {line}" for line in changed[:40]) + "\n")
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    return f"{name}: written ({took})"


if __name__ == "__main__":
    for wanted in sys.argv[1:] or NAMES:
        sys.stdout.write(renew(wanted) + "\n")
