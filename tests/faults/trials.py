"""A command that is disturbed at random moments, and what became of it; the rows of the benchmark."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from .disturbed import BEGIN_ANEW, CONTINUE, finished_runs
from .real_commands import Case, Started, noise_of

GONE = 2.0  # seconds in which an interrupt ends everything
PATIENCE = 300.0  # seconds until a command counts as one that never ends
WORDS = 6000  # characters that are kept of what a command said: a traceback is shorter
NAMED = 5  # differences between two results
KINDS = [(signal.SIGKILL, group) for group in (False, True)] + [
    (number, group) for number in (signal.SIGINT, signal.SIGTERM) for group in (False, True)
]


FAULTS = ("lost", "twice", "different", "hung", "tracebacks", "unsaid")


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

    @property
    def is_clean(self) -> bool:
        return not any(getattr(self, name) for name in FAULTS)

    def add(self, part: Row) -> None:
        for name in ("kills", "python_start", *FAULTS):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.slowest = max(self.slowest, part.slowest)
        self.found += part.found

    def note(self, what: str, said: str = "") -> None:
        words = f"{what}\n{said[-WORDS:]}".strip()
        print(f"{self.case}: {words}", file=sys.stderr)  # noqa: T201
        self.found.append(words)


class Trial:
    """One command and one output folder, which is disturbed a few times and then finished."""

    def __init__(self, case: Case, row: Row, inputs: Path, out: Path, whole: Any) -> None:
        self.case, self.row, self.inputs, self.out, self.whole = case, row, inputs, out, whole
        self.before: dict[str, bytes] = {}  # `run.json` of the runs that were finished so far
        self.strange: dict[Path, bytes] = {}

    def disturb(self, chance: random.Random) -> None:
        """Once; a command that ended before its moment came, as all was done, is started again."""
        longest = self.row.seconds
        for _ in range(5):
            began = time.monotonic()
            if self._disturb(*chance.choice(KINDS), chance.uniform(0, longest)):
                return
            longest = min(longest, time.monotonic() - began)

    def _disturb(self, number: signal.Signals, group: bool, moment: float) -> bool:
        words = f"{number.name} to {'all' if group else 'the command'} after {moment:.3f} s"
        with Started(self.case, self.inputs, self.out) as started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.process.wait(moment)
                return False
            started.signal(number, group=group)
            seconds = started.seconds_to_end(PATIENCE)
            code, said = started.process.poll(), started.said()
        self.row.kills += 1
        if number != signal.SIGKILL:
            self.row.slowest = max(self.row.slowest, seconds)
            self._judge_stop(words, seconds, code, said)
        elif seconds == float("inf"):
            self.row.hung += 1
            self.row.note(f"{words}: processes outlive it", said)
        self._judge_noise(words, said)
        self._look(words)
        return True

    def _judge_stop(self, words: str, seconds: float, code: int | None, said: str) -> None:
        if seconds > GONE:
            self.row.hung += 1
            self.row.note(f"{words}: gone after {seconds:.2f} s", said)
        sentence = CONTINUE if self.case.keeps else BEGIN_ANEW
        stopped = code == 130 and said.splitlines().count(sentence) == 1
        # Before Python has set itself up a signal ends it without a word, as it ends any program.
        early = (code is not None and code < 0 and not said) or noise_of(said) == "python's"
        if not stopped and not early and code not in self.case.again:
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
            if result is not None and self._differences(result):
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
        found = self._differences(result)
        if code not in self.case.again or found:
            self.row.different += 1
            self.row.note(f"exit code {code}, and {'; '.join(found) or 'the same result'}", said)
        if self.case.name in ("train", "transfer", "advise"):
            wanted = set(self.whole["runs"])
            found = {path.parent.name for path in self.out.glob("*/run.json")} - {"model"}
            self.row.twice += len(found - wanted)

    def _differences(self, result: Any) -> list[str]:
        found = differences(result, self.whole, tolerance=self.case.tolerance)
        return list(islice(found, NAMED))


def _has(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def differences(
    found: Any, wanted: Any, place: str = "the result", *, tolerance: float = 0.0
) -> Iterator[str]:
    """Each value that is another one, by its place; NaN is as good as NaN.

    Numbers within the tolerance, relative to the larger of the wanted one and 1, are the same.
    """
    if isinstance(found, dict) and isinstance(wanted, dict):
        for name in sorted(found.keys() | wanted.keys()):
            there = f"{place}, {name}"
            if name not in found or name not in wanted:
                yield f"{there}: {'missing' if name in wanted else 'should not be there'}"
            else:
                yield from differences(found[name], wanted[name], there, tolerance=tolerance)
    elif isinstance(found, list | tuple) and isinstance(wanted, list | tuple):
        if len(found) != len(wanted):
            yield f"{place}: {len(found)} values instead of {len(wanted)}"
        for number, pair in enumerate(zip(found, wanted, strict=False)):
            yield from differences(*pair, f"{place}[{number}]", tolerance=tolerance)
    elif repr(found) != repr(wanted) and not _is_close(found, wanted, tolerance):
        yield f"{place}: {found!r:.200} instead of {wanted!r:.200}"


def _is_close(found: Any, wanted: Any, tolerance: float) -> bool:
    if not isinstance(found, float) or not isinstance(wanted, float):
        return False
    return abs(found - wanted) <= tolerance * max(1.0, abs(wanted))


def undisturbed(case: Case, inputs: Path, out: Path) -> tuple[Any, float]:
    """What the command leaves, and the seconds it takes."""
    with Started(case, inputs, out) as started:
        seconds = started.seconds_to_end(PATIENCE)
        if started.process.poll() != 0:
            raise AssertionError(
                f"`{case.name}` should work undisturbed. It said: {started.said()}"
            )
    return case.result(out), seconds
