from __future__ import annotations

import numpy as np
import pytest

from taskmix.errors import InputError
from taskmix.mixtures import MixtureTable, MixtureTarget


def table() -> MixtureTable:
    return MixtureTable(
        domains=("web", "code"),
        metrics=("loss", "bits", "accuracy"),
        runs=("a", "b"),
        shares=np.array([[0.5, 0.5], [0.9, 0.1]]),
        values=np.array([[3.0, 1.0, 0.5], [2.0, np.nan, 0.25]]),
        larger_is_better=("accuracy",),
    )


def test_the_default_is_the_mean_of_all_metrics_with_those_that_should_rise_turned() -> None:
    assert MixtureTarget().of(table().values[:1], table()) == pytest.approx([(3 + 1 - 0.5) / 3])


def test_weights_are_divided_by_their_sum() -> None:
    target = MixtureTarget(weights={"loss": 3, "accuracy": 1})
    assert target.of(table().values, table()).tolist() == [(9 - 0.5) / 4, (6 - 0.25) / 4]


def test_a_missing_metric_matters_only_where_the_target_asks_for_it() -> None:
    assert np.isnan(MixtureTarget().of(table().values, table())[1])
    target = MixtureTarget(weights={"loss": 1, "bits": 0})
    assert target.of(table().values, table()).tolist() == [3.0, 2.0]


def test_the_worst_metric_is_the_largest_after_signs() -> None:
    target = MixtureTarget(worst=True, weights={"bits": 1, "accuracy": 1})
    assert target.of(np.array([3.0, 1.0, 0.5]), table()) == pytest.approx(1.0)


def test_relative_to_a_reference_a_change_counts_the_same_at_every_level() -> None:
    target = MixtureTarget(worst=True, reference={"loss": 4.0, "bits": 1.0, "accuracy": 0.4})
    # By hand: the loss falls by 25 %, bits rise by 10 %, the accuracy rises by 25 %.
    assert target.of(np.array([3.0, 1.1, 0.5]), table()) == pytest.approx(0.1)
    mean = MixtureTarget(reference={"loss": 4.0, "bits": 1.0, "accuracy": 0.4})
    assert mean.of(np.array([3.0, 1.1, 0.5]), table()) == pytest.approx((-0.25 + 0.1 - 0.25) / 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "los"}, "Found `los`; the table has `loss`, `bits`, `accuracy`"),
        ({"weights": {"loss": 1, "f1": 2}}, "Found `f1`"),
        ({"worst": True, "reference": {"loss": 1, "bits": 1}}, "Found none for `accuracy`"),
        ({"metric": "loss", "reference": {"loss": 0.0}}, "Found 0.0 for `loss`"),
    ],
)
def test_what_the_table_does_not_have_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        MixtureTarget(**options).check(table())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": {"loss": -1.0}}, "Found -1.0 for `loss`"),
        ({"weights": {"loss": float("nan")}}, "Found nan for `loss`"),
        ({"weights": {"loss": 0.0}}, "At least one metric should have a weight above 0"),
        ({"weights": {}}, "At least one metric should have a weight above 0"),
        ({"metric": "loss", "worst": True}, "Leave one of them out"),
    ],
)
def test_options_that_make_no_target_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        MixtureTarget(**options)  # type: ignore[arg-type]
