"""Programs that listen to signals, without the commands: these start at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taskmix._signals import BEGIN_ANEW, CONTINUE, WATCHED, _sentence

NUMBERS = [signal.SIGINT, signal.SIGTERM]


def program(code: str, *words: str) -> subprocess.Popen[str]:
    """Runs the code after `listen()`; it has come to its work when it has printed a line."""
    begin = "from taskmix import _signals\nimport subprocess, sys, time\n_signals.listen()\n"
    started = subprocess.Popen(
        [sys.executable, "-c", begin + code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stdout is not None
    return started


def first_line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_is_one_sentence_and_exit_code_130(number: signal.Signals) -> None:
    started = program("print('now', flush=True)\ntime.sleep(60)")
    first_line(started)
    os.killpg(started.pid, number)
    _, said = started.communicate(timeout=30)
    assert (started.returncode, said) == (130, CONTINUE + "\n")


def test_a_signal_after_the_end_does_not_spoil_the_exit_code() -> None:
    started = program(
        # The last thing that is called before Python takes itself down is ours; this comes after.
        "import os, signal\n"
        "class Last:\n"
        "    def __del__(self): os.kill(os.getpid(), signal.SIGINT)\n"
        "last = Last()\n"
    )
    _, said = started.communicate(timeout=30)
    assert (started.returncode, said) == (0, "")


def test_a_signal_ends_a_call_that_never_returns_to_python() -> None:
    started = program(
        # The main thread waits in C, where no handler of Python's would run, and which no signal ends:
        # for a lock that it has itself.
        "import ctypes\nlock = ctypes.CDLL(None).pthread_mutex_lock\n"
        "mutex = ctypes.create_string_buffer(256)\nlock(mutex)\nprint('now', flush=True)\nlock(mutex)"
    )
    first_line(started)
    begin = time.monotonic()
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=30)
    assert (started.returncode, said) == (130, CONTINUE + "\n")
    assert time.monotonic() - begin < 10


def test_work_that_stops_when_it_is_asked_to_leaves_in_order() -> None:
    started = program(
        "try:\n"
        "    with _signals.grace():\n"
        "        print('now', flush=True)\n"
        "        while not _signals.asked(): time.sleep(0.01)\n"
        "        print('checkpoint', flush=True)\n"
        "    print('never', flush=True)\n"
        "except _signals.Stopped:\n"
        "    _signals.end()"
    )
    first_line(started)
    started.send_signal(signal.SIGTERM)
    printed, said = started.communicate(timeout=30)
    assert (started.returncode, printed, said) == (130, "checkpoint\n", CONTINUE + "\n")


def is_gone(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    for _ in range(100):
        try:
            if state.read_text().split()[2] == "Z":
                return True
        except OSError:  # it went while it was looked at
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("signals", [1, 2])
def test_work_that_does_not_stop_is_ended_and_so_are_all_its_processes(signals: int) -> None:
    started = program(
        "children = 'import signal, time; signal.signal(2, signal.SIG_IGN); print(flush=True); "
        "time.sleep(60)'\n"
        "with _signals.grace():\n"
        "    child = subprocess.Popen([sys.executable, '-c', children], stdout=subprocess.PIPE)\n"
        "    child.stdout.readline()\n"
        "    print(child.pid, flush=True)\n"
        "    while True:\n"
        "        time.sleep(60)"
    )
    child = first_line(started)
    for _ in range(signals):
        os.killpg(started.pid, signal.SIGINT)
        time.sleep(0.2)
    begin = time.monotonic()
    _, said = started.communicate(timeout=30)
    seconds = time.monotonic() - begin
    assert (started.returncode, said) == (130, CONTINUE + "\n")
    assert is_gone(int(child)), "it was killed, and has ten seconds to be so"
    if signals == 2:
        assert seconds < 0.8, "the second signal does not wait for a checkpoint"


def test_a_launcher_may_send_a_second_signal_without_harm() -> None:
    started = program(
        "try:\n"
        "    with _signals.grace(patient=True):\n"
        "        print('now', flush=True)\n"
        "        while not _signals.asked(): time.sleep(0.01)\n"
        "        time.sleep(0.4)\n"
        "        print('checkpoint', flush=True)\n"
        "except _signals.Stopped:\n"
        "    _signals.end()"
    )
    first_line(started)
    started.send_signal(signal.SIGINT)
    time.sleep(0.1)
    started.send_signal(signal.SIGTERM)
    printed, _ = started.communicate(timeout=30)
    assert printed == "checkpoint\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("train folder --out predict", CONTINUE),
        ("demo", CONTINUE),
        ("", CONTINUE),
        ("predict model rows.csv", BEGIN_ANEW),
        ("laws simulate folder --out made", BEGIN_ANEW),
        ("check folder", BEGIN_ANEW),
        ("mix ratios.csv", BEGIN_ANEW),
        ("plan export plan.json --to trl", BEGIN_ANEW),
        ("sequences score model rows.csv", BEGIN_ANEW),
        ("sequences fit score", CONTINUE),
        ("transfer reviews --new garden --out study", BEGIN_ANEW),
        ("transfer reviews --new=garden", BEGIN_ANEW),
        ("transfer new --all", CONTINUE),
        ("report study --live", WATCHED),
    ],
)
def test_the_sentence_says_whether_anything_is_kept(words: str, sentence: str) -> None:
    assert _sentence(words.split()) == sentence


def test_importing_taskmix_changes_nothing_about_signals() -> None:
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job of the background has none
        "import taskmix, taskmix.engine, taskmix.cli, taskmix._program\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        "assert signal.set_wakeup_fd(-1) == -1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_program_listens_before_it_imports_what_takes_time() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nfrom taskmix._program import main\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["taskmix", "taskmix._program"]
