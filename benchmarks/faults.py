"""Commands that are killed and interrupted at random moments, from their first millisecond on.

Each command is started as users start it and gets SIGKILL, SIGINT or SIGTERM, alone or with all its
processes, at a moment between 0 s and the time it usually takes; every few times the same command is
run to its end, and what it leaves is compared with what an undisturbed one leaves. A row is a command:

kills         how often it was killed or interrupted
lost          finished runs, or complete files of ours or a stranger's, that were not the same later
twice         folders of runs beyond those of the undisturbed study
different     ends whose result was not that of the undisturbed command
hung          interrupts after which something was alive for more than 2 s, and ends that never came
tracebacks    times that a traceback or a warning of Python was on the terminal
python_start  the same, but before the first line of taskmix was read: Python's own start
unsaid        interrupts without exit code 130 and one sentence, Python's own start aside
slowest       seconds from an interrupt until all processes were gone, the largest

`found` in the JSON names each fault: what was said, tracebacks whole, and which values of which run are
others than in the undisturbed study.

Ctrl-C ends it after the commands at work, and tells what was done until then.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _common import ROOT, report

sys.path.insert(0, str(ROOT))  # `faults` alone would be this file

from tests.faults.real_commands import CASES, make_inputs
from tests.faults.trials import PATIENCE, Row, Trial, undisturbed

TOGETHER = 4  # disturbances of one output, before it is finished and compared


def measure(
    quick: bool, kills: int, only: str | None, seed: int, at_once: int
) -> list[dict[str, Any]]:
    cases = [case for case in CASES if only is None or case.name in only.split(",")]
    kills = 45 if quick else kills
    chance, lock = random.Random(seed), threading.Lock()
    with tempfile.TemporaryDirectory(prefix="taskmix-faults-") as name:
        folder = Path(name)
        make_inputs(folder / "inputs")
        rows = {case.name: Row(case.name) for case in cases}
        with ThreadPoolExecutor(at_once) as pool:
            outs = [folder / f"{case.name}-whole" for case in cases]
            inputs = [folder / "inputs"] * len(cases)
            whole = dict(zip(rows, pool.map(undisturbed, cases, inputs, outs), strict=True))
        jobs = []
        for case in cases:
            rows[case.name].seconds = whole[case.name][1]
            left = kills // len(cases)
            while left > 0:
                jobs.append((case, min(TOGETHER, left), chance.random()))
                left -= TOGETHER
        chance.shuffle(jobs)

        stop = threading.Event()  # by Ctrl-C: what was done until then is told

        def work(number: int) -> None:
            if stop.is_set():
                return
            case, times, start = jobs[number]
            row = Row(case.name, seconds=rows[case.name].seconds)
            out = folder / f"out-{number}"
            trial = Trial(case, row, folder / "inputs", out, whole[case.name][0])
            here = random.Random(start)
            for _ in range(times):
                trial.disturb(here)
            trial.finish()
            shutil.rmtree(out, ignore_errors=True)
            with lock:
                rows[case.name].add(row)
                done = sum(each.kills for each in rows.values())
                print(f"{done} of {kills}", end="\r", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(at_once) as pool:
            done = [pool.submit(work, number) for number in range(len(jobs))]
            try:
                for each in done:
                    each.result()
            except KeyboardInterrupt:
                stop.set()
    return [_told(row) for row in rows.values()]


def _told(row: Row) -> dict[str, Any]:
    slowest = round(min(row.slowest, PATIENCE), 2)  # JSON has no infinity
    return vars(row) | {"seconds": round(row.seconds, 2), "slowest": slowest}


if __name__ == "__main__":
    options = {
        "--kills": {"type": int, "default": 1000, "help": "and interrupts, in all"},
        "--only": {"help": "commands, with commas"},
        "--seed": {"type": int, "default": 0},
        "--at-once": {"type": int, "default": 2, "help": "commands"},
    }
    report("faults", measure, __doc__ or "", options=options)
