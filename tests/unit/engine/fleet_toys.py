"""Small tasks on disk, and runs side by side: alone and in a fleet."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from taskmix.engine import DigitsSource, Fleet, FolderSource, Here, Optimization, Run, execute
from taskmix.models import (
    Architecture,
    CausalTransformer,
    Perceptron,
    TextConvolution,
    WindowBiLSTM,
)
from taskmix.records import RunFolder, Study
from taskmix.tasks import MISSING, Split, Task, TaskSet
from taskmix.training import StepEvent
from taskmix.weighting import Equal

WORDS = [f"w{number}" for number in range(60)]
SPLITS = ("train", "dev", "test")

RUN = Run(
    label="toy",
    source=DigitsSource(),
    architecture=Perceptron(hidden=(16, 12)),
    weighting=Equal(),
    steps=20,
    evaluate_every=10,
    batch_size=24,
    seed=0,
)
# Members differ in their number of tasks, in the tasks, in their order and in batches that are short.
SUBSETS = (("ten_digits", "parity"), ("parity", "half", "remainder"), ("remainder", "ten_digits"))


def runs_of(
    base: Run = RUN, subsets: Sequence[Sequence[str]] = SUBSETS, **changes: Any
) -> list[Run]:
    """A run for each subset, with a seed and a learning rate of its own."""
    return [
        replace(
            base,
            seed=number,
            tasks=tuple(subset),
            optimization=Optimization(learning_rate=1e-2 / (1 + number % 2)),
            **changes,
        )
        for number, subset in enumerate(subsets)
    ]


def side_by_side(
    runs: Sequence[Run], folder: Path, *, tolerance: float = 1e-5, **options: Any
) -> None:
    """Executes the runs alone and in a fleet, whose records must be the same."""
    alone, together = Study(folder / "alone"), Study(folder / "together")
    results = Here(workers=1).run(runs, alone)
    fleet = Fleet(workers=1, **options).run(runs, together)
    assert [result.outcome for result in fleet] == [result.outcome for result in results]
    for run, solo, member in zip(runs, results, fleet, strict=True):
        assert solo.error == member.error
        folders = (study.run(run.specification()) for study in (alone, together))
        must_be_alike(*folders, tolerance=tolerance)


def must_be_alike(alone: RunFolder, together: RunFolder, tolerance: float = 1e-5) -> None:
    """Equal in everything but the time it took and the last bits of what was computed."""
    expected, found = alone.summary(), together.summary()
    assert expected is not None
    assert found is not None
    for name in ("status", "label", "seed", "step", "steps", "best_step", "error", "tasks"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.specification == expected.specification
    assert [score[:3] for score in found.scores] == [score[:3] for score in expected.scores]
    for mine, its in zip(found.scores, expected.scores, strict=True):
        assert math.isclose(mine.value, its.value, rel_tol=tolerance, abs_tol=tolerance)
    for of in ("metric", "loss"):
        means = {
            score.task: score.value
            for score in expected.scores
            if score.split == "dev" and (score.metric == "loss") == (of == "loss")
        }
        credits_must_be_alike(together.credits(of), alone.credits(of), means, tolerance)
    steps, wanted = together.steps(), alone.steps()
    assert steps.schema == wanted.schema
    for name in steps.column_names:
        if name in ("loss", "weight", "reward"):
            assert steps[name].is_null() == wanted[name].is_null(), name
            np.testing.assert_allclose(
                steps[name].to_numpy().astype(float),
                wanted[name].to_numpy().astype(float),
                rtol=tolerance,
                atol=tolerance,
                err_msg=name,
            )
        elif name != "seconds":
            assert steps[name].to_pylist() == wanted[name].to_pylist(), name
    scores, measured = together.scores(), alone.scores()
    assert scores.drop_columns(["value"]) == measured.drop_columns(["value"])
    np.testing.assert_allclose(
        scores["value"].to_numpy(), measured["value"].to_numpy(), rtol=tolerance, atol=tolerance
    )
    trees_must_be_alike(together.best(), alone.best(), tolerance)


def credits_must_be_alike(
    found: dict[str, Any], wanted: dict[str, Any], means: dict[str, float], tolerance: float
) -> None:
    """Row by row, with the final scores as their means; of every task that has such a score."""
    assert list(found) == list(wanted) == list(means)
    for task, expected in wanted.items():
        np.testing.assert_allclose(found[task], expected, rtol=10 * tolerance, atol=10 * tolerance)
        if not math.isnan(means[task]):
            assert math.isclose(np.nanmean(expected), means[task], rel_tol=1e-4, abs_tol=1e-4)


def after(calls: int) -> Callable[[], bool]:
    """Says at its n-th call that it is time to stop."""
    left = calls

    def should_stop() -> bool:
        nonlocal left
        left -= 1
        return left <= 0

    return should_stop


def alone_until(run: Run, study: Study, step: int) -> None:
    """Executes a run alone and stops it after a step."""
    seen = 0

    def listen(event: object) -> None:
        nonlocal seen
        if isinstance(event, StepEvent):
            seen = event.step

    assert execute(run, study, listener=listen, should_stop=after(step)).outcome == "stopped"
    assert seen == step


def trees_must_be_alike(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    """The same structure, and numbers that differ in the last bits alone.

    Adam's first steps divide a gradient by its own size: where one is nearly 0, its rounding, which
    differs between processors, decides. A wrong step would move weights by a hundred times as much.
    """
    if isinstance(wanted, dict):  # ordered or not
        assert set(found) == set(wanted)
        for key, value in wanted.items():
            trees_must_be_alike(found[key], value, tolerance)
    elif isinstance(wanted, list | tuple):
        assert type(found) is type(wanted)
        assert len(found) == len(wanted)
        for mine, its in zip(found, wanted, strict=True):
            trees_must_be_alike(mine, its, tolerance)
    elif hasattr(wanted, "shape"):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(wanted), rtol=tolerance, atol=10 * tolerance
        )
    elif isinstance(wanted, float):
        assert math.isclose(found, wanted, rel_tol=tolerance, abs_tol=tolerance)
    else:
        assert (type(found), found) == (type(wanted), wanted)


def text_source(folder: Path) -> FolderSource:
    """Two tasks with classes, a regression and pairs of texts, of different sizes."""
    chance = random.Random(0)

    def text(longest: int) -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, longest)))

    def two(longest: int) -> dict[str, Any]:
        first = text(longest)
        return {"text": first, "label": str(len(first) % 2)}

    def three(longest: int) -> dict[str, Any]:
        first = text(longest)
        return {"text": first, "label": str(len(first) % 3)}

    def length(longest: int) -> dict[str, Any]:
        first = text(longest)
        return {"text": first, "label": 50 + 0.7 * len(first)}

    def pair(longest: int) -> dict[str, Any]:
        first, second = text(longest), text(longest)
        return {"text": first, "text2": second, "label": "y" if first < second else "n"}

    for name, make, rows in (
        ("two", two, 60),
        ("three", three, 20),
        ("long", length, 40),
        ("pair", pair, 30),
    ):
        for split, count in zip(SPLITS, (rows, 20, 20), strict=True):
            path = folder / "text" / name / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(make(20)) + "\n" for _ in range(count)))
    return FolderSource(path=str(folder / "text"))


def tag_source(folder: Path) -> FolderSource:
    """Two tasks of tags, the tag of a word being that of its number."""
    chance = random.Random(0)
    for name, tags in (("entities", ["O", "B-X", "I-X"]), ("parts", ["N", "V", "A", "D"])):
        for split, count in zip(SPLITS, (12, 6, 6), strict=True):
            lines = []
            for _ in range(count):
                words = chance.choices(WORDS, k=chance.randint(1, 8))
                lines += [f"{word}\t{tags[int(word[1:]) % len(tags)]}" for word in words] + [""]
            path = folder / "tags" / name / f"{split}.conll"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines))
    return FolderSource(path=str(folder / "tags"))


def passage_source(folder: Path) -> FolderSource:
    """Three tasks of passages, some of them empty, of different words and sizes."""
    chance = random.Random(0)
    for name, words, rows in (
        ("first", WORDS[:20], 30),
        ("last", WORDS[40:], 12),
        ("all", WORDS, 20),
    ):
        path = folder / "passages" / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "task.toml").write_text('kind = "language"\n')
        for split, count in zip(SPLITS, (rows, 6, 6), strict=True):
            texts = [" ".join(chance.choices(words, k=chance.randint(0, 20))) for _ in range(count)]
            lines = [json.dumps({"text": text}) + "\n" for text in texts]
            (path / f"{split}.jsonl").write_text("".join(lines))
    return FolderSource(path=str(folder / "passages"))


PASSAGES = (("first", "last"), ("last",), ("all", "first", "last"))


def passage_runs(folder: Path, **changes: Any) -> list[Run]:
    """Small causal transformers on subsets of the passages."""
    tiny = CausalTransformer(layers=2, width=16, attention_heads=2, context=16)
    base = changed(RUN, changes.pop("architecture", tiny), source=passage_source(folder))
    return runs_of(replace(base, batch_size=6), PASSAGES, **{"steps": 12, **changes})


@dataclass(frozen=True)
class MarkedRows:
    """Tasks on the same rows: two of label sets, a class and a number; of each, targets are missing.

    With `rare`, of some tasks so many that whole batches have none.
    """

    rare: bool = False

    def load(self) -> TaskSet:
        generator = np.random.default_rng(0)
        splits: dict[str, dict[str, Split]] = {n: {} for n in ("many", "two", "kind", "sum")}
        for name, count in zip(SPLITS, (50, 30, 30), strict=True):
            a, b, c = generator.standard_normal((3, count))
            table = pa.table({"a": a, "b": b, "c": c})
            many = np.stack([a > 0, b > 0.5, a + b > 1, c < -1], axis=1).astype(np.int8)
            many[generator.random(many.shape) < 0.1] = MISSING
            two = np.stack([c > 0, a > c], axis=1).astype(np.int8)
            unknown = generator.random((4, count)) < 0.3
            if self.rare and name == "train":  # five rows each
                unknown = np.stack([np.arange(count) % 10 != place for place in range(4)])
                unknown[3] = False
            many[unknown[0]], two[unknown[1]] = MISSING, MISSING
            kind = np.where(unknown[2], MISSING, a > b).astype(np.int64)
            total = np.where(unknown[3], np.nan, 100 * (a + b))
            for task, values in zip(splits, (many, two, kind, total), strict=True):
                splits[task][name] = Split(table, values)
        kinds: dict[str, tuple[Any, tuple[str, ...], str]] = {
            "many": ("multilabel", ("p", "q", "r", "s"), "micro_f1"),
            "two": ("multilabel", ("x", "y"), "average_precision"),
            "kind": ("classification", ("no", "yes"), "accuracy"),
            "sum": ("regression", (), "rmse"),
        }
        return TaskSet(
            tuple(
                Task(
                    name=name,
                    kind=kind,
                    inputs="table",
                    labels=labels,
                    metric=metric,
                    source="shared",
                    splits=splits[name],
                )
                for name, (kind, labels, metric) in kinds.items()
            )
        )


def vectors_file(folder: Path) -> Path:
    """Vectors of most words."""
    chance = random.Random(1)
    path = folder / "vectors.txt"
    lines = [
        " ".join([word, *(f"{chance.gauss(0, 1):.3f}" for _ in range(9))]) for word in WORDS[:50]
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def changed(run: Run, architecture: Architecture, **changes: Any) -> Run:
    return replace(run, architecture=architecture, **changes)


def on_cuda(folder: Path, kind: str, *, drawn: bool, device: str = "cuda") -> list[Run]:
    """Runs of each architecture, without dropout: a fleet's masks are its own on CUDA."""
    base = replace(RUN, device=device)
    subsets: Sequence[Sequence[str]] = SUBSETS
    if kind == "causal":
        return passage_runs(folder, device=device, weighting=None if drawn else Equal())
    if kind == "convolution":
        options = TextConvolution(
            filters=5, min_count=1, vectors=vectors_file(folder), head_dropout=0.0
        )
        base = changed(base, options, source=text_source(folder))
        subsets = (("two", "three"), ("long", "two"), ("pair", "two", "long"), ("pair",))
    elif kind == "bilstm":
        base = changed(base, WindowBiLSTM(hidden=8, dimension=6), source=tag_source(folder))
        subsets = (("entities", "parts"), ("parts",), ("parts", "entities"))
    return runs_of(base, subsets, weighting=None if drawn else Equal())


def together(runs: Sequence[Run]) -> list[Run]:
    """The runs, which have to be one fleet: else they would be compared with themselves."""
    assert Fleet(workers=1).companions(runs) == [len(runs)] * len(runs)
    return list(runs)


def must_meet_half_way(runs: list[Run], whole: Study, folder: Path, calls: int = 2) -> None:
    """A member's checkpoint is that of a solo run, and either engine goes on from the other's."""
    fleet, alone = Study(folder / "fleet begins"), Study(folder / "alone begins")
    results = Fleet(workers=1).run(runs, fleet, stop=after(calls))
    assert {result.outcome for result in results} == {"stopped"}
    for run in runs:
        found = fleet.run(run.specification()).checkpoint()
        assert found is not None
        alone_until(run, alone, found.step)
        wanted = alone.run(run.specification()).checkpoint()
        assert wanted is not None
        trees_must_be_alike(found.state, wanted.state)
        trees_must_be_alike(found.best, wanted.best)
    for engine, study in ((Here(workers=1), fleet), (Fleet(workers=1), alone)):
        assert {result.outcome for result in engine.run(runs, study)} == {"finished"}
        for run in runs:
            must_be_alike(whole.run(run.specification()), study.run(run.specification()))


def word_tasks(folder: Path, names: Sequence[str] = ("letter", "length")) -> FolderSource:
    """Tasks about short words: whether they have an `a`, how long they are, whether they have an `e`."""
    chance = random.Random(0)
    labels: dict[str, Callable[[str], Any]] = {
        "letter": lambda word: str("a" in word),
        "length": lambda word: len(word) + 0.5,
        "vowels": lambda word: str("e" in word),
    }
    for name in names:
        (folder / name).mkdir(parents=True)
        for split, count in zip(SPLITS, (30, 12, 12), strict=True):
            words = [
                "".join(chance.choices("abcdez", k=chance.randint(1, 6))) for _ in range(count)
            ]
            rows = [{"text": word, "label": labels[name](word)} for word in words]
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / name / f"{split}.jsonl").write_text(text)
    return FolderSource(path=str(folder))
