"""Task selection (Glover and Hokamp, 2019): policies on the multitask bandit and on GLUE."""

from taskmix.papers._selection._bandit import (
    BanditOptions,
    BanditResult,
    bandit_rows,
    gap_closed,
    play_bandit,
    reproduce_bandit,
)
from taskmix.papers._selection._bandit_figure import bandit_figure
from taskmix.papers._selection._bandit_rounds import BanditRound, play_rounds
from taskmix.papers._selection._glue import GlueOptions, reproduce_glue

__all__ = [
    "BanditOptions",
    "BanditResult",
    "BanditRound",
    "GlueOptions",
    "bandit_figure",
    "bandit_rows",
    "gap_closed",
    "play_bandit",
    "play_rounds",
    "reproduce_bandit",
    "reproduce_glue",
]
