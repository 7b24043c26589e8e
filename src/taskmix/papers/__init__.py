"""Published experiments, runnable, with the papers' figures beside ours."""

from taskmix.papers._bandit import (
    BanditOptions,
    BanditResult,
    bandit_rows,
    gap_closed,
    play_bandit,
    reproduce_bandit,
)
from taskmix.papers._bandit_figure import bandit_figure
from taskmix.papers._glue import GlueOptions, reproduce_glue
from taskmix.papers._text_weightings import (
    NewsgroupsOptions,
    ReviewsOptions,
    reproduce_newsgroups,
    reproduce_reviews,
)

__all__ = [
    "BanditOptions",
    "BanditResult",
    "GlueOptions",
    "NewsgroupsOptions",
    "ReviewsOptions",
    "bandit_figure",
    "bandit_rows",
    "gap_closed",
    "play_bandit",
    "reproduce_bandit",
    "reproduce_glue",
    "reproduce_newsgroups",
    "reproduce_reviews",
]
