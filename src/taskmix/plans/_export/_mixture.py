"""A model of a plan as a trainer sees it: files, shares, and when the shares change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from taskmix.errors import InputError
from taskmix.plans._division import Shares, Stage, Stages, Weighted
from taskmix.plans._export._sources import DataSource
from taskmix.plans._plan import Part, Plan


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """One model to train: a source for each task, and their shares."""

    label: str  # of the files: empty, or as in "model-2-stage-1"
    sources: tuple[DataSource, ...]
    stages: tuple[Stage, ...]  # one unless the shares change
    steps: int | None = None  # batches; None: not known
    batch_size: int | None = None

    @property
    def shares(self) -> tuple[float, ...]:
        """Those of its only stage, summing to 1 as exactly as floats can."""
        (stage,) = self.stages
        return exact(stage.probabilities)

    def file(self, stem: str, ending: str) -> str:
        """A file's name that no other model of the plan has."""
        return f"{stem}{'-' if self.label else ''}{self.label}.{ending}"


def exact(shares: tuple[float, ...]) -> tuple[float, ...]:
    """A plan's shares may miss 1 by a millionth, and NumPy's `choice` takes no more than 1e-8."""
    total = sum(shares)
    return tuple(share / total for share in shares)


def mixtures_of(
    plan: Plan,
    sources: Mapping[str, DataSource],
    *,
    steps: int | None,
    batch_size: int | None,
    says_stages: bool,
) -> Iterator[Mixture]:
    """One for each model, and for each stage of it where the trainer cannot be told of stages."""
    for number, part in enumerate(plan.parts, 1):
        label = f"model-{number}" if len(plan.parts) > 1 else ""
        whole = Mixture(
            label=label,
            sources=tuple(sources[name] for name in part.tasks),
            stages=_stages(part, number),
            steps=None if steps is None else max(int(steps * part.share + 1e-9), 1),
            batch_size=batch_size,
        )
        if says_stages or len(whole.stages) == 1:
            yield whole
        else:
            yield from _one_by_one(whole)


def _stages(part: Part, number: int) -> tuple[Stage, ...]:
    match part.division:
        case Stages(stages=stages):
            return stages
        case Shares(probabilities=shares):
            return (Stage(begin=0, probabilities=shares),)
        case Weighted(method=method) if len(part.tasks) > 1:
            raise InputError(
                "A plan should draw one task a step to be exported, because trainers know shares. "
                f"Found that model {number} takes a batch of every task in every step, weighted by "
                f"{type(method).__name__}. Train it with `taskmix train --plan`, or weight the losses "
                "in your own loop with `taskmix.weighting.Balancer`."
            )
        case _:
            return (Stage(begin=0, probabilities=(1.0,)),)


def _one_by_one(whole: Mixture) -> Iterator[Mixture]:
    ends = [*(stage.begin for stage in whole.stages[1:]), 1.0]
    for number, (stage, end) in enumerate(zip(whole.stages, ends, strict=True), 1):
        steps = None
        if whole.steps is not None:
            steps = max(round(end * whole.steps) - round(stage.begin * whole.steps), 1)
        yield replace(
            whole,
            label=f"{whole.label}{'-' if whole.label else ''}stage-{number}",
            stages=(replace(stage, begin=0),),
            steps=steps,
        )
