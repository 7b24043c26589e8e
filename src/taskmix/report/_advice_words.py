"""What the page says of advice in words and tables, as text for the template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from taskmix.numerics import Interval
from taskmix.report._advice_charts import STAGES
from taskmix.report._advice_figures import delivered_rows, expected_rows, outside_words
from taskmix.report._data import ReportData
from taskmix.report._words import count_of, counted, duration, explain_way, number, signed

if TYPE_CHECKING:
    from taskmix.plans import AdviceDocument, ComparisonDocument

_STAGE_WORDS = {
    "baselines": "what anyone would try",
    "transfer": "which tasks help which",
    "candidates": "what these suggest",
    "race": "a seed more for each",
    "longer": "the two leaders, trained longer",
}
_BASELINES = {"uniform": "equal shares", "single": "each task alone"}


def advice_contents(data: ReportData) -> dict[str, Any] | None:
    """The advice in words and tables; None where the study has none."""
    advice = data.advice
    if advice is None:
        return None
    from taskmix.plans import race_rows  # its package is loaded only where there is advice

    outlook = advice.outlook
    rows = [{"row": row, "sentence": explain_way(row.name, row.words)} for row in race_rows(advice)]
    return {
        "first": advice.lines[0] if advice.lines else "",
        "lines": advice.lines[1:],
        "tiles": _tiles(data, advice),
        "tasks": _tasks(advice),
        "grouped": len(advice.plan.groups) > 1,
        "plan_words": _plan_words(advice),
        "outside": outside_words(expected_rows(advice), advice.level),
        "chosen": _chosen(rows, advice.chosen),
        "candidates": rows,
        "errors": any(not task.higher_is_better for task in data.tasks),
        "stages": _stages(advice),
        "outlook": outlook.words if outlook is not None else "",
        "formula": outlook.law.formula if outlook is not None and outlook.law else "",
        "warnings": advice.warnings,
        "remarks": [
            *(each.words for each in advice.findings if not each.warning),
            *advice.notes,
        ],
        "commands": list(advice.commands.items()),
    }


def _tiles(data: ReportData, advice: AdviceDocument) -> list[tuple[str, str, str]]:
    """The figures to see first: what, how much, and within which bounds."""
    found = []
    for split, gains in (("test", advice.test_gain), ("dev", advice.dev_gain)):
        against = next((name for name in _BASELINES if name in gains), None)
        if against is not None:
            name = f"{split} gain over {_BASELINES[against]}"
            found.append((name, signed(gains[against].mean), _ends(gains[against])))
    rows = advice.candidates
    chosen = next((row for row in rows if row.name == advice.chosen), advice.leader)
    tasks = counted(len(advice.judged), "task")
    found.append((f"mean dev score of {tasks}", number(chosen.dev), advice.chosen))
    still = sum(row.open for row in rows)
    found.append(("may be the best", f"{still} of {len(rows)}", "ways of training"))
    found.append(("budget spent", *_spent(advice)))
    seconds = sum(run.seconds for run in data.runs)
    found.append(("training", duration(seconds), counted(len(data.runs), "run")))
    return found


def _spent(advice: AdviceDocument) -> tuple[str, str]:
    """The share of the budget in its own currency; of one that was gone beyond, how much it was."""
    if advice.budget_seconds is None:
        whole, share = (
            f"{count_of(advice.batches)} batches",
            advice.batches_spent / max(advice.batches, 1),
        )
    else:
        whole, share = duration(advice.budget_seconds), advice.seconds / advice.budget_seconds
    if share > 1:
        return "all", f"of {whole}, and {share - 1:.0%} more for what was under way"
    return f"{share:.0%}", f"of {whole}"


def _ends(interval: Interval) -> str:
    if not math.isfinite(interval.low):
        return "one seed, no interval"
    return f"{signed(interval.low)} to {signed(interval.high)}"


def _plan_words(advice: AdviceDocument) -> str:
    weighting = advice.plan.weighting
    words = f"A run has {count_of(advice.batches_of_a_run)} batches in all."
    if advice.length is not None and advice.length > advice.batches_of_a_run:
        words += f" Ways are ranked, and scores promised, for {count_of(advice.length)} batches."
    if weighting is not None:
        words += (
            " Every step takes a batch of each task of a group, weighted by "
            f"{weighting.get('kind', 'a weighting')}."
        )
    if advice.unlearned:
        words += f" Left out of all comparisons: {', '.join(advice.unlearned)}."
    return words


def _chosen(rows: Sequence[dict[str, Any]], name: str) -> str:
    """The chosen way by its name, with what it does."""
    found = (each["sentence"] for each in rows if each["row"].name == name and each["sentence"])
    return next((f"The way chosen is {name}. {sentence}" for sentence in found), "")


def delivered_contents(comparison: ComparisonDocument | None) -> dict[str, Any] | None:
    """The promise and what came of it; None where nothing was trained by a plan."""
    if comparison is None or not comparison.rows:
        return None
    promised, trained = comparison.promised, comparison.trained
    seeds = max(row.seeds for row in comparison.rows)
    words = (
        f"Trained for {count_of(trained.batches)} batches of {count_of(trained.batch_size)} rows"
    )
    words += f", {counted(seeds, 'seed')}"
    if promised is not None and promised != trained:
        words += f"; promised for {count_of(promised.batches)} of {count_of(promised.batch_size)}"
    return {
        "plan": comparison.plan,
        "lines": comparison.lines,
        "rows": delivered_rows(comparison),
        "lengths": f"{words}.",
    }


def _tasks(advice: AdviceDocument) -> list[dict[str, Any]]:
    """A row a task: where it is trained, how often it is drawn, what to expect of it."""
    plan = advice.plan
    shares = dict(zip(plan.tasks, plan.probabilities, strict=True))
    groups = {name: place for place, group in enumerate(plan.groups) for name in group}
    expected = {row.task: row for row in expected_rows(advice)}
    return [
        {
            "name": name,
            "group": str(groups[name] + 1) if name in groups else "",
            "share": f"{shares[name]:.1%}" if name in shares else "",
            "metric": expected[name].metric if name in expected else "",
            "promise": expected.get(name),
        }
        for name in dict.fromkeys((*plan.tasks, *expected))
    ]


def _stages(advice: AdviceDocument) -> list[dict[str, Any]]:
    """A row a stage; all rounds of the race are one."""
    rows: list[dict[str, Any]] = []
    before = 0.0
    for stage, some in groupby(advice.milestones, key=lambda row: row.stage):
        each = list(some)
        last, cost = each[-1], each[-1].spent - before
        rounds = f", {len(each)} rounds" if len(each) > 1 else ""
        rows.append(
            {
                "name": f"{stage}{rounds}",
                "place": str(STAGES.index(stage) + 1),
                "words": _STAGE_WORDS[stage],
                "cost": count_of(cost),
                "share": f"{cost / max(advice.batches, advice.batches_spent, 1):.0%}",
                "spent": count_of(last.spent),
                "leader": last.leader,
                "score": number(last.score),
                "open": f"{len(last.open)} of {len(last.open) + len(last.out)}",
            }
        )
        before = last.spent
    return rows
