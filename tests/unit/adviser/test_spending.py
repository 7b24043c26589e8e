"""Costs of runs by their kinds, and what stages teach about them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest

from taskmix.adviser import Budget
from taskmix.adviser._budget import PricedBudget, Prices, Timer
from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._candidates import baselines
from taskmix.adviser._ledger import Ledger
from taskmix.adviser._prices import Meter, NoTimeError
from taskmix.adviser._run_length import RunLength
from taskmix.adviser._spending import Paces, Spending
from taskmix.engine import Auto, DigitsSource, Here, Run
from taskmix.models import Perceptron
from taskmix.policies import Uniform
from taskmix.records import Study
from taskmix.weighting import FAMO

SOURCE = DigitsSource(tasks=("parity", "half"))
TEMPLATE = Run(
    label="t",
    source=SOURCE,
    architecture=Perceptron(hidden=(8,)),
    steps=100,
    seed=0,
    policy=Uniform(),
    evaluate_every=50,
)
WIDER = replace(TEMPLATE, architecture=Perceptron(hidden=(200,)))
FLEETS, ALONE = Auto(workers=1), Here(workers=1)


@dataclass
class KnownPrices:
    """Stands for a meter: alone a batch takes a second, and twice that with a wider model."""

    asked: list[tuple[int, bool]] = field(default_factory=list)
    seconds = 1.0

    def measure(self, run: Run, *, together: bool) -> Prices:
        width = run.architecture.hidden[0]  # type: ignore[attr-defined]
        self.asked.append((width, together))
        batch = 1.0 if width == 8 else 2.0
        return Prices(batch=batch / (4 if together else 1), members=8 if together else 1)


def spending(
    folder: Path, meter: KnownPrices, *, executor: object = FLEETS, seconds: float = 10_000.0
) -> Spending:
    timer = Timer(seconds=seconds, begin=0.0, now=lambda: 0.0)
    return Spending.of_ledger(
        Ledger(folder, {"asked": 1}),
        timer,
        Budget(seconds=seconds),
        template=TEMPLATE,
        executor=executor,  # type: ignore[arg-type]
        meter=meter,  # type: ignore[arg-type]
    )


def test_a_run_costs_what_its_model_its_length_and_its_method_cost(tmp_path: Path) -> None:
    found = spending(tmp_path, KnownPrices(), executor=ALONE)
    ways = [
        TEMPLATE,
        replace(TEMPLATE, steps=300),
        WIDER,
        replace(TEMPLATE, policy=None, weighting=FAMO()),
    ]
    costs = found.costs(ways)
    assert costs[1] == pytest.approx(3 * costs[0])
    assert costs[2] == pytest.approx(2 * costs[0])
    # Two batches a step, and a second look at both.
    assert costs[3] == pytest.approx(2 * 4 / 3 * costs[0])


def test_runs_that_train_together_are_priced_so_and_alone_as_alone(tmp_path: Path) -> None:
    meter = KnownPrices()
    found = spending(tmp_path, meter)
    eight = found.costs([replace(TEMPLATE, seed=seed) for seed in range(8)])
    two = found.costs([replace(TEMPLATE, seed=seed) for seed in range(2)])
    one = found.costs([TEMPLATE])
    assert eight[0] == pytest.approx(one[0] / 4)
    assert eight[0] < two[0] < one[0]
    assert meter.asked == [(8, True), (8, False)], "each kind is measured when it is asked for"


def test_prices_are_measured_once_and_kept_for_who_goes_on(tmp_path: Path) -> None:
    meter = KnownPrices()
    first = spending(tmp_path, meter)
    first.begin()
    costs = first.costs([WIDER])
    again = KnownPrices()
    second = spending(tmp_path, again)
    assert second.costs([WIDER]) == costs
    assert second.budget == first.budget
    assert again.asked == []


@pytest.mark.parametrize("names", [{}, {"workers": "hands"}])
def test_a_study_of_an_earlier_version_goes_on_with_its_one_price(
    tmp_path: Path, names: dict[str, str]
) -> None:
    kept = {
        "batch": 0.5,
        "probe": 0.1,
        "start": 0.0,
        "row": 0.0,
        names.get("workers", "workers"): 1,
    }
    ledger = Ledger(tmp_path, {"asked": 1})
    ledger.settle("budget", {"batches": 900, "probe_price": 0.2, "prices": kept}, seconds=3.0)
    meter = KnownPrices()
    found = spending(tmp_path, meter)
    assert found.costs([TEMPLATE, WIDER]) == [pytest.approx(50.0), pytest.approx(50.0)]
    assert meter.asked == []
    assert (found.budget.batches, found.timer.before) == (900, 3.0)


def test_where_no_time_is_left_a_new_kind_is_not_measured_and_cannot_be_paid(
    tmp_path: Path,
) -> None:
    meter = KnownPrices()
    found = spending(tmp_path, meter, seconds=100.0)
    found.begin()
    found.timer.now = lambda: 99.0
    (cost,) = found.costs([WIDER])
    assert math.isinf(cost)
    assert not found.can_pay([[cost]])
    assert (200, True) not in meter.asked


def test_a_budget_too_small_for_anything_is_refused_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    meter = Meter(ALONE, Timer(seconds=3.0, begin=0.0, now=lambda: 1.0))
    with pytest.raises(NoTimeError, match=r"Found 3s, of which 1s were used .* at least 11s"):
        Spending.of_ledger(
            Ledger(tmp_path, {}),
            meter.timer,
            Budget(seconds=3.0),
            template=TEMPLATE,
            executor=ALONE,
            meter=meter,
        )


def test_steps_are_counted_and_nothing_is_measured(tmp_path: Path) -> None:
    meter = KnownPrices()
    found = Spending.of_ledger(
        Ledger(tmp_path, {}),
        Timer(),
        Budget(batches=1000),
        template=TEMPLATE,
        executor=FLEETS,
        meter=meter,  # type: ignore[arg-type]
    )
    dear = replace(TEMPLATE, policy=None, weighting=FAMO())
    assert found.costs([TEMPLATE, dear]) == [100.0, pytest.approx(100 * 2 * 4 / 3)]
    assert meter.asked == []


def test_a_stage_corrects_the_prices_of_its_kinds_more_than_those_of_others(tmp_path: Path) -> None:
    found = spending(tmp_path, KnownPrices(), executor=ALONE)
    before = found.costs([TEMPLATE, WIDER])
    found.learn([TEMPLATE], seconds=3 * before[0])
    after = found.costs([TEMPLATE, WIDER])
    assert after[0] == pytest.approx(3 * before[0], rel=0.1)
    paces = Paces()
    paces.learn({"a": 1000.0}, 3000.0)
    paces.learn({"b": 1000.0}, 1000.0)
    assert paces.of("a") == pytest.approx(3.0, rel=0.05)
    assert paces.of("b") == pytest.approx(1.0, rel=0.05)
    assert paces.of("c") == pytest.approx(2.0, rel=0.05)
    few = Paces()
    few.learn({"a": 0.1}, 0.5)
    assert few.of("a") < 1.5, "one slow moment of a short run tells little"


def test_candidates_of_another_length_and_another_model_are_priced_from_the_same_budget(
    tmp_path: Path,
) -> None:
    found = spending(tmp_path, KnownPrices(), executor=ALONE)
    study = Study(tmp_path / "study")
    runs, above = (
        CandidateRuns(
            template=template,
            study=study,
            executor=ALONE,
            timer=found.timer,
            spending=found,
            length=RunLength(100, 2),
            first_seed=0,
        )
        for template in (TEMPLATE, WIDER)
    )
    tasks = TEMPLATE.load()
    for way in baselines(tasks, tasks.names):
        usual = sum(runs.costs(way))
        assert sum(runs.costs(way, batches=1000)) == pytest.approx(10 * usual)
        assert sum(above.costs(way)) == pytest.approx(2 * usual)


def test_a_priced_budget_is_kept_as_it_was(tmp_path: Path) -> None:
    found = spending(tmp_path, KnownPrices())
    found.begin()
    kept = Ledger(tmp_path, {"asked": 1}).decisions["budget"]
    assert kept == asdict(found.budget)
    assert isinstance(found.budget, PricedBudget)
