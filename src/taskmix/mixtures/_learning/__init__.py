"""The way from a table of runs to the mixture to train on, for Python and for the command.

`learn_mixtures` asks the forecast everything and gives lessons: a plan, predictions, and a document that
is written, read (`_document.py`) and shown (`_shown.py`) in one place.
"""
