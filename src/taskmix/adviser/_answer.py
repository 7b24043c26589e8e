"""What the adviser says: which candidate, what to expect of it, and what was not worth it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taskmix.adviser._adviser import Advice
from taskmix.adviser._budget import typed_time
from taskmix.adviser._expect import expect_score
from taskmix.adviser._propose import harmful_tasks
from taskmix.adviser._scores import Entry, mean_comparable
from taskmix.engine import Run
from taskmix.numerics import Interval, paired_interval
from taskmix.plans import Expected, Length, Part, Plan, Weighted

# Standard errors of the difference to the leader within which training alone is as good, if it is not
# below the mean of all that are open: the leader of several is ahead also where they are alike. Within
# the first number it is as good in any case.
AS_GOOD = (0.5, 1.5)
CHEAPER_BELOW = 0.8  # of the leader's batches: what saves less than a fifth is not cheaper
MOST_BUDGETS = 20  # that it may take to tell candidates apart, before they count as alike
BASELINES = ("single", "uniform", "size", "equal")  # what others would have done


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The recommendation, in words and in numbers."""

    chosen: Plan
    lines: tuple[str, ...]
    gains: dict[str, Interval]  # mean dev score of the chosen minus that of each baseline
    confirmed: dict[str, Interval]  # the same on test, looked at once, after choosing
    expected: tuple[Expected, ...]
    further_batches: int | None  # that would tell the open candidates apart; None where told


def answer(advice: Advice) -> Answer:
    """Chooses, and says why."""
    chosen = _choose(advice)
    entries = advice.entries[chosen.name]
    gains = _gains(advice, chosen, "dev")
    confirmed = _gains(advice, chosen, "test")
    expected = tuple(_expected(advice, entries, name) for name in chosen.targets)
    further = _further(advice)
    lines = (
        _which(advice, chosen),
        _how_much(advice, chosen),
        _gain_line(advice, chosen, gains, confirmed),
        _not_worth(advice, chosen),
        _open_line(advice, chosen, further),
    )
    return Answer(
        chosen=chosen,
        lines=tuple(line for line in lines if line),
        gains=gains,
        confirmed=confirmed,
        expected=expected,
        further_batches=further,
    )


def plan_of(advice: Advice, found: Answer) -> Plan:
    """The recommendation as a plan that `train` takes."""
    return replace(
        found.chosen,
        expected=found.expected,
        length=Length(batches=advice.batches, batch_size=advice.batch_size),
        evidence={
            "words": list(found.lines),
            "batches_spent": round(advice.spent),
            "seeds": len(advice.entries[found.chosen.name]),
            "level": advice.options.level,
            "dev_gain": {name: _numbers(gain) for name, gain in found.gains.items()},
            "test_gain": {name: _numbers(gain) for name, gain in found.confirmed.items()},
        },
    )


def best_runs(advice: Advice, found: Answer) -> list[tuple[Run, tuple[str, ...]]]:
    """For each model of the recommendation the run that does best on dev, and what it is for."""
    entries = advice.entries[found.chosen.name]

    def score(entry: Entry, part: Part) -> float:
        mean = mean_comparable(advice.tasks, entry.dev, part.scored)
        return -math.inf if mean != mean else mean

    return [
        (max(entries, key=lambda entry: score(entry, part)).runs[place], part.scored)
        for place, part in enumerate(found.chosen.models)
    ]


def _choose(advice: Advice) -> Plan:
    """The leader, or training alone where that is as good and needs fewer batches."""
    race = advice.race
    leader = race.leader
    if "single" in race.open and leader.name != "single" and race.degrees:
        single = race.standing("single")
        error = race.noise * math.sqrt(2 / max(single.behind.n, 1))
        others = [race.standing(name).behind.mean for name in race.open if name != "single"]
        near, far = (times * error for times in AS_GOOD)
        as_good = single.behind.mean <= min(max(near, float(np.mean(others))), far)
        spent, needed = (_batches(advice.entries[name]) for name in (leader.name, "single"))
        if as_good and needed <= CHEAPER_BELOW * spent:
            return advice.entries["single"][0].candidate
    return advice.entries[leader.name][0].candidate


def _batches(entries: Sequence[Entry]) -> float:
    return float(np.mean([entry.batches for entry in entries]))


def _gains(advice: Advice, chosen: Plan, split: str) -> dict[str, Interval]:
    ours = _means(advice, chosen.name, split)
    found = {}
    for name in BASELINES:
        if name == chosen.name or name not in advice.entries:
            continue
        theirs = _means(advice, name, split)
        count = min(len(ours), len(theirs))
        gain = paired_interval(ours[:count], theirs[:count], advice.options.level)
        if gain.mean == gain.mean:
            found[name] = gain
    return found


def _means(advice: Advice, name: str, split: str) -> list[float]:
    return [
        mean_comparable(advice.tasks, entry.dev if split == "dev" else entry.test, advice.judged)
        for entry in advice.entries[name]
    ]


def _expected(advice: Advice, entries: Sequence[Entry], name: str) -> Expected:
    task = advice.tasks[name]
    scores = [entry.dev[name] for entry in entries]
    dev = len(task.splits["dev"])
    test = task.sizes.get("test") or dev
    found = expect_score(
        scores,
        task.metric,
        dev_rows=dev,
        test_rows=test,
        spread=_spread(advice, name),
        level=advice.options.level,
    )
    return Expected(task=name, metric=task.metric, value=found.mean, low=found.low, high=found.high)


def _spread(advice: Advice, name: str) -> float:
    """Of a task's score over seeds, from all candidates together."""
    squares = [
        np.var([entry.dev[name] for entry in some], ddof=1)
        for some in advice.entries.values()
        if len(some) > 1 and all(name in entry.dev for entry in some)
    ]
    return float(np.sqrt(np.mean(squares))) if squares else 0.0


def _further(advice: Advice) -> int | None:
    """Batches that would tell the second from the first, at the noise found; None where told.

    Where no noise is known yet, since every candidate has one seed, those of a second seed.
    """
    race = advice.race
    rivals = [standing for standing in race.standings[1:] if standing.is_open]
    if not rivals:
        return None
    if not race.degrees:
        return (len(rivals) + 1) * advice.batches
    nearest = min(rivals, key=lambda standing: abs(standing.behind.mean))
    gap = abs(nearest.behind.mean)
    if gap == 0:
        return None
    reach = nearest.behind.half_width / math.sqrt(2 / nearest.behind.n)
    seeds = math.ceil(2 * (reach / gap) ** 2)
    return max(seeds - race.leader.seeds, 1) * (len(rivals) + 1) * advice.batches


# The lines.


def _which(advice: Advice, chosen: Plan) -> str:
    if chosen.name == "single":
        return (
            "Train each task alone: nothing that was tried does significantly better "
            f"({_level(advice)}), and it needs the fewest batches."
            if len(advice.race.open) > 1
            else "Train each task alone: every way of training them together does worse."
        )
    if chosen.merge is not None:
        method = type(chosen.merge.method).__name__
        return f"Train each task alone and merge the models into one ({method})."
    together = [part for part in chosen.parts if len(part.tasks) > 1]
    lone = [part.tasks[0] for part in chosen.parts if len(part.tasks) == 1]
    words = "; ".join(_listed(part.tasks, advice) for part in together)
    rest = f"; alone: {', '.join(lone)}" if lone else ""
    return f"Train together: {words}{rest}."


def _level(advice: Advice) -> str:
    """That of the race, as people write it."""
    return f"{100 * advice.options.level:g} %"


def _listed(names: Sequence[str], advice: Advice) -> str:
    return "all tasks" if len(names) == len(advice.tasks) else ", ".join(names)


def _how_much(advice: Advice, chosen: Plan) -> str:
    part = max(chosen.parts, key=lambda each: len(each.tasks))
    if len(part.tasks) == 1:
        return ""
    if isinstance(part.division, Weighted):
        method = type(part.division.method).__name__
        return f"Every step takes a batch of each, weighted by {method}."
    shares = part.probabilities
    if max(shares.values()) - min(shares.values()) < 1e-9:
        return "Draw them equally often."
    listed = sorted(shares.items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{name} {share:.0%}" for name, share in listed[:8])
    return f"Draw them in these shares: {shown}{' ...' if len(listed) > 8 else ''}."


def _gain_line(
    advice: Advice,
    chosen: Plan,
    gains: dict[str, Interval],
    confirmed: dict[str, Interval],
) -> str:
    against = next((name for name in ("uniform", "single") if name in gains), None)
    if against is None:
        mean = np.mean(_means(advice, chosen.name, "dev"))
        return f"Expect a mean dev score of {mean:.3f}."
    words = {"uniform": "drawing all tasks equally often", "single": "training each task alone"}
    gain = gains[against]
    line = (
        f"Against {words[against]}, the mean dev score changes by {gain.mean:+.3f} "
        f"({_range(gain)} at {advice.options.level:.0%})"
    )
    if against in confirmed:
        test = confirmed[against]
        line += f", on test by {test.mean:+.3f} ({_range(test)})"
    return line + "."


def _range(interval: Interval) -> str:
    if interval.low != interval.low:
        return "one seed, no interval"
    return f"{interval.low:+.3f} to {interval.high:+.3f}"


def _not_worth(advice: Advice, chosen: Plan) -> str:
    said = [
        f"{' and '.join(finding.tasks)} are the same task"
        for finding in advice.findings
        if finding.kind == "same task twice"
    ]
    if advice.unlearned:
        said.append(f"nothing was learned from {', '.join(advice.unlearned)}")
    if advice.lessons is not None and len(advice.lessons.targets) > 1:
        harmful = [n for n in harmful_tasks(advice.lessons) if n not in advice.unlearned]
        if harmful:
            said.append(f"{', '.join(harmful)} help the others least")
    out = [each.name for each in advice.race.standings if not each.is_open]
    if out:
        said.append(f"significantly worse ({_level(advice)}): {', '.join(out)}")
    return f"Not worth it: {'; '.join(said)}." if said else ""


def _open_line(advice: Advice, chosen: Plan, further: int | None) -> str:
    rivals = [name for name in advice.race.open if name != chosen.name]
    if not rivals:
        return ""
    words = f"Cannot tell {chosen.name} from {', '.join(rivals)}"
    if not advice.race.degrees:
        words += ", of which there is one seed each"
    if further is None or further > MOST_BUDGETS * advice.budget.batches:
        return f"{words}: whatever the difference is, it is small."
    return (
        f"{words}; a budget of {_budget(advice, further)} with {advice.batches} steps a run would."
    )


def _budget(advice: Advice, further: int) -> str:
    """The budget as one types it; with runs of the same length, those done are not done again."""
    prices = advice.budget.prices
    if prices is None:
        return f"{math.ceil(advice.spent + further)}-steps"
    share = further / max(advice.budget.batches, 1)
    return typed_time((advice.options.budget.seconds or 0.0) * (1 + share))


def _numbers(interval: Interval) -> dict[str, float | int | None]:
    known = interval.low == interval.low
    return {
        "mean": interval.mean,
        "low": interval.low if known else None,
        "high": interval.high if known else None,
        "n": interval.n,
    }
