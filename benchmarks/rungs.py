"""How well a cheap transfer study predicts a dear one: heads on frozen vectors, then adapters.

Both studies are `taskmix transfer --all --json` on the same tasks, subsets and seeds, and differ in
`--tune` alone. Compared are the gains of every source for every target.

    python benchmarks/_ten_tasks.py TEN
    for tune in heads adapters; do
      taskmix transfer TEN --all --model MINILM --tune $tune --steps 300 --steps-of all-tasks \\
        --subsets 400 --held-out 12 --prefixes 0 --max-length 64 --out $tune
    done
    python benchmarks/rungs.py heads/transfer.json adapters/transfer.json [--json]

Intervals are of 95 %, by drawing targets again: the nine gains of a target stand or fall together.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

DRAWS = 5000
Gains = NDArray[np.float64]  # [target, source]


def read(path: Path) -> tuple[list[str], Gains, NDArray[np.bool_]]:
    """The targets, the gains, and which of them are told from zero."""
    document = json.loads(path.read_text(encoding="utf-8"))
    names: list[str] = document["tasks"]
    gains = np.full((len(names), len(names)), np.nan)
    told = np.zeros(gains.shape, dtype=np.bool_)
    for target in document["targets"]:
        for source in target["sources"]:
            place = names.index(target["target"]), names.index(source["source"])
            gains[place] = source["gain"]
            told[place] = source["verdict"] != "cannot tell"
    return names, gains, told


def interval(count: int, figure: Callable[[NDArray[np.int64]], float]) -> tuple[float, float]:
    generator = np.random.default_rng(0)
    found = [figure(generator.integers(count, size=count)) for _ in range(DRAWS)]
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(low), float(high)


def compare(cheap: Path, dear: Path) -> list[dict[str, Any]]:
    names, first, told_first = read(cheap)
    others, second, told_second = read(dear)
    if names != others:
        sys.exit(f"Both studies should have the same tasks. Found {names} and {others}.")
    known = ~np.isnan(first) & ~np.isnan(second)

    def by_target(figure: Callable[[Gains, Gains], float]) -> NDArray[np.float64]:
        return np.array(
            [figure(first[row, known[row]], second[row, known[row]]) for row in range(len(names))]
        )

    ranks = by_target(lambda a, b: float(stats.spearmanr(a, b).statistic))
    best = by_target(lambda a, b: float(np.argmax(a) == np.argmax(b)))
    both = known & told_first & told_second
    same = np.sign(first) == np.sign(second)

    def share(where: NDArray[np.bool_]) -> Callable[[NDArray[np.int64]], float]:
        return lambda rows: float(same[rows][where[rows]].mean()) if where[rows].any() else np.nan

    def over_all(rows: NDArray[np.int64]) -> float:
        return float(stats.spearmanr(first[rows][known[rows]], second[rows][known[rows]]).statistic)

    every = np.arange(len(names))
    figures: list[tuple[str, Callable[[NDArray[np.int64]], float], str]] = [
        (
            "rank correlation of a target's sources, mean",
            lambda rows: float(ranks[rows].mean()),
            "",
        ),
        ("rank correlation over all pairs", over_all, ""),
        ("share of equal signs, all pairs", share(known), f"{int(known.sum())} pairs"),
        ("share of equal signs, both told from zero", share(both), f"{int(both.sum())} pairs"),
        (
            "share of equal signs, the dear one told from zero",
            share(known & told_second),
            f"{int((known & told_second).sum())} pairs",
        ),
        ("share of targets with the same best source", lambda rows: float(best[rows].mean()), ""),
    ]
    rows = []
    for case, figure, of in figures:
        low, high = interval(len(names), figure)
        rows.append({"case": case, "value": figure(every), "low": low, "high": high, "of": of})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="A cheap transfer study beside a dear one.")
    parser.add_argument("cheap", type=Path)
    parser.add_argument("dear", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    begin = time.monotonic()
    rows = compare(options.cheap, options.dear)
    if options.json:
        command = f"python benchmarks/rungs.py {' '.join(sys.argv[1:])}"
        seconds = round(time.monotonic() - begin, 1)
        found = {"experiment": "rungs", "command": command, "seconds": seconds, "rows": rows}
        print(json.dumps(found, indent=2))
        return
    for row in rows:
        print(
            f"{row['case']:52} {row['value']:6.3f} ({row['low']:.3f} to {row['high']:.3f}) {row['of']}"
        )


if __name__ == "__main__":
    main()
