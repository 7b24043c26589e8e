"""Commands that are disturbed while they work on a study, and what has to hold of it afterwards.

A command is a fork of this process, where torch is imported already, and so are its workers; with
`real` it is what a user starts. Moments are chosen by how far the study is, so that they are spread
over it however busy the machine is.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch

from taskmix.engine import DigitsSource, Run, _workers, execute
from taskmix.errors import RecordError
from taskmix.models import Perceptron
from taskmix.records import RunFolder, Study

SMALL = "digits --only parity,half,loop,prime --batch-size 8 --workers 2 --engine here --json"
TRAIN = f"train {SMALL} --steps 100 --checkpoint-every 10 --evaluate-every 100 --seeds 5".split()
TRANSFER = (
    f"transfer {SMALL} --target parity --steps 20 --subsets 6 --alone 2 --held-out 3 --prefixes 1"
).split()
# The last line of a command that was told to stop.
CONTINUE = "taskmix: stopped. Run the same command again to continue."
BEGIN_ANEW = "taskmix: stopped. Nothing is kept: the same command begins anew."
PATIENCE = 240.0  # seconds until a command counts as hung


@dataclass
class Tally:
    """How often a fault was injected, and what was lost."""

    fault: str
    times: int = 0
    finished: int = 0  # runs that were finished when a fault came, each time it did
    lost: int = 0  # of these, those that are not what they were
    twice: int = 0  # folders beyond one for each run
    unreadable: int = 0  # records of which something can be neither read nor refused in a sentence
    different: int = 0  # runs that ended otherwise than undisturbed

    @property
    def is_clean(self) -> bool:
        return self.times > 0 and not (self.lost or self.twice or self.unreadable or self.different)


@dataclass
class Command:
    """`taskmix WORDS --out STUDY` in a process, and a group, of its own."""

    words: list[str]
    study: Path
    log: Path
    real: bool = False
    prepare: Callable[[], object] = field(default=lambda: None)  # done in the process, unless real

    def __enter__(self) -> Command:
        self.over = False
        self.log.parent.mkdir(parents=True, exist_ok=True)
        words = [*self.words, "--out", str(self.study)]
        if self.real:
            with self.log.open("w") as log:
                started = subprocess.Popen(
                    [sys.executable, "-m", "taskmix", *words],
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env=os.environ | {"OMP_NUM_THREADS": "1"},
                )
            self.pid = started.pid
        else:
            self.pid = os.fork()
            if self.pid == 0:
                self._be(words)
        return self

    def __exit__(self, *_: object) -> None:
        if not self.over:  # else the number may be another process's by now
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def _be(self, words: list[str]) -> None:
        """Never returns: this is the forked process."""
        code = 70
        try:
            os.setsid()
            log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            torch.set_num_threads(1)
            forking: Any = multiprocessing.get_context("fork")
            _workers.get_context = lambda kind: forking  # type: ignore[attr-defined,assignment]
            self.prepare()
            sys.argv = ["taskmix", *words]
            try:
                runpy.run_module("taskmix", run_name="__main__")
            except SystemExit as ended:
                code = int(ended.code or 0)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

    def workers(self) -> list[psutil.Process]:
        found = []
        for child in psutil.Process(self.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "resource_tracker" not in " ".join(child.cmdline()):
                    found.append(child)
        return found

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        (os.killpg if group else os.kill)(self.pid, number)

    def ended(self) -> tuple[int, str]:
        """The exit code, below 0 a signal's, and all that was said."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.over = True
                return os.waitstatus_to_exitcode(status), self.log.read_text()
            time.sleep(0.01)
        raise AssertionError(f"`{' '.join(self.words)}` hangs. It said: {self.log.read_text()}")

    def waits_until(self, steps: float) -> bool:
        """Waits until the records tell of so many steps; False where the command ended before."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if steps_done(self.study) >= steps:
                return True
            if psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE:
                return False
            time.sleep(0.01)
        raise AssertionError(f"`{' '.join(self.words)}` hangs. It said: {self.log.read_text()}")


def steps_done(study: Path) -> int:
    return sum(summary.step for summary in Study(study).summaries(note=lambda word: None))


def finished_runs(study: Path) -> dict[str, bytes]:
    """The `run.json` of every finished run."""
    return {
        folder.name: (folder.path / "run.json").read_bytes()
        for folder in Study(study).runs()
        if folder.is_finished
    }


def undisturbed(words: list[str], folder: Path) -> Study:
    """The study of a command that nothing happened to."""
    # Torch imports more at the first step, which every fork would pay for.
    first = Run(label="x", source=DigitsSource(), architecture=Perceptron(), steps=1, seed=0)
    execute(first, Study(folder / "first"))
    with Command(words, folder / "whole", folder / "whole.log") as command:
        code, said = command.ended()
    assert code == 0, said
    return Study(folder / "whole")


def read_all(folder: RunFolder) -> str | None:
    """Reads everything of a record; the sentence of the first thing that is refused."""
    refused = None
    for read in (folder.summary, folder.steps, folder.scores, folder.checkpoint, folder.best):
        try:
            read()
        except RecordError as error:
            refused = refused or str(error)
    return refused


def look(tally: Tally, study: Path, before: dict[str, bytes]) -> None:
    """Counts what a fault has cost: it came when `before` were finished."""
    after = finished_runs(study)
    tally.times += 1
    tally.finished += len(before)
    tally.lost += sum(after.get(name) != told for name, told in before.items())
    tally.unreadable += sum(read_all(folder) is not None for folder in Study(study).runs())


def compare(tally: Tally, study: Path, whole: Study) -> None:
    """Counts how the study that was finished in the end differs from an undisturbed one."""
    wanted = {folder.name for folder in whole.runs()}
    found = {path.name for path in study.iterdir() if path.is_dir()}
    tally.twice += len(found - wanted)
    tally.different += sum(
        name not in found or result_of(Study(study).run_named(name)) != result_of(each)
        for name, each in ((each.name, each) for each in whole.runs())
    )


def result_of(folder: RunFolder) -> dict[str, Any]:
    """All that a run ends with but its times, by name."""
    summary, best = folder.summary(), folder.best()
    assert summary is not None
    assert isinstance(best, dict)
    return {
        "status": summary.status,
        "step": summary.step,
        "best_step": summary.best_step,
        "final scores": summary.scores,
        "specification": summary.specification,
        # A vector is repeated where a part begins, and parts of a killed run may be unmerged.
        "steps": folder.steps().drop_columns(["seconds", "probabilities"]).to_pydict(),
        "probabilities": folder.probabilities().tolist(),
        "scores": folder.scores().to_pydict(),
        "weights": {name: value.tolist() for name, value in best.items()},
    }


def finish(words: list[str], study: Path, log: Path, *, real: bool = False) -> None:
    """The same command once more, which has to do all that is left."""
    with Command(words, study, log, real) as command:
        code, said = command.ended()
    assert code == 0, said
