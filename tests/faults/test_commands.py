"""Commands that are killed, stopped, doubled or short of disk: nothing is lost, nothing done twice.

The long version, with a table of what was injected, is `pytest tests/faults -m slow -s -k table`.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from taskmix.records import Study

from . import injections
from .disturbed import TRAIN, TRANSFER, Tally, undisturbed


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return undisturbed(TRAIN, tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="module")
def transferred(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return undisturbed(TRANSFER, tmp_path_factory.mktemp("transferred"))


def must_be_clean(tally: Tally) -> None:
    assert tally.is_clean, tally


def test_a_killed_training_goes_on_with_the_same_command(tmp_path: Path, trained: Study) -> None:
    must_be_clean(injections.kill_driver(tmp_path, 2, TRAIN, trained))


def test_a_killed_worker_is_replaced_and_training_goes_on(tmp_path: Path, trained: Study) -> None:
    must_be_clean(injections.kill_worker(tmp_path, 1, TRAIN, trained))


def test_a_killed_study_of_transfer_goes_on(tmp_path: Path, transferred: Study) -> None:
    must_be_clean(injections.kill_driver(tmp_path, 2, TRANSFER, transferred))


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGINT, True), (signal.SIGTERM, False)],
    ids=["as from a terminal", "to the driver"],
)
def test_a_signal_stops_training_cleanly_and_tells_how_to_go_on(
    tmp_path: Path, trained: Study, number: signal.Signals, group: bool
) -> None:
    must_be_clean(injections.stop(tmp_path, 1, TRAIN, trained, number=number, group=group))


def test_two_commands_on_one_study_do_every_run_once(tmp_path: Path, trained: Study) -> None:
    must_be_clean(injections.two_drivers(tmp_path, 1, TRAIN, trained))


def test_a_file_size_limit_is_told_in_a_sentence(tmp_path: Path, trained: Study) -> None:
    must_be_clean(injections.limit_files(tmp_path, 1, TRAIN, trained))


def test_a_disk_that_is_full_or_read_only_is_told_in_a_sentence(
    tmp_path: Path, trained: Study
) -> None:
    if not injections.can_mount(tmp_path):
        pytest.skip("only root can mount a small disk")
    must_be_clean(injections.fill_disk(tmp_path, 1, TRAIN, trained))
    must_be_clean(injections.read_only(tmp_path, 1, TRAIN, trained))


def test_a_clock_that_jumps_back_changes_no_result(tmp_path: Path, trained: Study) -> None:
    must_be_clean(injections.turn_clock_back(tmp_path, 1, TRAIN, trained))
