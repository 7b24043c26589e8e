"""What the page says and draws of advice: the plan, the race, the budget and the outlook."""

from taskmix.report._advice._contents import AdviceContents, advice_contents
from taskmix.report._advice._figures import budget_figure, expected_figure, gap_figure, law_figure

__all__ = [
    "AdviceContents",
    "advice_contents",
    "budget_figure",
    "expected_figure",
    "gap_figure",
    "law_figure",
]
