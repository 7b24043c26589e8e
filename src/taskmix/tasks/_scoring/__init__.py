"""How answers are scored: metrics by name, entity F1 by the rules of CoNLL, text that is written.

From what a head gives and what the rows say to one number; nothing here knows of files or models.
"""

from taskmix.tasks._scoring._credits import row_credits
from taskmix.tasks._scoring._default import class_shares, metric_of_imbalance
from taskmix.tasks._scoring._entities import (
    conlleval_report,
    entity_counts,
    io_to_iob2,
)
from taskmix.tasks._scoring._metrics import (
    METRICS,
    Metric,
    evaluate_outputs,
    evaluate_written,
    find_metric,
)
from taskmix.tasks._scoring._written import WrittenText
from taskmix.tasks._scoring._written_credits import written_credits

__all__ = [
    "METRICS",
    "Metric",
    "WrittenText",
    "class_shares",
    "conlleval_report",
    "entity_counts",
    "evaluate_outputs",
    "evaluate_written",
    "find_metric",
    "io_to_iob2",
    "metric_of_imbalance",
    "row_credits",
    "written_credits",
]
