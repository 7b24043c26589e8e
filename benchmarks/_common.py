"""What the benchmarks share: questions, clocks, processes of their own, rows, one object out."""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".benchmarks"
DATA = Path(os.environ.get("TASKMIX_DATA", "data"))

Row = dict[str, Any]
Options = Mapping[str, Mapping[str, Any]]  # a flag or a place, and what argparse should know of it


def row(
    case: str,
    ours: float,
    peer: float | None = None,
    peer_name: str = "-",
    unit: str = "",
    *,
    ratio: float | None = None,
) -> Row:
    """One comparison; the ratio is ours over the peer's unless given."""
    if ratio is None and peer:
        ratio = ours / peer
    return {
        "case": case,
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name,
        "ratio": ratio,
        "unit": unit,
    }


def report(
    experiment: str,
    measure: Callable[..., list[Row]],
    description: str,
    *,
    device: bool = False,
    options: Options | None = None,
) -> None:
    """Asks, measures, and prints the rows as lines or as one object.

    `measure` is given `quick`, `device` where one can be chosen, and by name what `options` add.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, words in (options or {}).items():
        parser.add_argument(name, **words)
    if device:
        parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--quick", action="store_true", help="a version of a minute or so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = vars(parser.parse_args())
    as_json, begin = given.pop("json"), time.monotonic()
    rows = measure(**given)
    if not as_json:
        for each in rows:
            print(line_of(each))
        return
    found = {
        "experiment": experiment,
        "command": f"python benchmarks/{Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}".strip(),
        "seconds": round(time.monotonic() - begin, 1),
        "rows": rows,
    }
    print(json.dumps(found, indent=2))


def line_of(found: Row) -> str:
    """A comparison, and whatever else its row says."""
    left = dict(found)
    words = []
    if "unit" in left:
        case, ours, peer, name, ratio, unit = (left.pop(each) for each in row("", 0))
        words.append(f"{case:44} ours {ours:10.4g} {unit}")
        words += [] if peer is None else [f"{name} {peer:.4g}"]
        words += [] if ratio is None else [f"ratio {ratio:.3f}"]
    return "  ".join(words + [f"{name} {_short(value)}" for name, value in left.items()])


def _short(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def times_in_turns(
    actions: Sequence[Callable[[], object]],
    rounds: int,
    *,
    warm: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> list[list[float]]:
    """Seconds of each action in each round, after some to warm up; every second round goes back."""
    taken: list[list[float]] = [[] for _ in actions]
    for number in range(-warm, rounds):
        places = range(len(actions))
        for place in places if number % 2 else reversed(places):
            begin = clock()
            actions[place]()
            if number >= 0:
                taken[place].append(clock() - begin)
    return taken


def best_of(
    rounds: int,
    action: Callable[[], object],
    *,
    warm: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """The least seconds of some rounds."""
    return min(times_in_turns([action], rounds, warm=warm, clock=clock)[0])


def repeated(action: Callable[[], object], times: int) -> Callable[[], None]:
    """Many short steps as one action, which a clock can tell."""

    def work() -> None:
        for _ in range(times):
            action()

    return work


def stepping(steps: Iterator[object], times: int) -> Callable[[], None]:
    return repeated(lambda: next(steps), times)


def apart(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a work gives in a process of its own, its CPU seconds, and MB beyond those it began with."""
    gc.collect()
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_work_apart, args=(there, work))
    child.start()
    there.close()
    try:
        answer, seconds, memory = here.recv()
    except EOFError:
        raise RuntimeError("the process that measures has failed") from None
    finally:
        child.join()
    return answer, seconds, memory


def _work_apart(to: Connection, work: Callable[[], Any]) -> None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        before = pages * resource.getpagesize() / 1024
        begin = time.process_time()
        answer = work()
        seconds = time.process_time() - begin
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        to.send((answer, seconds, max(grown, 0) / 1024))
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def started(claim: Any, specification: Row, names: Sequence[str], steps: int) -> Any:
    """The writer of a record that has begun, of tasks with these names."""
    assert claim.writer is not None
    tasks = [{"name": name, "metric": "accuracy"} for name in names]
    claim.writer.start(
        specification=specification, seed=0, label="benchmark", tasks=tasks, steps=steps
    )
    return claim.writer


def environment(name: str, packages: list[str], *, alone: list[str] | None = None) -> Path:
    """The Python of an environment with a peer in it, made once.

    It sees this environment's packages, so that both sides run the same torch, and has the peer's
    own packages in front. Packages in `alone` are installed without what they depend on, for peers
    whose bounds exclude versions they run with.
    """
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    done = folder / ".done"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        site = next((folder / "lib").glob("python*")) / "site-packages"
        (site / "ours.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        install = [str(python), "-m", "pip", "install", "-qq", "-c", str(ROOT / "constraints.txt")]
        subprocess.run([*install, *packages], check=True)
        if alone:
            subprocess.run([*install, "--no-deps", *alone], check=True)
        done.touch()
    return python


def ask(python: Path | str, *words: object) -> Any:
    """What a script here, or a program after `-c`, says by its last line of JSON, on one thread."""
    first, *rest = map(str, words)
    script = [first] if first == "-c" else [str(ROOT / "benchmarks" / first)]
    done = subprocess.run(
        [str(python), *script, *rest],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")},
    )
    return json.loads(done.stdout.splitlines()[-1])
