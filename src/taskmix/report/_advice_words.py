"""What the page says of advice in words and tables, as text for the template.

The model that people take home and the plan for other trainers are two things, and two sections.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from taskmix.numerics import Interval
from taskmix.report._advice_figures import (
    delivered_rows,
    expected_rows,
    metrics_shown,
    outside_words,
)
from taskmix.report._charts import Bounds, metric_bounds
from taskmix.report._data import ReportData
from taskmix.report._words import (
    count_of,
    counted,
    duration,
    explain_candidate,
    listed,
    number,
    signed,
)

if TYPE_CHECKING:
    from taskmix.plans import AdviceDocument, ComparisonDocument, DeliveredRow

Tile = tuple[str, str, str]  # what, how much, and within which bounds
_AGAINST = {
    "plain": "the best plain way",
    "alone": "each task alone",
    "peer": "the best shallow model",
}
_BASELINES = {"uniform": "equal shares", "single": "each task alone"}


def advice_contents(data: ReportData) -> dict[str, Any] | None:
    """The advice in words and tables; None where the study has none."""
    advice = data.advice
    if advice is None:
        return None
    return {
        "first": advice.lines[0] if advice.lines else "",
        "lines": advice.lines[1:],
        "tiles": list(_tiles(data, advice)),
        "model": _model(advice),
        "divide": _division(advice),
        "errors": any(
            metric_bounds(metric) == Bounds(low=0.0) for metric in metrics_shown(advice).values()
        ),
        "peers": _peers(advice.delivered),
        "warnings": advice.warnings,
        "remarks": [
            *(each.words for each in advice.findings if not each.warning),
            *advice.notes,
        ],
        "commands": list(advice.commands.items()),
    }


def _tiles(data: ReportData, advice: AdviceDocument) -> Iterator[Tile]:
    """The figures to see first."""
    yield from _gains(advice)
    yield from _mean_score(advice)
    yield ("budget spent", *_spent(advice))
    if data.runs:
        seconds = sum(run.seconds for run in data.runs)
        yield "training of candidates", duration(seconds), counted(len(data.runs), "run")


def _gains(advice: AdviceDocument) -> Iterator[Tile]:
    """Over what anyone would have: of what is delivered, else of the network."""
    found = advice.delivered
    if found is not None:
        others = {"plain": found.plain, "alone": "single", "peer": found.peer}
        over = "over rows" if found.split == "test" else "over rows that its weights did not see"
        for key, gain in found.gains.items():
            other = others.get(key, "")
            if key == "peer" and found.members == (other,):
                continue  # it is that one
            what = f"{found.split} gain over {_AGAINST.get(key, key)}"
            named = f"{what}, {other}" if other and key != "alone" else what
            yield _gain(advice, named, gain, over, other)
        return
    for split, gains in (("test", advice.test_gain), ("dev", advice.dev_gain)):
        against = next((name for name in _BASELINES if name in gains), None)
        if against is not None:
            what = f"{split} gain over {_BASELINES[against]}"
            yield _gain(advice, what, gains[against], "over seeds", against)
            return


def _gain(advice: AdviceDocument, what: str, gain: Interval, over: str, other: str) -> Tile:
    """One that may be chance is called level, and one below zero says what to do about it."""
    shown = _size_words(advice, gain.mean)
    if not math.isfinite(gain.low):
        return what, shown, "one seed, no interval"
    ends = f"{_size(advice, gain.low)} to {_size(advice, gain.high)}"
    over = f"{over} ({100 * advice.level:g} %)"
    if not gain.excludes(0.0):
        return what, "level", f"{shown}, {ends} {over}"
    refuted = f". These rows refute the choice: take {other}" if gain.high < 0 else ""
    return what, shown, f"{ends} {over}{refuted}"


def _has_points(advice: AdviceDocument) -> bool:
    """Whether all scores that are compared are shares, of which 1 is best."""
    metrics = metrics_shown(advice)
    return all(name in metrics and metric_bounds(metrics[name]).high == 1 for name in advice.judged)


def _size(advice: AdviceDocument, value: float) -> str:
    return signed(100 * value, 1) if _has_points(advice) else signed(value)


def _size_words(advice: AdviceDocument, value: float) -> str:
    """A difference in points, or on the scale of the race where tasks have errors."""
    return f"{_size(advice, value)}{' points' if _has_points(advice) else ''}"


def _mean_score(advice: AdviceDocument) -> Iterator[Tile]:
    """Of tasks whose scores have a mean; of the chosen network before anything is delivered."""
    found, tasks = advice.delivered, counted(len(advice.judged), "task")
    if found is None:
        chosen = next((row for row in advice.candidates if row.name == advice.chosen), None)
        if chosen is not None:
            yield f"mean dev score of {tasks}", number(chosen.dev), chosen.name
        return
    rows = [row for row in found.tasks if row.task in advice.judged]
    metrics = {row.metric for row in rows}
    if not rows or not (len(metrics) == 1 or _has_points(advice)):
        return
    metric = metrics.pop() if len(metrics) == 1 else "score"
    checked = number(sum(row.checked for row in rows) / len(rows))
    value = number(sum(row.delivered for row in rows) / len(rows))
    note = "the delivered model"
    if found.refitted:
        before = "before it was trained on all rows"
        note = f"{checked} {before}" if found.split == "test" else before
    yield f"mean {found.split} {metric} of {tasks}", value, note


def _spent(advice: AdviceDocument) -> tuple[str, str]:
    """The share of the budget in its own currency; of one that was gone beyond, how much it was."""
    if advice.budget_seconds is None:
        whole = f"{count_of(advice.batches)} batches"
        share = advice.batches_spent / max(advice.batches or 0, 1)
    else:
        whole = duration(advice.budget_seconds)
        share = advice.seconds / max(advice.budget_seconds, 1.0)
    if share > 1:
        return "all", f"of {whole}, and {share - 1:.0%} more for what was under way"
    return f"{share:.0%}", f"of {whole}"


# The model.


def _model(advice: AdviceDocument) -> dict[str, Any] | None:
    """What is delivered, task by task, or what to expect of the network; None without either."""
    found = advice.delivered
    promises = {row.task: row for row in expected_rows(advice)}
    blends = {row.task: row for row in found.tasks} if found is not None else {}
    members = found.members if found is not None else ()
    metrics = metrics_shown(advice)
    columns, caption = _score_columns(found)

    def order(name: str) -> tuple[str, float]:
        blend = blends.get(name)
        score = blend.delivered if blend is not None else promises[name].value
        score = -score if metric_bounds(metrics[name]).high == 1 else score
        return metrics[name], math.inf if math.isnan(score) else score

    rows = []
    for name in sorted(metrics, key=order):
        blend, promise = blends.get(name), promises.get(name)
        if found is None:
            scores = [promise.came if promise is not None else ""]
        else:
            both = {} if blend is None else {"delivered": blend.delivered, "checked": blend.checked}
            scores = [number(both.get(column, math.nan)) for column in columns]
        weights = {} if blend is None else blend.weights
        rows.append(
            {
                "name": name,
                "metric": metrics[name],
                "scores": scores,
                "promise": promise,
                "weights": [f"{weights[each]:.0%}" if each in weights else "" for each in members],
            }
        )
    if not rows:
        return None
    return {
        "title": "The scores to expect" if found is None else "The model",
        "words": "" if found is None else _model_words(found),
        "columns": columns,
        "members": members if len(members) > 1 else (),
        "rows": rows,
        "caption": f"{caption} Sorted by metric, then by {columns[0] if found else 'expected'} "
        "score, the best first.",
        "outside": outside_words(list(promises.values()), advice.level),
    }


def _score_columns(found: DeliveredRow | None) -> tuple[tuple[str, ...], str]:
    """A model that was trained on dev rows too has no score on these."""
    if found is None:
        return ("on test",), "Expected of one new run of the network."
    if not found.refitted:
        return ("delivered",), f"Scores are on {found.split}. Expected by dev rows."
    checked = "Checked is the same model before it was trained on dev rows too"
    if found.split == "test":
        return (
            "delivered",
            "checked",
        ), f"Scores are on test. {checked}; expected is about that one."
    return ("checked",), f"Scores are on dev, there being no test rows. {checked}."


def _model_words(found: DeliveredRow) -> str:
    names = listed(found.members, 6)
    what = f"What you take home is {'a blend of ' if len(found.members) > 1 else ''}{names}, "
    what += f"trained {'again on train and dev rows' if found.refitted else 'on train rows'}. "
    if not found.batches:
        return f"{what}It has no network."
    return f"{what}Its network was trained for {count_of(found.batches)} batches."


def _peers(found: DeliveredRow | None) -> list[tuple[str, str, bool]]:
    """Each shallow model with its mean dev score, and whether it is part of what is delivered."""
    if found is None:
        return []
    rows = sorted(found.peers.items(), key=lambda pair: (math.isnan(pair[1]), -pair[1]))
    return [(name, number(score), name in found.members) for name, score in rows]


# How to divide.


def _division(advice: AdviceDocument) -> dict[str, Any]:
    """The plan, and the candidates that it was chosen from."""
    from taskmix.plans import race_rows  # its package is loaded only where there is advice

    plan = advice.plan
    rows: list[dict[str, Any]] = [
        {"row": row, "sentence": explain_candidate(row.name, row.words)}
        for row in race_rows(advice)
    ]
    groups = {name: place for place, group in enumerate(plan.groups, 1) for name in group}
    shares = sorted(
        zip(plan.tasks, plan.probabilities, strict=True),
        key=lambda pair: (groups.get(pair[0], 0), -pair[1]),
    )
    alike = ""
    if len(advice.alike) > 1 and math.isfinite(advice.within):
        within = _size_words(advice, advice.within).removeprefix("+")
        alike = (
            f"Alike within {within} ({100 * advice.level:g} %), so that it hardly matters which: "
            f"{listed(advice.alike, 8)}."
        )
    return {
        "tasks": [(name, str(groups.get(name, "")), f"{share:.1%}") for name, share in shares],
        "grouped": len(plan.groups) > 1,
        "chosen": next(
            (
                f"Chosen: {advice.chosen}. {each['sentence']}"
                for each in rows
                if each["row"].name == advice.chosen
            ),
            "",
        ),
        "alike": alike,
        "words": _plan_words(advice),
        "candidates": rows,
    }


def _plan_words(advice: AdviceDocument) -> str:
    weighting = advice.plan.weighting
    words = f"Candidates were run for {count_of(advice.batches_of_a_run)} batches each."
    if weighting is not None:
        words += (
            " Every step takes a batch of each task of a group, weighted by "
            f"{weighting.get('kind', 'a weighting')}."
        )
    if advice.unlearned:
        words += f" Left out of all comparisons: {', '.join(advice.unlearned)}."
    return words


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
