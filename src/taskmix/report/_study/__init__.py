"""A study as plain tables.

Records become the rows of a report (`_gather.py`, `_data.py`, thinned by `_thin.py`), rows become
a table of scores with the one in the lead (`_scoreboard.py`), and all of it words (`_words.py`,
`_specification.py`, `_ways.py`).
"""

from taskmix.report._study._data import Binned, ReportData, ReportScore, RunRow, TaskRow, Trace
from taskmix.report._study._gather import gather_report
from taskmix.report._study._scoreboard import (
    Scoreboard,
    ScoreRow,
    Standing,
    can_be_averaged,
    scoreboard,
)
from taskmix.report._study._specification import Specifications, specifications
from taskmix.report._study._thin import (
    bin_edges,
    bin_of,
    binned_mean,
    carry_forward,
    divided,
    mean_over,
)
from taskmix.report._study._ways import explain_way, explained_ways
from taskmix.report._study._words import (
    MINUS,
    UNKNOWN,
    count_of,
    counted,
    decimals_for,
    duration,
    ends_words,
    headline,
    listed,
    number,
    overall_name,
    signed,
    spread_words,
    with_interval,
)

__all__ = [
    "MINUS",
    "UNKNOWN",
    "Binned",
    "ReportData",
    "ReportScore",
    "RunRow",
    "ScoreRow",
    "Scoreboard",
    "Specifications",
    "Standing",
    "TaskRow",
    "Trace",
    "bin_edges",
    "bin_of",
    "binned_mean",
    "can_be_averaged",
    "carry_forward",
    "count_of",
    "counted",
    "decimals_for",
    "divided",
    "duration",
    "ends_words",
    "explain_way",
    "explained_ways",
    "gather_report",
    "headline",
    "listed",
    "mean_over",
    "number",
    "overall_name",
    "scoreboard",
    "signed",
    "specifications",
    "spread_words",
    "with_interval",
]
