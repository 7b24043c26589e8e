"""What the page says and draws of advice: the plan, the race, the budget and the outlook."""

from taskmix.report._advice._contents import (
    AdviceContents,
    DeliveredContents,
    advice_contents,
    delivered_contents,
)
from taskmix.report._advice._figures import budget_figure, gap_figure, law_figure
from taskmix.report._advice._promises import delivered_figure, expected_figure

__all__ = [
    "AdviceContents",
    "DeliveredContents",
    "advice_contents",
    "budget_figure",
    "delivered_contents",
    "delivered_figure",
    "expected_figure",
    "gap_figure",
    "law_figure",
]
