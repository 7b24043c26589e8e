"""Runs of several sizes of model: how ranks carry over, and the forecast at the large size."""
