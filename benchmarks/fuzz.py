"""Mutated files for every reader: only our own errors come out, in time and within memory.

A million inputs by default, shared out by how fast each reader is. Every reader works in a process of
its own whose memory is bounded; one that dies is a defect like any other, and so is an input that
takes longer than its deadline or a reader that leaves something behind. Some inputs are no plain files:
pipes, devices, sockets, folders, sparse files. Inputs that showed a defect
are kept in `--keep`. `--seed` makes other inputs. A row's figures: inputs tried, and defects found.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from _common import ROOT, line_of, report, row

sys.path[:0] = [str(ROOT / "tests" / "fuzz"), str(ROOT / "tests" / "unit" / "report")]

from odd import KINDS  # noqa: E402
from readers import Reader, all_readers  # noqa: E402
from trial import attempt, make_input  # noqa: E402

MEMORY = 1 << 30  # bytes that reading may take beyond what the process has already
ODD = 50  # inputs, of which one is no plain file
DEATHS = 20  # of one reader, before it is given up


def bound_memory() -> int:
    """Bounds this process's memory; gives what it has at its largest so far, in kB."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def work(
    reader: Reader, folder: Path, count: int, seed: str, told: Path, keep: Path | None
) -> None:
    """Tries so many inputs; what was found so far is in `told` at every moment."""
    before, chance, found = bound_memory(), random.Random(seed), Counter[str]()
    slowest = 0.0
    for number in range(1, count + 1):
        is_odd = number % ODD == 0 and reader.name != "formula"
        data = chance.choice(KINDS) if is_odd else make_input(reader, chance)
        begin = time.process_time()
        defect = attempt(reader, folder, data)
        slowest = max(slowest, time.process_time() - begin)
        if defect is not None:
            if keep is not None and not found[defect.what]:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{reader.name}-{len(found)}".replace("/", "-")).write_bytes(defect.data)
            found[defect.what] += 1
        if number % 64 == 0 or number == count or defect is not None:
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            told.write_text(json.dumps([number, grown, slowest, found]))


def tried(reader: Reader, count: int, seed: int, keep: Path | None) -> dict[str, Any]:
    """What a reader made of so many inputs."""
    total, deaths, grown, slowest, found = 0, 0, 0, 0.0, Counter[str]()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder, told = Path(name, "files"), Path(name, "told")
        reader.prepare(folder)
        while total < count and deaths < DEATHS:
            told.write_text("[0, 0, 0.0, {}]")
            child = os.fork()
            if child == 0:
                try:
                    part = f"{reader.name} {seed} {deaths}"
                    work(reader, folder, count - total, part, told, keep)
                    os._exit(0)
                finally:
                    os._exit(1)
            _, status = os.waitpid(child, 0)
            done, more, slow, defects = json.loads(told.read_text())
            total, grown, slowest = total + done, max(grown, more), max(slowest, slow)
            found.update(defects)
            if code := os.waitstatus_to_exitcode(status):
                deaths += 1
                found[f"the process died ({code})"] += 1
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    fatal = (folder / reader.file).read_bytes()  # no odd one ended a process yet
                    (keep / f"{reader.name}-died-{deaths}".replace("/", "-")).write_bytes(fatal)
    return {
        **row(f"fuzz/{reader.name}", total, unit="inputs"),
        "defects": dict(found),
        "slowest_seconds": round(slowest, 3),
        "memory_mb": round(grown / 1024, 1),
    }


def shares(readers: list[Reader], inputs: int) -> list[int]:
    """Inputs for each reader: as much time for each, and at least a tenth of an even share."""
    speeds = []
    for reader in readers:
        with tempfile.TemporaryDirectory() as name:
            reader.prepare(Path(name))
            begin = time.process_time()
            for data in (reader.seeds * 10)[:10]:
                attempt(reader, Path(name), data)
            speeds.append(10 / (time.process_time() - begin))
    least = inputs // (10 * len(readers))
    rest = inputs - least * len(readers)
    return [least + int(rest * speed / sum(speeds)) for speed in speeds]


def measure(
    quick: bool, inputs: int, only: str | None, seed: int, keep: Path | None
) -> list[dict[str, Any]]:
    readers = [each for each in all_readers() if only is None or only in each.name]
    rows = []
    for reader, count in zip(readers, shares(readers, 20_000 if quick else inputs), strict=True):
        rows.append(tried(reader, count, seed, keep))
        print(line_of(rows[-1]), file=sys.stderr, flush=True)  # it takes hours
    return rows


if __name__ == "__main__":
    options = {
        "--inputs": {"type": int, "default": 1_000_000, "help": "in all"},
        "--only": {"help": "readers whose name has this in it"},
        "--seed": {"type": int, "default": 0},
        "--keep": {"type": Path, "help": "a folder for inputs that showed a defect"},
    }
    report("fuzz", measure, __doc__ or "", options=options)
