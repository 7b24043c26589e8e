"""The methods of the BanditMTL experiments: the paper's eight, and those people now try first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from taskmix.errors import OptionError
from taskmix.models import AdversarialSharing, Architecture, TextConvolution
from taskmix.weighting import (
    DBMTL,
    FAMO,
    IMTLL,
    MGDAUB,
    AnyWeighting,
    BanditMTL,
    DynamicWeightAverage,
    Equal,
    FairGrad,
    GradNorm,
    GroupDRO,
    NashMTL,
    PCGrad,
    SmoothTchebycheff,
    Tchebycheff,
    Uncertainty,
    UPGrad,
)


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """What a run of a method is made of."""

    architecture: Architecture
    weighting: AnyWeighting | None = None  # None trains each task alone


PAPER_METHODS = (
    "single",
    "equal",
    "uncertainty",
    "gradnorm",
    "mgda",
    "adversarial",
    "tchebycheff",
    "bandit",
)
MODERN_METHODS = ("bandit_smoothed", "famo", "stch", "db_mtl", "nash", "fairgrad", "upgrad")

# `mgda` is MGDA-UB, as in the paper; `bandit_smoothed` climbs running means of the losses, which
# stand for the losses over all rows that its equations are written in.
WEIGHTINGS: dict[str, Callable[[float, float], AnyWeighting]] = {
    "equal": lambda radius, step_size: Equal(),
    "uncertainty": lambda radius, step_size: Uncertainty(),
    "gradnorm": lambda radius, step_size: GradNorm(),
    "mgda": lambda radius, step_size: MGDAUB(),
    "adversarial": lambda radius, step_size: Equal(),
    "tchebycheff": lambda radius, step_size: Tchebycheff(),
    "bandit": lambda radius, step_size: BanditMTL(radius=radius, step_size=step_size),
    "bandit_smoothed": lambda radius, step_size: BanditMTL(
        radius=radius, step_size=step_size, smoothing=0.9
    ),
    "famo": lambda radius, step_size: FAMO(),
    "stch": lambda radius, step_size: SmoothTchebycheff(),
    "db_mtl": lambda radius, step_size: DBMTL(),
    "nash": lambda radius, step_size: NashMTL(),
    "fairgrad": lambda radius, step_size: FairGrad(),
    "upgrad": lambda radius, step_size: UPGrad(),
    "pcgrad": lambda radius, step_size: PCGrad(),
    "dwa": lambda radius, step_size: DynamicWeightAverage(),
    "imtl_l": lambda radius, step_size: IMTLL(),
    "group_dro": lambda radius, step_size: GroupDRO(),
}


def contestant(
    name: str, architecture: TextConvolution, *, radius: float, step_size: float
) -> Contestant:
    """The method of that name; `radius` and `step_size` are BanditMTL's."""
    if name == "single":
        return Contestant(architecture=architecture)
    if name not in WEIGHTINGS:
        raise OptionError(
            f"A method should be one of single, {', '.join(WEIGHTINGS)}. Found {name!r}."
        )
    weighting = WEIGHTINGS[name](radius, step_size)
    if name == "adversarial":
        sharing = AdversarialSharing(
            architecture=architecture, head_dropout=architecture.head_dropout
        )
        return Contestant(architecture=sharing, weighting=weighting)
    return Contestant(architecture=architecture, weighting=weighting)
