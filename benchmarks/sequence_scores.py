"""Is this sequence this task's? Sequences of one task planted among another's, found by their scores.

Every task's model is learned from a few sequences. Sequences it has not seen are its own, or planted:
those of the other tasks. AUC is the chance that an own one scores higher than a planted one: of a task
over all pairs, and the mean over tasks. Intervals (95 %) are of 2,000 bootstraps over
tasks; the last column is the paired difference, our log-ratio minus the score.

Peers: chains of each task backed off to the pooled chain, which is backed off to shorter contexts
(strengths chosen on a part of the train sequences), by their ratio to the pooled chain, by their odds
against the chains of the other tasks, and by their likelihood; and the likelihood of our own model,
which is what one would take without a ratio.

    python benchmarks/sequence_scores.py [--quick] [--json] [--only SET]
"""

from __future__ import annotations

import csv
import itertools
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from _common import DATA, report
from taskmix.sequences import Markov, SequenceMixture
from taskmix.tasks import text_lines

Floats = NDArray[np.float64]
By = dict[str, list[list[str]]]


def commands(data: Path) -> By:
    """Twenty commands of a user in a row, in their order; the rarest are one symbol."""
    users = [line.split() for line in text_lines(data / "unix_user_commands" / "users.txt.gz")]
    known = {w for w, _ in Counter(w for user in users for w in user[1:]).most_common(200)}
    found: By = {}
    for name, *words in users:
        mapped = [word if word in known else "(rare)" for word in words]
        found[name] = [mapped[at : at + 20] for at in range(0, len(mapped) - 20, 20)]
    return found


def table(path: Path, task: str, column: str, longest: int, least: int) -> By:
    """Letters of a cell, tasks with enough of them, shuffled."""
    found: By = {}
    for each in csv.DictReader(f"{line}\n" for line in text_lines(path)):
        letters = [s for s in each[column].lower() if s.isalpha() or s in " ,.!?'"][:longest]
        if letters:
            found.setdefault(each[task], []).append(letters)
    generator = np.random.default_rng(0)
    return {
        name: [rows[place] for place in generator.permutation(len(rows))]
        for name, rows in found.items()
        if len(rows) >= least
    }


class BackedOff:
    """Chains of each task, backed off to the pooled chain of the same context, and that to shorter
    contexts; the two strengths are chosen by the likelihood of a fifth of the train sequences."""

    STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)

    def __init__(self, order: int, symbols: list[str]) -> None:
        self.order = order
        self.size = len(symbols) + 1  # and the end

    def fit(self, by: By) -> BackedOff:
        inside = {name: rows[: -max(1, len(rows) // 5)] for name, rows in by.items()}
        outside = [
            (name, row) for name, rows in by.items() for row in rows[-max(1, len(rows) // 5) :]
        ]
        self.count(inside)
        levels = {}
        for pooled, own in itertools.product(self.STRENGTHS, self.STRENGTHS):
            self.pooled_strength, self.own_strength = pooled, own
            levels[pooled, own] = sum(self.log_likelihood(row, name) for name, row in outside)
        self.pooled_strength, self.own_strength = max(levels, key=lambda key: levels[key])
        return self.count(by)

    def count(self, by: By) -> BackedOff:
        self.pooled: list[Counter[Any]] = [Counter() for _ in range(self.order + 1)]
        self.totals: list[Counter[Any]] = [Counter() for _ in range(self.order + 1)]
        self.own: dict[str, Counter[Any]] = {name: Counter() for name in by}
        self.own_totals: dict[str, Counter[Any]] = {name: Counter() for name in by}
        for name, rows in by.items():
            for row in rows:
                for context, symbol in self.steps(row):
                    for order in range(self.order + 1):
                        short = context[len(context) - order :]
                        self.pooled[order][short, symbol] += 1
                        self.totals[order][short] += 1
                    self.own[name][context, symbol] += 1
                    self.own_totals[name][context] += 1
        return self

    def steps(self, row: list[str]) -> Any:
        padded = [""] * self.order + list(row) + ["(end)"]
        for at in range(self.order, len(padded)):
            yield tuple(padded[at - self.order : at]), padded[at]

    def pooled_share(self, context: Any, symbol: str) -> float:
        share = 1 / self.size
        for order in range(self.order + 1):
            short = context[len(context) - order :]
            count, total = self.pooled[order][short, symbol], self.totals[order][short]
            share = (count + self.pooled_strength * share) / (total + self.pooled_strength)
        return share

    def log_likelihood(self, row: list[str], name: str | None) -> float:
        level = 0.0
        for context, symbol in self.steps(row):
            share = self.pooled_share(context, symbol)
            if name is not None:
                count, total = self.own[name][context, symbol], self.own_totals[name][context]
                share = (count + self.own_strength * share) / (total + self.own_strength)
            level += float(np.log(share))
        return level


def scores_of(by: By, order: int, tests: list[list[str]], quick: bool) -> dict[str, Floats]:
    """[sequence, task] of each score, higher for a sequence that is the task's."""
    names = list(by)
    sequences = [row for rows in by.values() for row in rows]
    tasks = [name for name, rows in by.items() for _ in rows]
    symbols = sorted({symbol for row in [*sequences, *tests] for symbol in row})
    model = SequenceMixture(
        Markov(order=order), 12, symbols=symbols, n_init=1 if quick else 3, random_state=0
    )
    model.fit(sequences, tasks)
    each = np.array([len(row) + 1 for row in tests])
    ratio, level = model.log_ratio(tests), model.task_log_likelihood(tests)
    chains = BackedOff(order, symbols).fit(by)
    pooled = np.array([chains.log_likelihood(row, None) for row in tests])
    own = np.array([[chains.log_likelihood(row, name) for name in names] for row in tests])
    assert model.tasks_ == tuple(names)
    whole = np.exp(own - own.max(axis=1, keepdims=True))
    others = np.log((whole.sum(axis=1, keepdims=True) - whole).clip(1e-300) / (len(names) - 1))
    return {
        "ours: log-ratio": ratio,
        "ours: likelihood": level / each[:, None],
        "backed-off chains: ratio to pooled": own - pooled[:, None],
        "backed-off chains: log-odds": own - own.max(axis=1, keepdims=True) - others,
        "backed-off chains: likelihood": own / each[:, None],
    }


def areas(scores: Floats, owner: NDArray[np.int64]) -> Floats:
    """[task], own sequences against those of all others."""
    return np.array(
        [roc_auc_score(owner == task, scores[:, task]) for task in range(scores.shape[1])]
    )


def interval(values: Floats) -> tuple[float, float, float]:
    """The mean over tasks, and what bootstraps over tasks leave of it."""
    generator = np.random.default_rng(0)
    drawn = values[generator.integers(0, len(values), (2000, len(values)))].mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


SETS: dict[str, tuple[Callable[[Path], By], int, tuple[int, ...]]] = {  # reader, order, train sizes
    "unix_user_commands": (commands, 1, (25, 100)),
    "names_by_language": (
        lambda data: table(
            data / "names_by_language" / "names.csv.gz", "language", "name", 30, 130
        ),
        2,
        (50,),
    ),
    "tinyshakespeare_roles": (
        lambda data: table(
            data / "tinyshakespeare_roles" / "speeches.csv.gz", "role", "speech", 80, 60
        ),
        2,
        (30,),
    ),
}


def measure(quick: bool, only: str | None) -> list[dict[str, Any]]:
    rows = []
    for name, (read, order, sizes) in SETS.items():
        if only not in (None, name):
            continue
        by = read(DATA)
        for size in sizes[:1] if quick else sizes:
            held = {task: mine[size : size + (30 if quick else 60)] for task, mine in by.items()}
            tests = [row for mine in held.values() for row in mine]
            owner = np.repeat(np.arange(len(held)), [len(mine) for mine in held.values()])
            train = {task: mine[:size] for task, mine in by.items()}
            found = {
                score: areas(values, owner)
                for score, values in scores_of(train, order, tests, quick).items()
            }
            for score, values in found.items():
                mean, low, high = interval(values)
                gain = interval(found["ours: log-ratio"] - values)
                case = f"{name}, {len(held)} tasks, {size} sequences each: {score}"
                more = {"low": low, "high": high, "ours minus it": gain}
                rows.append({"case": case, "auc": mean, **more})
    return rows


if __name__ == "__main__":
    options = {"--only": {"choices": tuple(SETS), "help": "one set alone"}}
    report("sequence_scores", measure, __doc__ or "", options=options)
