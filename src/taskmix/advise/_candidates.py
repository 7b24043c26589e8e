"""Ways of dividing one budget over the tasks, each a set of models to train.

Every candidate spends the same number of batches. A part is one model: the tasks it trains on, those
whose scores are taken from it, and its share of the batches. Training alone is a candidate of as many
parts as there are tasks; one shared model is a candidate of one part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from taskmix.engine import Run
from taskmix.errors import OptionError
from taskmix.policies import AnyPolicy, AnyReward, Fixed, HardProgress, SizeProportional, Uniform
from taskmix.tasks import TaskSet
from taskmix.weighting import AnyWeighting, Equal

EVALUATIONS = range(8, 1, -1)  # of a run: as many as are cheap
EVALUATED = 0.25  # of a run's time, at most, where that leaves two evaluations
TRAINED = 3  # evaluated rows that cost as much as one trained on: there is no way back


@dataclass(frozen=True, kw_only=True)
class Part:
    """One model: `scored` of its `tasks` are what it is for."""

    tasks: tuple[str, ...]
    scored: tuple[str, ...]
    share: float  # of the candidate's batches
    policy: AnyPolicy | None = None
    weighting: AnyWeighting | None = None  # one of the two

    def __post_init__(self) -> None:
        if (self.policy is None) == (self.weighting is None):
            raise OptionError("A part should have a policy or a weighting, one of the two.")
        if not 0 < self.share <= 1 or not set(self.scored) <= set(self.tasks):
            raise OptionError(
                "A part should have a share of the budget above 0 and up to 1, and train on what it "
                f"is for. Found {self.share}, {self.tasks} and {self.scored}."
            )

    def probabilities(self, sizes: dict[str, int]) -> dict[str, float]:
        """How likely each of its tasks is in a batch of this part."""
        if self.policy is None:
            return dict.fromkeys(self.tasks, 1 / len(self.tasks))
        import numpy as np

        state = self.policy.init(np.array([sizes[name] for name in self.tasks]))
        shares = self.policy.probabilities(state)
        return dict(zip(self.tasks, (float(share) for share in shares), strict=True))


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A way of training all targets."""

    name: str
    words: str  # what it is, for people
    parts: tuple[Part, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.scored)

    def shares(self, sizes: dict[str, int]) -> tuple[object, ...]:
        """What tells it from others: models of the same shares differ in name only."""
        return tuple(
            (
                part.scored,
                round(part.share, 9),
                part.weighting,
                tuple((name, round(q, 9)) for name, q in part.probabilities(sizes).items()),
            )
            for part in self.parts
        )

    def runs(
        self, template: Run, batches: int, seed: int, evaluations: int = EVALUATIONS[0]
    ) -> list[Run]:
        """One run a part."""
        found = []
        for part in self.parts:
            run = replace(
                template,
                label=self.name,
                tasks=part.tasks,
                policy=part.policy,
                reward=_reward(part),
                weighting=part.weighting,
                seed=seed,
            )
            steps = max(int(batches * part.share + 1e-9) // run.batches_a_step, 1)
            every = max(steps // evaluations, 1)
            found.append(replace(run, steps=steps, evaluate_every=every, checkpoint_every=every))
        return found


def evaluated_rows(tasks: TaskSet, evaluations: int) -> int:
    """Rows that a run of these tasks is evaluated on, dev and test at its end included."""

    def rows(split: str) -> int:
        # Tasks that share their inputs are evaluated together.
        found = [task.splits[split].inputs for task in tasks if split in task.splits]
        return sum({id(table): table.num_rows for table in found}.values())

    return max((evaluations + 1) * rows("dev") + rows("test"), 1)


def cheap_evaluations(tasks: TaskSet, batches: int, batch_size: int) -> int:
    """How often a run can be evaluated for a part of what its training costs; twice in any case."""
    rows = evaluated_rows(tasks, 1) - evaluated_rows(tasks, 0)
    affordable = EVALUATED * TRAINED * batches * batch_size / max(rows, 1)
    return int(min(max(affordable, EVALUATIONS[-1]), EVALUATIONS[0]))


def _reward(part: Part) -> AnyReward | None:
    """Of a model that draws among tasks: it costs nothing, and another policy can learn from it."""
    return HardProgress() if part.policy is not None and len(part.tasks) > 1 else None


def alone(targets: Sequence[str]) -> Candidate:
    """A model for each task, the batches divided evenly."""
    parts = tuple(_alone(name, 1 / len(targets)) for name in targets)
    return Candidate(name="single", words="each task alone", parts=parts)


def together(
    name: str,
    words: str,
    tasks: Sequence[str],
    *,
    targets: Sequence[str] | None = None,
    policy: AnyPolicy | None = None,
    weighting: AnyWeighting | None = None,
) -> Candidate:
    """One model for all."""
    part = Part(
        tasks=tuple(tasks),
        scored=tuple(tasks if targets is None else targets),
        share=1.0,
        policy=policy,
        weighting=weighting,
    )
    return Candidate(name=name, words=words, parts=(part,))


def grouped(name: str, words: str, groups: Sequence[Sequence[str]]) -> Candidate:
    """A model for each group, tasks drawn evenly within it; every task gets the same share."""
    count = sum(len(group) for group in groups)
    parts = tuple(
        _alone(group[0], 1 / count)
        if len(group) == 1
        else Part(
            tasks=tuple(group), scored=tuple(group), share=len(group) / count, policy=Uniform()
        )
        for group in groups
    )
    return Candidate(name=name, words=words, parts=parts)


def _alone(name: str, share: float) -> Part:
    return Part(tasks=(name,), scored=(name,), share=share, policy=Uniform())


def distinct(
    candidates: Iterable[Candidate], sizes: dict[str, int], known: Iterable[Candidate] = ()
) -> list[Candidate]:
    """Without those that are the same as an earlier one."""
    seen = {candidate.shares(sizes) for candidate in known}
    kept = []
    for candidate in candidates:
        if (shares := candidate.shares(sizes)) not in seen:
            seen.add(shares)
            kept.append(candidate)
    return kept


def baselines(tasks: Sequence[str], targets: Sequence[str]) -> list[Candidate]:
    """What anyone would try first."""
    found = [alone(targets)]
    if len(tasks) > 1:
        found += [
            together(
                "uniform", "all tasks, equally often", tasks, targets=targets, policy=Uniform()
            ),
            together(
                "size",
                "all tasks, in proportion to their rows",
                tasks,
                targets=targets,
                policy=SizeProportional(),
            ),
            together(
                "equal",
                "all tasks every step, equal weights",
                tasks,
                targets=targets,
                weighting=Equal(),
            ),
        ]
    return found


def with_probabilities(
    name: str, words: str, tasks: Sequence[str], shares: Sequence[float], targets: Sequence[str]
) -> Candidate:
    """One model, tasks drawn with these probabilities."""
    return together(name, words, tasks, targets=targets, policy=Fixed(list(shares)))
