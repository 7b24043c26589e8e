"""Transfer on a page: the answer in words, the map, and how far it can be trusted."""

from taskmix.report._transfer._contents import TransferContents, transfer_contents
from taskmix.report._transfer._figures import effect_figure, prediction_figure

__all__ = ["TransferContents", "effect_figure", "prediction_figure", "transfer_contents"]
