"""A command that refuses its input leaves nothing behind, and one that fails late nothing half done."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from taskmix.cli import run_command
from taskmix.files import _atomic
from taskmix.plans import Part, Plan, Shares

BAD = {
    "rows.csv": b'x,label\n1,0\n"2\n',
    "rows.jsonl": b'{"text": "a", "label": 1}\n{"text": \n',
    "rows.parquet": b"PAR1 and no more",
}


def ended(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> int:
    monkeypatch.setattr(sys, "argv", ["taskmix", *words])
    with pytest.raises(SystemExit) as exit_:
        run_command()
    return int(exit_.value.code or 0)


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize(
    "words",
    [
        "train IN --out OUT",
        "transfer IN --all --out OUT",
        "advise IN --out OUT --steps 5",
        "sequences IN --out OUT",
        "laws IN --explain label --inputs x --document OUT",
        "improve IN --write-plan OUT",
        "report IN --page OUT",
        "train IN --plan IN --out OUT",
    ],
    ids=lambda words: words.partition(" ")[0],
)
def test_a_command_that_refuses_its_input_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    name: str,
) -> None:
    (tmp_path / name).write_bytes(BAD[name])
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    line = words.replace("IN", str(tmp_path / name)).replace("OUT", str(tmp_path / "out"))
    code = ended(monkeypatch, line.split())
    said = capsys.readouterr().err
    assert code in (1, 2), said
    assert "Traceback" not in said
    assert sorted(tmp_path.rglob("*")) == before


def test_a_plan_that_cannot_be_written_whole_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    part = Part(tasks=("a",), scored=("a",), share=1.0, division=Shares.equal(1))
    Plan(parts=(part,)).save(path)
    old = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_atomic.os, "fsync", full)
    with pytest.raises(Exception, match="No space left"):
        Plan(name="another", parts=(part,)).save(path)
    assert path.read_bytes() == old
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]
