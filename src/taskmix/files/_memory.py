"""How much memory there is to be had: what a file may take up is a share of it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_GROUPS = (  # a container's limit and what it has taken of it, in the two ways Linux tells them
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def free_memory() -> int:
    """Bytes that a program may still take, about: of the machine, or of the container it is in.

    >>> free_memory() > 2**20
    True
    """
    free = _of_the_machine()
    for limit, taken in _GROUPS:
        # No such file, or the word `max` in it: then there is no such limit.
        with contextlib.suppress(OSError, ValueError):
            free = min(free, int(Path(limit).read_text()) - int(Path(taken).read_text()))
    return max(free, 0)


def _of_the_machine() -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    try:  # no Linux: half of what there is
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 1 << 32
