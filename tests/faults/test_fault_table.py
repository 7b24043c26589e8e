"""The list of faults with how often each was injected and what was lost.

`pytest tests/faults/test_fault_table.py -m slow -s` prints the rows of the table in docs/faults.md.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from taskmix.records import Study

from . import injections
from .disturbed import TRAIN, TRANSFER, Tally, undisturbed
from .real_commands import CASES, Case, make_inputs
from .test_damage import flipped, inject, shortened, zeroed
from .trials import Row, Trial
from .trials import undisturbed as undisturbed_result

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("TASKMIX_INJECTIONS", "30"))  # of each fault
COMMANDS = {words[0]: words for words in (TRAIN, TRANSFER)}
Fault = Callable[[Path, int, list[str], Study], Tally]
FAULTS: list[tuple[str, Fault]] = [
    ("kill driver", injections.kill_driver),
    ("kill worker", injections.kill_worker),
    *(
        (f"{number.name} {group=}", partial(injections.stop, number=number, group=group))
        for number in (signal.SIGINT, signal.SIGTERM)
        for group in (False, True)
    ),
    ("two drivers", injections.two_drivers),
    ("file size", injections.limit_files),
    ("clock", injections.turn_clock_back),
]
DISKS: list[tuple[str, Fault]] = [
    ("full disk", injections.fill_disk),
    ("read-only", injections.read_only),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Study]:
    folder = tmp_path_factory.mktemp("whole")
    return {name: undisturbed(words, folder / name) for name, words in COMMANDS.items()}


def show(tally: Tally, capsys: pytest.CaptureFixture[str]) -> None:
    counts = (tally.times, tally.finished, tally.lost, tally.twice, tally.unreadable)
    with capsys.disabled():
        print(f"\n| {tally.fault} | {' | '.join(map(str, (*counts, tally.different)))} |")  # noqa: T201
    assert tally.is_clean


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=[name for name, _ in FAULTS])
def test_a_fault_of_processes_loses_nothing(
    tmp_path: Path,
    whole: dict[str, Study],
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
    fault: Fault,
) -> None:
    show(fault(tmp_path, TIMES, COMMANDS[command], whole[command]), capsys)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("name", "fault"), DISKS, ids=[name for name, _ in DISKS])
def test_a_fault_of_the_disk_loses_nothing(
    tmp_path: Path,
    whole: dict[str, Study],
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
    fault: Fault,
) -> None:
    if not injections.can_mount(tmp_path):
        pytest.skip("only root can mount a small disk")
    show(fault(tmp_path, TIMES, COMMANDS[command], whole[command]), capsys)


@pytest.mark.parametrize("fault", [injections.kill_driver, injections.kill_worker])
def test_a_fault_of_commands_as_users_start_them_loses_nothing(
    tmp_path: Path,
    whole: dict[str, Study],
    capsys: pytest.CaptureFixture[str],
    fault: Callable[..., Tally],
) -> None:
    """Their workers are spawned, and import everything themselves."""
    tally = fault(tmp_path, max(TIMES // 10, 1), TRAIN, whole["train"], real=True)
    tally.fault += ", spawned"
    show(tally, capsys)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder)
    return folder


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_kills_and_signals_from_the_first_millisecond_on_lose_nothing(
    tmp_path: Path, inputs: Path, capsys: pytest.CaptureFixture[str], case: Case
) -> None:
    """Of every command, as users start it; `benchmarks/faults.py` does it a thousand times."""
    result, seconds = undisturbed_result(case, inputs, tmp_path / "whole")
    row = Row(case.name, seconds=seconds)
    trial, chance = Trial(case, row, inputs, tmp_path / "out", result), random.Random(case.name)
    for _ in range(max(TIMES // 5, 2)):
        trial.disturb(chance)
    trial.finish()
    with capsys.disabled():
        print(f"\n| kills and signals of `{case.name}` | {row.kills} | {row} |")  # noqa: T201
    # How soon all are gone depends on what else the machine does.
    assert row.is_clean or set(row.found) == {each for each in row.found if "gone after" in each}


@pytest.mark.parametrize("damage", [flipped, shortened, zeroed])
def test_damage_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[..., bytes],
) -> None:
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        show(inject(Path(folder), 100 * TIMES, damage, monkeypatch), capsys)
