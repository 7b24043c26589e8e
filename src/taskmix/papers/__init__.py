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
from taskmix.papers._bandit_rounds import BanditRound, play_rounds
from taskmix.papers._census import CensusOptions, reproduce_census
from taskmix.papers._glue import GlueOptions, reproduce_glue
from taskmix.papers._laws_study import LawsOptions
from taskmix.papers._laws_table import (
    check_new_table,
    law_rows,
    laws_figure,
    laws_table,
    read_rows,
    reproduce_laws,
    write_table,
)
from taskmix.papers._nlp25 import Nlp25Options, reproduce_nlp25
from taskmix.papers._sequences import SequencesOptions, reproduce_sequences
from taskmix.papers._text_figure import text_figure
from taskmix.papers._text_weightings import (
    NewsgroupsOptions,
    ReviewsOptions,
    reproduce_newsgroups,
    reproduce_reviews,
)
from taskmix.papers._transfer_theory import TransferTheoryOptions, reproduce_transfer_theory
from taskmix.papers._weak_supervision import WeakOptions, reproduce_weak_supervision

__all__ = [
    "BanditOptions",
    "BanditResult",
    "BanditRound",
    "CensusOptions",
    "GlueOptions",
    "LawsOptions",
    "NewsgroupsOptions",
    "Nlp25Options",
    "ReviewsOptions",
    "SequencesOptions",
    "TransferTheoryOptions",
    "WeakOptions",
    "bandit_figure",
    "bandit_rows",
    "check_new_table",
    "gap_closed",
    "law_rows",
    "laws_figure",
    "laws_table",
    "play_bandit",
    "play_rounds",
    "read_rows",
    "reproduce_bandit",
    "reproduce_census",
    "reproduce_glue",
    "reproduce_laws",
    "reproduce_newsgroups",
    "reproduce_nlp25",
    "reproduce_reviews",
    "reproduce_sequences",
    "reproduce_transfer_theory",
    "reproduce_weak_supervision",
    "text_figure",
    "write_table",
]
