"""A record as bytes and back: the same record, or an error, and never half of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from toys import SPECIFICATION, add_steps, begin

from taskmix.errors import RecordError
from taskmix.records import RunFolder, Study, _carried, pack_run, unpack_run


def make(study: Path, *, finish: bool) -> RunFolder:
    folder = Study(study).run(SPECIFICATION)
    with folder.claim() as claim:
        writer = begin(claim.writer)
        for number in range(1, 5 if finish else 3):
            add_steps(writer, [number], probabilities=np.full(2, 0.5))
            writer.add_scores(number, [("news", "dev", "accuracy", number / 10)])
            state = {"weights": torch.full((3,), float(number))}
            writer.commit(number, state, best=state, best_step=number)
        if finish:
            writer.finish(scores=[("news", "test", "accuracy", 0.4)], best_step=4)
        else:
            writer.stop()
    return folder


def test_a_finished_run_arrives_as_it_left(tmp_path: Path) -> None:
    sent = make(tmp_path / "far", finish=True)
    here = Study(tmp_path / "home").run(SPECIFICATION)
    assert unpack_run(here, pack_run(sent))
    assert pack_run(here) == pack_run(sent)
    assert here.is_finished
    assert here.steps().equals(sent.steps())
    assert here.summary() == sent.summary()
    assert not unpack_run(here, pack_run(sent)), "a finished run stays as it is"


def test_an_unfinished_run_goes_on_from_the_checkpoint_that_arrived(tmp_path: Path) -> None:
    sent = make(tmp_path / "far", finish=False)
    here = Study(tmp_path / "home").run(SPECIFICATION)
    assert unpack_run(here, pack_run(sent))
    with here.claim() as claim:
        assert claim.writer is not None
        assert claim.writer.resumed is not None
        assert claim.writer.resumed.step == 2
        assert torch.equal(claim.writer.resumed.state["weights"], torch.full((3,), 2.0))


def test_a_run_that_never_began_has_nothing_to_pack(tmp_path: Path) -> None:
    assert pack_run(Study(tmp_path).run(SPECIFICATION)) == {}


def test_a_run_that_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    files = pack_run(make(tmp_path / "far", finish=True))
    here = Study(tmp_path / "home").run(SPECIFICATION)
    with here.claim() as claim:
        assert claim.writer is not None
        assert not unpack_run(here, files)


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/passwd", "steps/../../evil.parquet", "checkpoint/x.pickle", ".lock", "steps"],
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    files = pack_run(make(tmp_path / "far", finish=True))
    here = Study(tmp_path / "home").run(SPECIFICATION)
    with pytest.raises(RecordError, match="files of a run"):
        unpack_run(here, files | {name: b"x"})
    assert not here.path.exists()


def test_the_record_of_another_run_is_refused(tmp_path: Path) -> None:
    files = pack_run(make(tmp_path / "far", finish=True))
    with pytest.raises(RecordError, match="should be that of run"):
        unpack_run(Study(tmp_path / "home").run({"toy": 2}), files)
    with pytest.raises(RecordError, match=r"run\.json"):
        unpack_run(Study(tmp_path / "home").run(SPECIFICATION), {})


@pytest.mark.parametrize("finish", [True, False])
def test_a_death_between_any_two_files_leaves_a_run_that_can_be_done(
    tmp_path: Path, finish: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = pack_run(make(tmp_path / "far", finish=finish))
    real = _carried.write_bytes

    for allowed in range(len(files)):
        left = allowed

        def write(path: Path, data: bytes, *, sync: bool = True) -> None:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            real(path, data, sync=sync)

        home = tmp_path / f"home-{finish}-{allowed}"
        here = Study(home).run(SPECIFICATION)
        make(home, finish=False)  # something older is there
        monkeypatch.setattr(_carried, "write_bytes", write)
        with pytest.raises(KeyboardInterrupt):
            unpack_run(here, files)
        monkeypatch.setattr(_carried, "write_bytes", real)
        assert not here.is_finished
        assert unpack_run(here, files)
        assert pack_run(here) == files
