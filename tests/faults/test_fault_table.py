"""The list of faults with how often each was injected and what was lost.

`pytest tests/faults/test_fault_table.py -m slow -s` prints the table of docs/faults.md.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from . import injections
from .disturbed import TRAIN, TRANSFER, Tally, undisturbed
from .test_damage import flipped, inject, shortened, zeroed

TIMES = int(os.environ.get("TASKMIX_INJECTIONS", "30"))  # of each fault


def tallies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tally]:
    whole = {words[0]: undisturbed(words, folder / words[0]) for words in (TRAIN, TRANSFER)}
    for words in (TRAIN, TRANSFER):
        study = whole[words[0]]
        yield injections.kill_driver(folder, TIMES, words, study)
        yield injections.kill_worker(folder, TIMES, words, study)
        for number in (signal.SIGINT, signal.SIGTERM):
            for group in (False, True):
                yield injections.stop(folder, TIMES, words, study, number=number, group=group)
        yield injections.two_drivers(folder, TIMES, words, study)
        yield injections.limit_files(folder, TIMES, words, study)
        yield injections.turn_clock_back(folder, TIMES, words, study)
        if injections.can_mount(folder):
            yield injections.fill_disk(folder, TIMES, words, study)
            yield injections.read_only(folder, TIMES, words, study)
    # As a user starts them, with workers that are spawned and import everything themselves.
    for fault in (injections.kill_driver, injections.kill_worker):
        tally = fault(folder, max(TIMES // 10, 1), TRAIN, whole["train"], real=True)
        tally.fault += ", spawned"
        yield tally
    for damage in (flipped, shortened, zeroed):
        with TemporaryDirectory(dir=folder) as place:
            yield inject(Path(place), 100 * TIMES, damage, monkeypatch)


@pytest.mark.slow
def test_the_table_of_faults_shows_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("injected", "finished runs then", "lost", "twice", "unreadable", "different")
    rows = ["", f"| fault | {' | '.join(names)} |", f"|---|{'--:|' * len(names)}"]
    found = []
    for tally in tallies(tmp_path, monkeypatch):
        found.append(tally)
        counts = (tally.times, tally.finished, tally.lost, tally.twice, tally.unreadable)
        rows.append(f"| {tally.fault} | {' | '.join(map(str, (*counts, tally.different)))} |")
        with capsys.disabled():
            print(rows.pop(0) if len(rows) == 1 else "\n".join(rows))  # noqa: T201
        rows.clear()
    assert all(tally.is_clean for tally in found)
