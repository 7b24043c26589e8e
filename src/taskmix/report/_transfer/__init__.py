"""Figures about transfer: which tasks help which, by how much, and how well it was predicted."""

from taskmix.report._transfer._figures import effect_figure, prediction_figure, transfer_figure

__all__ = ["effect_figure", "prediction_figure", "transfer_figure"]
