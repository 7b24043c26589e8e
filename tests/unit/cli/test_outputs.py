"""Where commands may write: nobody's files are lost, and it is said before anything is trained."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taskmix.engine import load_model

from .running import Program

QUICK = ("--steps", "4", "--batch-size", "4", "--workers", "1", "--json")


def all_files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith("lock")
    }


def test_a_model_is_not_kept_where_other_files_are(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("chapter 1")
    train = ("train", tables, *QUICK, "--out", tmp_path / "study")
    assert cli(*train) == 0
    monkeypatch.chdir(tmp_path / "precious")
    before = all_files(tmp_path)
    for keep in (".", "..", "../study", "../tables", "../tables/model"):
        said = cli.refused(*train, "--seed", "7", "--keep", keep)
        assert "The trained model should be written" in said
    assert all_files(tmp_path) == before  # so nothing was trained for it either


def test_a_kept_model_is_replaced_by_the_next(tables: Path, tmp_path: Path, cli: Program) -> None:
    train = ("train", tables, *QUICK, "--out", tmp_path / "study", "--keep", tmp_path / "kept")
    assert cli(*train) == 0
    (tmp_path / "kept" / "README.md").write_text("mine")
    names = set(all_files(tmp_path / "kept"))
    assert cli(*train, "--seed", "1") == 0
    assert load_model(tmp_path / "kept").question("a").name == "a"
    found = set(all_files(tmp_path / "kept"))
    assert found & names == {"model.json", "README.md"}
    assert len(found) == len(names)


@pytest.mark.parametrize("command", ["train", "transfer", "advise"])
def test_a_study_is_not_written_into_data_nor_over_what_is_others(
    tables: Path, tmp_path: Path, command: str, cli: Program
) -> None:
    more = ("--target", "a") if command == "transfer" else ()
    (tmp_path / "some.csv").write_text("a,b")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("chapter 1")
    before = all_files(tmp_path)
    for place, words in (
        (tmp_path / "some.csv", "is a file"),
        (tmp_path / "home", "other files"),
        *(
            (each, "The study should be written")
            for each in (tables, tables / "a", tables / "study")
        ),
    ):
        assert words in cli.refused(command, tables, *more, "--out", place)
    assert all_files(tmp_path) == before


def test_other_data_in_the_same_study_is_refused_in_words(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "study"
    assert cli("train", tables, *QUICK, "--out", out) == 0
    cli.said()
    before = all_files(out)
    shutil.copytree(tables, tmp_path / "moved")
    assert cli("train", tmp_path / "moved", *QUICK, "--out", out) == 0
    after = all_files(out)
    assert set(after) == set(before)
    assert all(after[name] == before[name] for name in before if name.endswith("run.json"))
    assert any(name.endswith("run.json") for name in before)
    cli.said()
    changed = tmp_path / "moved" / "c" / "train.csv"
    changed.write_text(changed.read_text() + "1,1,1\n")
    said = cli.refused("train", tmp_path / "moved", *QUICK, "--out", out)
    assert "other rows of `c` than it was begun with" in said
    said = cli.refused("advise", "digits", "--out", out)
    assert "the tasks it is about, `a`, `b`, `c`" in said
    assert "`parity`" in said
    tasks_of = json.loads((out / "study.json").read_text())["tasks"]
    assert set(tasks_of) == {"a", "b", "c", "d", "e"}


def test_a_study_is_moved_with_its_tasks_and_does_not_say_where_they_were(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    tables.parent.joinpath("home").mkdir()
    tables.rename(tmp_path / "home" / "tables")

    def train(home: str, only: str) -> int:
        place = tmp_path / home
        words = ("train", place / "tables", *QUICK, "--only", only, "--out", place / "study")
        return cli(*words)

    assert train("home", "a,b") == 0
    subject = tmp_path / "home" / "study" / "study.json"
    for file in subject.parent.rglob("*"):
        assert file.is_dir() or str(tmp_path).encode() not in file.read_bytes(), file
    said = json.loads(subject.read_text())
    # As it was written before: the path is still known, and goes with the next task.
    subject.write_text(json.dumps(said | {"origins": [str(tmp_path / "home" / "tables")]}))
    assert train("home", "c") == 0
    assert json.loads(subject.read_text())["origins"] == said["origins"]
    (tmp_path / "home").rename(tmp_path / "moved")
    assert train("moved", "d") == 0
    assert train("moved", "b,e") == 0
    tasks = json.loads((tmp_path / "moved" / "study" / "study.json").read_text())["tasks"]
    assert sorted(tasks) == ["a", "b", "c", "d", "e"]


def test_a_study_of_an_earlier_version_is_known_by_its_first_run(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "study"
    assert cli("train", tables, *QUICK, "--out", out) == 0
    (out / "study.json").unlink()
    assert cli("train", tables, *QUICK, "--out", out) == 0
    assert (out / "study.json").is_file()  # from now on it says so itself
    (out / "study.json").unlink()
    changed = tables / "c" / "train.csv"
    changed.write_text(changed.read_text() + "1,1,1\n")
    said = cli.refused("train", tables, *QUICK, "--out", out)
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
    tables: Path, tmp_path: Path, text: str, words: str, cli: Program
) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text(text)
    assert words in cli.refused("train", tables, *QUICK, "--out", tmp_path / "study", code=1)
    assert (tmp_path / "study" / "study.json").read_text() == text


def test_plans_laws_and_pages_take_no_file_of_others(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "study"
    longer = ("--steps", "60", "--batch-size", "4", "--seeds", "2", "--workers", "1")
    assert cli("train", tables, *longer, "--out", out) == 0
    table = tmp_path / "rows.csv"
    table.write_text("x,y\n" + "".join(f"{x},{2 * x + 1}\n" for x in range(1, 30)))
    laws = ("laws", table, "--explain", "y", "--inputs", "x", "--json")
    cli.said()
    for name in ("mine.json", "mine.html", "mine.svg"):
        (tmp_path / name).write_text("<p>mine</p>")
    transfer = ("transfer", tables, "--all", "--out", tmp_path / "t")
    asked = [
        ("improve", out, "--write-plan", tmp_path / "mine.json"),
        (*transfer, "--write-plan", tmp_path / "mine.json"),
        ("report", out, "--page", tmp_path / "mine.html"),
        (*laws, "--document", tmp_path / "mine.json"),
        (*laws, "--plot", tmp_path / "mine.svg"),
        (*laws, "--plot", tmp_path / "mine.html"),
    ]
    for words in asked:
        assert "Found another file at" in cli.refused(*words)
    assert not (tmp_path / "t").exists()
    for name in ("mine.json", "mine.html", "mine.svg"):
        assert (tmp_path / name).read_text() == "<p>mine</p>"
    ours = [
        ("improve", out, "--write-plan", tmp_path / "plan.json"),
        ("report", out, "--page", tmp_path / "page.html"),
        (*laws, "--document", tmp_path / "law.json", "--plot", tmp_path / "law.svg"),
    ]
    for words in ours:
        for _ in range(2):  # a file of ours is replaced by the next
            assert cli(*words) == 0, words


def test_artificial_tasks_are_written_to_a_folder_of_their_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    make = ("laws", "simulate", folder, "--real", "fruit", "--alpha", "0.9", "--count", "2")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "in which the command was started" in cli.refused(*make, "--out", ".")
    assert "outside the data" in cli.refused(*make, "--out", folder / "new")
    # What killed simulations left is not taken for tasks.
    (tmp_path / "precious").mkdir()
    Path(".made.partial").symlink_to(tmp_path / "precious")  # as the old version named it
    Path(".taskmix-0123456789abcdef.tmp/artificial-7").mkdir(parents=True)
    assert len(cli.json(*make, "--out", "made", "--json")["tasks"]) == 2
    made = sorted(path.name for path in Path("made").iterdir())
    assert made == ["artificial1", "artificial2", "fruit"]
    assert list((tmp_path / "precious").iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="of `ulimit` and /dev/full")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ('ulimit -f 0; "$0" -m taskmix check "$1"', 0, ""),
        ('ulimit -f 0; "$0" -m taskmix train "$1" --json', 1, "study.json` should be writable."),
        ('"$0" -m taskmix plan --help > /dev/full', 1, "There should be room for what is printed."),
    ],
)
def test_where_nothing_can_be_written_it_is_one_sentence_of_those_who_write(
    tables: Path, tmp_path: Path, command: str, code: int, said: str
) -> None:
    done = subprocess.run(
        ["bash", "-c", command, sys.executable, str(tables)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    last = done.stderr.splitlines()[-1] if done.stderr else ""
    assert said in last
    assert "Traceback" not in done.stderr
    assert "joblib" not in done.stderr
