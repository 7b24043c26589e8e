"""From a table to an answer: what is advised, what is said of it, and what is written."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from taskmix.errors import InputError
from taskmix.mixtures import (
    DomainFeatures,
    MixtureLessons,
    MixtureLimits,
    MixtureTable,
    MixtureTarget,
    describe_mixtures,
    learn_mixtures,
    read_mixtures_document,
    write_mixtures,
)
from taskmix.mixtures._learning._left_out import (
    PredictedRuns,
    judge_left_out,
    predict_left_out,
)
from taskmix.mixtures._learning._limiting import hold_fixed
from taskmix.mixtures._table import Floats
from taskmix.plans import Plan

from .mixture_files import losses_of, made_table
from .quick_forecast import RidgeForecast, be_quick


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


def test_a_terminal_and_a_notebook_show_the_same_tables(lessons: MixtureLessons) -> None:
    parts = list(describe_mixtures(lessons.document))
    assert parts[0] == lessons.document.answer
    assert "The mixture to train on" in [getattr(part, "title", "") for part in parts]
    html = lessons._repr_html_()
    for part in parts:
        if not isinstance(part, str):
            assert f"<caption>{part.title}</caption>" in html
    assert repr(lessons).startswith("Train on ")


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
    with pytest.raises(InputError, match=r"Found a sum of 0.8 in `asked`"):
        lessons.predict({"web": 0.8})


def test_a_metric_that_should_rise_is_made_large_and_shown_rising() -> None:
    made = made_table()
    table = replace(
        made,
        metrics=("accuracy", "python"),
        values=np.column_stack([1.0 - made.values[:, 0] / 10, made.values[:, 1]]),
        larger_is_better=("accuracy",),
    )
    rising = learn_mixtures(table, target="accuracy", fit=RidgeForecast)
    falling = learn_mixtures(made, target="prose", fit=RidgeForecast)
    assert rising.shares["web"] == pytest.approx(falling.shares["web"], abs=0.1)
    document = rising.document
    assert document.larger_is_better
    assert 0.5 < document.compared[0].target.value < 1
    equal = next(row for row in document.compared if row.name == "equal shares")
    assert equal.target.value < document.compared[0].target.value
    assert equal.gain.value > 0
    assert document.left_out[0].name == "accuracy"


def test_domains_that_were_never_varied_keep_their_shares() -> None:
    made = made_table()
    shares = np.column_stack([made.shares * 0.9, np.full(len(made), 0.1)])
    table = replace(made, domains=(*made.domains, "wiki"), shares=shares)
    lessons = learn_mixtures(table, fit=RidgeForecast)
    assert lessons.shares["wiki"] == pytest.approx(0.1, abs=1e-6)
    row = lessons.document.domains[3]
    assert row.fixed
    assert row.effect is None
    assert "cannot be told: `wiki` (0.1)" in lessons.document.warnings[0]
    with pytest.raises(InputError, match=r"Found 0.1 in every run, and limits from 0 to 0.05"):
        hold_fixed(MixtureLimits(at_most={"wiki": 0.05}), {"wiki": 0.1}, table.domains)


def test_runs_are_predicted_without_them_and_without_repeats_of_them() -> None:
    made = made_table(12, noise=0.0)
    twice = MixtureTable(
        domains=made.domains,
        metrics=made.metrics,
        runs=tuple(f"r{place}" for place in range(24)),
        shares=np.concatenate([made.shares, made.shares]),
        values=np.concatenate([made.values, made.values]),
    )
    memory = Memory(twice)
    assert np.abs(memory.predict(twice.shares) - twice.values).max() == 0, "it knows all of them"
    left = predict_left_out(memory, Memory)
    assert np.abs(left.predicted - twice.values).min() > 0, "but not one of those left out"


def test_predictions_that_a_forecast_kept_are_used_as_they_are() -> None:
    made = made_table(12)
    kept = SimpleNamespace(predicted=made.values + 1, low=made.values, high=made.values + 2)
    forecast = SimpleNamespace(table=made, left_out=kept)
    left = predict_left_out(forecast, lambda table: pytest.fail("nothing is to be fitted"))
    assert left.predicted is kept.predicted


def test_accuracy_is_what_it_is_by_hand() -> None:
    made = made_table(8)
    observed = np.array([1.0, 2, 3, 4, 5, 6, 7, np.nan])
    predicted = np.array([1.0, 2, 3, 4, 5, 7, 6, 9])
    table = replace(made, metrics=("loss",), values=observed[:, None])
    high = predicted + 0.5
    left = PredictedRuns(table, predicted[:, None], predicted[:, None] - 0.5, high[:, None])
    (row,) = judge_left_out(left, Memory(table), MixtureTarget(metric="loss"))
    # Two neighbours of seven changed places: 1 - 6 * 2 / (7 * 48).
    assert row.rank_correlation == pytest.approx(1 - 12 / 336)
    assert row.r_squared == pytest.approx(1 - 2 / 28)
    assert row.coverage == pytest.approx(5 / 7)
    assert row.error == pytest.approx(np.sqrt(2 / 7))
    assert "r7" not in row.runs


def test_an_answer_outside_of_the_runs_is_said_to_be_extrapolated() -> None:
    made = made_table()
    narrow = made.only(made.shares[:, 1] < 0.3)
    document = learn_mixtures(narrow, target="python", fit=RidgeForecast).document
    assert document.extrapolated
    assert "`code`" in document.distance
    assert document.distance in document.trust


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


def test_a_new_domain_that_is_like_a_good_one_may_be_advised_and_is_said_to_be_a_guess() -> None:
    made = made_table(32)
    vectors = {"web": [1.0, 0.0], "code": [0.0, 1.0], "books": [0.7, 0.2], "scripts": [0.0, 0.9]}
    features = DomainFeatures.of_vectors(list(vectors), np.array(list(vectors.values())))
    lessons = learn_mixtures(
        made, features=features, limits=MixtureLimits(at_most={"scripts": 0.2}), target="python"
    )
    document = lessons.document
    assert [row.domain for row in document.domains] == [*made.domains, "scripts"]
    assert lessons.shares["scripts"] <= 0.2 + 1e-6
    assert any("No run tells what these are worth: `scripts`" in each for each in document.warnings)
    wide, narrow = (
        lessons.predict({other: 0.3, "web": 0.7}).metrics["python"] for other in ("scripts", "code")
    )
    assert wide.high - wide.low > narrow.high - narrow.low


def test_what_is_asked_for_by_name_has_to_be_there() -> None:
    made = made_table()
    with pytest.raises(InputError, match="Found `physics`; the table has `prose`"):
        learn_mixtures(made, target="physics")
    with pytest.raises(InputError, match="Found `physics`"):
        learn_mixtures(made, front=("prose", "physics"))
    with pytest.raises(InputError, match="`law`"):
        learn_mixtures(made, limits=MixtureLimits(at_most={"law": 0.1}))
