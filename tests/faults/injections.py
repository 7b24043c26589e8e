"""Faults, each injected a number of times into commands at work on a study.

Every function gives a `Tally`; the tests ask for a few injections of each, the table for many.
"""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import psutil

from taskmix.records import Study, _summary

from .disturbed import CONTINUE, Command, Tally, compare, finish, finished_runs, look, steps_done

Inject = Callable[[Command, Tally, random.Random], None]


def _into_studies(
    tally: Tally,
    times: int,
    folder: Path,
    words: list[str],
    whole: Study,
    inject: Inject,
    *,
    real: bool,
    together: int = 3,  # faults of one study, before it is finished and compared
) -> Tally:
    """Injects a fault at random moments, until there were enough of it."""
    chance, study = random.Random(tally.fault), folder / "disturbed"
    total = steps_done(whole.path)
    while tally.times < times:
        shutil.rmtree(study, ignore_errors=True)
        faults = min(together, times - tally.times)
        for moment in sorted(chance.uniform(0, 0.9 * total) for _ in range(faults)):
            with Command(words, study, folder / "log", real) as command:
                # Not before its workers are at work: what comes earlier disturbs nothing.
                if command.waits_until(max(moment, steps_done(study) + 1)):
                    time.sleep(chance.uniform(0, 0.02))  # into the midst of a step or a write
                    inject(command, tally, chance)
        finish(words, study, folder / "log", real=real)
        compare(tally, study, whole)
    return tally


def kill_driver(
    folder: Path, times: int, words: list[str], whole: Study, *, real: bool = False
) -> Tally:
    """kill -9 of the command itself; its workers have to end with it."""

    def inject(command: Command, tally: Tally, chance: random.Random) -> None:
        workers, before = command.workers(), finished_runs(command.study)
        command.signal(signal.SIGKILL)
        command.ended()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive, "who outlives the command keeps its locks and its memory"
        look(tally, command.study, before)

    tally = Tally(f"kill -9 of the driver, `{words[0]}`")
    return _into_studies(tally, times, folder, words, whole, inject, real=real)


def kill_worker(
    folder: Path, times: int, words: list[str], whole: Study, *, real: bool = False
) -> Tally:
    """kill -9 of a worker: the command replaces it and goes on."""

    def inject(command: Command, tally: Tally, chance: random.Random) -> None:
        workers, before = command.workers(), finished_runs(command.study)
        if not workers:  # between two rounds of runs
            return
        chance.choice(workers).kill()
        code, said = command.ended()
        assert code == 0, said
        look(tally, command.study, before)

    tally = Tally(f"kill -9 of a worker, `{words[0]}`")
    return _into_studies(tally, times, folder, words, whole, inject, real=real, together=1)


def stop(
    folder: Path,
    times: int,
    words: list[str],
    whole: Study,
    *,
    number: signal.Signals,
    group: bool = False,
    real: bool = False,
) -> Tally:
    """A signal to the command, or as from a terminal to all its processes: it says how to go on."""

    def inject(command: Command, tally: Tally, chance: random.Random) -> None:
        before = finished_runs(command.study)
        command.signal(number, group=group)
        code, said = command.ended()
        if code == 0:  # it was done when the signal came
            return
        assert code == 130, said
        assert said.splitlines().count(CONTINUE) == 1, said
        assert "Traceback" not in said
        look(tally, command.study, before)

    to = "all processes" if group else "the driver"
    tally = Tally(f"{number.name} to {to}, `{words[0]}`")
    return _into_studies(tally, times, folder, words, whole, inject, real=real)


def two_drivers(
    folder: Path, times: int, words: list[str], whole: Study, *, real: bool = False
) -> Tally:
    """The same command twice at once on one study: who comes second to a run leaves it alone."""
    tally, study = Tally(f"two drivers on one study, `{words[0]}`"), folder / "disturbed"
    while tally.times < times:
        shutil.rmtree(study, ignore_errors=True)
        with ExitStack() as stack:
            both = [
                stack.enter_context(Command(words, study, folder / f"log-{place}", real))
                for place in range(2)
            ]
            for command in both:
                code, said = command.ended()
                assert code == 0 or "busy" in said, said
                assert "Traceback" not in said
        look(tally, study, finished_runs(study))
        finish(words, study, folder / "log", real=real)
        compare(tally, study, whole)
    return tally


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[Callable[[str], object]]:
    """A disk in memory; gives a function that mounts it again with other options."""
    path.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    subprocess.run(["mount", *options], check=True, capture_output=True)
    try:
        yield lambda how: subprocess.run(["mount", "-o", f"remount,{how}", str(path)], check=True)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()


def can_mount(path: Path) -> bool:
    if sys.platform != "linux":
        return False
    try:
        with small_disk(path / "tried", 1 << 16):
            return True
    except (subprocess.CalledProcessError, FileNotFoundError):
        return False


def fill_disk(folder: Path, times: int, words: list[str], whole: Study) -> Tally:
    """A disk with room for a part of the study; then it grows."""
    tally = Tally(f"full disk, `{words[0]}`")
    chance = random.Random(tally.fault)
    needed = sum(path.stat().st_size for path in whole.path.rglob("*") if path.is_file())
    while tally.times < times:
        with small_disk(folder / "disk", int(chance.uniform(0.1, 0.8) * needed)) as again:
            study = folder / "disk" / "study"
            _refused(tally, study, words, folder, "No space left on device")
            again("size=64m")
            finish(words, study, folder / "log")
            compare(tally, study, whole)
    return tally


def limit_files(folder: Path, times: int, words: list[str], whole: Study) -> Tally:
    """Files that may not grow beyond a size (`ulimit -f`)."""
    tally, study = Tally(f"file size limit, `{words[0]}`"), folder / "disturbed"
    chance = random.Random(tally.fault)
    largest = max(path.stat().st_size for path in whole.path.rglob("*") if path.is_file())
    while tally.times < times:
        shutil.rmtree(study, ignore_errors=True)
        limit = int(chance.uniform(0.05, 0.95) * largest)

        def prepare(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        _refused(tally, study, words, folder, "File too large", prepare)
        finish(words, study, folder / "log")
        compare(tally, study, whole)
    return tally


def read_only(folder: Path, times: int, words: list[str], whole: Study) -> Tally:
    """A disk that has turned read-only since the study was begun."""
    tally = Tally(f"read-only folder, `{words[0]}`")
    chance, total = random.Random(tally.fault), steps_done(whole.path)
    while tally.times < times:
        with small_disk(folder / "disk", 64 << 20) as again:
            study = folder / "disk" / "study"
            with Command(words, study, folder / "log") as command:
                command.waits_until(chance.uniform(1, 0.8 * total))
                workers = command.workers()
                command.signal(signal.SIGKILL)
                command.ended()
                psutil.wait_procs(workers, timeout=60)
            again("ro")
            _refused(tally, study, words, folder, "Read-only file system")
            again("rw")
            finish(words, study, folder / "log")
            compare(tally, study, whole)
    return tally


def _refused(
    tally: Tally,
    study: Path,
    words: list[str],
    folder: Path,
    reason: str,
    prepare: Callable[[], object] = lambda: None,
) -> None:
    """The command must end with one sentence that has the reason."""
    before = finished_runs(study)
    with Command(words, study, folder / "log", prepare=prepare) as command:
        code, said = command.ended()
    assert code == 1, said
    assert "Traceback" not in said
    assert reason in said.splitlines()[-1]
    look(tally, study, before)


class JumpingClock(datetime):
    """A clock that goes back by up to ten years whenever it is looked at."""

    chance = random.Random(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) - timedelta(days=cls.chance.uniform(0, 3650))


def turn_clock_back(folder: Path, times: int, words: list[str], whole: Study) -> Tally:
    """The wall clock jumps back all the time, and the command is killed on top."""
    tally, study = Tally(f"clock jumping back, `{words[0]}`"), folder / "disturbed"
    chance, total = random.Random(tally.fault), steps_done(whole.path)

    def prepare() -> None:
        JumpingClock.chance = random.Random(chance.random())
        _summary.datetime = JumpingClock  # type: ignore[attr-defined,misc]
        time.time = lambda: JumpingClock.now().timestamp()

    while tally.times < times:
        shutil.rmtree(study, ignore_errors=True)
        with Command(words, study, folder / "log", prepare=prepare) as command:
            command.waits_until(chance.uniform(1, 0.8 * total))
            workers, before = command.workers(), finished_runs(study)
            command.signal(signal.SIGKILL)
            command.ended()
            psutil.wait_procs(workers, timeout=60)
        with Command(words, study, folder / "log", prepare=prepare) as command:
            code, said = command.ended()
        assert code == 0, said
        look(tally, study, before)
        compare(tally, study, whole)
    return tally
