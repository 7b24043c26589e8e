"""Ways of training that cost little or nothing more: own best evaluations, and merged models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_adviser import World, adviser, sound

from taskmix.adviser._adviser import Advice
from taskmix.adviser._answer import answer, best_runs, plan_of
from taskmix.adviser._candidates import distinct
from taskmix.adviser._guessed_mixtures import corrected_guesses
from taskmix.adviser._own_best import held_out_gains, own_best, with_held_out_scores
from taskmix.adviser._propose import merged
from taskmix.adviser._scores import Entry
from taskmix.engine import DigitsSource, Here, Optimization, Run
from taskmix.models import Architecture, Merge, Perceptron, Transformer
from taskmix.plans import Part, Plan, Shares
from taskmix.records import Study

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


def advice_on_adapters(world: World, study: Path) -> Advice:
    """Advice on adapters of a pretrained model, whose runs are made up."""
    made, _ = adviser(world, study)
    made.template = replace(
        made.template, architecture=Transformer(path="nowhere", tune="adapters")
    )
    return made.run()


def test_models_trained_alone_are_merged_for_nothing_but_their_evaluation(tmp_path: Path) -> None:
    advice = advice_on_adapters(World(), tmp_path)
    assert "merged" in advice.entries
    trained = [
        entry
        for some in advice.entries.values()
        for entry in some
        if entry.candidate.merge is None or entry.seed > 1
    ]
    assert advice.spent == len(trained) * advice.batches
    entry = advice.entries["merged"][0]
    (run,) = entry.runs
    assert [source.tasks for source in run.sources] == [(name,) for name in advice.tasks.names]
    single = advice.entries["single"][0].runs
    assert {each.specification()["seed"] for each in run.sources} == {0}
    assert {str(each.specification()) for each in run.sources} == {
        str(each.specification()) for each in single
    }


def test_a_merged_model_that_is_best_is_the_plan_and_what_is_kept(tmp_path: Path) -> None:
    def scorer(run: Run, task: str) -> float:
        return 0.97 if run.label == "merged" and sound(run, task) > 0.6 else sound(run, task)

    advice = advice_on_adapters(World(scorer), tmp_path)
    found = answer(advice)
    assert found.chosen.merge == Merge()
    assert found.lines[0] == "Train each task alone and merge the models into one (TaskArithmetic)."
    ((run, served),) = best_runs(advice, found)
    assert run.merge == Merge()
    assert set(served) == set(advice.tasks.names)
    plan = plan_of(advice, found)
    assert Plan.load(plan.save(tmp_path / "plan.json")).merge == plan.merge


@pytest.mark.parametrize("architecture", [Perceptron(), Transformer(path="nowhere", tune="all")])
def test_models_from_scratch_and_copies_of_all_weights_are_not_merged(
    tmp_path: Path, architecture: Architecture
) -> None:
    made, _ = adviser(World(), tmp_path)
    made.template = replace(made.template, architecture=architecture)
    advice = made.run()
    assert merged(advice.entries) is None
    assert "merged" not in advice.entries


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
