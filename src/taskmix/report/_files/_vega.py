"""Calls of `vl_convert`, each in a process of its own.

One takes seconds in which Python does nothing else, not even hear a Ctrl-C. A process can be ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from taskmix.errors import RunError
from taskmix.extras import require

_CODE = """
import json, sys, vl_convert
name, argument, options = json.load(sys.stdin)
made = getattr(vl_convert, name)(argument, **options)
sys.stdout.buffer.write(made if isinstance(made, bytes) else made.encode())
"""


def convert(name: str, argument: Any, *, purpose: str, **options: Any) -> bytes:
    """What the function of this name gives, as bytes; `purpose` is for who lacks the package."""
    require("vl_convert", purpose=purpose)
    # -P: nothing is imported from the folder that the user happens to be in. A session of its own:
    # the signals of the terminal are for this process.
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CODE],
        input=json.dumps([name, argument, options]).encode(),
        capture_output=True,
        start_new_session=True,
    )
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise RunError(f"{purpose} should be drawn. Found: {''.join(words) or 'no answer'}.")
    return done.stdout
