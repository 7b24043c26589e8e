"""One suite that every peer passes, none excepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from taskmix.models import FittedPeer, LinearPeer, Peer, TreesPeer, peers_for
from taskmix.tasks import MISSING, Split, Task, TaskSet, evaluate_outputs

LINEAR: list[Peer] = [
    LinearPeer(sharing="alone"),
    LinearPeer(sharing="pooled"),
    LinearPeer(sharing="partly"),
    LinearPeer(sharing="partly", groups=(("t0", "t1"),)),
    LinearPeer(sharing="alone", strength=0.5),
]
TREES: list[Peer] = [TreesPeer(sharing="alone"), TreesPeer(sharing="pooled", iterations=20)]


def random(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def table_task(name: str, kind: str, *, seed: int = 0, rows: int = 150) -> Task:
    labels = () if kind == "regression" else ("a", "b", "c")

    def split(place: int, count: int) -> Split:
        generator = random(seed, place)
        x = generator.normal(size=(count, 3))
        colour = generator.choice(["red", "blue"], size=count)
        signal = x @ [1.0, -1.0, 0.5] + (colour == "red")
        if kind == "regression":
            targets = 40 + 10 * signal
            targets[:3] = np.nan
        elif kind == "multilabel":
            targets = np.stack([signal > 0, x[:, 0] > 0.5, x[:, 1] > 9], axis=1).astype(np.int8)
            targets[0] = MISSING
        else:
            targets = np.digitize(signal, [-0.5, 1.0])
            targets[:3] = MISSING
        columns = {"x": x[:, 0], "y": x[:, 1], "z": x[:, 2], "colour": colour}
        return Split(pa.table(columns), targets)

    return Task(
        name=name,
        kind=kind,
        inputs="table",
        labels=labels,
        metric={"regression": "rmse", "multilabel": "micro_f1"}.get(kind, "accuracy"),
        source=name,
        splits={"train": split(0, rows), "dev": split(1, 60), "test": split(2, 80)},
    )


WORDS = {"good": ["fine", "great", "lovely"], "bad": ["awful", "poor", "dull"]}


def text_task(name: str, *, pair: bool = False, seed: int = 0) -> Task:
    labels = tuple(sorted(WORDS))

    def split(place: int, count: int) -> Split:
        generator = random(seed, place, 1)
        targets = generator.integers(0, 2, size=count)
        texts = [
            f"the {generator.choice(WORDS[labels[target]])} film of {generator.integers(99)}"
            for target in targets
        ]
        columns = {"text": texts, "text2": [*texts[1:], None]} if pair else {"text": texts}
        return Split(pa.table(columns), targets)

    return Task(
        name=name,
        kind="classification",
        inputs="pair" if pair else "text",
        labels=labels,
        metric="accuracy",
        source=name,
        splits={"train": split(0, 80), "dev": split(1, 40), "test": split(2, 40)},
    )


def tagging_task(name: str, *, seed: int = 0) -> Task:
    labels = ("B-PER", "I-PER", "O")
    first, last = ["Ann", "Bob", "Cleo"], ["Smith", "Jones", "Lee"]

    def split(place: int, count: int) -> Split:
        generator = random(seed, place, 2)
        sentences, tags = [], []
        for _ in range(count):
            before = ["then"] * int(generator.integers(0, 3))
            person = [generator.choice(first), generator.choice(last)]
            sentences.append([*before, *person, "came"])
            tags += [2] * len(before) + [0, 1, 2]
        sentences.append([])
        return Split(
            pa.table({"tokens": pa.array(sentences, pa.list_(pa.string()))}), np.array(tags)
        )

    return Task(
        name=name,
        kind="tagging",
        inputs="tokens",
        labels=labels,
        metric="entity_f1",
        source=name,
        splits={"train": split(0, 30), "dev": split(1, 10), "test": split(2, 10)},
    )


def several(make: Callable[..., Task], *arguments: str) -> TaskSet:
    return TaskSet(tuple(make(f"t{n}", *arguments, seed=n) for n in range(3)))


FOLDERS: dict[str, TaskSet] = {
    "classes of tables": several(table_task, "classification"),
    "values": several(table_task, "regression"),
    "several labels": several(table_task, "multilabel"),
    "texts": several(text_task),
    "pairs": TaskSet((text_task("t0", pair=True), text_task("t1", pair=True, seed=1))),
    "tags": several(tagging_task),
    "all kinds": TaskSet(
        (
            text_task("t0"),
            text_task("t1", pair=True),
            tagging_task("t2"),
            table_task("t3", "regression"),
            table_task("t4", "classification"),
        )
    ),
}
CASES = [(peer, folder) for folder in FOLDERS for peer in LINEAR] + [
    (peer, folder) for folder in list(FOLDERS)[:3] for peer in TREES
]
every_peer = pytest.mark.parametrize(
    ("peer", "folder"), CASES, ids=[f"{peer.name}, {folder}" for peer, folder in CASES]
)


def score(fitted: FittedPeer, task: Task, split: str = "test") -> float:
    rows = task.splits[split]
    sentences = None
    if task.kind == "tagging":
        sentences = np.cumsum([0, *map(len, rows.inputs.column("tokens").to_pylist())])
    outputs = fitted.outputs(task.name, rows.inputs).numpy()
    value = evaluate_outputs(
        task.metric, outputs=outputs, targets=rows.targets, labels=task.labels, sentences=sentences
    )
    return -value if task.metric == "rmse" else value


@every_peer
def test_it_learns_every_task_and_says_chances(peer: Peer, folder: str) -> None:
    tasks = FOLDERS[folder]
    fitted = peer.fit(tasks)
    for task in tasks:
        found = fitted.outputs(task.name, task.splits["test"].inputs)
        count = len(task.splits["test"].targets)
        assert found.shape == ((count, len(task.labels)) if task.labels else (count,))
        assert torch.isfinite(found).all()
        if task.kind in ("classification", "tagging"):
            torch.testing.assert_close(found.exp().sum(dim=1), torch.ones(count))
        is_overlap = task.inputs == "pair"
        enough = -12.0 if task.kind == "regression" else 0.55 if is_overlap else 0.7
        assert score(fitted, task) > enough


@every_peer
def test_it_is_the_same_after_it_was_restored_from_plain_values(peer: Peer, folder: str) -> None:
    tasks = FOLDERS[folder]
    fitted = peer.fit(tasks)
    description = json.loads(json.dumps(fitted.describe()))
    again = FittedPeer.restore(description, fitted.state())
    assert again.peer == fitted.peer
    assert again.questions == fitted.questions
    for task in tasks:
        rows = task.splits["test"].inputs
        assert torch.equal(again.outputs(task.name, rows), fitted.outputs(task.name, rows))


@every_peer
def test_what_was_settled_by_dev_is_kept_for_a_fit_on_dev_rows_too(peer: Peer, folder: str) -> None:
    tasks = FOLDERS[folder]
    settled = peer.fit(tasks).peer
    both = settled.fit(tasks, splits=("train", "dev"))
    assert both.peer == settled
    assert both.peer.name == peer.name
    assert all(score(both, task) > -12 for task in tasks)


@every_peer
def test_a_class_without_rows_costs_a_finite_loss(peer: Peer, folder: str) -> None:
    tasks = FOLDERS[folder]
    wider = TaskSet(
        tuple(
            task if task.kind in ("regression", "multilabel") else with_unseen_class(task)
            for task in tasks
        )
    )
    fitted = peer.fit(wider)
    for task in wider:
        found = fitted.outputs(task.name, task.splits["test"].inputs)
        assert torch.isfinite(found).all()
        if task.kind == "classification":
            assert 1e-4 < float(found[:, -1].exp().mean()) < 0.1


def with_unseen_class(task: Task) -> Task:
    return Task(
        name=task.name,
        kind=task.kind,
        inputs=task.inputs,
        labels=(*task.labels, "S-unseen"),
        metric=task.metric,
        source=task.source,
        splits=task.splits,
    )


@pytest.mark.parametrize("peer", [*LINEAR, *TREES], ids=lambda peer: peer.name)
def test_a_task_with_one_class_or_without_rows_goes_by_the_prior(peer: Peer) -> None:
    whole = table_task("t0", "classification")
    one = constant(table_task("t1", "classification", seed=1))
    none = table_task("t2", "classification", rows=0)
    alone = TaskSet((one, none)) if peer.name.endswith("alone") else TaskSet((one, none, whole))
    fitted = peer.fit(alone)
    for task in (one, none):
        found = fitted.outputs(task.name, task.splits["test"].inputs)
        assert torch.isfinite(found).all()
        if peer.name.endswith("alone"):
            assert (found == found[0]).all()
    if peer.name.endswith("alone"):
        assert float(fitted.outputs("t1", one.splits["test"].inputs)[0].exp()[1]) > 0.9


def constant(task: Task) -> Task:
    splits = {
        name: Split(split.inputs, np.ones_like(split.targets))
        for name, split in task.splits.items()
    }
    return Task(
        name=task.name,
        kind=task.kind,
        inputs=task.inputs,
        labels=task.labels,
        metric=task.metric,
        source=task.source,
        splits=splits,
    )


def test_the_peers_of_a_folder_are_those_that_read_it(tmp_path: Path) -> None:
    names = {folder: [peer.name for peer in peers_for(tasks)] for folder, tasks in FOLDERS.items()}
    assert names["texts"] == ["linear alone", "linear pooled", "linear partly pooled"]
    assert names["all kinds"] == ["linear alone"]  # no two have the same answers
    assert names["values"][-2:] == ["trees alone", "trees pooled"]
    prompt = Task(
        name="p",
        kind="generation",
        inputs="prompt",
        labels=(),
        metric="exact_match",
        source="p",
        splits={"train": Split(pa.table({"prompt": ["a"], "answer": ["b"]}), np.zeros(0))},
    )
    assert peers_for(TaskSet((prompt,))) == ()
