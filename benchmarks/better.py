"""Is what `advise` delivers better than what a user has by hand? On fourteen folders, on test.

`compare` asks for advice as a user does, and on the same rows and in about the same seconds trains

- five plain ways with the usual network, each for a fifth of the seconds: equally often, by size, by its
  root, all in every step, each task alone; "plain" is the one with the best mean dev score,
- scikit-learn, a model a task: "peer" is the one with the best mean dev score, "peer refit" the same
  trained again on train and dev,
- "manual" is the better of plain and peer by dev, "manual refit" has the refitted one where that is the
  peer, and "blend" is the mean of the probabilities of plain and peer refit,
- AutoGluon a task on tables, where $AUTOGLUON_PYTHON is an interpreter that has it.

A score is the mean over tasks of the metric that `load_tasks` chose, higher is better; of a regression
minus the error in standard deviations of the train targets. A row has delivered minus the other in
hundredths, with a 90 % interval over seeds, each of which draws all rows anew; + and - are 95 %. A task
without an answer counts as a guess. Cells that `--out` has are not measured again.
`harm` adds a shuffled task, a copy, a leak and a task of 20 rows, and counts the seeds in which each is
named, and in which the shuffled one is left out of the plan.

    python benchmarks/better.py compare [--folders a,b] [--seeds 8] [--budget 20] [--json] [--jobs 1]
    python benchmarks/better.py compare --final      # the folders put aside, once, when all is decided
    python benchmarks/better.py harm [--folders reviews,votes] [--seeds 10]
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import taskmix
from _advice_folders import FOLDERS, PUT_ASIDE, make_folder
from _advice_harm import named, spoil
from _common import DATA, report
from _common import ask as run_script
from taskmix.adviser import mean_comparable
from taskmix.engine import Auto, FolderSource, Optimization, Run, trained_model
from taskmix.models import choose_architecture
from taskmix.numerics import paired_interval
from taskmix.plans import Part, Plan, Shares, Weighted
from taskmix.policies import SizeProportional, Tempered
from taskmix.records import Study
from taskmix.tasks import Split, Task, TaskSet, evaluate_outputs, load_tasks, write_tasks
from taskmix.weighting import Equal

LEVEL = 0.9
RIVALS = ("plain", "peer", "peer refit", "manual", "manual refit", "blend", "autogluon")
EVALUATIONS = 5  # of a plain run, of which the best counts
FLOOR = 1e-4  # of a class that a peer has not seen
LEAST_AUTOGLUON = 5.0  # seconds a task, below which it fits nothing
Row = dict[str, Any]
Answers = dict[str, NDArray[np.float64]]  # by task: probabilities [row or token, class], or values


@dataclass(frozen=True)
class Cell:
    folder: str
    seed: int
    budget: float
    out: Path

    @property
    def key(self) -> Row:
        return {"folder": self.folder, "seed": self.seed, "budget": self.budget}

    def path(self) -> Path:
        return make_folder(self.out / "folders", DATA, self.folder, self.seed)


# --- Scores


def sentence_starts(split: Split) -> NDArray[np.int64]:
    return np.cumsum([0, *(len(words) for words in split.inputs.column("tokens").to_pylist())])


def score(task: Task, split: str, answers: NDArray[np.float64]) -> float:
    rows = task.splits[split]
    return evaluate_outputs(
        task.metric,
        outputs=np.log(np.clip(answers, 1e-12, 1.0)) if task.labels else answers,
        targets=rows.targets,
        labels=task.labels,
        sentences=sentence_starts(rows) if task.kind == "tagging" else None,
    )


def scored(tasks: TaskSet, split: str, answers: Answers) -> Row:
    by_task = {task.name: score(task, split, answers[task.name]) for task in tasks}
    return {"mean": mean_comparable(tasks, by_task, tasks.names), "tasks": by_task}


def guess(task: Task, split: str) -> NDArray[np.float64]:
    targets, count = task.splits["train"].targets, len(task.splits[split].targets)
    if not task.labels:
        return np.full(count, float(np.nanmean(targets)))
    return np.tile(np.bincount(targets, minlength=len(task.labels)) / len(targets), (count, 1))


def cpu_seconds() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


# --- What is delivered


def deliver(cell: Cell, tasks: TaskSet, out: Path) -> tuple[Answers, Row]:
    found = {task.name: guess(task, "test") for task in tasks}
    begin, cpu = time.monotonic(), cpu_seconds()
    row: Row = {"error": None, "unanswered": list(tasks.names), "held": 0, "promised": 0}
    try:
        advised = ask(cell.path(), cell, out)
    except Exception as error:  # whatever it is, the user has no model
        row["error"] = f"{type(error).__name__}: {error}"
        return found, row | {"seconds": time.monotonic() - begin, "cpu": cpu_seconds() - cpu}
    row |= {"seconds": time.monotonic() - begin, "cpu": cpu_seconds() - cpu}
    ours = advised.model.tasks
    row["unanswered"] = [name for name in tasks.names if name not in ours]
    found |= {
        task.name: answers_of(advised.model, task, "test") for task in tasks if task.name in ours
    }
    checked = getattr(advised, "checked", None) or advised.model
    for each in advised.document.expected:  # of the model before it was trained again
        if each.task in checked.tasks:
            task = tasks[each.task]
            value = score(task, "test", answers_of(checked, task, "test"))
            row["held"] += each.low <= value <= each.high
            row["promised"] += 1
    return found, row | {"lines": list(advised.lines), "chosen": advised.document.chosen}


def ask(folder: Path, cell: Cell, out: Path) -> taskmix.Advised:
    return taskmix.advise(
        folder, budget=f"{cell.budget:g}s", out=out / "advice", quiet=True, seed=cell.seed
    )


def answers_of(model: taskmix.TrainedModel, task: Task, split: str) -> NDArray[np.float64]:
    """What `taskmix predict` would say of the rows, in the order of the task's labels."""
    rows = task.splits[split].inputs
    if task.kind == "classification":
        places = [model.question(task.name).labels.index(label) for label in task.labels]
        return np.asarray(model.probabilities(rows, task.name))[:, places]
    answers = model.predict(rows, task.name)
    if task.kind == "regression":
        return np.array([each["value"] for each in answers], dtype=float)
    # Of a word only its tag's probability is told: the others get equal parts of the rest.
    count = len(task.labels)
    tags = [task.labels.index(tag) for each in answers for tag in each["tags"]]
    told = np.array([share for each in answers for share in each["probabilities"]])
    told = np.clip(told, 1 / count + 1e-6, 1.0)  # so that the tag stays the best
    found = np.repeat((1 - told)[:, None] / (count - 1), count, axis=1)
    found[np.arange(len(tags)), tags] = told
    return found


# --- Five plain ways


def plain_ways(tasks: TaskSet) -> dict[str, Plan]:
    """Spelt out here, so that they stay as the adviser changes."""
    divisions: dict[str, Shares | Weighted] = {
        "uniform": Shares.equal(len(tasks)),
        "size": Shares.of(SizeProportional(), tasks.sizes),
        "tempered": Shares.of(Tempered(temperature=2.0), tasks.sizes),
        "equal": Weighted(method=Equal()),
    }
    ways: dict[str, tuple[Part, ...]] = {
        name: (Part(tasks=tasks.names, scored=tasks.names, share=1.0, division=division),)
        for name, division in divisions.items()
    }
    ways["single"] = tuple(
        Part(tasks=(name,), scored=(name,), share=1 / len(tasks), division=Shares.equal(1))
        for name in tasks.names
    )
    return {name: Plan(name=name, parts=parts) for name, parts in ways.items()}


def train_plain(cell: Cell, out: Path) -> tuple[dict[str, dict[str, Answers]], float]:
    """What the best evaluation of each way says of dev and test, and the seconds of the five."""
    source, study = FolderSource(path=str(cell.path())), Study(out / "plain")
    tasks = source.load()
    architecture, tuning = choose_architecture("auto", tasks, device="cpu")
    rate = Optimization.usual_rate(None, tuning=tuning)
    base = Run(
        label="plain",
        source=source,
        architecture=architecture,
        optimization=Optimization(learning_rate=rate),
        steps=1,
        seed=cell.seed,
    )

    def run(plan: Plan, batches: int, evaluations: int) -> taskmix.TrainedModel:
        template = replace(base, steps=batches)
        runs = plan.runs(template, seeds=[cell.seed], evaluations=evaluations)
        for result in Auto(workers=1).run(runs, study):
            if not result.is_done:
                raise RuntimeError(f"A run of {plan.name} did not finish: {result.error}")
        return trained_model([(each, each.load().names) for each in runs], study)

    ways, few = plain_ways(tasks), len(tasks)
    begin = [time.monotonic()]
    for times in (1, 2, 6):  # the first reads and encodes
        run(ways["uniform"], times * few, 2)
        begin.append(time.monotonic())
    short, long = np.diff(begin)[1:]
    pace = max(long - short, long / 4) / (4 * few)  # seconds a batch
    fifth, scoring = cell.budget / 5, short - 2 * few * pace
    batches = max(int(max(fifth - scoring, fifth / 2) / pace), few)
    begin = [time.monotonic()]
    models = {name: run(plan, batches, EVALUATIONS) for name, plan in ways.items()}
    seconds = time.monotonic() - begin[0]
    found = {
        name: {
            split: {task.name: answers_of(model, task, split) for task in tasks}
            for split in ("dev", "test")
        }
        for name, model in models.items()
    }
    return found, seconds


# --- Peers by hand, independent of the library's own


def features(task: Task, *splits: str) -> Any:
    tables = [task.splits[split].inputs for split in splits]
    if task.inputs == "table":
        return pandas.concat([table.to_pandas() for table in tables])
    rows = [row for table in tables for row in table.to_pylist()]
    if task.inputs != "tokens":
        return [" | ".join(map(str, row.values())) for row in rows]
    return [window(row["tokens"], at) for row in rows for at in range(len(row["tokens"]))]


def window(words: Sequence[str], place: int) -> dict[str, str]:
    found = {}
    for at in range(max(place - 2, 0), min(place + 3, len(words))):
        word, where = words[at], at - place
        found[f"{where} word"] = word.lower()
        if abs(where) < 2:
            found |= {f"{where} {n}": word[-n:] for n in (2, 3)} | {f"{where} start": word[:3]}
            found[f"{where} looks"] = f"{word.istitle()} {word.isupper()} {word.isalpha()}"
    return found


def peers(task: Task) -> dict[str, Callable[[], Any]]:
    linear = partial(LogisticRegression, max_iter=1000)
    if task.inputs == "tokens":
        return {f"{c:g}": lambda c=c: make_pipeline(DictVectorizer(), linear(C=c)) for c in (1, 10)}
    if task.inputs != "table":
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
        return {
            f"{name} {c:g}": lambda how=how, c=c: make_pipeline(how, linear(C=c))
            for name, how in {"words": words, "letters": letters}.items()
            for c in (1, 10)
        }
    numbers, rest = (
        make_column_selector(**{f"dtype_{x}": "number"}) for x in ("include", "exclude")
    )
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (scaled, numbers), (OneHotEncoder(handle_unknown="ignore"), rest)
    )
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    coded = make_column_transformer((codes, rest), remainder="passthrough")
    regression = task.kind == "regression"
    trees = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return {
        f"linear {c:g}": lambda c=c: make_pipeline(
            columns, Ridge(1 / c) if regression else linear(C=c)
        )
        for c in (0.01, 0.1, 1)
    } | {"trees": lambda: make_pipeline(coded, trees(min_samples_leaf=5))}


def fit_peer(name: str, task: Task, on: Sequence[str], split: str) -> NDArray[np.float64]:
    targets = np.concatenate([task.splits[each].targets for each in on])
    if task.labels and len(set(targets)) == 1:
        return guess(task, split)
    model = peers(task)[name]().fit(features(task, *on), targets)
    if not task.labels:
        return np.asarray(model.predict(features(task, split)))
    return with_floor(task, model.predict_proba(features(task, split)), model.classes_)


def with_floor(task: Task, shares: Any, classes: Any) -> NDArray[np.float64]:
    found = np.full((len(shares), len(task.labels)), FLOOR)
    found[:, classes] += shares
    return found / found.sum(axis=1, keepdims=True)


def train_peers(tasks: TaskSet, on: Sequence[str], split: str, names: Sequence[str]) -> Row:
    return {name: {task.name: fit_peer(name, task, on, split) for task in tasks} for name in names}


AUTOGLUON = """
import json, logging, sys, pandas
from autogluon.tabular import TabularPredictor
logging.disable()
folder, seconds, *tasks = sys.argv[1:]
answers = {}
for place, (kind, metric) in enumerate(each.split() for each in tasks):
    path = f"{folder}/{place}"
    train, test = (pandas.read_parquet(f"{path}-{split}") for split in ("train", "test"))
    words = {"problem_type": kind, "eval_metric": metric, "path": path + "-models"}
    model = TabularPredictor("target", verbosity=0, **words)
    try:
        model.fit(train, time_limit=float(seconds), num_cpus=1)
        found = (model.predict if kind == "regression" else model.predict_proba)(test)
    except Exception as error:  # too few rows or seconds
        print(place, error, file=sys.stderr)
        continue
    classes = [] if kind == "regression" else found.columns.tolist()
    answers[place] = found.to_numpy().tolist(), classes
print(json.dumps(answers))
"""


def autogluon(python: str, tasks: TaskSet, seconds: float, out: Path) -> Answers:
    """Trained on train and dev, of which it holds out what it needs; a guess where it gives no model."""
    metrics = {"auc": "roc_auc", "macro_f1": "f1_macro", "rmse": "root_mean_squared_error"}
    kinds, words = {0: "regression", 2: "binary"}, []
    for place, task in enumerate(tasks):
        targets = np.concatenate([task.splits[split].targets for split in ("train", "dev")])
        features(task, "train", "dev").assign(target=targets).to_parquet(out / f"{place}-train")
        features(task, "test").to_parquet(out / f"{place}-test")
        kind = kinds.get(len(task.labels), "multiclass")
        words.append(f"{kind} {metrics.get(task.metric, task.metric)}")
    each = max(seconds / len(tasks), LEAST_AUTOGLUON)
    answers = {task.name: guess(task, "test") for task in tasks}
    for place, (found, classes) in run_script(python, "-c", AUTOGLUON, out, each, *words).items():
        task, values = tasks[int(place)], np.array(found)
        answers[task.name] = with_floor(task, values, classes) if task.labels else values
    return answers


# --- Cells, and what they say


def measure(cell: Cell) -> Row:
    warnings.simplefilter("ignore")
    tasks, times = load_tasks(cell.path()), [time.monotonic()]

    def lap() -> float:
        times.append(time.monotonic())
        return times[-1] - times[-2]

    def dev_score(answers: Answers) -> float:
        return float(scored(tasks, "dev", answers)["mean"])

    with tempfile.TemporaryDirectory() as out:
        ours, row = deliver(cell, tasks, Path(out))
        seconds = {"delivered": row.pop("seconds")}
        ways, seconds["plain"] = train_plain(cell, Path(out))
        lap()
        every = train_peers(tasks, ["train"], "dev", list(peers(tasks[0])))
        peer = max(every, key=lambda name: dev_score(every[name]))
        (refit,) = train_peers(tasks, ["train", "dev"], "test", [peer]).values()
        seconds["peer"] = lap()
        (trained,) = train_peers(tasks, ["train"], "test", [peer]).values()
        lap()
        answers = {f"plain {name}": found["test"] for name, found in ways.items()}
        python = os.environ.get("AUTOGLUON_PYTHON")
        if python and {task.inputs for task in tasks} == {"table"}:
            answers["autogluon"] = autogluon(python, tasks, cell.budget, Path(out))
            seconds["autogluon"] = lap()
    way = max(ways, key=lambda name: dev_score(ways[name]["dev"]))
    plain, wins = ways[way]["test"], dev_score(every[peer]) > dev_score(ways[way]["dev"])
    answers |= {"delivered": ours, "plain": plain, "peer": trained, "peer refit": refit}
    answers |= {"manual": trained if wins else plain, "manual refit": refit if wins else plain}
    answers["blend"] = {name: (plain[name] + refit[name]) / 2 for name in tasks.names}
    found = {name: scored(tasks, "test", each) for name, each in answers.items()}
    return cell.key | row | {"plain": way, "peer": peer, "seconds": seconds, "scores": found}


def harm(cell: Cell) -> Row:
    spoiled = spoil(load_tasks(cell.path()), cell.seed)
    with tempfile.TemporaryDirectory() as out:
        write_tasks(spoiled.tasks, Path(out) / "tasks")
        advised = ask(Path(out) / "tasks", cell, Path(out))
        return cell.key | {"named": named(advised, spoiled), "lines": list(advised.lines)}


def work_through(
    cells: Sequence[Cell], work: Callable[[Cell], Row], file: Path, jobs: int
) -> list[Row]:
    """The rows of all cells, each in a process of its own; those that the file has are read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = {(row["folder"], row["seed"], row["budget"]): row for row in map(json.loads, lines)}
    left = [cell for cell in cells if tuple(cell.key.values()) not in kept]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, max_tasks_per_child=1) as pool:
        futures = {pool.submit(work, cell): cell for cell in left}
        for number, future in enumerate(as_completed(futures), start=1):
            cell = futures[future]
            print(
                f"{cell.folder} {cell.seed}: {number} of {len(left)}", file=sys.stderr, flush=True
            )
            try:
                row = future.result()
            except Exception:  # the others may still be measured
                traceback.print_exc()
                continue
            kept[tuple(cell.key.values())] = row
            with file.open("a", encoding="utf-8") as to:
                to.write(json.dumps(row) + "\n")
    return [kept[tuple(cell.key.values())] for cell in cells if tuple(cell.key.values()) in kept]


def compared(name: str, rows: Sequence[Row]) -> Row:
    """A folder: delivered minus each, in hundredths; what was promised, and what it took."""
    ours = [100 * row["scores"]["delivered"]["mean"] for row in rows]
    found: Row = {"folder": name, "seeds": len(rows), "delivered": float(np.mean(ours))}
    for rival in RIVALS:
        theirs = [100 * row["scores"][rival]["mean"] for row in rows if rival in row["scores"]]
        if len(theirs) == len(ours):
            wide = paired_interval(ours, theirs, 0.95)
            sure = math.isfinite(wide.low) and wide.excludes(0.0)
            found[rival] = [*minus(ours, theirs), ("+" if wide.mean > 0 else "-") if sure else ""]
    promised = sum(row["promised"] for row in rows)
    found["held"] = sum(row["held"] for row in rows) / promised if promised else None
    found["unanswered"] = sum(len(row["unanswered"]) for row in rows)
    found["errors"] = sum(row["error"] is not None for row in rows)
    seconds = [row["seconds"] for row in rows]
    found["seconds"] = float(np.mean([each["delivered"] for each in seconds]))
    found["slowest"] = max(each["delivered"] for each in seconds)
    found["cpu seconds"] = float(np.mean([row["cpu"] for row in rows]))
    found["manual seconds"] = float(np.mean([each["plain"] + each["peer"] for each in seconds]))
    return found


def minus(ours: Sequence[float], theirs: Sequence[float]) -> list[Any]:
    gain = paired_interval(ours, theirs, LEVEL)
    return [round(value, 2) for value in (gain.mean, gain.low, gain.high)]


def summed_up(rows: Sequence[Row]) -> Row:
    """The mean over folders with its interval, and how many are better and worse."""
    found: Row = {"folder": "all", "folders": len(rows)}
    for rival in RIVALS:
        gains = [row[rival] for row in rows if rival in row]
        if gains:
            marks = [mark for *_, mark in gains]
            over = minus([mean for mean, *_ in gains], [0.0] * len(gains))
            found[rival] = [*over, f"{marks.count('+')} better, {marks.count('-')} worse"]
    return found


def refuse_put_aside(names: Sequence[str], *, final: bool) -> None:
    aside = [name for name in names if name in PUT_ASIDE]
    if aside and not final:
        raise SystemExit(
            f"{aside[0]} is put aside: nothing may be chosen by its results, so it is run once, when "
            "all is decided. Say `--final` if that is now; otherwise take "
            f"{', '.join(each for each in FOLDERS if each not in PUT_ASIDE)}."
        )


def judge(**options: Any) -> list[Row]:
    given = SimpleNamespace(**options)
    usual = [name for name in FOLDERS if (name in PUT_ASIDE) == given.final]
    is_harm = given.what == "harm"
    if is_harm or given.quick:
        usual = ["reviews", "votes"]
    names = given.folders.split(",") if given.folders else usual
    refuse_put_aside(names, final=given.final)
    seeds = range(given.seeds or (1 if given.quick else 10 if is_harm else 8))
    cells = [Cell(name, seed, given.budget, given.out) for seed in seeds for name in names]
    file = given.out / f"{given.what}.jsonl"
    rows = work_through(cells, harm if is_harm else measure, file, given.jobs)
    by_folder = {name: [row for row in rows if row["folder"] == name] for name in names}
    if not is_harm:
        found = [compared(name, some) for name, some in by_folder.items() if some]
        return [*found, summed_up(found)]
    return [
        {"folder": name, "of": len(some)}
        | {kind: sum(row["named"][kind] for row in some) for kind in some[0]["named"]}
        for name, some in by_folder.items()
        if some
    ]


if __name__ == "__main__":
    report(
        "better",
        judge,
        __doc__,
        options={
            "what": {"choices": ("compare", "harm")},
            "--folders": {"help": "names with commas between them"},
            "--seeds": {"type": int},
            "--budget": {"type": float, "default": 20.0, "help": "seconds of `advise`"},
            "--final": {"action": "store_true", "help": "the folders put aside, once"},
            "--out": {"type": Path, "default": Path(".benchmarks/better")},
            "--jobs": {"type": int, "default": 1, "help": "cells at a time"},
        },
    )
