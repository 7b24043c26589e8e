"""What people take home: a blend of the best network and the best peers, trained again on all rows.

The network of the chosen candidate is trained once more with a seed that nothing was chosen by, for as
long as its other seeds say, without looking at dev. So its dev rows are fresh, and members, temperatures
and weights can be found on them (`_blend.py`). Then every member is trained again on train and dev
together, with the settings found. What was checked and what was trained again are both kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.adviser._blend import Blends, fit_blends
from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._members import BlendMember, gain_on, network_member, score_of
from taskmix.adviser._scores import Entry, best_evaluation, mean_comparable
from taskmix.engine import RefitSource, Run, save_models, trained_model
from taskmix.errors import RunError
from taskmix.models import FittedPeer
from taskmix.numerics import Interval
from taskmix.plans import Plan
from taskmix.records import Study
from taskmix.tasks import HeldEncoding, TaskSet
from taskmix.training import Blend, TrainedModel

Array = NDArray[np.float64]

PLAIN = ("single", "uniform", "size", "tempered", "equal")  # what anyone would train
NETWORK = "network"
FRESH = 10_000  # added to the first seed: what is delivered is trained with a seed of its own
BOTH = 3.0  # trainings of the network that have to be paid for: to check, on all rows, and some air
EVALUATIONS = 8  # of a training that is longer than those of the race
MOST_LONGER = 16  # times the runs of the race, where their last evaluation was the best
MOST_STRETCH = 1.5  # times the batches, where dev rows come to those of train


@dataclass(frozen=True, eq=False, kw_only=True)
class BlendedModel:
    """What a trained model is made of: networks and peers, each with its tasks, and their blends."""

    networks: tuple[tuple[Run, tuple[str, ...]], ...]
    peers: tuple[tuple[FittedPeer, tuple[str, ...]], ...]
    blends: Mapping[str, Blend]  # by task; places among the networks, then the peers

    def load(self, study: Study) -> TrainedModel:
        return trained_model(self.networks, study, peers=self.peers, blends=self.blends)

    def save(self, folder: Path, study: Study, notes: Mapping[str, Any]) -> None:
        save_models(folder, self.networks, study, notes, peers=self.peers, blends=self.blends)


@dataclass(frozen=True, eq=False, kw_only=True)
class Delivered:
    """The model, and how it did on rows that nothing was chosen by."""

    blends: Blends  # of the members as they were checked
    final: BlendedModel  # what people take home
    before: BlendedModel  # what was checked
    batches: int  # of the network's training; 0: none is a member
    is_refitted: bool
    split: str  # of the scores: test, or dev where there is no test
    scores: Mapping[str, float]  # of what is delivered, on rows nothing was chosen by
    checked: Mapping[str, float]  # of what was trained on train rows alone
    gains: Mapping[str, Interval] = field(default_factory=dict)  # over "plain", "alone" and "peer"
    plain: str = ""  # the best plain candidate by dev
    peer: str = ""  # the best peer by dev

    @property
    def names(self) -> tuple[str, ...]:
        """Of the members, the best first."""
        return tuple(member.name for member in self.blends.members)


def best_batches(
    entries: Sequence[Entry], runs: CandidateRuns, judged: Sequence[str]
) -> tuple[int, bool]:
    """Batches after which the seeds of a candidate were best on average; whether they still rose."""
    tasks = runs.template.load()
    curves = [
        np.array([mean_comparable(tasks, scores, judged) for scores in entry.curve])
        for entry in entries
    ]
    count = min((len(curve) for curve in curves), default=0)
    place = best_evaluation(curves)
    if place < 0 or count < 2:
        return runs.length.batches, False
    return max(round(runs.length.batches * (place + 1) / count), 1), place == count - 1


def train_network(
    plan: Plan,
    entries: Sequence[Entry],
    runs: CandidateRuns,
    judged: Sequence[str],
) -> tuple[BlendMember, int] | None:
    """The chosen network with a fresh seed, and its batches; None where there is no time for it.

    Where the seeds were at their best before they ended it stops there, unseen. Where they still rose
    it goes on for as long as the budget pays for, and the mean dev score over all tasks says where it
    was best: one look in a few for all tasks together, which favours no model.
    """
    batches, rising = best_batches(entries, runs, judged)
    evaluations = None
    if rising and (longer := _affordable_length(runs)) > batches:
        batches, evaluations = longer, EVALUATIONS
    tasks = runs.template.load()
    made = _final_runs(plan, runs.template, batches, runs.first_seed + FRESH, evaluations)
    done = _train(made, runs, batches)
    if done is None:
        return None
    if evaluations is not None:
        summaries = [run.folder(runs.study).summary() for run in made]
        best = [each.best_step / each.step for each in summaries if each and each.best_step]
        batches = max(round(batches * float(np.mean(best))), 1) if best else batches
    try:
        member = network_member(plan, done, tasks, runs.study, name=f"{NETWORK} {plan.name}")
    except RunError:  # an executor that keeps no models, as one of records alone
        return None
    return member, batches


def _affordable_length(runs: CandidateRuns) -> int:
    """The longest training, in doublings of the runs, that can be paid for, and on all rows as well."""
    spending, whole = runs.spending, runs.length.batches

    def longest() -> int:
        found = whole
        while found < MOST_LONGER * whole:
            if spending.cost(runs.name, 2 * found, BOTH) > spending.left:
                break
            found *= 2
        return found

    if not spending.by_clock:
        return longest()
    used = runs.timer.used()
    return int(spending.ledger.decide("final batches", longest, seconds=used))


def deliver(
    members: Sequence[BlendMember],  # the network first, where there is one, then peers
    batches: int,  # of the network's training
    runs: CandidateRuns,
    plan: Plan | None,  # of the network
    targets: Sequence[str],
    judged: Sequence[str],
    *,
    refit: bool,
    level: float,
    entries: Mapping[str, Sequence[Entry]],
    alone: Sequence[str] = PLAIN,
) -> Delivered:
    """Blends the members, trains them again on all rows, and looks at test once."""
    tasks = runs.template.load()
    seed = runs.first_seed
    blends = fit_blends(members, tasks, targets, judged, seed=seed)
    final = tuple(
        _refitted(member, batches, runs, plan, tasks, seed) if refit else member
        for member in blends.members
    )
    refitted = all(new is not old for new, old in zip(final, blends.members, strict=True))
    split = "test" if all(len(tasks[name].splits.get("test", ())) for name in judged) else "dev"
    checked = blends.outputs(tasks, "test") if split == "test" else dict(blends.dev)
    last = replace(blends, members=final).outputs(tasks, "test") if split == "test" else checked
    plain = _best(entries, tasks, judged, alone)
    peers = [member for member in members if member.peer is not None]
    peer = min(peers, key=lambda each: blends.losses.get(each.name, np.inf), default=None)
    against: dict[str, list[Mapping[str, Array]]] = {}
    if plain:
        against["plain"] = _outputs(entries[plain], tasks, runs.study, split)
    if "single" in entries and plain != "single":
        against["alone"] = _outputs(entries["single"], tasks, runs.study, split)
    if peer is not None:
        against["peer"] = [peer.outputs(split)]  # type: ignore[arg-type]
    gains = {
        name: gain
        for name, theirs in against.items()
        if (gain := gain_on(tasks, judged, split, last, theirs, level=level)) is not None  # type: ignore[arg-type]
    }
    whole = _placed(final, blends.of_task)
    return Delivered(
        blends=blends,
        final=whole,
        before=_placed(blends.members, blends.of_task),
        batches=batches if whole.networks else 0,
        is_refitted=refitted,
        split=split,
        scores={name: score_of(tasks[name], split, out) for name, out in last.items()},
        checked={name: score_of(tasks[name], split, out) for name, out in checked.items()},
        gains=gains,
        plain=plain,
        peer="" if peer is None else peer.name,
    )


def _final_runs(
    plan: Plan, template: Run, batches: int, seed: int, evaluations: int | None = None
) -> list[Run]:
    """Runs that end where they are told, and keep what they have then, or at their best evaluation."""
    template = replace(template, steps=batches, reward=None, patience=None)
    made = plan.runs(template, seeds=[seed], evaluations=evaluations)
    return made if evaluations else [replace(run, evaluate_every=None) for run in made]


def _train(made: Sequence[Run], runs: CandidateRuns, batches: int) -> Sequence[Run] | None:
    """The runs, done; None where they cannot be paid for, fail or are stopped by the budget."""
    there = [run.folder(runs.study) for run in made]
    known = all(each.path.exists() and each.summary() is not None for each in there)
    if not known and runs.spending.cost(runs.name, batches) > runs.spending.left:
        return None
    begin = runs.timer.used()
    done = runs.executor.run(list(made), runs.study)
    results = runs.unless_stopped(done, late=runs.timer.is_over())
    if not known or not runs.spending.by_clock:
        runs.spending.spend(runs.name, batches, 1, runs.timer.used() - begin)
    return made if results and all(each.is_done for each in results) else None


def _refitted(
    member: BlendMember,
    batches: int,
    runs: CandidateRuns,
    plan: Plan | None,
    tasks: TaskSet,
    seed: int,
) -> BlendMember:
    """A member trained on train and dev together; as it is where it cannot be, or there is no time."""
    if member.peer is not None:
        again = member.peer.peer.fit(
            tasks, splits=("train", "dev"), encoding=member.encoding, seed=seed
        )
        test = {
            name: again.outputs(name, tasks[name].splits["test"].inputs).double().numpy()
            for name in member.test
        }
        return replace(member, peer=again, test=test)
    own = isinstance(runs.template.architecture.encoding, HeldEncoding)
    if own or plan is None or plan.merge is not None:
        return member  # inputs of one's own are not joined, and a merge is chosen by dev rows
    before = sum(len(task.splits["train"]) for task in tasks if "train" in task.splits)
    more = sum(task.sizes.get("dev", 0) for task in tasks)
    stretched = round(batches * min(1 + more / max(before, 1), MOST_STRETCH))
    template = replace(runs.template, source=RefitSource(source=runs.template.source))
    made = _final_runs(plan, template, stretched, seed + FRESH)
    done = _train(made, runs, stretched)
    if done is None:
        runs.notes.append(
            "There was no time to train the network again on train and dev rows: it stays as checked."
        )
        return member
    found = network_member(plan, done, template.load(), runs.study, name=member.name)
    return replace(found, dev=member.dev)


def _best(
    entries: Mapping[str, Sequence[Entry]],
    tasks: TaskSet,
    judged: Sequence[str],
    names: Sequence[str],
) -> str:
    scores = {
        name: float(np.mean([mean_comparable(tasks, e.dev, judged) for e in entries[name]]))
        for name in names
        if entries.get(name)
    }
    return max(scores, key=lambda name: scores[name], default="")


def _outputs(
    entries: Sequence[Entry], tasks: TaskSet, study: Study, split: str
) -> list[Mapping[str, Array]]:
    """What the models of each seed say."""
    found = []
    for entry in entries[:2]:  # of more seeds the mean is the same for all that matters here
        with contextlib.suppress(RunError):
            member = network_member(entry.candidate, entry.runs, tasks, study, name="plain")
            found.append(member.outputs(split))  # type: ignore[arg-type]
    return found


def _placed(members: Sequence[BlendMember], blends: Mapping[str, Blend]) -> BlendedModel:
    """All models in the order in which a folder has them, and each task's blend by their places."""
    networks: list[tuple[Run, tuple[str, ...]]] = []
    peers: list[tuple[FittedPeer, tuple[str, ...]]] = []
    where: dict[tuple[int, str], tuple[bool, int]] = {}  # whether it is a network, and its place
    for number, member in enumerate(members):
        served = tuple(name for name, blend in blends.items() if number in blend.members)
        if member.peer is not None:
            where |= {(number, name): (False, len(peers)) for name in served}
            peers.append((member.peer, served))
        for run, answers in member.runs:
            where |= {(number, name): (True, len(networks)) for name in answers}
            networks.append((run, tuple(name for name in answers if name in served)))
    found = {}
    for name, blend in blends.items():
        places = [where[number, name] for number in blend.members]
        at_places = tuple(at if network else len(networks) + at for network, at in places)
        found[name] = replace(blend, members=at_places)
    return BlendedModel(networks=tuple(networks), peers=tuple(peers), blends=found)
