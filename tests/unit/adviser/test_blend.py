"""Blends: values worked out by hand, and outputs that never saw the rows they are for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from taskmix.adviser._blend import FOLDS, LOG_TEMPERATURES, PRIOR_ROWS, Blends, fit_blends
from taskmix.adviser._members import BlendMember
from taskmix.tasks import MISSING, Split, Task, TaskKind, TaskSet

Array = NDArray[np.float64]
NO_HEAT = np.zeros(1)  # logarithms: a temperature of 1 alone
METRICS = {"classification": "accuracy", "tagging": "accuracy", "multilabel": "micro_f1"}


def task_of(
    targets: Array | NDArray[np.int64],
    name: str = "a",
    kind: TaskKind = "classification",
    tokens: list[list[str]] | None = None,
) -> Task:
    rows = pa.table({"x": np.arange(len(targets))} if tokens is None else {"tokens": tokens})
    return Task(
        name=name,
        kind=kind,
        inputs="table" if tokens is None else "tokens",
        labels=() if kind == "regression" else ("no", "yes"),
        metric=METRICS.get(kind, "rmse"),
        source=name,
        splits={split: Split(rows, targets) for split in ("train", "dev", "test")},
    )


def member(name: str, **said: Array) -> BlendMember:
    return BlendMember(name=name, words=name, dev=said, test=said)


def logits(share: Array) -> Array:
    """Of two classes, by the probability of the second."""
    return np.log(np.stack([1 - share, share], axis=1))


def truth_and_guesses(
    rows: int, seed: int = 0, *strengths: float
) -> tuple[NDArray[np.int64], list[Array]]:
    """Targets, and members that each know something of their own of them."""
    generator = np.random.default_rng(seed)
    parts = generator.normal(size=(rows, len(strengths)))
    chance = 1 / (1 + np.exp(-(parts * strengths).sum(axis=1)))
    targets = (generator.random(rows) < chance).astype(np.int64)
    return targets, [
        np.stack([0 * z, s * z], axis=1) for s, z in zip(strengths, parts.T, strict=True)
    ]


def fit(*members: BlendMember, tasks: Mapping[str, Task], **how: int) -> Blends:
    names = list(tasks)
    return fit_blends(members, TaskSet(tuple(tasks.values())), names, names, **how)


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without temperatures, which have tests of their own."""
    monkeypatch.setattr("taskmix.adviser._blend.LOG_TEMPERATURES", NO_HEAT)


def expectation_maximization(said: Array, start: Array, prior: Array, rows: float) -> Array:
    """Weights by the definition: [member, row] of the probability of what is true."""
    found = start
    for _ in range(500):
        parts = found[:, None] * said
        parts = parts / parts.sum(axis=0)
        found = (rows * prior + parts.sum(axis=1)) / (rows + said.shape[1])
    return found


@pytest.mark.usefixtures("cold")
def test_weights_of_two_members_and_one_task_are_those_of_the_posterior() -> None:
    targets, said = truth_and_guesses(300, 1, 1.5, 1.5)
    found = fit(member("one", a=said[0]), member("two", a=said[1]), tasks={"a": task_of(targets)})
    assert {each.name for each in found.members} == {"one", "two"}
    shares = [np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in said]
    if found.members[0].name == "two":
        shares = shares[::-1]
    of_truth = np.array([share[np.arange(300), targets] for share in shares])
    # The maximum of log likelihood and the logarithm of a Dirichlet prior around a prior's weights,
    # which are those of all tasks together (here this one), held to the plain mean in the same way.
    half = np.full(2, 0.5)
    common = expectation_maximization(of_truth, half, half, PRIOR_ROWS)
    expected = expectation_maximization(of_truth, common, common, PRIOR_ROWS)
    assert found.of_task["a"].weights == pytest.approx(expected, abs=1e-3)
    assert found.losses["blend"] < min(found.losses["one"], found.losses["two"])


@pytest.mark.parametrize("heat", [0.3, 3.0])
def test_a_member_that_is_too_sure_or_too_shy_gets_its_temperature(heat: float) -> None:
    targets, (said,) = truth_and_guesses(4000, 2, 2.0)
    found = fit(member("one", a=heat * said), tasks={"a": task_of(targets)})
    assert found.of_task["a"].weights == (1.0,)
    step = LOG_TEMPERATURES[1] - LOG_TEMPERATURES[0]
    assert np.log(found.of_task["a"].temperatures[0]) == pytest.approx(np.log(heat), abs=step)


def test_few_rows_stay_near_what_all_tasks_say() -> None:
    large, said = truth_and_guesses(2000, 3, 2.0, 2.0)
    few = np.array([0, 1] * 6)
    right = np.where(few == 1, 0.8, 0.2)  # the first member is right of them, the second wrong
    members = [
        member("one", large=said[0], few=logits(right)),
        member("two", large=said[1], few=logits(1 - right)),
    ]
    tasks = TaskSet((task_of(large, "large"), task_of(few, "few")))
    found = fit_blends(members, tasks, ["large", "few"], ["large"])
    place = [each.name for each in found.members].index("one")
    weights = {name: blend.weights[place] for name, blend in found.of_task.items()}
    assert weights["large"] == pytest.approx(0.5, abs=0.1)
    assert weights["large"] < weights["few"] < 0.75, "12 rows against a prior of 20"


def test_a_network_that_says_nothing_is_left_out() -> None:
    targets, (said,) = truth_and_guesses(400, 4, 3.0)
    noise = np.random.default_rng(5).normal(0, 3, said.shape)
    found = fit(member("network", a=noise), member("peer", a=said), tasks={"a": task_of(targets)})
    assert [each.name for each in found.members] == ["peer"]
    assert found.losses["peer"] < found.losses["network"]


def test_no_more_members_are_taken_than_may_be() -> None:
    targets, said = truth_and_guesses(1500, 6, 1.5, 1.5, 1.5, 1.5)
    members = [member(f"m{place}", a=each) for place, each in enumerate(said)]
    for most in (1, 2, 3):
        found = fit(*members, tasks={"a": task_of(targets)}, most=most)
        assert len(found.members) == most
    assert sum(found.of_task["a"].weights) == pytest.approx(1)
    assert min(found.of_task["a"].weights) > 0


def test_a_task_that_only_one_member_answers_is_answered_by_it() -> None:
    targets, said = truth_and_guesses(500, 7, 2.0, 2.0)
    tasks = {"a": task_of(targets, "a"), "b": task_of(targets, "b")}
    one, two = member("one", a=said[0], b=said[0]), member("two", a=said[1])
    names = ["a", "b"]
    found = fit_blends([two, one], TaskSet(tuple(tasks.values())), names, ["a"])
    both = {each.name for each in found.members}
    assert both == {"one", "two"}
    (place,) = found.of_task["b"].members
    assert found.members[place].name == "one"
    assert set(found.outputs(TaskSet(tuple(tasks.values())), "test")) == {"a", "b"}
    # Where the best does not answer for a task that counts, it cannot be chosen alone.
    judged = fit_blends([two, one], TaskSet(tuple(tasks.values())), names, names)
    assert [each.name for each in judged.members] == ["one"]


def test_tasks_without_enough_dev_rows_take_the_plain_mean_of_who_answers() -> None:
    targets, said = truth_and_guesses(600, 8, 2.0, 2.0)
    tasks = {"a": task_of(targets, "a"), "b": task_of(targets[:4], "b")}
    members = [member(str(p), a=each, b=each[:4]) for p, each in enumerate(said)]
    found = fit(*members, tasks=tasks)
    assert found.of_task["b"].weights == (0.5, 0.5)
    assert found.of_task["b"].temperatures == (1.0, 1.0)
    assert "b" not in found.dev


def test_values_are_averaged_by_least_squares() -> None:
    generator = np.random.default_rng(9)
    truth = generator.normal(size=2000)
    near, far = (truth + generator.normal(0, error, 2000) for error in (0.5, 1.0))
    task = task_of(truth, kind="regression")
    found = fit(member("near", a=near), member("far", a=far), tasks={"a": task})
    # Independent errors of variances 1/4 and 1: the best weights are 4/5 and 1/5.
    assert found.members[0].name == "near"
    assert found.of_task["a"].weights == pytest.approx((0.8, 0.2), abs=0.03)
    mixed = found.outputs(TaskSet((task,)), "test")["a"]
    weights = found.of_task["a"].weights
    assert mixed == pytest.approx(weights[0] * near + weights[1] * far)
    same = fit(member("one", a=near), member("two", a=near), tasks={"a": task})
    assert [each.name for each in same.members] == ["one"], "the same twice improves nothing"


def test_each_of_several_labels_is_mixed_by_itself() -> None:
    columns = [truth_and_guesses(800, 10 + place, 2.0, 2.0) for place in range(2)]
    marks = np.stack([targets for targets, _ in columns], axis=1).astype(np.int8)
    said = [np.stack([made[place][:, 1] for _, made in columns], axis=1) for place in range(2)]
    marks[:5] = MISSING
    task = task_of(marks, kind="multilabel")
    found = fit(*(member(str(p), a=each) for p, each in enumerate(said)), tasks={"a": task})
    blend = found.of_task["a"]
    assert len(found.members) == 2
    parts = [1 / (1 + np.exp(-found.members[p].dev["a"] / blend.temperatures[p])) for p in range(2)]
    mixed = blend.weights[0] * parts[0] + blend.weights[1] * parts[1]
    out = found.outputs(TaskSet((task,)), "test")["a"]
    assert 1 / (1 + np.exp(-out)) == pytest.approx(mixed)


def test_a_sentence_counts_for_one_row_and_is_never_divided() -> None:
    targets, said = truth_and_guesses(200, 12, 2.0, 2.0)
    sentences = [["w"] * 20 for _ in range(10)]
    words = {"a": task_of(targets, "a", "tagging", sentences)}
    rows = {"a": task_of(targets, "a")}
    said[1] *= 0.25  # it says less
    members = [member(str(p), a=each) for p, each in enumerate(said)]
    held = [max(fit(*members, tasks=tasks).of_task["a"].weights) for tasks in (words, rows)]
    assert 0.5 < held[0] < held[1], "ten sentences move the weights less than 200 rows"


def test_cross_fitted_outputs_are_those_of_a_fit_without_the_fold() -> None:
    targets, said = truth_and_guesses(100, 13, 2.0, 1.0)
    members = [member("one", a=said[0]), member("two", a=said[1])]
    found = fit(*members, tasks={"a": task_of(targets)})
    assert len(found.members) == 2
    folds = np.random.default_rng(0).permutation(100) % FOLDS
    flipped = targets.copy()
    flipped[folds == 2] = 1 - flipped[folds == 2]
    other = fit(*members, tasks={"a": task_of(flipped)})
    assert [each.name for each in other.members] == [each.name for each in found.members]
    unseen = folds == 2
    assert other.dev["a"][unseen] == pytest.approx(found.dev["a"][unseen])
    assert not np.allclose(other.dev["a"][~unseen], found.dev["a"][~unseen])


def test_cross_fitted_outputs_of_each_fold_by_brute_force() -> None:
    targets, said = truth_and_guesses(60, 14, 2.0, 2.0)
    order = np.random.default_rng(0).permutation(60) % FOLDS
    found = fit(member("one", a=said[0]), member("two", a=said[1]), tasks={"a": task_of(targets)})
    assert len(found.members) == 2
    own = [each.dev["a"] for each in found.members]
    for fold in range(FOLDS):
        kept = order != fold

        def of_truth(heat: float, z: Array, rows: NDArray[np.bool_] = kept) -> Array:
            shares = np.exp(z / heat) / np.exp(z / heat).sum(axis=1, keepdims=True)
            return shares[np.arange(60), targets][rows]

        heats = []
        for z in own:
            fits = [np.log(of_truth(np.exp(t), z)).sum() - t**2 / 2 for t in LOG_TEMPERATURES]
            heats.append(float(np.exp(LOG_TEMPERATURES[int(np.argmax(fits))])))
        true = np.array([of_truth(heat, z) for heat, z in zip(heats, own, strict=True)])
        half = np.full(2, 0.5)
        common = expectation_maximization(true, half, half, PRIOR_ROWS)
        weights = expectation_maximization(true, common, common, PRIOR_ROWS)
        shares = [
            np.exp(z / h) / np.exp(z / h).sum(1, keepdims=True)
            for z, h in zip(own, heats, strict=True)
        ]
        mixed = weights[0] * shares[0] + weights[1] * shares[1]
        assert np.exp(found.dev["a"])[~kept] == pytest.approx(mixed[~kept], abs=2e-3)
