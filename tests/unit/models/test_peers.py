"""What peers find, against scikit-learn's models and worlds that were made."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline, make_union

from taskmix.models import FittedPeer, LinearPeer, peers_for
from taskmix.models._peer_tags import FORBIDDEN, TagChain
from taskmix.models._peer_trees import Forest
from taskmix.tasks import Split, Task, TaskSet

FILMS = ["good film", "fine film indeed", "bad film", "awful, a bad one", "good one", "so bad"]
ANSWERS = np.array([1, 1, 0, 0, 1, 0])


def task(
    name: str,
    inputs: pa.Table,
    targets: np.ndarray,
    *,
    labels: tuple[str, ...] = ("no", "yes"),
    dev: Split | None = None,
) -> Task:
    kind = "text" if "text" in inputs.column_names else "table"
    return Task(
        name=name,
        kind="classification" if labels else "regression",
        inputs=kind,
        labels=labels,
        metric="accuracy" if labels else "rmse",
        source=name,
        splits={"train": Split(inputs, targets)} | ({} if dev is None else {"dev": dev}),
    )


def raw_logits(fitted: FittedPeer, name: str, rows: pa.Table, floor: float) -> np.ndarray:
    """Of two classes, of which both were seen; without the part that goes by the prior."""
    shares = fitted.outputs(name, rows).exp().double().numpy()
    shares = (shares - floor / 2) / (1 - floor)
    return np.log(shares[:, 1] / shares[:, 0])


def test_a_linear_peer_of_texts_equals_a_pipeline_of_scikit_learn() -> None:
    fitted = LinearPeer(strength=0.05).fit(
        TaskSet((task("t", pa.table({"text": FILMS}), ANSWERS),))
    )
    union = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+"),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
    )
    # Rows of both have a length of the root of 2; here they have 1, so that the penalty counts double.
    oracle = make_pipeline(union, LogisticRegression(C=1 / 0.05 / 2, tol=1e-8)).fit(FILMS, ANSWERS)
    new = ["a good film", "bad", "nothing"]
    found = raw_logits(fitted, "t", pa.table({"text": new}), floor=1 / 8)
    np.testing.assert_allclose(found, oracle.decision_function(new), atol=1e-2)


def test_pooled_regressions_are_one_model_with_a_level_for_each_task() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 2))
    level = np.repeat([0.0, 50.0], 30)
    y = level + x @ [2.0, -1.0]
    rows = [pa.table({"a": x[part, 0], "b": x[part, 1]}) for part in (slice(30), slice(30, 60))]
    tasks = TaskSet(
        tuple(
            task(f"t{place}", rows[place], y[30 * place : 30 * place + 30], labels=())
            for place in (0, 1)
        )
    )
    fitted = LinearPeer(sharing="pooled", strength=1e-6).fit(tasks)
    for place in (0, 1):
        expected = y[30 * place : 30 * place + 30]
        found = fitted.outputs(f"t{place}", rows[place]).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-2)


def test_ridge_of_one_task_equals_scikit_learns() -> None:
    generator = np.random.default_rng(1)
    x, noise = generator.normal(size=(40, 3)), generator.normal(size=40)
    y = 7 + x @ [3.0, 1.0, 0.0] + noise
    rows = pa.table({name: x[:, place] for place, name in enumerate("abc")})
    fitted = LinearPeer(strength=2.0).fit(TaskSet((task("t", rows, y, labels=()),)))
    scaled = (x - x.mean(axis=0)) / x.std(axis=0) / np.sqrt(3)  # a mean squared length of 1
    oracle = Ridge(alpha=2.0).fit(scaled, y).predict(scaled)
    np.testing.assert_allclose(fitted.outputs("t", rows).numpy(), oracle, atol=1e-4)


def shared_world(seed: int) -> TaskSet:
    """Eight tasks of a few rows: what decides is nearly the same in all, with a turn of its own."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=10)
    tasks = []
    for number in range(8):
        own = common + 0.6 * generator.normal(size=10)
        splits = {}
        for split, count in (("train", 30), ("dev", 30), ("test", 400)):
            x = generator.normal(size=(count, 10))
            targets = (x @ own + generator.normal(size=count) > 0).astype(np.int64)
            columns = {f"x{place}": x[:, place] for place in range(10)}
            splits[split] = Split(pa.table(columns), targets)
        made = task(f"t{number}", splits["train"].inputs, splits["train"].targets)
        tasks.append(
            Task(
                name=made.name,
                kind=made.kind,
                inputs=made.inputs,
                labels=made.labels,
                metric=made.metric,
                source=made.source,
                splits=splits,
            )
        )
    return TaskSet(tuple(tasks))


def log_loss(fitted: FittedPeer, tasks: TaskSet) -> float:
    losses = []
    for each in tasks:
        rows = each.splits["test"]
        found = fitted.outputs(each.name, rows.inputs).numpy()
        losses.append(-found[np.arange(len(rows)), rows.targets].mean())
    return float(np.mean(losses))


def test_where_tasks_are_much_alike_sharing_beats_being_alone_and_groups_bound_it() -> None:
    tasks = shared_world(0)
    alone = log_loss(LinearPeer(sharing="alone").fit(tasks), tasks)
    partly = log_loss(LinearPeer(sharing="partly").fit(tasks), tasks)
    groups = tuple((name,) for name in tasks.names)
    apart = log_loss(LinearPeer(sharing="partly", groups=groups).fit(tasks), tasks)
    assert partly < alone - 0.02
    assert apart == pytest.approx(alone, abs=1e-6)


def test_fewer_rows_than_columns_give_the_model_that_the_columns_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks = shared_world(1)
    peer = LinearPeer(sharing="partly", strength=0.1)
    rows = tasks[0].splits["test"].inputs
    by_rows = peer.fit(tasks).outputs("t0", rows)
    monkeypatch.setattr("taskmix.models._peer_linear.MOST_DUAL", 0)
    by_columns = peer.fit(tasks).outputs("t0", rows)
    torch.testing.assert_close(by_rows, by_columns, atol=5e-3, rtol=1e-2)


def test_the_loss_of_unseen_classes_is_that_of_a_class_counted_once_more() -> None:
    labels = tuple(f"c{number}" for number in range(10))
    inputs = pa.table({"text": ["red one", "blue one", "red two", "blue two"]})
    tasks = TaskSet((task("t", inputs, np.array([0, 1, 0, 1]), labels=labels),))
    shares = LinearPeer(strength=0.01).fit(tasks).outputs("t", inputs).exp()
    torch.testing.assert_close(shares[:, 2:], torch.full((4, 8), 1 / 14), atol=1e-6, rtol=0)
    assert shares.argmax(dim=1).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_forest_of_arrays_says_what_scikit_learns_trees_say(classes: int) -> None:
    generator = np.random.default_rng(classes)
    x = generator.normal(size=(300, 4)).astype(np.float32)
    y = np.digitize(x[:, 0] + x[:, 1] ** 2, np.linspace(0.5, 1.5, classes - 1))
    model = HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=8).fit(x, y)
    scores = Forest.of(model).scores(x)
    found = model.decision_function(x).reshape(len(x), -1)
    np.testing.assert_allclose(scores, found, atol=1e-9)
    first = HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=8).fit(x, y)
    np.testing.assert_allclose(
        Forest.of(model).first(4).scores(x),
        first.decision_function(x).reshape(len(x), -1),
        atol=1e-9,
    )


def test_a_forest_of_values_says_what_scikit_learns_trees_say() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    model = HistGradientBoostingRegressor(max_iter=10).fit(x, x[:, 0] * x[:, 1])
    np.testing.assert_allclose(Forest.of(model).scores(x)[:, 0], model.predict(x), atol=1e-9)


def every_path(chain: TagChain, words: np.ndarray) -> np.ndarray:
    """The chance of each tag of each word, by all sequences of tags, one after another."""
    count, tags = words.shape
    found = np.zeros_like(words)
    for path in np.ndindex(*[tags] * count):
        weight, before = 1.0, 0
        for place, tag in enumerate(path):
            ratio = (chain.ratios[before - 1] if place else chain.first)[tag] ** chain.weight
            weight *= words[place, tag] * (ratio if chain.allowed[before, tag] else FORBIDDEN)
            before = tag + 1
        for place, tag in enumerate(path):
            found[place, tag] += weight
    return found / found.sum(axis=1, keepdims=True)


def test_the_chances_of_tags_are_those_of_all_paths() -> None:
    labels = ("O", "B-X", "I-X")
    seen = [np.array([0, 1, 2, 0]), np.array([1, 0, 1, 2, 2]), np.array([0, 0])]
    fitted = TagChain.fit(seen, labels)
    chain = TagChain(fitted.first, fitted.ratios, fitted.allowed, weight=0.7)
    words = np.random.default_rng(0).dirichlet([1, 1, 1], size=7)
    found = chain.marginals(words, [3, 0, 4])
    np.testing.assert_allclose(found[:3], every_path(chain, words[:3]), atol=1e-9)
    np.testing.assert_allclose(found[3:], every_path(chain, words[3:]), atol=1e-9)


def test_an_inside_that_training_rows_have_after_nothing_is_allowed() -> None:
    assert not TagChain.fit([np.array([0, 1])], ("O", "B-X", "I-X")).allowed[1, 2]
    assert TagChain.fit([np.array([0, 2])], ("O", "B-X", "I-X")).allowed[1, 2]


def test_regressions_in_other_units_are_not_pooled() -> None:
    x = np.linspace(0, 1, 20)
    rows = pa.table({"x": x})
    several = [
        task(f"t{place}", rows, x * unit, labels=()) for place, unit in enumerate((1, 2, 1000))
    ]
    assert [peer.name for peer in peers_for(TaskSet(tuple(several)))][1:] == [
        "linear pooled",
        "linear partly pooled",
    ]
    assert len(peers_for(TaskSet((several[0], several[2])))) == 1
