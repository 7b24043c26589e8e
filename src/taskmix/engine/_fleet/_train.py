"""Trains the members of a fleet to their ends, each into its own record.

A member's checkpoint is the tree of a solo run's, so that either engine goes on from the other's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from taskmix.engine._fleet._evaluate import evaluate_members
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._layout import ParameterLayout, StackedParameters
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._stepper import Stepper
from taskmix.engine._optimization import Optimization
from taskmix.engine._run import credits_of, score_row
from taskmix.errors import TaskmixError
from taskmix.training import Score, mean_score, scores_by_position

Tell = Callable[[int, int, bool], None]  # run, step, whether it is done

WRITERS = 8  # threads: a commit mostly waits for the disk
# Of the members still at work: below, the others leave the tensors, which takes time itself.
DROPPED_BELOW = 0.75


def train_fleet(
    fleet: StackedModels,
    *,
    tell: Tell,
    should_stop: Callable[[], bool] | None,
    graphs: bool | None = None,
) -> None:
    """Takes every member to its end, or to the checkpoint at which the user stops it.

    What becomes of a member is written in its record, and in its `error` and `stopped`.
    """
    stepper = Stepper(fleet, graphs=graphs)
    at_work = list(range(len(fleet.members)))  # places in the fleet
    with ThreadPoolExecutor(WRITERS) as threads:
        _end(fleet, [p for p in at_work if _is_over(fleet, p)], tell, threads)
        at_work = [place for place in at_work if not _is_over(fleet, place)]
        while at_work:
            if len(at_work) < DROPPED_BELOW * len(fleet.members):
                fleet.keep(at_work)
                stepper = Stepper(fleet, graphs=graphs)
                at_work = list(range(len(at_work)))
            told, seconds = stepper.advance(_next_stop(fleet) - fleet.step)
            _record_steps(fleet, at_work, told, seconds)
            asked = should_stop is not None and should_stop()
            _after_steps(fleet, at_work, threads, asked=asked)
            over = [place for place in at_work if _is_over(fleet, place)]
            _end(fleet, over, tell, threads)
            at_work = [place for place in at_work if not _is_over(fleet, place)]
            for place in at_work:
                tell(fleet.members[place].number, fleet.step, False)
            if asked:
                for place in at_work:
                    fleet.members[place].stopped = True
                    fleet.members[place].writer.stop()
                return


def _next_stop(fleet: StackedModels) -> int:
    """The next step after which something other than a step is due."""
    run, step = fleet.run, fleet.step
    free = min(member.decision.free_until for member in fleet.members)
    times = [every for every in (run.evaluate_every, run.checkpoint_every) if every is not None]
    due = [(step // every + 1) * every for every in times]
    return int(min([run.steps, max(free, step + 1), *due]))


def _is_over(fleet: StackedModels, place: int) -> bool:
    member = fleet.members[place]
    return member.error is not None or member.tracker.over or fleet.step >= fleet.run.steps


def _record_steps(
    fleet: StackedModels, at_work: Sequence[int], told: NDArray[np.float64], seconds: float
) -> None:
    """Adds the steps just taken, [step, told, member, active slot], to the records."""
    count = len(told)
    first = fleet.step - count + 1
    share = seconds / count / len(fleet.members)
    for place in at_work:
        member = fleet.members[place]
        slots = 1 if fleet.one_task else len(member.tasks)
        losses, *more = told[:, :, place, :slots].swapaxes(0, 1)
        sound = np.isfinite(losses)
        if not sound.all():
            bad = int(np.flatnonzero(~sound.all(axis=1))[0])
            place_of_bad = int(np.flatnonzero(~sound[bad])[0])
            slot = place_of_bad if not fleet.one_task else member.decision.slot_at(bad)
            member.diverged(first + bad, slot, float(losses[bad, place_of_bad]))
            losses, more = losses[:bad], [each[:bad] for each in more]
        weights, present = (*more, None, None)[:2]
        try:
            columns = member.decision.learn(losses, weights)
        except TaskmixError as error:  # of the member's own reward: the others go on
            member.error = error
            continue
        if len(losses):
            columns["steps"] = np.repeat(np.arange(first, first + len(losses)), slots)
            columns["seconds"] = share / slots
            if present is not None:  # a task without a target in a step has no loss to record
                there = present > 0
                columns["seconds"] = np.repeat(share / there.sum(axis=1), slots)
                columns = {name: column[there.ravel()] for name, column in columns.items()}
            member.writer.add_steps(**columns)


def _after_steps(
    fleet: StackedModels, at_work: Sequence[int], threads: ThreadPoolExecutor, *, asked: bool
) -> None:
    """Evaluation and checkpoints, where they are due."""
    run, step = fleet.run, fleet.step
    last = step == run.steps
    if last or (run.evaluate_every is not None and step % run.evaluate_every == 0):
        _evaluate(fleet, at_work)
    due = asked or (run.checkpoint_every is not None and step % run.checkpoint_every == 0)
    # Who is over gets no checkpoint but its end, in a moment.
    wanted = [place for place in at_work if due and not _is_over(fleet, place)]
    if wanted:
        _checkpoint(fleet, wanted, threads)


def _evaluate(fleet: StackedModels, at_work: Sequence[int]) -> None:
    sound = [place for place in at_work if fleet.members[place].error is None]
    if not sound:
        return
    better: list[int] = []
    found = evaluate_members(fleet, sound, fleet.parameters, "dev")
    for place, scores in zip(sound, found, strict=True):
        member = fleet.members[place]
        member.decision.measured(scores_by_position(member.tasks, scores, member.deviations))
        if member.tracker.see(mean_score(scores, member.deviations), fleet.step):
            better.append(place)
            member.best_scores = scores
        member.writer.add_scores(fleet.step, [score_row(score) for score in scores])
    if better:
        fleet.best.copy_members(torch.tensor(better, device=fleet.device), fleet.parameters)


def _must_be_finite(fleet: StackedModels, places: Sequence[int]) -> list[int]:
    """Those whose parameters are; a checkpoint of the others would be no way back."""
    finite = fleet.parameters.finite().tolist()
    for place in places:
        member = fleet.members[place]
        if not finite[place] and member.error is None:
            member.diverged(fleet.step, member.decision.slot_at(-1), float("nan"))
    return [place for place in places if fleet.members[place].error is None]


def _checkpoint(fleet: StackedModels, places: Sequence[int], threads: ThreadPoolExecutor) -> None:
    places = _must_be_finite(fleet, places)
    if fleet.weighing is not None:
        fleet.weighing.settle()
    chosen = torch.tensor(places, device=fleet.device)
    parameters, best = (s.keep(chosen).to("cpu") for s in (fleet.parameters, fleet.best))
    moments = {name: s.keep(chosen).to("cpu") for name, s in fleet.optimizer.moments.items()}
    steps = fleet.optimizer.head_steps
    steps = None if steps is None else steps.index_select(0, chosen).cpu()

    def commit(number: int) -> None:
        member = fleet.members[places[number]]
        known = member.tracker.step > 0
        member.writer.commit(
            fleet.step,
            state_tree(member, number, fleet.step, parameters, moments, steps),
            best=best_tree(member, number, best) if known else None,
            best_step=member.tracker.step if known else None,
            best_changed=known and member.tracker.step != member.told_best,
        )
        member.checkpoint, member.told_best = fleet.step, member.tracker.step

    _each(threads, commit, [fleet.members[place] for place in places])


def _end(
    fleet: StackedModels, over: Sequence[int], tell: Tell, threads: ThreadPoolExecutor
) -> None:
    """Final scores and the end of the record for members that are done; words for who failed."""
    done = _must_be_finite(fleet, over)
    if done:
        chosen = torch.tensor(done, device=fleet.device)
        best = fleet.best.keep(chosen).to("cpu")
        with_credits = not all(fleet.members[place].writer.lean for place in done)
        splits = [
            _final_scores(fleet, done, "dev", with_credits=with_credits),
            _final_scores(fleet, done, "test"),
        ]

        def finish(number: int) -> None:
            member = fleet.members[done[number]]
            scores = [score_row(score) for split in splits for score in split[number]]
            member.writer.finish(
                scores=scores,
                best_step=member.tracker.step or fleet.step,
                step=fleet.step,
                best=best_tree(member, number, best),
                row_credits=credits_of(splits[0][number]),
            )

        _each(threads, finish, [fleet.members[place] for place in done])
    for place in over:
        member = fleet.members[place]
        if member.error is not None:
            member.writer.fail(f"{type(member.error).__name__}: {member.error}")
        tell(member.number, fleet.step, True)


def _final_scores(
    fleet: StackedModels, done: Sequence[int], split: str, *, with_credits: bool = False
) -> list[tuple[Score, ...]]:
    """Of the best parameters."""
    known = {
        place: fleet.members[place].best_scores
        for place in done
        if split == "dev" and not with_credits
    }
    rest = [place for place in done if known.get(place) is None]
    if rest:
        scored = evaluate_members(fleet, rest, fleet.best, split, with_credits=with_credits)
        known |= dict(zip(rest, scored, strict=True))
    return [known[place] or () for place in done]


def _each(
    threads: ThreadPoolExecutor, write: Callable[[int], None], members: Sequence[Member]
) -> None:
    """Writes for each member, by number; one whose record cannot be written fails alone."""
    waiting = [threads.submit(write, number) for number in range(len(members))]
    for future, member in zip(waiting, members, strict=True):
        try:
            future.result()
        except TaskmixError as error:
            member.error = error


def model_tree(layout: ParameterLayout, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """A solo model's `state_dict`, in its order."""
    return {name: values[name] if name in values else layout.fixed[name] for name in layout.names}


def best_tree(member: Member, place: int, best: StackedParameters) -> dict[str, Tensor]:
    """What `train` yields as the best of a checkpoint; `place` is among the stack's members."""
    return model_tree(member.layout, best.of_member(place, member.layout))


def state_tree(
    member: Member,
    place: int,  # among the members of the stacks
    step: int,
    parameters: StackedParameters,  # on the CPU, as are the others
    moments: dict[str, StackedParameters],
    head_steps: Tensor | None,  # [member, slot]
) -> dict[str, Any]:
    """What `train` yields as the state of a checkpoint."""
    layout = member.layout
    optimizer, scheduler = _optimizer_tree(
        member.run.optimization, len(layout.places), step, member
    )
    found = {name: stack.of_member(place, layout) for name, stack in moments.items()}
    for number, each in enumerate(layout.places):
        count = float(step)
        if head_steps is not None and each.slot is not None:
            count = float(head_steps[place, each.slot])
        if count:  # a head that was never drawn has no state
            kept = {name: values[each.name] for name, values in found.items()}
            if "exp_avg" in kept:
                kept = {"step": torch.tensor(count), **kept}
            optimizer["state"][number] = kept
    return {
        "step": step,
        "seed": member.seed,
        "model": model_tree(layout, parameters.of_member(place, layout)),
        "optimizer": optimizer,
        "scheduler": scheduler,
        "steps": member.decision.state(step),
        **member.tracker.state(),
    }


def _optimizer_tree(
    options: Optimization, count: int, step: int, member: Member
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The states of PyTorch's optimiser and scheduler after `step` steps, moments left out."""
    optimizer, scheduler = copy.deepcopy(_fresh_trees(options, count))
    if scheduler is not None:
        rate = options.learning_rate * options.factor(step, member.run.steps)
        optimizer["param_groups"][0]["lr"] = rate
        scheduler |= {"last_epoch": step, "_step_count": step + 1, "_last_lr": [rate]}
    return optimizer, scheduler


@lru_cache(maxsize=64)
def _fresh_trees(options: Optimization, count: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    stand_ins = [nn.Parameter(torch.zeros(1)) for _ in range(count)]
    optimizer, scheduler = options.build(stand_ins, 1)
    return optimizer.state_dict(), None if scheduler is None else dict(scheduler.state_dict())
