"""The runs of a study as a table of mixtures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskmix.engine import DigitsSource, Run, execute
from taskmix.errors import InputError
from taskmix.mixtures import table_of_study
from taskmix.models import Perceptron
from taskmix.policies import (
    AnyPolicy,
    Capped,
    Exp3,
    Fixed,
    Scheduled,
    SizeProportional,
    Tempered,
    Uniform,
)
from taskmix.records import Study, describe
from taskmix.weighting import BanditMTL, Equal

SIZES = {"a": 100, "b": 300, "c": 900}


def record(
    study: Study,
    tasks: Sequence[str],
    scores: Mapping[str, float],
    *,
    policy: AnyPolicy | None = None,
    weighting: object = None,
    metric: str = "accuracy",
    content: str = "rows",
    label: str = "run",
    draws: Sequence[int] = (),
    **more: Any,
) -> None:
    """A finished run without training."""
    decision = {"weighting": describe(weighting)} if weighting else {}
    specification = {
        "tasks": {"content": f"{content} {' '.join(tasks)}", "names": list(tasks)},
        "architecture": {"kind": "Perceptron", "hidden": [4]},
        "steps": 10,
        "seed": 0,
        **(decision or {"policy": describe(policy or Uniform())}),
        **more,
    }
    with study.run(specification, label=label).claim() as claim:
        assert claim.writer is not None
        claim.writer.start(
            specification=specification,
            seed=specification["seed"],
            label=label,
            steps=specification["steps"],
            tasks=[
                {
                    "name": n,
                    "kind": "classification",
                    "metric": metric,
                    "sizes": {"train": SIZES[n]},
                }
                for n in tasks
            ],
        )
        for step, task in enumerate(draws, 1):
            claim.writer.add_step(
                step,
                task,
                probability=0.5,
                probabilities=None,
                loss=1.0,
                reward=None,
                weight=None,
                seconds=0.1,
                examples=4 - 2 * task,
            )
        rows = [(name, "dev", metric, value) for name, value in scores.items()]
        rows += [(name, "dev", "loss", 9.0) for name in scores]
        claim.writer.finish(scores=rows, best_step=None, step=10)


def test_shares_that_stay_the_same_are_those_of_the_policy(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    policies: list[AnyPolicy] = [
        Uniform(),
        SizeProportional(),
        Tempered(temperature=1.0, limit=300),
        Capped(limit=200),
        Fixed((0.2, 0.3, 0.5)),
    ]
    for policy in policies:
        record(study, "abc", {"a": 0.5, "b": 0.6, "c": 0.7}, policy=policy, label=repr(policy))
    table = table_of_study(study)
    found = dict(zip(table.runs, table.shares.tolist(), strict=True))
    expected = [[1, 1, 1], [1, 3, 9], [1, 3, 3], [1, 2, 2], [2, 3, 5]]
    for policy, shares in zip(policies, expected, strict=True):
        np.testing.assert_allclose(
            found[f"{policy!r}, seed 0"], np.array(shares) / sum(shares), atol=1e-12
        )
    assert table.domains == table.metrics == ("a", "b", "c")
    assert table.notes == ()


def test_a_task_not_trained_on_has_no_share_and_no_score(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    record(study, "abc", {"a": 0.5, "b": 0.6, "c": 0.7}, label="all")
    record(study, "ac", {"a": 0.8, "c": 0.9}, label="two")
    table = table_of_study(study)
    place = table.runs.index("two, seed 0")
    assert table.shares[place].tolist() == [0.5, 0.0, 0.5]
    np.testing.assert_array_equal(table.values[place], [0.8, np.nan, 0.9])


@pytest.mark.parametrize(
    "policy",
    [Scheduled(((0, (0.5, 0.5)), (3, (0.9, 0.1)))), Exp3(exploration=0.2)],
)
def test_shares_that_change_are_those_of_the_batches_drawn(
    tmp_path: Path, policy: AnyPolicy
) -> None:
    study = Study(tmp_path / "study")
    record(study, "ab", {"a": 0.5, "b": 0.6}, policy=policy, draws=[0, 1, 0, 0])
    assert table_of_study(study).shares.tolist() == [[0.75, 0.25]]
    # Batches of `a` have 4 rows here, those of `b` 2.
    by_rows = table_of_study(study, by_batches=False)
    np.testing.assert_allclose(by_rows.shares, [[12 / 14, 2 / 14]])


def test_a_run_that_changed_its_shares_and_kept_no_log_is_left_out_and_named(
    tmp_path: Path,
) -> None:
    study = Study(tmp_path / "study", lean=True)
    record(study, "ab", {"a": 0.5, "b": 0.6}, label="even")
    record(study, "ab", {"a": 0.5, "b": 0.6}, policy=Exp3(exploration=0.2), label="learned")
    table = table_of_study(study)
    assert table.runs == ("even, seed 0",)
    assert table.notes == ("Left out: 1 run whose log of draws is gone: learned (1).",)


@pytest.mark.parametrize(("metric", "rises"), [("accuracy", True), ("bits_per_byte", False)])
def test_the_direction_is_the_one_of_the_metric(tmp_path: Path, metric: str, rises: bool) -> None:
    study = Study(tmp_path / "study")
    record(study, "ab", {"a": 0.5, "b": 0.6}, metric=metric)
    assert table_of_study(study).larger_is_better == (("a", "b") if rises else ())


def test_weighted_losses_are_no_mixture_and_equal_weights_are_not_compared_with_draws(
    tmp_path: Path,
) -> None:
    study = Study(tmp_path / "study")
    for seed in range(2):
        record(study, "ab", {"a": 0.5, "b": 0.6}, seed=seed)
    record(study, "ab", {"a": 0.5, "b": 0.6}, weighting=BanditMTL(radius=0.1), label="bandit")
    record(study, "ab", {"a": 0.5, "b": 0.6}, weighting=Equal(), steps=5, label="equal")
    table = table_of_study(study)
    assert len(table) == 2
    assert table.notes == (
        "Left out: 1 run with weighted losses, which are no mixtures: bandit (1).",
        "Left out: 1 run that cannot be compared (other lengths, models or tuning): equal (1).",
    )


def test_subsets_under_equal_weights_are_even_mixtures_of_the_same_number_of_batches(
    tmp_path: Path,
) -> None:
    study = Study(tmp_path / "study")
    for tasks in ("ab", "ac", "bc"):
        record(study, tasks, dict.fromkeys(tasks, 0.5), weighting=Equal(), label=tasks)
    record(study, "abc", dict.fromkeys("abc", 0.5), weighting=Equal(), label="abc")
    table = table_of_study(study)
    assert sorted(table.shares.tolist()) == [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    assert "abc (1)" in table.notes[0]  # half as many batches again


@pytest.mark.parametrize(
    "other",
    [{"steps": 20}, {"batch_size": 8}, {"optimization": {"kind": "Optimization", "rate": 1}}],
)
def test_of_runs_that_cannot_be_compared_the_larger_set_is_taken(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    study = Study(tmp_path / "study")
    for seed in range(3):
        record(study, "ab", {"a": 0.5, "b": 0.6}, seed=seed)
    record(study, "ab", {"a": 0.9, "b": 0.9}, label="other", **other)
    table = table_of_study(study)
    assert table.values[:, 0].tolist() == [0.5] * 3
    assert len(table.notes) == 1
    assert "other (1)" in table.notes[0]


def test_runs_on_other_rows_of_the_same_names_are_left_out(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    for seed in range(2):
        record(study, "ab", {"a": 0.5, "b": 0.6}, seed=seed)
    record(study, "ab", {"a": 0.9, "b": 0.9}, content="others", label="other")
    table = table_of_study(study)
    assert len(table) == 2
    assert table.notes == ("Left out: 1 run on other rows under the same names: other (1).",)


def test_models_of_several_sizes_are_rows_with_their_parameters(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    run = Run(
        label="demo",
        source=DigitsSource(),
        tasks=("half", "loop"),
        architecture=Perceptron(hidden=(4,)),
        steps=2,
        seed=0,
    )
    for each in (
        run,
        replace(run, tasks=("half",)),
        replace(run, architecture=Perceptron(hidden=(8,))),
    ):
        execute(each, study)
    table = table_of_study(study)
    # 64 pixels into h units, then two heads of two classes.
    assert list(table.known_sizes) == [65 * 4 + 2 * 5 * 2, 65 * 8 + 2 * 9 * 2]
    assert len(table.of_size(65 * 4 + 2 * 5 * 2)) == 2


def test_only_some_tasks_can_be_asked_for(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    record(study, "abc", {"a": 0.5, "b": 0.6, "c": 0.7}, label="all")
    record(study, "ab", {"a": 0.8, "b": 0.9}, label="two")
    table = table_of_study(study, tasks=["b", "a"])
    assert table.domains == ("b", "a")
    assert table.values.tolist() == [[0.9, 0.8]]
    assert table.notes == ("Left out: 1 run on other tasks: all (1).",)
    with pytest.raises(InputError, match=r"should be tasks of the study's runs. Found `d`"):
        table_of_study(study, tasks=["a", "d"])


def test_a_study_without_anything_to_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"should have finished runs. Found none"):
        table_of_study(tmp_path / "nothing")
    study = Study(tmp_path / "study")
    record(study, "ab", {"a": 0.5, "b": 0.6}, weighting=BanditMTL(radius=0.1), label="bandit")
    with pytest.raises(InputError, match=r"draw a task each step.*bandit \(1\)"):
        table_of_study(study)
    record(study, "ab", {"a": 0.5, "b": 0.6})
    with pytest.raises(InputError, match="should have scores on test"):
        table_of_study(study, split="test")
