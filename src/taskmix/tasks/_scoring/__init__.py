"""How answers are scored: metrics by name, entity F1 by the rules of CoNLL, text that is written.

From what a head gives and what the rows say to one number; nothing here knows of files or models.
"""
