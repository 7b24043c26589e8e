from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretended_runs import EFFECTS, NAMES, TEMPLATE, Pretended, description

from taskmix.engine import Auto, DigitsSource, Executed, Fleet, Here, Optimization, Run, Until
from taskmix.errors import InputError, OptionError, RunError
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.transfer import (
    GroupLimits,
    LearningOptions,
    SubsetDesign,
    TransferStudy,
    learn,
    measure_trials,
    train_trials,
    transfer_document,
)
from taskmix.weighting import Equal


def test_a_study_of_one_target_trains_it_alone_with_subsets_and_with_others_held_out() -> None:
    study = description(design=SubsetDesign(count=30, alone=5, held_out=12))
    alone, subsets, held = study.alone(), study.subsets(30), study.held_out(12)
    assert [trial.tasks for trial in alone] == [("half",)] * 5
    assert [trial.run.seed for trial in alone] == [0, 1, 2, 3, 4]
    assert {len(trial.tasks) for trial in subsets} == {4}
    assert all("half" in trial.tasks for trial in (*subsets, *held))
    assert {len(trial.tasks) for trial in held} == {2, 3, 5, 6, 7}  # any size but the design's
    assert isinstance(subsets[0].run.weighting, Equal)
    assert len({trial.run.seed for trial in subsets}) == 30  # a seed of its own for each


def test_in_a_study_of_all_targets_every_task_is_in_as_many_subsets_as_asked_for() -> None:
    study = description(NAMES)
    assert study.shared
    counts = Counter(name for trial in study.subsets(30) for name in trial.tasks)
    assert set(counts.values()) == {30}
    assert len(study.subsets(30)) == 60  # 30 for each of 8 tasks, 4 tasks a run


@given(
    count=st.integers(1, 80), more=st.integers(0, 80), kind=st.sampled_from(["balanced", "fixed"])
)
def test_a_larger_study_trains_again_nothing_but_the_last_block(
    count: int, more: int, kind: str
) -> None:
    study = description(design=SubsetDesign(kind=kind, count=count))  # type: ignore[arg-type]
    small = [(trial.tasks, trial.run.seed) for trial in study.subsets(count)]
    large = [(trial.tasks, trial.run.seed) for trial in study.subsets(count + more)]
    block = 35  # all subsets of 3 of 7
    kept = count - count % block if kind == "balanced" else count
    assert small[:kept] == large[:kept]


@pytest.mark.parametrize("kind", ["all-sizes", "leave-one-out"])
@pytest.mark.parametrize("targets", [("half",), NAMES])
def test_designs_of_several_sizes_can_be_carried_out_and_learned_from(
    kind: str, targets: tuple[str, ...], tmp_path: Path
) -> None:
    design = SubsetDesign(kind=kind, count=40)  # type: ignore[arg-type]
    measured = train_trials(
        description(targets, design=design), Study(tmp_path), executor=Pretended()
    )
    lesson = learn(measured, Study(tmp_path)).targets[0]
    wanted = [-EFFECTS[name] for name in lesson.surrogate.sources]
    np.testing.assert_allclose(lesson.surrogate.gains, wanted, atol=0.08)


def test_a_total_budget_divides_the_batches_over_the_tasks_of_a_run() -> None:
    study = description(budget="total")
    assert [study.steps(tasks) for tasks in (1, 2, 3, 8)] == [24, 12, 8, 3]
    assert study.run(("half", "loop"), 0).steps == 12
    assert description().run(("half", "loop"), 0).steps == 24


def test_effects_verdicts_and_selections_are_those_of_the_world(tmp_path: Path) -> None:
    measured = train_trials(
        description(design=SubsetDesign(count=60)), Study(tmp_path), executor=Pretended()
    )
    lessons = learn(measured, Study(tmp_path), executor=Pretended())
    (lesson,) = lessons.targets
    found = dict(zip(lesson.surrogate.sources, lesson.surrogate.gains, strict=True))
    for name, gain in found.items():
        assert gain == pytest.approx(-EFFECTS[name], abs=0.03)
    answers = {verdict.source: verdict.answer for verdict in lesson.verdicts}
    assert answers["ten_digits"] == "helps"
    assert answers["shuffled_ten"] == "harms"
    rows = lessons.rows()  # the same for a frame, and for a notebook
    assert {row["source"]: row["answer"] for row in rows} == answers
    assert {row["source"] for row in rows if row["chosen"]} == set(lesson.chosen.sources)
    assert lessons._repr_html_().count("<td>harms</td>") == [*answers.values()].count("harms")
    assert [selection.rule for selection in lesson.selections] == [
        "threshold",
        "unless surely harmful",
        "measured prefixes",
    ]
    assert {"ten_digits", "parity", "prime"} <= set(lesson.chosen.sources)
    assert not {"shuffled_ten", "shuffled_parity"} & set(lesson.chosen.sources)
    assert lesson.measured is not None
    assert lesson.measured.n == 3
    assert lesson.test is not None
    assert lesson.test.spearman.mean > 0.9
    assert lessons.groups == ()


def test_one_set_of_runs_gives_every_target_its_effects_and_groups(tmp_path: Path) -> None:
    measured = train_trials(
        description(NAMES, design=SubsetDesign(count=40)), Study(tmp_path), executor=Pretended()
    )
    lessons = learn(measured, Study(tmp_path), limits=GroupLimits(largest=5))
    assert lessons.matrix is not None
    for target, row in zip(NAMES, lessons.matrix.effects, strict=True):
        wanted = [np.nan if name == target else EFFECTS[name] for name in NAMES]
        np.testing.assert_allclose(row, wanted, atol=0.05)
    assert sorted(name for group in lessons.groups for name in group) == sorted(NAMES)
    assert max(len(group) for group in lessons.groups) <= 5
    together = next(group for group in lessons.groups if "ten_digits" in group)
    assert "shuffled_ten" not in together


def test_verdicts_of_real_runs_know_the_rows_of_every_outcome_that_is_recorded(
    tmp_path: Path,
) -> None:
    small = replace(TEMPLATE, source=DigitsSource(tasks=NAMES[:4]), steps=4)
    design = SubsetDesign(count=3, alone=2, held_out=3, size=1)
    for outcome in ("loss", "metric"):
        asked = description(NAMES[:1], template=small, design=design, outcome=outcome)
        measured = train_trials(asked, Study(tmp_path), executor=Fleet(workers=1))
        rows = measured.dev_rows[NAMES[0]]
        np.testing.assert_allclose(rows.mean(axis=1), measured.outcomes[:, 0], rtol=1e-4)
        lessons = learn(measured, Study(tmp_path), options=LearningOptions(prefixes=0))
        told = transfer_document(lessons, command="x").targets[0]
        assert told.dev_rows == rows.shape[1]
        alone = learn(replace(measured, dev_rows={}), Study(tmp_path))
        assert transfer_document(alone, command="x").targets[0].dev_rows is None
        less, more = (each.targets[0].surrogate.standard_errors for each in (alone, lessons))
        assert (less < more).all()


@pytest.mark.parametrize(("change", "groups"), [(0.5, 8), (-0.5, 1)])
def test_where_any_other_task_does_the_same_groups_follow_that(
    change: float, groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        monkeypatch.setitem(EFFECTS, name, change / 4)
    measured = train_trials(
        description(NAMES, design=SubsetDesign(count=40)), Study(tmp_path), executor=Pretended()
    )
    lessons = learn(measured, Study(tmp_path))
    document = transfer_document(lessons, command="x")
    company = [target.company for target in document.targets]
    assert all(each is not None and each.value * change < 0 for each in company)
    answers = [row.verdict for target in document.targets for row in target.sources]
    assert answers.count("as any other") > 50 > 6 > len(answers) - answers.count("as any other")
    assert len(lessons.groups) == groups


def test_groups_follow_the_verdicts_and_not_what_is_noise(tmp_path: Path) -> None:
    measured = train_trials(
        description(NAMES, design=SubsetDesign(count=24)), Study(tmp_path), executor=Pretended()
    )
    # A task whose outcome alone is near zero gains or loses many times that by noise alone.
    place = NAMES.index("shuffled_ten")
    outcomes = measured.outcomes.copy()
    noise = np.random.default_rng(0).normal(size=len(outcomes))
    outcomes[:, place] = np.where(np.isnan(outcomes[:, place]), np.nan, 0.001 + 0.01 * noise)
    lessons = learn(replace(measured, outcomes=outcomes), Study(tmp_path))
    harmed = [
        lesson.target
        for lesson in lessons.targets
        for each in lesson.verdicts
        if each.source == "shuffled_ten" and each.answer == "harms"
    ]
    assert len(harmed) == len(NAMES) - 1
    assert ("shuffled_ten",) in lessons.groups


def test_a_plan_follows_from_the_lessons_of_one_target(tmp_path: Path) -> None:
    measured = train_trials(description(), Study(tmp_path), executor=Pretended())
    lessons = learn(measured, Study(tmp_path), executor=Pretended())
    plan = lessons.plan({"why": "measured"})
    (part,) = plan.parts
    assert part.scored == ("half",)
    assert set(part.helpers) == set(lessons.targets[0].chosen.sources)
    assert not {name for name, effect in EFFECTS.items() if effect > 0} & set(part.tasks)
    assert len(set(plan.probabilities)) == 1
    (expected,) = plan.expected
    # By the world: 2 and the effects of the sources that were chosen.
    assert expected.low < 2 + sum(EFFECTS[name] for name in part.helpers) < expected.high
    assert plan.evidence == {"why": "measured"}


def test_a_precision_is_reached_from_the_noise_of_a_pilot_whose_runs_count(tmp_path: Path) -> None:
    pretended = Pretended(noise=0.1)
    study = description(design=SubsetDesign(precision=0.02))
    measured = train_trials(study, Study(tmp_path), executor=pretended)
    assert measured.pilot == 24  # two a source and ten
    assert measured.noise == pytest.approx(0.1, rel=0.5)
    surrogate = learn(measured, Study(tmp_path)).targets[0].surrogate
    # 0.02 is that of a contrast; the level has its own error.
    centred = surrogate.centred().standard_errors
    assert centred.mean() == pytest.approx(0.02, rel=0.4)
    final = {(trial.tasks, trial.run.seed) for trial in measured.trials}
    tried = {(run.tasks, run.seed) for run in pretended.asked}
    assert tried <= final


def test_a_precision_out_of_reach_is_refused_with_the_number_it_takes(tmp_path: Path) -> None:
    study = description(design=SubsetDesign(precision=1e-4, most=500))
    with pytest.raises(InputError, match=r"within reach of 500 subsets.*takes \d+,\d{3}"):
        train_trials(study, Study(tmp_path), executor=Pretended(noise=0.1))


def test_failed_runs_are_left_out_and_counted(tmp_path: Path) -> None:
    study = description(design=SubsetDesign(count=30))
    lost = frozenset(study.subsets(30)[0].tasks)
    failing = [lost, frozenset(("half",))]
    with pytest.raises(InputError, match="at least one finished run alone"):
        train_trials(study, Study(tmp_path), executor=Pretended(failing=failing)).table("half")
    measured = train_trials(study, Study(tmp_path), executor=Pretended(failing=[lost]))
    assert measured.failed == 1
    lesson = learn(measured, Study(tmp_path)).targets[0]
    assert lesson.table.failed == 1
    assert [frozenset(names) | {"half"} for names in lesson.table.lost] == [lost]
    document = transfer_document(learn(measured, Study(tmp_path)), command="x")
    assert document.failures[0].error == "the loss became NaN"


def test_a_stopped_study_says_how_to_go_on(tmp_path: Path) -> None:
    stopped = Until(Here(workers=1), is_over=lambda: True)
    with pytest.raises(RunError, match="Run the same command again"):
        train_trials(description(), Study(tmp_path), executor=stopped)


def test_runs_that_a_full_disk_refused_are_not_taken_for_failures_of_the_tasks(
    tmp_path: Path,
) -> None:
    class FullDisk:
        at_once = 1

        def run(self, runs: Sequence[Run], study: Study, **how: object) -> list[Executed]:
            error = "There should be room on the disk."
            result = Executed(outcome="failed", summary=None, error=error, recorded=False)
            return [result for _ in runs]

    with pytest.raises(RunError, match=r"could not be recorded\. There should be room"):
        train_trials(description(), Study(tmp_path), executor=FullDisk())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"targets": ("nothing",)}, "should be one of the tasks"),
        ({"targets": ()}, "at least one target"),
        ({"outcome": "joy"}, "outcome should be one of"),
        ({"budget": "none"}, "budget should be"),
        (
            {"template": replace(TEMPLATE, tasks=("half", "loop", "prime"))},
            "at least 3 source tasks",
        ),
        ({"design": SubsetDesign(size=9)}, "between 1 and the number of sources"),
        (
            {"budget": "total", "template": replace(TEMPLATE, steps=5)},
            "should have a batch of each",
        ),
    ],
)
def test_a_study_that_cannot_be_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        description(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "none"},
        {"count": 5, "precision": 0.1},
        {"precision": 0.0},
        {"precision": math.nan},
        {"kind": "all-sizes", "size": 3},
        {"kind": "leave-one-out", "precision": 0.1},
        {"count": 0},
        {"held_out": 2},
    ],
)
def test_a_design_that_cannot_be_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        SubsetDesign(**options)  # type: ignore[arg-type]


def test_real_runs_give_losses_metrics_and_margins(tmp_path: Path) -> None:
    template = replace(TEMPLATE, tasks=NAMES[:4], steps=3)
    design = SubsetDesign(count=3, alone=1, held_out=3, size=2)
    study = Study(tmp_path)

    for outcome in ("loss", "metric", "margin"):
        asked = description(template=template, design=design, outcome=outcome)
        measured = train_trials(asked, study, executor=Here(workers=1))
        assert np.isfinite(measured.outcomes[measured.trained]).all()
        assert np.isnan(measured.outcomes[~measured.trained]).all()
    assert len(list(study.runs())) == len({(t.tasks, t.run.seed) for t in measured.trials})


@pytest.mark.slow
def test_the_shuffled_digits_are_found_harmful_to_every_real_task(tmp_path: Path) -> None:
    """The settings of docs/transfer.md, where 280 runs tell all twelve pairs from zero."""
    study = Study(tmp_path)
    asked = TransferStudy(
        template=replace(
            TEMPLATE,
            architecture=Perceptron(),
            steps=800,
            optimization=Optimization(learning_rate=0.005),
        ),
        targets=NAMES,
        design=SubsetDesign(count=100),
        outcome="metric",
    )
    trials = [*asked.alone(), *asked.subsets(100)]
    measured = measure_trials(asked, trials, study, Auto())
    lessons = learn(measured, study)
    assert lessons.matrix is not None
    low, _ = lessons.matrix.intervals()
    real = [place for place, name in enumerate(NAMES) if not name.startswith("shuffled")]
    shuffled = [place for place, name in enumerate(NAMES) if name.startswith("shuffled")]
    assert (low[np.ix_(real, shuffled)] > 0).all()
    together = next(group for group in lessons.groups if "ten_digits" in group)
    assert set(together) == {NAMES[place] for place in real}
