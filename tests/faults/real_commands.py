"""Commands as users start them, each with inputs that are small, and what they leave behind.

`make_inputs` makes the inputs of all of them in a folder; a `Case` is one command on them, and its
`result` is what it leaves apart from times and paths. The benchmark of faults uses this as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from taskmix.records import Study

from .disturbed import result_of

NAMES = ("a", "b", "c", "d", "e")
SMALL = "--batch-size 8 --workers 2 --engine here --json"
NOISE = ("Traceback", "leaked", "Exception ignored", "resource_tracker")


@dataclass(frozen=True)
class Case:
    """A command; `{inputs}` and `{out}` stand for the two folders."""

    name: str
    words: str
    result: Callable[[Path], Any]  # of the folder `{out}`
    keeps: bool = True  # what is done when it is stopped; else it writes once, at its end
    again: tuple[int, ...] = (0,)  # exit codes of the same command once more
    # Of numbers, relative: a run of a fleet that goes on alone has its sums in another order.
    tolerance: float = 0.0

    def arguments(self, inputs: Path, out: Path) -> list[str]:
        return [word.format(inputs=inputs, out=out) for word in self.words.split()]


def make_inputs(folder: Path) -> None:
    """Five tasks, sequences, texts, a table of results, and a study with a model."""
    for place, name in enumerate(NAMES):
        (folder / "tasks" / name).mkdir(parents=True)
        for split, rows in (("train", 24), ("dev", 12), ("test", 6)):
            lines = ["x,y,label"]
            for row in range(rows):
                x, y = (row * 7 + place) % 11 - 5, (row * 5) % 7 - 3
                lines.append(f"{x},{y},{int(x + 0.1 * place * y > 0)}")
            path = folder / "tasks" / name / f"{split}.csv"
            path.write_text("\n".join(lines) + "\n")
        (folder / "sequences" / name).mkdir(parents=True)
        for split, rows in (("train", 12), ("test", 4)):
            words = [
                "abcd"[(row * (place + 2) + at * at) % 4] for row in range(rows) for at in range(9)
            ]
            text = "\n".join(" ".join(words[at : at + 9]) for at in range(0, len(words), 9))
            (folder / "sequences" / name / f"{split}.txt").write_text(text + "\n")
        (folder / "texts" / name).mkdir(parents=True)
        for split in ("train", "dev"):
            (folder / "texts" / name / f"{split}.txt").write_text(
                f"{name} and so on {split}\n" * 20
            )
    table = ["n,ami,f1"]
    for n in (10, 20, 50, 100, 200, 500, 1000, 2000):
        table += [f"{n},{ami / 10},{0.3 + 0.08 * n**0.3 * ami / 10:.6f}" for ami in range(1, 6)]
    (folder / "results.csv").write_text("\n".join(table) + "\n")
    words = f"train {folder}/tasks --out {folder}/study --keep {folder}/model --seeds 3 --steps 60"
    must_end([*words.split(), *SMALL.split()], 0)
    _make_uneven(folder / "uneven")
    words = f"train {folder}/uneven --out {folder}/uneven_study --seeds 3 --steps 300"
    must_end([*words.split(), *SMALL.split()], 0)


def _make_uneven(folder: Path) -> None:
    """A task that is learned at once and one that takes long, so that `improve` has a plan to write."""
    draw = random.Random(0)
    for name in ("easy", "slow"):
        (folder / name).mkdir(parents=True)
        for split, rows in (("train", 800), ("dev", 60)):
            lines = ["x,y,label"]
            for _ in range(rows):
                x, y = draw.uniform(-3, 3), draw.uniform(-3, 3)
                lines.append(f"{x:.3f},{y:.3f},{int(x > 0 if name == 'easy' else x * y > 0)}")
            (folder / name / f"{split}.csv").write_text("\n".join(lines) + "\n")


def must_end(words: list[str], *codes: int) -> str:
    """Runs a command to its end; what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "taskmix", *words], capture_output=True, text=True, env=environment()
    )
    assert done.returncode in codes, done.stderr
    return done.stdout + done.stderr


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def runs_of(study: Path) -> dict[str, Any]:
    """Of every run what it ended with, value by value."""
    return {folder.name: result_of(folder) for folder in Study(study).runs() if folder.is_finished}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str | None:
    return _digest(path.read_bytes()) if path.exists() else None


def document(path: Path) -> Any:
    """A JSON document without times, and without the command, which names the folder."""
    return _timeless(json.loads(path.read_text())) if path.exists() else None


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        kept = value.keys() - {"seconds", "command", "commands", "page"}
        return {name: _timeless(value[name]) for name in sorted(kept)}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def page(path: Path, out: Path) -> str | None:
    """A page without the name of its folder."""
    if not path.exists():
        return None
    return _digest(path.read_bytes().replace(str(out).encode(), b"OUT"))


def _trained(out: Path) -> Any:
    return {"runs": runs_of(out)}


def _transferred(out: Path) -> Any:
    return {"runs": runs_of(out), "transfer": document(out / "transfer.json")}


def _swarmed(out: Path) -> Any:
    names = ("ratios.csv", "metrics.csv", "swarm.json")
    return {"runs": runs_of(out), **{name: file_digest(out / name) for name in names}}


def _advised(out: Path) -> Any:
    # Its page tells how long everything took.
    ended = (out / "report.html").exists() and "</html>" in (out / "report.html").read_text()[-99:]
    return {
        "runs": runs_of(out),
        "advice": document(out / "advice.json"),
        "plan": document(out / "plan.json"),
        "models": {
            path.name.split("-")[0]: {
                name: value.tolist() for name, value in load_file(path).items()
            }
            for path in out.glob("model/*.safetensors")
        },
        "page": ended,
    }


def _mixture(out: Path) -> Any:
    models = [file_digest(path) for path in sorted(out.glob("model-*.safetensors"))]
    summary = document(out / "summary.json")
    if summary is not None:
        summary.pop("model")  # the path of its file
    return {"models": models, "summary": summary, "page": page(out / "report.html", out)}


def _made(out: Path) -> Any:
    made = out / "made"
    return {str(path.relative_to(made)): file_digest(path) for path in made.rglob("*.*")} or None


CASES = (
    Case(
        "train",
        "train {inputs}/tasks --out {out} --steps 60 --checkpoint-every 10 --evaluate-every 60 "
        f"--seeds 3 {SMALL}",
        _trained,
    ),
    Case(
        "transfer",
        "transfer {inputs}/tasks --target a --steps 10 --subsets 6 --alone 2 --held-out 3 --prefixes 1 "
        f"--out {{out}} {SMALL}",
        _transferred,
    ),
    Case(
        "swarm",
        "swarm {inputs}/texts --members 6 --layers 1 --width 16 --context 16 --tokens 4k --dev-bytes 99 "
        f"--checkpoints 5 --models --device cpu --out {{out}} {SMALL}",
        _swarmed,
    ),
    Case(
        "advise",
        "advise {inputs}/tasks --only a,b,c --budget 900-steps --steps 30 --out {out} --batch-size 8 "
        "--workers 2 --json",
        _advised,
        tolerance=1e-5,
    ),
    Case(
        "sequences",
        "sequences {inputs}/sequences --generator markov --generators 2 --iterations 8 --restarts 1 "
        "--out {out} --json",
        _mixture,
    ),
    Case(
        "improve",
        "improve {inputs}/uneven_study --write-plan {out}/plan.json",
        lambda out: document(out / "plan.json"),
        keeps=False,
    ),
    Case(
        "simulate",
        "laws simulate {inputs}/tasks --real a --count 3 --alpha 0.8 --out {out}/made",
        _made,
        keeps=False,
        again=(0, 2),  # a folder that is written already is refused
    ),
    Case(
        "laws",
        "laws {inputs}/results.csv --explain f1 --inputs n,ami --document {out}/laws.json",
        lambda out: document(out / "laws.json"),
        keeps=False,
    ),
    Case(
        "predict",
        "predict {inputs}/model {inputs}/tasks/a/test.csv --task a --overwrite "
        "--answers {out}/answers.jsonl",
        lambda out: file_digest(out / "answers.jsonl"),
        keeps=False,
    ),
    Case(
        "report",
        "report {inputs}/study --page {out}/report.html",
        lambda out: page(out / "report.html", out),
        keeps=False,
    ),
)


class Started:
    """A command at work, in a session of its own, which all its processes belong to."""

    def __init__(self, case: Case, inputs: Path, out: Path) -> None:
        if not case.keeps:  # who writes one file writes it into a folder that is there
            out.mkdir(parents=True, exist_ok=True)
        self.log = out.with_name(f"{out.name}.log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "taskmix", *case.arguments(inputs, out)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment(),
            )

    def wait_until_it_listens(self) -> None:
        """Past the first moments, which are Python's own: it holds back or hears what ends it."""
        wanted = 1 << (signal.SIGTERM - 1)
        while self.process.poll() is None:
            words = Path(f"/proc/{self.process.pid}/status").read_text().split()
            masks = [words[words.index(name) + 1] for name in ("SigBlk:", "SigCgt:")]
            if any(int(mask, 16) & wanted for mask in masks):
                return
            time.sleep(0.01)

    def signal(self, number: signal.Signals, *, group: bool) -> None:
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def seconds_to_end(self, patience: float) -> float:
        """Until the command and all its processes are gone; infinite where they are not in time."""
        begin = time.monotonic()
        while (taken := time.monotonic() - begin) < patience:
            if self.process.poll() is not None and not self.members():
                return taken
            time.sleep(0.01)
        return float("inf")

    def members(self) -> list[int]:
        """The processes of its session that are alive."""
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdecimal():
                with contextlib.suppress(OSError):
                    state, _, _, session = (
                        (path / "stat").read_bytes().rpartition(b")")[2].split()[:4]
                    )
                    if int(session) == self.process.pid and state not in b"ZX":
                        found.append(int(path.name))
        return found

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        self.process.wait()


def noise_of(said: str) -> str | None:
    """`ours` or `python's` where there is a traceback or a warning of Python on the terminal.

    Python's is one in which no line of taskmix stands: it came before the first of ours was read.
    """
    if not any(words in said for words in NOISE):
        return None
    return "ours" if "taskmix" in said.replace("-m taskmix", "") else "python's"
