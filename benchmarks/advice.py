"""Is the advice good? On folders of tasks: a plan, then fresh seeds of it and of what anyone would try.

`compare` asks for advice and sets the plan beside six baselines under seeds the adviser has not seen, at
the length of its promise and at ten times it: the difference to the best of them on test, paired by
seed; how many later test scores lie in the plan's 90 % intervals; and of the ways that the race called
significantly behind, how many still are with ten more seeds. `faster` does it for another checkout
with the whole budget and for this one with half of it. `harm` adds to the folder a shuffled task, a
copy, one that tells its labels and one of 20 rows, and asks, seed by seed, whether each is named.
`imbalanced` makes a table with few positives, a task that helps and one that harms. `stop` asks
twice, the second time stopped by a signal at random moments and continued, and compares the plans.
`folders` writes the ten folders, `all` compares on many of them in processes, and `table` makes one
Markdown table of their JSON files. Everything after `--` goes to `taskmix advise`.

    python benchmarks/advice.py folders --out DIR [--only reviews,incomes]
    python benchmarks/advice.py compare FOLDER [--model heads --encoder PATH] [--json] [-- WORDS]
    python benchmarks/advice.py all --folders DIR --out DIR [--jobs 8] [--minutes 9] [--final]
    python benchmarks/advice.py table FILE.json ...
    python benchmarks/advice.py faster FOLDER --old CHECKOUT -- --budget 60s
    python benchmarks/advice.py harm FOLDER [--seeds 10] [--jobs 4] -- --budget 20000-steps
    python benchmarks/advice.py imbalanced [--seeds 10] [--jobs 4] -- --budget 20000-steps
    python benchmarks/advice.py stop FOLDER [--seeds 10] -- --budget 20000-steps
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from _advice_asking import ask, command, template
from _advice_cases import (
    MODELS,
    Case,
    place_of,
    refuse_put_aside,
    run_cases,
    table,
    usual_cases,
    usual_words,
)
from _advice_compare import compare, judge
from _advice_folders import FOLDERS, make_folders
from _advice_harm import harm
from _advice_imbalanced import imbalanced
from _advice_training import Effort
from taskmix.adviser import Budget
from taskmix.plans import Plan

START = 3.0  # seconds until the command listens to signals, torch being imported


def stop(folder: str, words: Sequence[str], times: int, out: Path) -> list[dict[str, Any]]:
    begin = time.monotonic()
    ask(folder, out / "whole", words)
    seconds = time.monotonic() - begin
    chance = np.random.default_rng()
    stops = 0
    for _ in range(times):
        running = subprocess.Popen(
            command(folder, out / "parts", words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            running.communicate(timeout=START + float(chance.uniform(0, 1.5 * seconds / times)))
            break
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            running.communicate()
            stops += 1
    ask(folder, out / "parts", words)
    whole, parts = (Plan.load(out / each / "plan.json") for each in ("whole", "parts"))
    name = Path(folder).name
    return [
        {"what": "stop", "case": f"{name}: stopped and continued", "ours": stops, "unit": "times"},
        {"what": "stop", "case": f"{name}: the same plan", "ours": whole == parts, "unit": ""},
    ]


def half_of(words: Sequence[str]) -> list[str]:
    """The words with half of the budget, in seconds or in batches."""
    found = list(words)
    places = [place for place, word in enumerate(found) if word == "--budget"]
    if not places:
        raise SystemExit("The budget to be halved should be given: `-- --budget 60s`. Found none.")
    budget = Budget.parse(found[places[-1] + 1])
    found[places[-1] + 1] = (
        f"{budget.seconds / 2:g}s" if budget.seconds is not None else f"{budget.batches // 2}-steps"
    )
    return found


def faster(
    folder: str, words: Sequence[str], out: Path, effort: Effort, old: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The other checkout with the whole budget, this one with half of it; the same baselines."""
    before = ask(folder, out / "old", words, code=old)
    now = ask(folder, out / "new", half_of(words))
    rows, scores = judge(
        {"old": before, "new": now}, template(folder, words), out / "fresh", effort
    )
    seconds = [
        {"what": "advice", "way": way, "ours": each.seconds, "unit": "s"}
        | {key: each.advice[key] for key in ("chosen", "lines", "batches_of_a_run")}
        for way, each in (("old", before), ("new", now))
    ]
    return seconds + rows, scores


def parsed(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and what comes after `--`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = ("compare", "faster", "harm", "imbalanced", "stop", "folders", "all", "table")
    parser.add_argument("what", choices=kinds)
    parser.add_argument("names", nargs="*", help="a folder; for `table`, JSON files")
    parser.add_argument("--model", choices=MODELS, default="scratch")
    parser.add_argument("--encoder", help="the pretrained one of heads and adapters")
    parser.add_argument("--folders", type=Path, default=Path(".benchmarks/advice/folders"))
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/advice"))
    parser.add_argument("--code", type=Path, help="a checkout to ask instead of this one")
    parser.add_argument("--old", type=Path, help="the checkout that `faster` compares with")
    parser.add_argument("--only", help="names of folders, with commas")
    parser.add_argument("--measure", choices=("compare", "faster", "harm"), default="compare")
    parser.add_argument("--cases", help="for `all`: reviews/scratch,reviews/heads")
    parser.add_argument("--final", action="store_true", help="the folders put aside, once")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--long-seeds", type=int, default=5)
    parser.add_argument("--times", type=int, default=10, help="the long runs, in advised lengths")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--more-seeds", type=int, default=10, help="of settled pairs")
    parser.add_argument("--longest", type=int, help="batches of the longest run")
    parser.add_argument("--workers", type=int, default=1, help="processes of one case")
    parser.add_argument("--jobs", type=int, default=1, help="cases, or seeds, at once")
    parser.add_argument("--minutes", type=float, default=1e6, help="no case begins after these")
    parser.add_argument("--json", action="store_true")
    own, rest = list(words), []
    if "--" in own:
        place = own.index("--")
        own, rest = own[:place], own[place + 1 :]
    return parser.parse_args(own), rest


def effort_of(given: argparse.Namespace) -> Effort:
    return Effort(
        seeds=given.seeds,
        long_seeds=given.long_seeds,
        times=given.times,
        draws=given.draws,
        more_seeds=given.more_seeds,
        workers=given.workers,
        longest=given.longest,
    )


def passed_on(given: argparse.Namespace) -> list[str]:
    """The options that `all` gives to every case."""
    found = ["--folders", str(given.folders)]
    for name in ("encoder", "code", "old", "longest"):
        value = getattr(given, name)
        found += [] if value is None else [f"--{name}", str(value)]
    for name in ("seeds", "long-seeds", "times", "draws", "more-seeds", "workers"):
        found += [f"--{name}", str(getattr(given, name.replace("-", "_")))]
    return found + (["--final"] if given.final else [])


def measured(
    given: argparse.Namespace, folder: str, words: list[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows and whatever else is kept of one measure."""
    out = given.out / f"{Path(folder).name}-{given.model}-{given.what}"
    match given.what:
        case "compare":
            return compare(folder, words, out, effort_of(given), code=given.code)
        case "faster":
            if given.old is None:
                raise SystemExit("`faster` needs a checkout to compare with. Give it by `--old`.")
            return faster(folder, words, out, effort_of(given), given.old)
        case "harm":
            rows = harm(folder, words, out, seeds=given.seeds, jobs=given.jobs, code=given.code)
            return rows, {}
        case _:
            return stop(folder, words, given.seeds, out), {}


def write_folders(given: argparse.Namespace) -> None:
    names = given.only.split(",") if given.only else list(FOLDERS)
    made = make_folders(given.out, Path(os.environ["TASKMIX_DATA"]), names)
    for folder in made:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{folder}  {size / 1e6:.1f} MB")


def do_cases(given: argparse.Namespace, words: list[str]) -> None:
    cases = (
        [Case.parse(word) for word in given.cases.split(",")]
        if given.cases
        else usual_cases(final=given.final, with_encoder=given.encoder is not None)
    )
    for case in cases:
        refuse_put_aside(case.folder, final=given.final)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which stops the cases too
    left = run_cases(
        cases,
        given.out,
        what=given.measure,
        jobs=given.jobs,
        minutes=given.minutes,
        options=passed_on(given),
        words=words,
    )
    print(f"left: {', '.join(left) or 'none'}")


def main() -> None:
    given, words = parsed(sys.argv[1:])
    if given.what == "folders":
        write_folders(given)
        return
    if given.what == "table":
        print(table([Path(name) for name in given.names]))
        return
    if given.what == "all":
        do_cases(given, words)
        return
    begin = time.monotonic()
    if given.what == "imbalanced":
        out = given.out / "imbalanced"
        sizes = {"seeds": given.seeds, "jobs": given.jobs, "final": given.final}
        words += ["--workers", str(given.workers)]
        rows = imbalanced(words, out, code=given.code, **sizes)
        show(given, "imbalanced table, scratch", words, time.monotonic() - begin, rows, {})
        return
    if len(given.names) != 1:
        raise SystemExit(f"One folder should be given. Found {len(given.names)}.")
    (name,) = given.names
    refuse_put_aside(name, final=given.final)
    folder = place_of(name, given.folders)
    if given.what in ("compare", "faster", "harm"):
        words = [*usual_words(folder, given.model, given.encoder), *words]
        words += ["--workers", str(given.workers)]
    rows, kept = measured(given, folder, words)
    case = f"{Path(folder).name}, {given.model}"
    show(given, case, words, time.monotonic() - begin, rows, kept)


def show(
    given: argparse.Namespace,
    case: str,
    words: Sequence[str],
    seconds: float,
    rows: Sequence[dict[str, Any]],
    kept: dict[str, Any],
) -> None:
    """One JSON object, or a line for each row."""
    found = {
        "experiment": "advice",
        "case": case,
        "command": " ".join(["python", "benchmarks/advice.py", *sys.argv[1:]]),
        "words": " ".join(words),
        "seconds": seconds,
        "rows": rows,
        **kept,
    }
    if given.json:
        print(json.dumps(found, indent=1))
        return
    for each in rows:
        print("  ".join(f"{key}: {value}" for key, value in each.items()))


if __name__ == "__main__":
    main()
