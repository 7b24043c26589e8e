"""What the adviser says: which way, how sure it is, what to expect, and what was not worth it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taskmix.adviser._advice import Advice
from taskmix.adviser._promise import promised_scores
from taskmix.adviser._propose import harmful_tasks
from taskmix.adviser._scores import Entry, mean_comparable
from taskmix.adviser._settling import WhatSettles, what_settles
from taskmix.adviser._would_help import what_would_help
from taskmix.engine import Run
from taskmix.numerics import Interval, paired_interval
from taskmix.plans import Expected, Length, Part, Plan, Weighted
from taskmix.records import Study

# Deviations of the difference to the leader within which a simpler way is as good: the leader of
# several is ahead also where they are alike.
AS_GOOD = 0.5
SIMPLEST = ("uniform", "size", "equal", "single")  # what one would do without advice
SIMPLEST_WITHOUT = ("without", "equal without", "single")  # the same for tasks that can be learned
NORMAL_90 = 1.645  # half-widths of 90 % intervals in deviations
BASELINES = ("single", "uniform", "size", "equal")  # what others would have done


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The recommendation, in words and in numbers."""

    chosen: Plan
    lines: tuple[str, ...]
    gains: dict[str, Interval]  # mean dev score of the chosen minus that of each baseline
    confirmed: dict[str, Interval]  # the same on test, looked at once, after choosing
    expected: tuple[Expected, ...]
    settling: WhatSettles | None  # what would tell the open ways apart; None where told


def answer(advice: Advice, study: Study) -> Answer:
    """Chooses, and says why."""
    chosen = _choose(advice)
    gains = _gains(advice, chosen, "dev")
    confirmed = _gains(advice, chosen, "test")
    expected = promised_scores(
        advice.entries[chosen.name],
        advice.entries,
        advice.tasks,
        chosen.targets,
        study,
        long=advice.long.get(chosen.name, ()),
        begin=advice.batches,
        middle=advice.long_batches,
        end=advice.promised,
        noise=advice.race.noise,
        level=advice.options.level,
    )
    settling = what_settles(advice)
    if advice.nothing_learned:
        lines: tuple[str, ...] = _nothing_learned(advice, chosen)
    else:
        lines = (
            *_headline(advice, chosen, settling),
            _how_much(advice, chosen),
            _gain_line(advice, chosen, gains, confirmed),
            _length_line(advice, chosen),
            _not_worth(advice, chosen),
        )
    return Answer(
        chosen=chosen,
        lines=tuple(line for line in lines if line),
        gains=gains,
        confirmed=confirmed,
        expected=expected,
        settling=settling,
    )


def plan_of(advice: Advice, found: Answer) -> Plan:
    """The recommendation as a plan that `train` takes."""
    return replace(
        found.chosen,
        expected=found.expected,
        length=Length(batches=advice.promised, batch_size=advice.batch_size),
        evidence={
            "words": list(found.lines),
            "batches_spent": round(advice.spent),
            "batches_of_a_run": advice.batches,
            "seeds": len(advice.entries[found.chosen.name]),
            "level": advice.options.level,
            "settled": advice.race.is_settled and not advice.nothing_learned,
            "dev_gain": {name: _numbers(gain) for name, gain in found.gains.items()},
            "test_gain": {name: _numbers(gain) for name, gain in found.confirmed.items()},
        },
    )


def best_runs(advice: Advice, found: Answer) -> list[tuple[Run, tuple[str, ...]]]:
    """For each model of the recommendation the run that does best on dev, and what it is for."""
    name = found.chosen.name
    entries = [*advice.long.get(name, ()), *advice.entries[name]]

    def score(entry: Entry, part: Part) -> float:
        mean = mean_comparable(advice.tasks, entry.dev, part.scored)
        return -math.inf if mean != mean else mean

    return [
        (max(entries, key=lambda entry: score(entry, part)).runs[place], part.scored)
        for place, part in enumerate(found.chosen.models)
    ]


def _choose(advice: Advice) -> Plan:
    """The leader, or the simplest of the ways that may be the best and are as good for all one knows."""
    race = advice.race
    # What nothing was learned from is no part of a plain way: it would take its share for nothing.
    names = SIMPLEST_WITHOUT if advice.unlearned and "without" in advice.entries else SIMPLEST
    simple = [
        each
        for each in race.standings
        if each.name in names
        and each.is_open
        and each.seeds
        and each.behind.mean <= AS_GOOD * each.behind.half_width / NORMAL_90
    ]
    chosen = min(simple, key=lambda each: each.behind.mean, default=race.leader)
    return advice.entries[chosen.name][0].candidate


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


# The lines.


def _nothing_learned(advice: Advice, chosen: Plan) -> tuple[str, ...]:
    assert advice.architecture is not None
    help_ = what_would_help(
        advice.learned,
        advice.tasks,
        architecture=advice.architecture,
        batches=max(advice.batches, advice.long_batches),
        batch_size=advice.batch_size,
    )
    about = "The plan that is kept is a beginning to try that with, and no advice"
    return (help_, f"{about}: {chosen.words}.")


def _headline(advice: Advice, chosen: Plan, settling: WhatSettles | None) -> tuple[str, ...]:
    way = _way(advice, chosen)
    if len(advice.entries) == 1 and len(advice.race.standings) == 1:
        words = (
            "One task: there is nothing to train it with" if len(advice.tasks) == 1 else "One way"
        )
        return (f"{words}, so nothing is compared.",)
    if len(advice.race.open) == 1:
        return (f"{way} ({_level(advice)}: every other way that was tried is worse).",)
    count, tried = len(advice.race.open), len(advice.race.standings)
    which = "either way" if count == tried == 2 else f"any of {count} ways of {tried}"
    seeds = advice.race.leader.seeds
    after = " after one seed each" if seeds == 1 else ""
    known = [each.name for each in advice.race.standings if not each.is_open]
    surely = f" What is known: {', '.join(known)} {'is' if len(known) == 1 else 'are'} worse."
    lead = "the leader so far" if chosen.name == advice.race.leader.name else "the simplest of them"
    lines = [f"Cannot tell yet: {which} may be the best{after}.{surely if known else ''}"]
    lines.append(f"Until then, {lead}: {way[0].lower()}{way[1:]}.")
    if settling is not None:
        lines.append(settling.words)
    return tuple(lines)


def _way(advice: Advice, chosen: Plan) -> str:
    if chosen.merge is not None:
        method = type(chosen.merge.method).__name__
        return f"Train each task alone and merge the models into one ({method})"
    if all(len(part.tasks) == 1 for part in chosen.parts):
        return "Train each task alone"
    together = [part for part in chosen.parts if len(part.tasks) > 1]
    lone = [part.tasks[0] for part in chosen.parts if len(part.tasks) == 1]
    words = "; ".join(_listed(part.tasks, advice) for part in together)
    rest = f"; alone: {', '.join(lone)}" if lone else ""
    return f"Train together: {words}{rest}"


def _length_line(advice: Advice, chosen: Plan) -> str:
    """For which training this is said, and on what it rests."""
    if advice.promised <= advice.batches:
        return (
            f"This holds for runs of {advice.batches:,} batches, as long as those that were made."
        )
    asked = advice.options.train_batches or advice.options.train_seconds
    why = "the training you named" if asked else "until the curves are flat"
    rests = f"runs of {advice.batches:,} batches"
    if advice.long:
        both = " and ".join(advice.long)
        rests += f", one of {advice.long_batches:,} of {both},"
    return (
        f"This is said of a training of {advice.promised:,} batches ({why}), from {rests} and their "
        "learning curves."
    )


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
    if against is None and len(advice.entries) > 1:
        return ""
    if against is None:
        mean = np.mean(_means(advice, chosen.name, "dev"))
        return f"Expect a mean dev score of {mean:.3f}."
    words = {"uniform": "drawing all tasks equally often", "single": "training each task alone"}
    gain = gains[against]
    when = f" in runs of {advice.batches:,} batches" if advice.promised > advice.batches else ""
    line = (
        f"Against {words[against]}, the mean dev score changes by {gain.mean:+.3f}{when} "
        f"({_range(gain)} at {advice.options.level:.0%})"
    )
    if against in confirmed:
        test = confirmed[against]
        line += f", on test by {test.mean:+.3f} ({_range(test)})"
    if when:
        ours, theirs = (advice.race.standing(name).behind.mean for name in (chosen.name, against))
        line += f"; for {advice.promised:,} batches {theirs - ours:+.3f} is foretold"
    return line + "."


def _range(interval: Interval) -> str:
    if interval.low != interval.low:
        return "one seed, no interval"
    return f"{interval.low:+.3f} to {interval.high:+.3f}"


def _not_worth(advice: Advice, chosen: Plan) -> str:
    said = [
        f"{' and '.join(finding.tasks)} hold the same task more than once"
        for finding in advice.findings
        if finding.kind == "same task twice"
    ]
    if advice.unlearned:
        said.append(_unlearned(advice))
    if advice.lessons is not None and len(advice.lessons.targets) > 1:
        harmful = [n for n in harmful_tasks(advice.lessons) if n not in advice.unlearned]
        if harmful:
            said.append(f"{', '.join(harmful)} help the others least")
    out = [each.name for each in advice.race.standings if not each.is_open]
    if out and advice.race.is_settled:
        said.append(f"significantly worse ({_level(advice)}): {', '.join(out)}")
    return f"Not worth it: {'; '.join(said)}." if said else ""


def _unlearned(advice: Advice) -> str:
    rising = {each.task for each in advice.learned if each.still_rising}
    yet = [name for name in advice.unlearned if name in rising]
    never = [name for name in advice.unlearned if name not in rising]
    words = [f"nothing was learned from {', '.join(never)}"] if never else []
    words += [f"nothing was learned yet from {', '.join(yet)}"] if yet else []
    return "; ".join(words)


def _numbers(interval: Interval) -> dict[str, float | int | None]:
    known = interval.low == interval.low
    return {
        "mean": interval.mean,
        "low": interval.low if known else None,
        "high": interval.high if known else None,
        "n": interval.n,
    }
