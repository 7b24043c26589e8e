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
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _common import ROOT

sys.path.insert(0, str(ROOT))  # a folder named as this file would be hidden by it

from tests.faults.disturbed import finished_runs
from tests.faults.real_commands import CASES, Case, Started, make_inputs, noise_of

from taskmix._signals import BEGIN_ANEW, CONTINUE

TOGETHER = 4  # disturbances of one output, before it is finished and compared
GONE = 2.0  # seconds in which an interrupt ends everything
PATIENCE = 300.0  # seconds until a command counts as one that never ends
KINDS = [(signal.SIGKILL, group) for group in (False, True)] + [
    (number, group) for number in (signal.SIGINT, signal.SIGTERM) for group in (False, True)
]


@dataclass
class Row:
    """What happened to one command."""

    case: str
    seconds: float = 0.0  # that it takes undisturbed
    kills: int = 0
    lost: int = 0
    twice: int = 0
    different: int = 0
    hung: int = 0
    tracebacks: int = 0
    python_start: int = 0
    unsaid: int = 0
    slowest: float = 0.0
    found: list[str] = field(default_factory=list)  # what was not as it should be, in words

    def note(self, what: str, said: str = "") -> None:
        print(f"{self.case}: {what} {said[-1500:]}", file=sys.stderr)
        if len(self.found) < 20:
            self.found.append(what)


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


class Trial:
    """One command and one output folder, which is disturbed a few times and then finished."""

    def __init__(self, case: Case, row: Row, inputs: Path, out: Path, whole: Any) -> None:
        self.case, self.row, self.inputs, self.out, self.whole = case, row, inputs, out, whole
        self.before: dict[str, bytes] = {}  # `run.json` of the runs that were finished so far
        self.strange: dict[Path, bytes] = {}

    def disturb(self, chance: random.Random) -> None:
        number, group = chance.choice(KINDS)
        moment = chance.uniform(0, self.row.seconds)
        words = f"{number.name} to {'all' if group else 'the command'} after {moment:.3f} s"
        with Started(self.case, self.inputs, self.out) as started:
            time.sleep(moment)
            over = started.process.poll() is not None
            started.signal(number, group=group)
            seconds = started.seconds_to_end(PATIENCE)
            code, said = started.process.poll(), started.said()
        self.row.kills += 1
        if not over and number != signal.SIGKILL:
            self.row.slowest = max(self.row.slowest, seconds)
            self._judge_stop(words, seconds, code, said)
        elif seconds == float("inf"):
            self.row.hung += 1
            self.row.note(f"{words}: processes outlive it", said)
        self._judge_noise(words, said)
        self._look(words)

    def _judge_stop(self, words: str, seconds: float, code: int | None, said: str) -> None:
        if seconds > GONE:
            self.row.hung += 1
            self.row.note(f"{words}: gone after {seconds:.2f} s", said)
        sentence = CONTINUE if self.case.keeps else BEGIN_ANEW
        stopped = code == 130 and said.splitlines().count(sentence) == 1
        # Before Python has set itself up a signal ends it without a word, as it ends any program.
        early = (code is not None and code < 0 and not said) or noise_of(said) == "python's"
        if not stopped and not early and code != 0:
            self.row.unsaid += 1
            self.row.note(f"{words}: exit code {code}", said)
        self.row.python_start += early

    def _judge_noise(self, words: str, said: str) -> None:
        if noise_of(said) == "ours":
            self.row.tracebacks += 1
            self.row.note(f"{words}: a traceback", said)

    def _look(self, words: str) -> None:
        """What was complete must stay so; a file of somebody else's lies there from now on."""
        self._compare_with_before(words)
        if self.case.keeps:
            self.before |= finished_runs(self.out)
        else:
            result = self.case.result(self.out)
            if result is not None and result != self.whole:
                self.row.lost += 1
                self.row.note(f"{words}: an output that is not whole")
        if self.out.is_dir() and not self.strange:
            path = self.out / "notes.txt"
            path.write_text("mine")
            self.strange[path] = b"mine"

    def _compare_with_before(self, words: str) -> None:
        after = finished_runs(self.out)
        lost = [name for name, told in self.before.items() if after.get(name) != told]
        lost += [str(path) for path, data in self.strange.items() if not _has(path, data)]
        if lost:
            self.row.lost += len(lost)
            self.row.note(f"{words}: lost {', '.join(lost)}")
            self.before = {name: told for name, told in self.before.items() if name not in lost}

    def finish(self) -> None:
        with Started(self.case, self.inputs, self.out) as started:
            seconds = started.seconds_to_end(PATIENCE)
            code, said = started.process.poll(), started.said()
        if seconds == float("inf"):
            self.row.hung += 1
            self.row.note("the end never came", said)
            return
        self._judge_noise("the last command", said)
        self._compare_with_before("the last command")
        result = self.case.result(self.out)
        if code not in self.case.again or result != self.whole:
            self.row.different += 1
            self.row.note(f"exit code {code}, and {_where(result, self.whole)}", said)
        if self.case.name in ("train", "transfer", "advise"):
            wanted = set(self.whole if self.case.name == "train" else self.whole[0])
            found = {path.parent.name for path in self.out.glob("*/run.json")} - {"model"}
            self.row.twice += len(found - wanted)


def _has(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def _where(found: Any, wanted: Any) -> str:
    if found == wanted:
        return "the same result"
    if isinstance(found, tuple):
        places = [
            place
            for place, pair in enumerate(zip(found, wanted, strict=True))
            if pair[0] != pair[1]
        ]
        return f"another result at {places}"
    return "no result" if not found else "another result"


def undisturbed(case: Case, inputs: Path, out: Path) -> tuple[Any, float]:
    """What the command leaves, and the seconds it takes."""
    with Started(case, inputs, out) as started:
        seconds = started.seconds_to_end(PATIENCE)
        if started.process.poll() != 0:
            raise SystemExit(f"`{case.name}` should work undisturbed. It said: {started.said()}")
    return case.result(out), seconds


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

        def work(number: int) -> None:
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
                add(rows[case.name], row)
                done = sum(each.kills for each in rows.values())
                print(f"{done} of {kills}", end="\r", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(options.at_once) as pool:
            list(pool.map(work, range(len(jobs))))
    return [
        vars(row) | {"seconds": round(row.seconds, 2), "slowest": round(row.slowest, 2)}
        for row in rows.values()
    ]


def add(total: Row, part: Row) -> None:
    for name in (
        "kills",
        "lost",
        "twice",
        "different",
        "hung",
        "tracebacks",
        "python_start",
        "unsaid",
    ):
        setattr(total, name, getattr(total, name) + getattr(part, name))
    total.slowest = max(total.slowest, part.slowest)
    total.found += part.found


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
