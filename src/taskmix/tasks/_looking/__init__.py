"""What in the data would spoil what is learned from it, found without training.

`look_at` finds what advice has to know; `_leaks.py` finds labels that stand in the inputs, `_look.py`
what two tasks have in common. Rows are compared by their keys (`_row_keys.py`).
"""
