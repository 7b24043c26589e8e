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
from taskmix.papers._text_figure import text_figure
from taskmix.papers._text_weightings import (
    NewsgroupsOptions,
    ReviewsOptions,
    reproduce_newsgroups,
    reproduce_reviews,
)
from taskmix.papers._transfer_theory import TransferTheoryOptions, reproduce_transfer_theory

__all__ = [
    "BanditOptions",
    "BanditResult",
    "GlueOptions",
    "NewsgroupsOptions",
    "ReviewsOptions",
    "TransferTheoryOptions",
    "bandit_figure",
    "bandit_rows",
    "gap_closed",
    "play_bandit",
    "reproduce_bandit",
    "reproduce_glue",
    "reproduce_newsgroups",
    "reproduce_reviews",
    "reproduce_transfer_theory",
    "text_figure",
]
