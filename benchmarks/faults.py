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

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _common import ROOT

sys.path.insert(0, str(ROOT))  # `faults` alone would be this file

from tests.faults.real_commands import CASES, make_inputs
from tests.faults.trials import PATIENCE, Row, Trial, undisturbed

TOGETHER = 4  # disturbances of one output, before it is finished and compared


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000, help="and interrupts, in all")
    parser.add_argument("--only", help="commands, with commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=2, help="commands")
    parser.add_argument("--quick", action="store_true", help="45 of them")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    wanted = options.only.split(",") if options.only else [case.name for case in CASES]
    cases = [case for case in CASES if case.name in wanted]
    kills = 45 if options.quick else options.kills
    chance, lock = random.Random(options.seed), threading.Lock()
    with tempfile.TemporaryDirectory(prefix="taskmix-faults-") as name:
        folder = Path(name)
        make_inputs(folder / "inputs")
        rows = {case.name: Row(case.name) for case in cases}
        with ThreadPoolExecutor(options.at_once) as pool:
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
            case, times, seed = jobs[number]
            row = Row(case.name, seconds=rows[case.name].seconds)
            out = folder / f"out-{number}"
            trial = Trial(case, row, folder / "inputs", out, whole[case.name][0])
            here = random.Random(seed)
            for _ in range(times):
                trial.disturb(here)
            trial.finish()
            shutil.rmtree(out, ignore_errors=True)
            with lock:
                rows[case.name].add(row)
                done = sum(each.kills for each in rows.values())
                print(f"{done} of {kills}", end="\r", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(options.at_once) as pool:
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


def main() -> None:
    options = arguments()
    begin = time.monotonic()
    rows = measure(options)
    if options.json:
        command = "python benchmarks/faults.py " + " ".join(sys.argv[1:])
        taken = round(time.monotonic() - begin, 1)
        found = {"experiment": "faults", "command": command.strip(), "seconds": taken, "rows": rows}
        print(json.dumps(found, indent=2))
        return
    names = [name for name in rows[0] if name != "found"]
    print(" ".join(f"{name:>12}" for name in names))
    for row in rows:
        print(" ".join(f"{row[name]!s:>12}" for name in names))


if __name__ == "__main__":
    main()
