"""Ways of training that cost little or nothing more: own best evaluations, and merged models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_adviser import World, adviser, sound

from taskmix.adviser._answer import answer, best_runs, plan_of
from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._candidates import baselines, distinct
from taskmix.adviser._guessed_mixtures import corrected_guesses
from taskmix.adviser._own_best import held_out_gains, own_best, with_held_out_scores
from taskmix.adviser._propose import merged
from taskmix.adviser._run_length import RunLength
from taskmix.adviser._scores import Entry
from taskmix.engine import DigitsSource, Here, Optimization, Run
from taskmix.models import Architecture, Merge, Perceptron, Transformer
from taskmix.plans import Part, Plan, Shares
from taskmix.records import Study
from taskmix.tasks import FeatureEncoding

NAMES = ("parity", "half")


def test_what_an_own_best_gains_is_measured_on_runs_it_was_not_chosen_by() -> None:
    # Both seeds: the first task is at its best at once, the second at the end.
    same = np.array([[0.9, 0.1], [0.7, 0.5], [0.5, 0.9]])
    np.testing.assert_allclose(
        held_out_gains([same, same]), [0.4, 0.0]
    )  # the mean's best is the last
    # Peaks that no other seed has are luck, and count for what they were worth there.
    one, other = np.array([[0.9, 0.5], [0.5, 0.5]]), np.array([[0.5, 0.5], [0.9, 0.5]])
    np.testing.assert_allclose(held_out_gains([one, other]), [0.0, 0.0])


def entries_of(study: Study) -> tuple[dict[str, list[Entry]], Run]:
    """Two seeds of a shared run that is trained for real."""
    run = Run(
        label="t",
        source=DigitsSource(tasks=NAMES),
        architecture=Perceptron(hidden=(4,)),
        optimization=Optimization(learning_rate=0.05),
        steps=12,
        seed=0,
    )
    part = Part(tasks=NAMES, scored=NAMES, share=1.0, division=Shares.equal(2))
    plan = Plan(name="uniform", words="all tasks, equally often", parts=(part,))
    found = []
    for seed in (0, 1):
        runs = plan.runs(run, seeds=[seed], evaluations=3)
        Here(workers=1).run(runs, study)
        found.append(
            Entry(candidate=plan, seed=seed, runs=tuple(runs), dev={}, test={}, batches=12.0)
        )
    return {"uniform": found}, run


def test_in_the_race_a_task_has_its_score_where_the_other_seeds_are_at_their_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries, run = entries_of(Study(tmp_path))
    plan = entries["uniform"][0].candidate
    each = replace(plan, parts=tuple(replace(part, keep="each") for part in plan.parts))
    curves = {
        0: [(1.0, {"parity": 0.9, "half": 0.1}), (2.0, {"parity": 0.6, "half": 0.8})],
        1: [(1.0, {"parity": 0.5, "half": 0.2}), (2.0, {"parity": 0.7, "half": 0.9})],
    }
    monkeypatch.setattr(
        "taskmix.adviser._own_best.dev_curve", lambda part, run, tasks, study: curves[run.seed]
    )
    some = [replace(entry, candidate=each) for entry in entries["uniform"]]
    first, second = with_held_out_scores(some, run.load(), Study(tmp_path))
    # Seed 1 has both tasks at their best at the end; seed 0 has parity at its best at the start.
    assert first.dev == {"parity": 0.6, "half": 0.8}
    assert second.dev == {"parity": 0.5, "half": 0.9}
    (alone,) = with_held_out_scores(some[:1], run.load(), Study(tmp_path))
    assert alone.dev == {"parity": 0.6, "half": 0.8}  # at the best mean
    kept = with_held_out_scores(entries["uniform"], run.load(), Study(tmp_path))
    assert kept == entries["uniform"]  # whose tasks are served together


@pytest.mark.parametrize("gain", [0.1, 0.0, -0.1])
def test_own_best_evaluations_are_proposed_only_where_other_seeds_say_that_they_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gain: float
) -> None:
    study = Study(tmp_path)
    entries, run = entries_of(study)
    gains = np.array([gain, gain / 2])
    monkeypatch.setattr("taskmix.adviser._own_best.held_out_gains", lambda curves: gains)
    found = own_best(entries, run.load(), NAMES, study)
    assert (found is not None) == (gain > 0)
    if found is not None:
        assert [part.keep for part in found.parts] == ["each"]
        assert distinct([found], [entries["uniform"][0].candidate]) == [found]
        assert found.words.endswith("each served by its own best evaluation")


def runs_on(architecture: Architecture, study: Path) -> CandidateRuns:
    """Of a budget of steps; nothing is trained."""
    made, _ = adviser(World(), study)
    nothing: Any = None
    by_steps: Any = SimpleNamespace(by_clock=False)
    return CandidateRuns(
        template=replace(made.template, architecture=architecture),
        study=Study(study),
        executor=nothing,
        timer=nothing,
        spending=by_steps,
        length=RunLength(batches=80, evaluations=4),
        first_seed=0,
    )


def trained_alone(runs: CandidateRuns) -> Plan:
    """Training alone, which has been done under seed 0."""
    single = baselines(runs.template.load(), NAMES)[0]
    done = tuple(runs._runs(single, 0))
    runs.entries["single"] = [
        Entry(candidate=single, seed=0, runs=done, dev={}, test={}, batches=80.0)
    ]
    return single


ADAPTERS = Transformer(path="nowhere", tune="adapters")
HEADS = Perceptron(reads=FeatureEncoding(path="nowhere"))  # small: its runs keep no checkpoints


@pytest.mark.parametrize("architecture", [ADAPTERS, HEADS], ids=["adapters", "heads"])
def test_merged_models_are_made_of_the_very_runs_that_are_trained_alone(
    tmp_path: Path, architecture: Architecture
) -> None:
    runs = runs_on(architecture, tmp_path)
    single = trained_alone(runs)
    plan = merged(runs.entries)
    assert plan is not None
    assert distinct([plan], [single]) == [plan]
    (together,) = runs._runs(plan, 0)
    alone = {str(run.specification()) for run in runs._runs(single, 0)}
    assert {str(run.specification()) for run in together.sources} == alone


def test_merging_costs_nothing_but_evaluations_where_its_models_are_trained(tmp_path: Path) -> None:
    runs = runs_on(ADAPTERS, tmp_path)
    trained_alone(runs)
    plan = merged(runs.entries)
    assert plan is not None
    assert runs.costs_of([(plan, 0), (plan, 1)]) == [[0.0], [80.0]]  # batches of each seed


def test_a_merged_model_that_is_best_is_the_plan_and_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scorer(run: Run, task: str) -> float:
        return 0.97 if run.label == "merged" and sound(run, task) > 0.6 else sound(run, task)

    monkeypatch.setattr("taskmix.adviser._adviser.rungs_below", lambda template, tasks: [])
    made, _ = adviser(World(scorer), tmp_path)
    made.template = replace(made.template, architecture=ADAPTERS)
    advice = made.run()
    found = answer(advice, Study(tmp_path))
    assert found.chosen.merge == Merge()
    assert any("merge the models into one (TaskArithmetic)" in line for line in found.lines)
    ((run, served),) = best_runs(advice, found)
    assert run.merge == Merge()
    assert set(served) == set(advice.tasks.names)
    plan = plan_of(advice, found)
    assert Plan.load(plan.save(tmp_path / "plan.json")).merge == plan.merge


@pytest.mark.parametrize("architecture", [Perceptron(), Transformer(path="nowhere", tune="all")])
def test_models_from_scratch_and_copies_of_all_weights_are_not_merged(
    tmp_path: Path, architecture: Architecture
) -> None:
    runs = runs_on(architecture, tmp_path)
    trained_alone(runs)
    assert merged(runs.entries) is None


def test_guesses_are_corrected_by_a_line_through_what_was_trained() -> None:
    guesses, scores = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.62, 0.64, 0.66, 0.68])
    found, error = corrected_guesses(guesses, scores, np.array([0.5]))
    assert found == pytest.approx([0.70])  # 0.6 + 0.2 g, which fits all of them
    assert error == pytest.approx(0.0, abs=1e-12)


def test_guesses_that_say_nothing_are_shrunk_to_the_mean() -> None:
    generator = np.random.default_rng(0)
    guesses, scores = generator.normal(size=(2, 40))
    found, error = corrected_guesses(guesses, scores, np.array([-3.0, 3.0]))
    assert abs(found[1] - found[0]) < 0.5  # a slope near 0, of what could be 6 apart
    assert error == pytest.approx(float(scores.std()), rel=0.15)
    few, unknown = corrected_guesses(np.array([0.1]), np.array([0.3]), np.array([0.2]))
    assert few == pytest.approx([0.4])
    assert np.isnan(unknown)
