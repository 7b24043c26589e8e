from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import stats

from taskmix.numerics import mean_interval
from taskmix.report import ReportData, ReportScore, RunRow, TaskRow
from taskmix.report._study._scoreboard import Scoreboard, scoreboard, seeds_that_tell
from taskmix.report._study._words import headline

Scores = Mapping[str, Mapping[str, Sequence[float]]]  # label, task: one score a seed


def study(
    scores: Scores, *, metrics: Mapping[str, str] | None = None, split: str = "test"
) -> ReportData:
    names = dict.fromkeys(task for tasks in scores.values() for task in tasks)
    metrics = metrics or {}
    rows = [
        (label, task, seed, value)
        for label, tasks in scores.items()
        for task, values in tasks.items()
        for seed, value in enumerate(values)
    ]
    return ReportData(
        title="study",
        labels=tuple(scores),
        tasks=tuple(
            TaskRow(
                name=name,
                metric=metrics.get(name, "accuracy"),
                higher_is_better=metrics.get(name, "accuracy") not in ("rmse", "log_loss"),
            )
            for name in names
        ),
        runs=tuple(
            RunRow(name=f"{k}", label=label, seed=seed, status="finished", tasks=(task,))
            for k, (label, task, seed, _) in enumerate(rows)
        ),
        scores=tuple(
            ReportScore(task=task, label=label, seed=seed, split=split, value=value)
            for label, task, seed, value in rows
        ),
    )


def words(data: ReportData) -> str:
    return " ".join(headline(data, scoreboard(data)))


def standings(board: Scoreboard, row: int) -> list[str | None]:
    return [cell.standing if cell else None for cell in board.rows[row].cells]


def test_a_steady_lead_is_more_than_chance() -> None:
    data = study({"uniform": {"a": [0.80, 0.90, 0.70]}, "learned": {"a": [0.82, 0.92, 0.721]}})
    board = scoreboard(data)
    assert board.lead is not None
    assert board.lead.best == "learned"
    # The seeds differ widely, but learned is ahead by the same under each.
    assert board.lead.is_significant
    assert "That is 0.020 (0.019 to 0.022) better than the next, uniform" in words(data)
    assert "more than chance explains" in words(data)
    assert standings(board, 0) == ["worse", "best"]


def test_a_lead_that_changes_sign_cannot_be_told() -> None:
    data = study({"uniform": {"a": [0.80, 0.90, 0.70]}, "learned": {"a": [0.85, 0.88, 0.72]}})
    board = scoreboard(data)
    assert board.lead is not None
    assert not board.lead.is_significant
    assert "with 3 seeds we cannot tell which of the two is better" in words(data)
    assert "seeds would tell a difference of this size" in words(data)
    assert standings(board, 0) == ["close", "best"]


def test_one_seed_has_no_interval_and_tells_nothing() -> None:
    text = words(study({"uniform": {"a": [0.8]}, "learned": {"a": [0.9]}}))
    assert "0.900 (one seed)" in text
    assert "with one seed we cannot tell" in text
    assert "nan" not in text


def test_labels_without_a_common_seed_cannot_be_told_apart() -> None:
    data = study({"uniform": {"a": [0.8, 0.8]}, "learned": {"a": [np.nan, np.nan, 0.9]}})
    assert "no seed in common: we cannot tell" in words(data)


def test_a_lead_that_rests_on_a_seed_of_its_own_is_no_lead() -> None:
    data = study({"uniform": {"a": [0.5, 0.6]}, "learned": {"a": [0.4, 0.5, 0.9]}})
    board = scoreboard(data)
    assert board.lead is not None
    assert board.lead.best == "learned"  # 0.6 against 0.55
    assert not board.lead.is_significant
    assert "Under the seeds both have, the next, uniform, is 0.100 ahead" in words(data)


def test_a_lower_error_is_better() -> None:
    data = study(
        {"uniform": {"a": [3.0, 3.1, 3.2]}, "learned": {"a": [2.0, 2.1, 2.2]}},
        metrics={"a": "rmse"},
    )
    board = scoreboard(data)
    assert board.lead is not None
    assert board.lead.best == "learned"
    assert board.lead.difference is not None
    assert board.lead.difference.mean == pytest.approx(1.0)
    assert "test rmse (lower is better): 2.100" in words(data)
    assert standings(board, 0) == ["worse", "best"]


def test_metrics_that_cannot_be_averaged_are_ranked() -> None:
    data = study(
        {
            "uniform": {"price": [900.0, 910.0, 905.0], "topic": [0.7, 0.7, 0.7]},
            "learned": {"price": [800.0, 805.0, 810.0], "topic": [0.8, 0.8, 0.8]},
        },
        metrics={"price": "rmse"},
    )
    board = scoreboard(data)
    assert board.measure == "rank"
    assert board.overall is not None
    assert [cell.interval.mean for cell in board.overall.cells if cell] == [2.0, 1.0]
    assert "learned has the best mean rank by test score: 1.000" in words(data)


def test_runs_on_one_task_each_are_one_label_paired_by_seed() -> None:
    data = study(
        {
            "single": {"a": [0.5, 0.6], "b": [0.7, 0.8]},
            "uniform": {"a": [0.6, 0.7], "b": [0.8, 0.9]},
        }
    )
    board = scoreboard(data)
    assert board.overall is not None
    single, uniform = board.overall.cells
    assert single is not None
    assert single.interval.mean == pytest.approx(0.65)  # seeds: 0.60 and 0.70
    assert single.interval.n == 2
    assert uniform is not None
    assert board.lead is not None
    assert board.lead.difference is not None
    assert board.lead.difference.half_width == pytest.approx(0.0, abs=1e-9)


def test_a_score_that_is_not_a_number_is_left_out_and_said_so() -> None:
    data = study({"uniform": {"a": [0.8, np.nan, 0.9], "b": [0.8, 0.7, 0.9]}})
    board = scoreboard(data)
    assert board.rows[0].cells[0] is not None
    assert board.rows[0].cells[0].interval.n == 2
    assert any("1 final score is not a number" in note for note in board.notes)
    assert any("uniform lacks tasks under seed 1" in note for note in board.notes)
    assert board.overall is not None
    assert board.overall.cells[0] is not None
    assert board.overall.cells[0].interval.n == 2


def test_labels_are_compared_on_the_tasks_they_share() -> None:
    data = study(
        {"all": {"easy": [0.9, 0.9], "hard": [0.1, 0.1]}, "hard only": {"hard": [0.3, 0.4]}}
    )
    board = scoreboard(data)
    assert board.compared == ("hard",)
    assert board.lead is not None
    assert board.lead.best == "hard only"  # 0.35 against 0.1, not against (0.9 + 0.1) / 2
    assert any("1 of 2 tasks" in note for note in board.notes)


def test_a_label_that_lacks_a_task_has_no_mean_beside_two_that_have_all() -> None:
    data = study(
        {
            "one": {"easy": [0.9, 0.9], "hard": [0.1, 0.1]},
            "two": {"easy": [0.8, 0.9], "hard": [0.1, 0.1]},
            "part": {"easy": [1.0, 1.0]},
        }
    )
    board = scoreboard(data)
    assert board.overall is not None
    assert board.overall.cells[2] is None
    assert board.lead is not None
    assert board.lead.best == "one"
    assert any(note.startswith("part has no score on some tasks") for note in board.notes)


def test_dev_stands_in_where_there_is_no_test() -> None:
    board = scoreboard(study({"uniform": {"a": [0.8, 0.9]}}, split="dev"))
    assert board.rows[0].split == "dev"
    assert "mean" not in words(study({"uniform": {"a": [0.8, 0.9]}}, split="dev"))
    assert "uniform reaches a dev score of 0.850" in words(
        study({"uniform": {"a": [0.8, 0.9]}}, split="dev")
    )


def test_test_scores_come_before_dev_scores_in_any_order() -> None:
    data = study({"uniform": {"a": [0.8, 0.9]}})
    dev = tuple(
        ReportScore(task="a", label="uniform", seed=seed, split="dev", value=0.1) for seed in (0, 1)
    )
    for scores in (data.scores + dev, dev + data.scores):
        mixed = ReportData(
            title="", labels=data.labels, tasks=data.tasks, runs=data.runs, scores=scores
        )
        board = scoreboard(mixed)
        assert board.rows[0].split == "test"
        assert board.lead is not None
        assert board.lead.score.mean == pytest.approx(0.85)


def test_a_study_without_scores_compares_nothing() -> None:
    run = RunRow(name="1", label="uniform", seed=0, status="running", tasks=("a",))
    task = TaskRow(name="a", metric="accuracy")
    data = ReportData(title="", labels=("uniform",), tasks=(task,), runs=(run,))
    assert scoreboard(data).lead is None
    assert "nothing can be compared" in words(data)
    assert "1 run did not finish" in words(data)


@pytest.mark.parametrize("differences", [[0.01, -0.005, 0.012], [0.1, 0.3, -0.1, 0.2]])
def test_the_number_of_seeds_that_would_tell_is_the_smallest_one(differences: list[float]) -> None:
    found = seeds_that_tell(mean_interval(differences))
    mean, deviation = np.mean(differences), np.std(differences, ddof=1)

    def tells(seeds: int) -> bool:
        return bool(stats.t.ppf(0.975, seeds - 1) * deviation / seeds**0.5 < mean)

    assert found == next(seeds for seeds in range(2, 1000) if tells(seeds))


def test_no_number_of_seeds_is_named_where_none_would_be_advice() -> None:
    assert seeds_that_tell(mean_interval([0.1, -0.1])) is None  # no difference at all
    assert seeds_that_tell(mean_interval([0.1, 0.1, 0.1001])) is None  # told already
    assert seeds_that_tell(mean_interval([0.1, -0.0999, 0.05, -0.05])) is None  # beyond a thousand
