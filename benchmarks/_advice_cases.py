"""The cases that are measured: a folder and a kind of model, with the words for `taskmix advise`.

Budgets are in batches, so that the same case is the same work everywhere, and small enough for a case
to take some minutes on one core (tables, shared inputs, frozen features) or on a GPU (the others).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _advice_folders import FOLDERS, PUT_ASIDE
from _advice_training import say

Row = dict[str, Any]
MODELS = ("scratch", "heads", "adapters")

# By the kind of a folder's inputs and of model. Models of tables are too small for a GPU.
WORDS = {
    ("texts", "scratch"): "--budget 6000-steps --max-length 100",
    ("tables", "scratch"): "--budget 12000-steps --device cpu",
    ("tokens", "scratch"): "--budget 5000-steps",
    ("shared inputs", "scratch"): "--budget 20000-steps --device cpu",
    ("language", "scratch"): "--budget 4000-steps --max-length 64 --batch-size 16",
    ("texts", "heads"): "--budget 12000-steps --max-length 64 --tune heads",
    ("texts", "adapters"): "--budget 4000-steps --max-length 64 --tune adapters",
}


@dataclass(frozen=True)
class Case:
    """One folder with one kind of model."""

    folder: str
    model: str

    @property
    def name(self) -> str:
        return f"{self.folder}-{self.model}"

    @classmethod
    def parse(cls, word: str) -> Case:
        folder, _, model = word.partition("/")
        return cls(folder, model or "scratch")


def usual_cases(*, final: bool, with_encoder: bool) -> list[Case]:
    """All of the tuning side, or all of the side put aside."""
    names = PUT_ASIDE if final else [name for name in FOLDERS if name not in PUT_ASIDE]
    return [
        Case(name, model)
        for model in MODELS
        for name in names
        if (FOLDERS[name].inputs, model) in WORDS and (model == "scratch" or with_encoder)
    ]


def usual_words(folder: str, model: str, encoder: str | None) -> list[str]:
    """The words of a case; a folder that is none of ours has none but the model."""
    name = Path(folder).name
    words = []
    if name in FOLDERS:
        known = WORDS.get((FOLDERS[name].inputs, model))
        if known is None:
            raise SystemExit(f"{name} should be trained from scratch. Found `--model {model}`.")
        words = known.split()
    elif model != "scratch":
        words = ["--tune", model]
    if model != "scratch":
        if encoder is None:
            raise SystemExit(f"`--model {model}` needs an encoder. Give its folder by `--encoder`.")
        words += ["--model", encoder]
    return words


def place_of(folder: str, folders: Path) -> str:
    """A name of ours as a path; `digits` and paths as they are."""
    known = FOLDERS.get(folder)
    return folder if known is None or known.make is None else str(folders / folder)


def refuse_put_aside(folder: str, *, final: bool) -> None:
    name = Path(folder).name
    if name in PUT_ASIDE and not final:
        raise SystemExit(
            f"{name} is put aside: nothing may be chosen by its results, so it is run once, when all is "
            "decided. Say `--final` if that is now; otherwise take "
            f"{', '.join(each for each in FOLDERS if each not in PUT_ASIDE)}."
        )


def run_cases(
    cases: Sequence[Case],
    out: Path,
    *,
    what: str,  # compare, faster or harm
    jobs: int,
    minutes: float,
    options: Sequence[str],  # for each case
    words: Sequence[str],  # for `taskmix advise`
) -> list[str]:
    """Does cases in processes of their own, one JSON file each; the names of those not done.

    What is done is not done again, and a case that was stopped goes on from its records. After so
    many minutes no new case begins.
    """
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes

    def called(case: Case) -> str:
        return case.name if what == "compare" else f"{case.name}-{what}"

    waiting = [case for case in cases if not (out / f"{called(case)}.json").exists()]
    running: dict[str, subprocess.Popen[bytes]] = {}
    script = Path(__file__).with_name("advice.py")
    try:
        while running or (waiting and time.monotonic() < end):
            while waiting and len(running) < jobs and time.monotonic() < end:
                case = waiting.pop(0)
                name = called(case)
                line = [sys.executable, str(script), what, case.folder, "--model", case.model]
                line += ["--out", str(out / "work"), "--json", *options]
                with (
                    (out / f"{name}.part").open("wb") as said,
                    (out / f"{name}.log").open("ab") as log,
                ):
                    running[name] = subprocess.Popen(
                        [*line, "--", *words],
                        stdout=said,
                        stderr=log,
                        env={**os.environ, "OMP_NUM_THREADS": "1"},
                        start_new_session=True,  # so that all it starts can be stopped with it
                    )
                say(f"{name}: begun")
            for name, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                if process.returncode == 0:
                    (out / f"{name}.part").replace(out / f"{name}.json")
                    say(f"{name}: done")
                else:
                    end_of_log = (out / f"{name}.log").read_text("utf-8", "replace")[-500:]
                    say(f"{name}: failed: {end_of_log}")
            time.sleep(0.5)
    finally:
        for process in running.values():
            os.killpg(process.pid, signal.SIGTERM)
    return [called(case) for case in cases if not (out / f"{called(case)}.json").exists()]


def table(paths: Sequence[Path]) -> str:
    """One line a case, as Markdown."""
    head = [
        "folder, model",
        "advice, s",
        "chosen",
        "batches",
        "best baseline by dev",
        "plan minus it",
        "ten times: baseline",
        "plan minus it",
        "best baseline by test, at both lengths",
        "inside 90 %",
        "settled, stay",
    ]
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for path in paths:
        found = json.loads(path.read_text(encoding="utf-8"))
        for advice in (row for row in found["rows"] if row["what"] == "advice"):
            way = advice.get("way", "plan")
            case = found["case"] + ("" if way == "plan" else f", {way}")
            lines.append(" | ".join([case, *cells(advice, way, found["rows"])]))
    return "\n".join(f"| {line} |" for line in lines)


def cells(advice: Row, way: str, rows: Sequence[Row]) -> list[str]:
    regrets = [row for row in rows if row["what"] == "regret" and row["way"] == way]
    by_dev, by_test = (
        [row for row in regrets if row["picked"] == split] for split in ("dev", "test")
    )
    found = [f"{advice['ours']:.0f}", advice["chosen"], str(by_dev[0]["batches"])]
    for row in by_dev[:2]:
        found += [row["peer_name"], difference(row)]
    found += ["-"] * (7 - len(found))
    found.append("; ".join(f"{row['peer_name']} {difference(row)}" for row in by_test))
    return [*found, inside(rows, way), stays(rows)]


def difference(row: Row) -> str:
    mark = {"significantly worse": " **worse**", "significantly better": " **better**"}
    word = mark.get(str(row["verdict"]), "")
    return f"{row['difference']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f}){word}"


def inside(rows: Sequence[Row], way: str) -> str:
    found = [row for row in rows if row["what"] == "coverage" and row["way"] == way]
    return "; ".join(f"{row['ours']:.0%} of {row['scores']}" for row in found) or "-"


def stays(rows: Sequence[Row]) -> str:
    found = [row for row in rows if row["what"] == "settled"]
    return "; ".join(f"{row.get('stay_on_dev', 0)} of {row['pairs']}" for row in found) or "-"
