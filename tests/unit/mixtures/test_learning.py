"""From a table to an answer: what is advised, what is said of it, and what is written."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from taskmix.errors import InputError
from taskmix.mixtures import (
    LeftOutRuns,
    MixtureLessons,
    MixtureLimits,
    MixtureTable,
    describe_mixtures,
    learn_mixtures,
    read_mixtures_document,
    write_mixtures,
)
from taskmix.plans import Plan

from .mixture_files import losses_of, made_table
from .quick_forecast import Floats, RidgeForecast, be_quick


@dataclass(frozen=True, eq=False)
class Memory:
    """A forecast that knows the runs it has seen, and nothing else: the mean of them."""

    table: MixtureTable

    def predict(self, shares: Floats) -> Floats:
        apart = np.abs(shares[:, None] - self.table.shares[None]).sum(axis=2)
        known = self.table.values[apart.argmin(axis=1)]
        return np.where(apart.min(axis=1)[:, None] < 1e-9, known, self.table.values.mean(axis=0))

    def draws(self, shares: Floats) -> Floats:
        return np.repeat(self.predict(shares)[None], 16, axis=0)

    def noise(self, shares: Floats) -> Floats:
        return np.full((len(shares), len(self.table.metrics)), 0.1)

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        return self.predict(shares) - 0.1, self.predict(shares) + 0.1


@pytest.fixture(scope="module")
def lessons() -> MixtureLessons:
    return learn_mixtures(made_table(32), front=("prose", "python"), next_runs=2)


def test_the_advised_mixture_is_nearly_the_best_by_the_true_law(lessons: MixtureLessons) -> None:
    everywhere = np.random.default_rng(3).dirichlet(np.ones(3), size=4000)
    truth = losses_of(everywhere).mean(axis=1)
    advised = losses_of(np.array([list(lessons.shares.values())])).mean()
    assert advised - truth.min() < 0.1 * truth.std()
    assert sum(lessons.shares.values()) == pytest.approx(1.0)


def test_the_document_says_what_is_expected_of_the_mixture_and_of_others(
    lessons: MixtureLessons,
) -> None:
    document = lessons.document
    advised, *others = document.compared
    assert advised.name == "advised"
    assert {row.name for row in others} >= {"equal shares"}
    assert any(row.name.startswith("best run (r") for row in others)
    for row in others:
        # The gain is a difference of targets, law by law.
        assert row.gain.value == pytest.approx(row.target.value - advised.target.value, abs=1e-6)
        assert row.gain.low <= row.gain.value <= row.gain.high
    assert document.left_out[0].name == "target"
    assert [row.name for row in document.left_out[1:]] == ["prose", "python"]
    assert document.left_out[0].rank_correlation > 0.7
    assert {row.law for row in document.laws} >= {"effective data"}
    assert sum(row.weight for row in document.laws if row.metric == "prose") == pytest.approx(1.0)
    assert document.left_out[1].coverage > 0.7
    assert document.next is not None
    assert len(document.next.runs) == 2
    assert document.front is not None
    first = [point.first.value for point in document.front.points]
    assert first == sorted(first), "from the best for prose to the best for python"


def test_the_document_is_written_and_read_as_it_was(
    lessons: MixtureLessons, tmp_path: Path
) -> None:
    path = write_mixtures(lessons.document, tmp_path / "mix.json")
    assert read_mixtures_document(path).as_json() == lessons.document.as_json()
    path.write_text("[1]")
    with pytest.raises(InputError, match="that `taskmix mix --document` wrote"):
        read_mixtures_document(path)


def test_a_plan_has_the_shares_that_count_and_is_saved(tmp_path: Path) -> None:
    rare = replace(made_table(), domains=("web", "code", "books"))
    lessons = learn_mixtures(rare, limits=MixtureLimits(at_most={"books": 0.0}), fit=RidgeForecast)
    plan = lessons.plan()
    assert plan.tasks == ("web", "code"), "a share of 0 is no task of a plan"
    assert sum(plan.probabilities) == pytest.approx(1.0)
    assert plan.evidence["left out of the plan"] == ["books"]
    path = plan.save(tmp_path / "plan.json")
    assert Plan.load(path).probabilities == plan.probabilities
    assert json.loads(path.read_text())["evidence"]["trust"] == list(lessons.document.trust)


def test_mixtures_are_predicted_by_name_and_wrong_ones_refused(lessons: MixtureLessons) -> None:
    found = lessons.predict({"web": 0.5, "code": 0.5})
    assert found.shares == {"web": 0.5, "code": 0.5, "books": 0.0}
    truth = losses_of(np.array([[0.5, 0.5, 0.0]]))[0]
    assert found.metrics["prose"].value == pytest.approx(truth[0], abs=0.2)
    with pytest.raises(InputError, match=r"Found `law` in `asked`; there are `web`"):
        lessons.predict({"law": 1.0})
    for sum_ in (0.8, 0.991):
        with pytest.raises(InputError, match=rf"Found a sum of {sum_} in `asked`"):
            lessons.predict({"web": sum_})


def test_runs_are_predicted_without_them_and_without_repeats_of_them() -> None:
    made = made_table(12, noise=0.0)
    twice = MixtureTable(
        domains=made.domains,
        metrics=made.metrics,
        runs=tuple(f"r{place}" for place in range(24)),
        shares=np.concatenate([made.shares, made.shares]),
        values=np.concatenate([made.values, made.values]),
    )
    assert np.abs(Memory(twice).predict(twice.shares) - twice.values).max() == 0
    left = learn_mixtures(twice, fit=Memory).left_out
    assert np.abs(left.predicted - twice.values).min() > 0, "it knows not one of those left out"


def test_accuracy_is_what_it_is_by_hand_of_predictions_that_the_forecast_kept() -> None:
    made = made_table(9)
    observed = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, np.nan])
    predicted = np.array([1.0, 2, 3, 4, 5, 6, 8, 7, 9])[:, None]
    values = np.column_stack([observed, made.values[:, 0]])
    table = replace(made, metrics=("loss", "other"), values=values)
    kept = np.column_stack([predicted, made.values[:, :1]])

    class Keeps(Memory):
        left_out = LeftOutRuns(predicted=kept, deviation=kept, low=kept - 0.5, high=kept + 0.5)

    row = learn_mixtures(table, target="loss", fit=Keeps).document.left_out[0]
    # Two neighbours of eight changed places: 1 - 6 * 2 / (8 * 63).
    assert row.rank_correlation == pytest.approx(1 - 12 / 504)
    assert row.r_squared == pytest.approx(1 - 2 / 42)
    assert row.coverage == pytest.approx(6 / 8)
    assert row.error == pytest.approx(np.sqrt(2 / 8))
    assert "r8" not in row.runs


def test_an_answer_outside_of_the_runs_is_said_to_be_extrapolated() -> None:
    made = made_table()
    narrow = made.only(made.shares[:, 1] < 0.3)
    document = learn_mixtures(narrow, target="python", fit=RidgeForecast).document
    assert document.extrapolated
    assert "`code`" in document.distance
    assert document.distance in document.trust


def test_no_part_of_the_trust_praises_what_another_one_doubts(lessons: MixtureLessons) -> None:
    class Torn(RidgeForecast):
        """Right about the runs, and of as many minds as it has draws about all others."""

        def draws(self, shares: Floats) -> Floats:
            minds = np.random.default_rng(0).standard_normal((64, shares.shape[1]))
            apart = np.abs(shares[:, None] - self.table.shares).sum(axis=2).min(axis=1)
            return super().draws(shares) + (apart * (minds @ shares.T))[:, :, None]

    made = made_table(32)
    low = learn_mixtures(made, fit=Torn).document
    assert low.left_out[0].rank_correlation > 0.8
    assert 0.5 * low.spread < low.regret <= np.ptp(made.values.mean(axis=1))
    assert low.trust[0].startswith("Trust in this answer is low: laws that fit as well leave ")
    assert low.answer.startswith("A guess, as trust in it is low: train on ")
    assert not any("well" in each.replace("as well", "") for each in low.trust)
    assert "100 %" not in " ".join(low.trust)
    shown = [part for part in describe_mixtures(low) if isinstance(part, str)]
    assert f"- {low.trust[0]}" in shown
    fair = lessons.document
    assert fair.trust[0].startswith(
        "Trust in this answer is fair: the mixture cannot be told from "
    )
    assert fair.trust[-1].startswith("The answer is for models of the size of these runs")


def test_of_several_sizes_the_answer_is_for_one_and_judged_by_its_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    be_quick(monkeypatch)
    small, large = made_table(24, seed=1), made_table(8, seed=1)
    table = MixtureTable(
        domains=small.domains,
        metrics=small.metrics,
        runs=tuple(f"r{place}" for place in range(32)),
        shares=np.concatenate([small.shares, large.shares]),
        values=np.concatenate([small.values, 0.8 * large.values]),
        sizes=np.repeat([1e6, 6e7], [24, 8]),
    )
    lessons = learn_mixtures(table, target="prose", next_runs=1)
    document = lessons.document
    assert document.size == 6e7
    assert len(document.left_out[0].runs) == 8
    assert document.compared[0].target.value < 0.9 * small.values[:, 0].mean()
    assert document.carry is not None
    assert document.carry[0].name == "prose"
    assert any(words.startswith("Between sizes: ") for words in document.trust)
    assert document.next is not None
    assert "60 M" in document.next.words
    with pytest.raises(InputError, match="`size` should come with a column"):
        learn_mixtures(made_table(), size=6e7)
