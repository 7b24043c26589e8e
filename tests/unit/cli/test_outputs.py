"""Where commands may write: nobody's files are lost, and it is said before anything is trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from taskmix.engine import load_model

from .running import run_cli

QUICK = ("--steps", "4", "--batch-size", "4", "--workers", "1", "--json")


def all_files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith("lock")
    }


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> str:
    """The sentence of a command that ends with code 2 and has trained nothing."""
    assert run_cli(monkeypatch, *words) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("place", ["precious", "study", "..", "tables", "tables/model"])
def test_a_model_is_not_kept_where_other_files_are(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("chapter 1")
    train = ("train", tables, *QUICK, "--out", tmp_path / "study")
    assert run_cli(monkeypatch, *train) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path / "precious")
    before = all_files(tmp_path)
    keep = tmp_path / place if place != ".." else Path("..")
    said = refused(monkeypatch, capsys, *train, "--seed", "7", "--keep", keep)
    assert "The trained model should be written" in said
    assert all_files(tmp_path) == before  # so nothing was trained for it either


def test_a_kept_model_is_replaced_by_the_next(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = ("train", tables, *QUICK, "--out", tmp_path / "study", "--keep", tmp_path / "kept")
    assert run_cli(monkeypatch, *train) == 0
    (tmp_path / "kept" / "README.md").write_text("mine")
    names = set(all_files(tmp_path / "kept"))
    assert run_cli(monkeypatch, *train, "--seed", "1") == 0
    assert load_model(tmp_path / "kept").question("a").name == "a"
    found = set(all_files(tmp_path / "kept"))
    assert found & names == {"model.json", "README.md"}
    assert len(found) == len(names)


@pytest.mark.parametrize("command", ["train", "transfer", "advise"])
def test_a_study_is_not_written_into_the_data(
    tables: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    more = ("--target", "a") if command == "transfer" else ()
    before = all_files(tables)
    for out in (tables, tables / "a", tables / "study"):
        said = refused(monkeypatch, capsys, command, tables, *more, "--out", out)
        assert "The study should be written" in said
    assert all_files(tables) == before


@pytest.mark.parametrize("command", ["train", "transfer", "advise"])
def test_a_file_or_a_folder_of_others_as_study_is_refused(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    more = ("--target", "a") if command == "transfer" else ()
    (tmp_path / "some.csv").write_text("a,b")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("chapter 1")
    for name, words in (("some.csv", "is a file"), ("home", "other files")):
        out = tmp_path / name
        assert words in refused(monkeypatch, capsys, command, tables, *more, "--out", out)
    assert all_files(tmp_path / "home") == {"thesis.txt": b"chapter 1"}


def test_other_data_in_the_same_study_is_refused_in_words(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "study"
    assert run_cli(monkeypatch, "train", tables, *QUICK, "--out", out) == 0
    capsys.readouterr()
    before = all_files(out)
    shutil.copytree(tables, tmp_path / "moved")
    assert run_cli(monkeypatch, "train", tmp_path / "moved", *QUICK, "--out", out) == 0
    after = all_files(out)
    assert set(after) == set(before)
    assert all(after[name] == before[name] for name in before if name.endswith("run.json"))
    assert any(name.endswith("run.json") for name in before)
    capsys.readouterr()
    changed = tmp_path / "moved" / "c" / "train.csv"
    changed.write_text(changed.read_text() + "1,1,1\n")
    said = refused(monkeypatch, capsys, "train", tmp_path / "moved", *QUICK, "--out", out)
    assert "other rows of `c` than it was begun with" in said
    said = refused(monkeypatch, capsys, "advise", "digits", "--out", out)
    assert "the tasks it is about, `a`, `b`, `c`" in said
    assert "`parity`" in said
    tasks_of = json.loads((out / "study.json").read_text())["tasks"]
    assert set(tasks_of) == {"a", "b", "c", "d", "e"}


def test_tasks_of_one_folder_may_join_a_study_later(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for only in ("a,b", "c,d", "b,e"):
        words = ("train", tables, *QUICK, "--only", only, "--out", tmp_path / "study")
        assert run_cli(monkeypatch, *words) == 0
    found = json.loads((tmp_path / "study" / "study.json").read_text())
    assert sorted(found["tasks"]) == ["a", "b", "c", "d", "e"]


def test_a_study_of_an_earlier_version_is_known_by_its_first_run(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "study"
    assert run_cli(monkeypatch, "train", tables, *QUICK, "--out", out) == 0
    (out / "study.json").unlink()
    assert run_cli(monkeypatch, "train", tables, *QUICK, "--out", out) == 0
    assert (out / "study.json").is_file()  # from now on it says so itself
    (out / "study.json").unlink()
    changed = tables / "c" / "train.csv"
    changed.write_text(changed.read_text() + "1,1,1\n")
    capsys.readouterr()
    said = refused(monkeypatch, capsys, "train", tables, *QUICK, "--out", out)
    assert "than its first run was trained on" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "should say which tasks the study is about"),
        ('{"format": 1, "tasks": {"a": 1}, "origins": []}', "should say which tasks"),
        ('{"format": 2}', "which a newer taskmix wrote"),
    ],
)
def test_a_study_whose_subject_cannot_be_read_is_told(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    words: str,
) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text(text)
    assert run_cli(monkeypatch, "train", tables, *QUICK, "--out", tmp_path / "study") == 1
    assert words in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "study" / "study.json").read_text() == text


def test_plans_laws_and_pages_take_no_file_of_others(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "study"
    longer = ("--steps", "60", "--batch-size", "4", "--seeds", "2", "--workers", "1")
    assert run_cli(monkeypatch, "train", tables, *longer, "--out", out) == 0
    table = tmp_path / "rows.csv"
    table.write_text("x,y\n" + "".join(f"{x},{2 * x + 1}\n" for x in range(1, 30)))
    laws = ("laws", table, "--explain", "y", "--inputs", "x", "--json")
    capsys.readouterr()
    for name in ("mine.json", "mine.html", "mine.svg"):
        (tmp_path / name).write_text("<p>mine</p>")
    asked = [
        ("improve", out, "--write-plan", tmp_path / "mine.json"),
        (
            "transfer",
            tables,
            "--all",
            "--out",
            tmp_path / "t",
            "--write-plan",
            tmp_path / "mine.json",
        ),
        ("report", out, "--page", tmp_path / "mine.html"),
        (*laws, "--document", tmp_path / "mine.json"),
        (*laws, "--plot", tmp_path / "mine.svg"),
        (*laws, "--plot", tmp_path / "mine.html"),
    ]
    for words in asked:
        assert "Found another file at" in refused(monkeypatch, capsys, *words)
    assert not (tmp_path / "t").exists()
    for name in ("mine.json", "mine.html", "mine.svg"):
        assert (tmp_path / name).read_text() == "<p>mine</p>"
    ours = [
        ("improve", out, "--write-plan", tmp_path / "plan.json"),
        ("report", out, "--page", tmp_path / "page.html"),
        (*laws, "--document", tmp_path / "law.json", "--plot", tmp_path / "law.png"),
        (*laws, "--plot", tmp_path / "law.svg"),
        (*laws, "--plot", tmp_path / "law.html"),
    ]
    for words in ours:
        for _ in range(2):  # a file of ours is replaced by the next
            assert run_cli(monkeypatch, *words) == 0, words


def test_artificial_tasks_are_written_to_a_folder_of_their_own(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make = ("simulate", folder, "--real", "fruit", "--alpha", "0.9", "--count", "2")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "in which the command was started" in refused(monkeypatch, capsys, *make, "--out", ".")
    assert "outside the data" in refused(monkeypatch, capsys, *make, "--out", folder / "new")
    assert run_cli(monkeypatch, *make, "--out", "made") == 0
    made = sorted(path.name for path in Path("made").iterdir())
    assert made == ["artificial1", "artificial2", "fruit"]
    assert [path.name for path in Path().iterdir()] == ["made"]


def test_what_a_killed_simulation_left_is_not_taken_for_tasks(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make = ("simulate", folder, "--real", "fruit", "--alpha", "0.9", "--count", "2", "--json")
    (tmp_path / "precious").mkdir()
    (tmp_path / ".made.partial").symlink_to(tmp_path / "precious")  # as the old version named it
    left = tmp_path / ".taskmix-0123456789abcdef.tmp"
    (left / "artificial-7").mkdir(parents=True)
    assert run_cli(monkeypatch, *make, "--out", tmp_path / "made") == 0
    assert len(json.loads(capsys.readouterr().out)["tasks"]) == 2
    assert len(list((tmp_path / "made").iterdir())) == 3
    assert list((tmp_path / "precious").iterdir()) == []
