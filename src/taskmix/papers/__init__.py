"""Published experiments, runnable, with the papers' figures beside ours."""

from taskmix.papers._laws import (
    LawsOptions,
    check_new_table,
    law_rows,
    laws_figure,
    read_laws_table,
    reproduce_laws,
    write_laws_table,
)
from taskmix.papers._selection import (
    BanditOptions,
    BanditResult,
    GlueOptions,
    bandit_figure,
    bandit_rows,
    gap_closed,
    play_bandit,
    reproduce_bandit,
    reproduce_glue,
)
from taskmix.papers._sequences import SequencesOptions, reproduce_sequences
from taskmix.papers._shared import PaperRow
from taskmix.papers._transfer import (
    CensusOptions,
    Nlp25Options,
    TransferTheoryOptions,
    WeakOptions,
    reproduce_census,
    reproduce_nlp25,
    reproduce_transfer_theory,
    reproduce_weak_supervision,
)
from taskmix.papers._weighting import (
    NewsgroupsOptions,
    ReviewsOptions,
    reproduce_newsgroups,
    reproduce_reviews,
    text_figure,
)

__all__ = [
    "BanditOptions",
    "BanditResult",
    "CensusOptions",
    "GlueOptions",
    "LawsOptions",
    "NewsgroupsOptions",
    "Nlp25Options",
    "PaperRow",
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
    "play_bandit",
    "read_laws_table",
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
    "write_laws_table",
]
