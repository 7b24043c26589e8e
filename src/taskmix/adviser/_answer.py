"""What the adviser says: what is delivered and its worth, what teaches nothing, how to divide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taskmix.adviser._advice import Advice
from taskmix.adviser._adviser import SIMPLEST, choose
from taskmix.adviser._candidates import together
from taskmix.adviser._deliver import Delivered
from taskmix.adviser._judge import Race
from taskmix.adviser._promise import promised_of_model, promised_scores
from taskmix.adviser._propose import harmful_tasks
from taskmix.adviser._scores import Entry, mean_comparable
from taskmix.adviser._would_help import what_would_help
from taskmix.engine import Run
from taskmix.numerics import Interval, normal_quantile, paired_interval
from taskmix.plans import Expected, Length, Part, Plan, Weighted
from taskmix.records import Study
from taskmix.tasks import find_metric

BASELINES = ("single", "uniform", "size", "equal")  # what others would have done
MOST_TIMES = 10.0  # the dev rows: where more would be needed, more of them are no advice


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The recommendation, in words and in numbers."""

    chosen: Plan
    lines: tuple[str, ...]
    gains: dict[str, Interval]  # mean dev score of the chosen network minus that of each baseline
    confirmed: dict[str, Interval]  # the same on test, looked at once, after choosing
    expected: tuple[Expected, ...]  # of the delivered model; of the network where there is no other
    of_plan: tuple[Expected, ...]  # of the network, trained once more by the plan


def answer(advice: Advice, study: Study) -> Answer:
    """Chooses, and says why."""
    chosen = chosen_plan(advice)
    gains = {} if advice.race is None else _gains(advice, chosen, "dev")
    confirmed = {} if advice.race is None else _gains(advice, chosen, "test")
    of_plan: tuple[Expected, ...] = ()
    if advice.race is not None:
        of_plan = promised_scores(
            advice.entries[chosen.name],
            advice.entries,
            advice.tasks,
            chosen.targets,
            study,
            noise=advice.race.noise,
            level=advice.options.level,
        )
    expected = of_plan
    if advice.delivered is not None:
        dev = advice.delivered.blends.dev
        expected = promised_of_model(dev, advice.tasks, advice.targets, level=advice.options.level)
    lines = _lines(advice, chosen, gains, confirmed)
    return Answer(
        chosen=chosen,
        lines=tuple(line for line in lines if line),
        gains=gains,
        confirmed=confirmed,
        expected=expected,
        of_plan=of_plan,
    )


def chosen_plan(advice: Advice) -> Plan:
    """How to divide; where no network was trained, all that can be learned together."""
    if advice.race is not None:
        return choose(advice.race, advice.entries, left_out=advice.left_out)
    names = [n for n in advice.tasks.names if n not in advice.left_out] or advice.tasks.names
    targets = [name for name in advice.targets if name in names] or list(names)
    return together("uniform", "all tasks, equally often", names, targets=targets)


def plan_of(advice: Advice, found: Answer) -> Plan:
    """The recommendation as a plan that `train` takes: the recipe of the network, for any trainer."""
    batches = max(advice.batches, 1)
    if advice.delivered is not None and advice.delivered.batches:
        batches = advice.delivered.batches
    seeds = len(advice.entries.get(found.chosen.name, ()))
    return replace(
        found.chosen,
        expected=found.of_plan,
        length=Length(batches=batches, batch_size=advice.batch_size),
        evidence={
            "words": list(found.lines),
            "batches_spent": round(advice.spent),
            "batches_of_a_run": advice.batches,
            "seeds": seeds,
            "level": advice.options.level,
            "settled": is_settled(advice),
            "dev_gain": {name: _numbers(gain) for name, gain in found.gains.items()},
            "test_gain": {name: _numbers(gain) for name, gain in found.confirmed.items()},
        },
    )


def is_settled(advice: Advice) -> bool:
    return advice.race is not None and advice.race.is_settled and not advice.nothing_learned


def best_runs(advice: Advice, found: Answer) -> list[tuple[Run, tuple[str, ...]]]:
    """For each model of the plan the run that does best on dev, and what it is for."""
    entries = advice.entries.get(found.chosen.name, ())

    def score(entry: Entry, part: Part) -> float:
        mean = mean_comparable(advice.tasks, entry.dev, part.scored)
        return -math.inf if mean != mean else mean

    return [
        (max(entries, key=lambda entry: score(entry, part)).runs[place], part.scored)
        for place, part in enumerate(found.chosen.models)
        if entries
    ]


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


def _lines(
    advice: Advice, chosen: Plan, gains: dict[str, Interval], confirmed: dict[str, Interval]
) -> list[str]:
    if advice.nothing_learned:
        return _nothing_learned(advice, chosen)
    first = [_worthless(advice)]
    if advice.delivered is not None:
        first.append(_worth(advice, advice.delivered))
    elif advice.race is not None and len(advice.entries) > 1:
        first.append(_gain_of_network(advice, gains, confirmed))
    rest = [] if advice.delivered is None else [_contents(advice, advice.delivered)]
    if advice.race is not None:
        rest += [_division(advice, advice.race, chosen), _how_much(chosen)]
        rest.append(_harmful(advice))
    return [" ".join(words for words in first if words), *rest]


def _nothing_learned(advice: Advice, chosen: Plan) -> list[str]:
    assert advice.architecture is not None
    help_ = what_would_help(
        advice.learned,
        advice.tasks,
        architecture=advice.architecture,
        batches=advice.batches,
        batch_size=advice.batch_size,
    )
    return [help_, f"The saved plan is a placeholder, not a recommendation: {chosen.words}."]


def _worthless(advice: Advice) -> str:
    """What no plan should train, the worst first."""
    said = []
    for finding in advice.findings:
        if finding.kind == "leak":
            said.append(f"{_quoted(finding.tasks)} tells its own labels")
        if finding.kind == "same task twice":
            said.append(f"{_quoted(finding.tasks)} are the same task")
    rising = {each.task for each in advice.learned if each.still_rising}
    never = [name for name in advice.unlearned if name not in rising]
    yet = [name for name in advice.unlearned if name in rising]
    if never:
        said.append(f"nothing beat guessing on {_quoted(never)}")
    if yet:
        said.append(f"nothing beats guessing on {_quoted(yet)} yet")
    words = "; ".join(dict.fromkeys(said))
    return f"{words[0].upper()}{words[1:]}." if words else ""


def _quoted(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names[:6]] + (["others"] if len(names) > 6 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _worth(advice: Advice, found: Delivered) -> str:
    """How far what is delivered lies above what anyone would have."""
    rows = "test rows" if found.split == "test" else "dev rows its weights did not see"
    level = f"{100 * advice.options.level:g} %"
    against = {
        "plain": f"the best plain way ({found.plain})",
        "alone": "each task alone",
        "peer": f"the best shallow model ({found.peer})",
    }
    gains = [(against[name], gain) for name, gain in found.gains.items()]
    if found.names == (found.peer,):  # it is that one
        gains = [pair for pair in gains if pair[0] != against["peer"]]
    if not gains:
        score = mean_comparable(advice.tasks, found.scores, advice.judged)
        return f"The delivered model has a mean score of {score:.3f} on {rows}."
    (name, gain), *others = gains
    words = f"The delivered model is {_apart(advice, gain)} {name} on {rows} ({level})"
    if others:
        words += "; " + "; ".join(f"{_apart(advice, gain)} {name}" for name, gain in others)
    if gain.high < 0:
        words += f". Take {found.plain} instead: these rows refute what dev rows said"
    return f"{words}."


def _apart(advice: Advice, gain: Interval) -> str:
    """`1.9 points (+1.1 to +2.7) above`."""
    if gain.low <= 0 <= gain.high:
        return f"level ({_points(advice, gain.mean)}, {_range(advice, gain)}) with"
    return (
        f"{_points(advice, abs(gain.mean), signed=False)} ({_range(advice, gain)}) "
        f"{'above' if gain.mean > 0 else 'below'}"
    )


def _points(advice: Advice, value: float, *, signed: bool = True, unit: bool = True) -> str:
    sign = "+" if signed else ""
    if not all(_is_share(advice.tasks[name].metric) for name in advice.judged):
        return f"{value:{sign}.3f}"
    return f"{100 * value:{sign}.1f}{' points' if unit else ''}"


def _is_share(metric: str) -> bool:
    return find_metric(metric).higher_is_better


def _range(advice: Advice, gain: Interval) -> str:
    if gain.low != gain.low:
        return "one seed, no interval"
    ends = (_points(advice, end, unit=False) for end in (gain.low, gain.high))
    return " to ".join(ends)


def _contents(advice: Advice, found: Delivered) -> str:
    """What the delivered model is made of."""
    names = list(found.names)
    what = names[0] if len(names) == 1 else f"a blend of {', '.join(names[:-1])} and {names[-1]}"
    again = (
        "trained again on train and dev rows; what was checked lies beside it"
        if found.is_refitted
        else "trained on train rows"
        if not advice.options.refit
        else "trained again on train and dev rows as far as could be"
    )
    return f"The model: {what}, {again}. It answers for all {len(found.final.blends)} tasks."


def _division(advice: Advice, race: Race, chosen: Plan) -> str:
    way = _way(advice, chosen)
    level = f"{100 * advice.options.level:g} %"
    tried = len(race.standings)
    if tried == 1:
        one = "One task: there is nothing to train it with" if len(advice.tasks) == 1 else "One way"
        return f"{one}, so nothing is compared."
    if len(race.open) == 1:
        return f"{way} ({level}: every other of {tried} candidates is worse)."
    lowered = f"{way[0].lower()}{way[1:]}"
    if race.is_settled:
        count = len(race.alike)
        alike = f"all {count}" if count == tried else f"the {count} first of {tried}"
        within = f"{100 * race.within:.1f} points"
        if 2 * count < tried:
            return (
                f"The {count} best of {tried} candidates are within {within} of each other, and every "
                f"other is worse ({level}). Take the plainest of them: {lowered}."
            )
        return (
            f"How you divide hardly matters here: {alike} candidates are within {within} ({level}). "
            f"Take the plainest: {lowered}."
        )
    lead = "the leader so far"
    if chosen.name != race.leader.name:
        plain = "the plainest of them"
        lead = plain if chosen.name in SIMPLEST else "the best without what teaches nothing"
    words = (
        f"How to divide is not settled: {len(race.open)} of {tried} candidates may be the best, within "
        f"{100 * race.open_within:.1f} points of each other ({level}). "
    )
    return words + f"Until then {lead}: {lowered}. {_what_would_tell(advice, race)}"


def _what_would_tell(advice: Advice, race: Race) -> str:
    """Dev rows, where they are what lacks; else seeds."""
    rivals = [each for each in race.standings[1:] if each.is_open]
    gap = min(abs(each.behind.mean) for each in rivals)
    reach = normal_quantile(advice.options.level) * race.row_error
    if math.isfinite(reach) and gap > 0 and reach > gap:
        times = (reach / gap) ** 2
        rows = int(np.sum([advice.tasks[name].sizes["dev"] for name in advice.judged]))
        if times <= MOST_TIMES:
            wanted = _rounded_up(rows * times)
            return f"About {wanted:,} dev rows would tell; there are {rows:,}."
        return "More dev rows than are easily had would tell."
    return "More seeds would tell, so a larger budget."


def _rounded_up(number: float) -> int:
    unit = 10 ** max(len(str(math.ceil(number))) - 2, 0)
    return int(math.ceil(number / unit) * unit)


def _way(advice: Advice, chosen: Plan) -> str:
    if chosen.merge is not None:
        method = type(chosen.merge.method).__name__
        return f"Train each task alone and merge the models into one ({method})"
    if all(len(part.tasks) == 1 for part in chosen.parts):
        return "Train each task alone"
    shared = [part for part in chosen.parts if len(part.tasks) > 1]
    lone = [part.tasks[0] for part in chosen.parts if len(part.tasks) == 1]
    words = "; ".join(_listed(part.tasks, advice) for part in shared)
    rest = f"; alone: {', '.join(lone)}" if lone else ""
    return f"Train together: {words}{rest}"


def _listed(names: Sequence[str], advice: Advice) -> str:
    return "all tasks" if len(names) == len(advice.tasks) else ", ".join(names)


def _how_much(chosen: Plan) -> str:
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


def _gain_of_network(
    advice: Advice, gains: dict[str, Interval], confirmed: dict[str, Interval]
) -> str:
    """Where nothing is blended: the network against what others would have trained."""
    words = {"uniform": "drawing all tasks equally often", "single": "training each task alone"}
    name = next((each for each in words if each in gains), None)
    if name is None:
        return ""
    dev = gains[name]
    found = f"Against {words[name]}: {_points(advice, dev.mean)} on dev ({_range(advice, dev)})"
    if name in confirmed:
        found += (
            f", {_points(advice, confirmed[name].mean)} on test ({_range(advice, confirmed[name])})"
        )
    return f"{found}, over seeds."


def _harmful(advice: Advice) -> str:
    if advice.lessons is None or len(advice.lessons.targets) < 2:
        return ""
    harmful = [name for name in harmful_tasks(advice.lessons) if name not in advice.unlearned]
    return f"{_quoted(harmful)} help the others least." if harmful else ""


def _numbers(interval: Interval) -> dict[str, float | int | None]:
    known = interval.low == interval.low
    return {
        "mean": interval.mean,
        "low": interval.low if known else None,
        "high": interval.high if known else None,
        "n": interval.n,
    }
