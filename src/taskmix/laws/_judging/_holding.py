"""Where a law is asked to hold, where it should hold unasked, and what it is asked to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taskmix.laws._forms import Expression
from taskmix.laws._judging._box import Box
from taskmix.laws._judging._demands import Demands, why_demands_break
from taskmix.laws._judging._disqualify import WRONG_SIGN, TargetFacts, why_disqualified


@dataclass(frozen=True)
class LawVerdict:
    """What disqualifies a law: where it was asked to hold, and where nobody asked."""

    asked: str = ""
    unasked: str = ""

    @property
    def words(self) -> str:
        return self.asked or self.unasked

    @property
    def is_sign(self) -> bool:
        """Whether all that is wrong is the sign, and that where nobody asked."""
        return not self.asked and self.unasked.startswith(WRONG_SIGN)


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A box that was asked for, one that was not, and demands on the slope and on the far end."""

    asked: Box | None = None
    unasked: Box | None = None
    demands: Demands = field(default_factory=Demands)

    def verdict(
        self, expression: Expression, middle: Mapping[str, float], target: TargetFacts
    ) -> LawVerdict:
        """Why a law is disqualified, if it is."""
        asked = unasked = ""
        if self.asked is not None:
            asked = why_disqualified(expression, self.asked, middle, target)
        box = self.asked or self.unasked
        if not asked and box is not None:
            asked = why_demands_break(expression, self.demands, box, middle)
        if not asked and self.unasked is not None:
            unasked = why_disqualified(expression, self.unasked, middle, target)
        return LawVerdict(asked, unasked)
