"""Ctrl-C and SIGTERM at any moment of a command: one sentence, exit code 130, and all are gone.

`python benchmarks/faults.py` does this a thousand times, with every command.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .disturbed import BEGIN_ANEW, CONTINUE
from .real_commands import Case, Started, environment, noise_of

TRAIN = Case(
    "train",
    "train digits --only parity,half --out {out} --steps 4000 --checkpoint-every 10 --seeds 2 "
    "--workers 2 --json",
    lambda out: None,
)
GONE = 60.0  # seconds; two on a machine that has nothing else to do
WAYS = [(number, group) for number in (signal.SIGINT, signal.SIGTERM) for group in (False, True)]


def must_stop(started: Started, sentence: str = CONTINUE) -> None:
    seconds = started.seconds_to_end(GONE)
    said = started.said()
    assert seconds < GONE, said
    assert started.process.poll() == 130, said
    assert said.splitlines().count(sentence) == 1, said
    assert noise_of(said) is None, said


@pytest.mark.parametrize("place", range(4))
def test_a_signal_at_any_moment_ends_everything_with_one_sentence(
    tmp_path: Path, place: int
) -> None:
    chance = random.Random(place)
    number, group = WAYS[place]
    with Started(TRAIN, tmp_path, tmp_path / "out") as started:
        started.wait_until_it_listens()
        time.sleep(chance.uniform(0.0, 4.0))
        started.signal(number, group=group)
        must_stop(started)


def test_workers_that_are_starting_end_without_a_word(tmp_path: Path) -> None:
    with Started(TRAIN, tmp_path, tmp_path / "out") as started:
        deadline = time.monotonic() + 120
        while len(started.members()) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        started.signal(signal.SIGINT, group=True)
        must_stop(started)


def test_a_second_signal_is_none_too_many(tmp_path: Path) -> None:
    with Started(TRAIN, tmp_path, tmp_path / "out") as started:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("out/*/run.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        started.signal(signal.SIGINT, group=True)
        time.sleep(0.01)
        started.signal(signal.SIGINT, group=True)
        must_stop(started)


def test_a_command_that_keeps_nothing_says_so(tmp_path: Path) -> None:
    case = Case(
        "laws", "laws {inputs}/missing.csv --explain y --inputs x", lambda out: None, keeps=False
    )
    with Started(case, tmp_path, tmp_path / "out") as started:
        started.wait_until_it_listens()
        started.signal(signal.SIGINT, group=True)
        must_stop(started, BEGIN_ANEW)


SCRIPT = """
import multiprocessing, signal
from dataclasses import replace
from taskmix.engine import DigitsSource, Here, Run
from taskmix.models import Perceptron
from taskmix.records import Study

if __name__ == "__main__":
    # A job that a shell starts in the background ignores it, and so would whatever the job starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run = Run(label="x", source=DigitsSource(), architecture=Perceptron(), steps=100_000, seed=0)
    print("now", flush=True)
    try:
        Here(workers=2).run([run, replace(run, seed=1)], Study("study"))
    except KeyboardInterrupt:
        print(multiprocessing.active_children(), signal.getsignal(signal.SIGINT).__name__)
"""


def test_a_script_gets_its_keyboard_interrupt_when_the_workers_are_gone(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    started = subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment(),
    )
    assert started.stdout is not None
    started.stdout.readline()
    time.sleep(1.5)  # its workers are starting
    os.killpg(started.pid, signal.SIGINT)
    printed, said = started.communicate(timeout=60)
    assert (started.returncode, printed, said) == (0, "[] default_int_handler\n", "")


@pytest.mark.slow
def test_a_cluster_of_our_own_ends_with_the_command(tmp_path: Path) -> None:
    case = Case(
        "train", TRAIN.words.replace("--workers", "--engine ray --workers"), lambda out: None
    )
    with Started(case, tmp_path, tmp_path / "out") as started:
        deadline = time.monotonic() + 240
        while not list(tmp_path.glob("out/*/run.json")) and time.monotonic() < deadline:
            time.sleep(0.1)
        started.signal(signal.SIGINT, group=True)
        must_stop(started)
