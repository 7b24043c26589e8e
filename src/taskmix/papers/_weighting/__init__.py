"""Loss weighting (Mao et al., 2021): BanditMTL and its rivals on newsgroups and reviews."""

from taskmix.papers._weighting._experiment import (
    NewsgroupsOptions,
    ReviewsOptions,
    reproduce_newsgroups,
    reproduce_reviews,
)
from taskmix.papers._weighting._figure import text_figure

__all__ = [
    "NewsgroupsOptions",
    "ReviewsOptions",
    "reproduce_newsgroups",
    "reproduce_reviews",
    "text_figure",
]
