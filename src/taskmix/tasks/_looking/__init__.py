"""What in the data would spoil what is learned from it, found without training.

`look_at` finds what advice has to know; `_leaks.py` finds labels that stand in the inputs, `_look.py`
what two tasks have in common. `_check.py` says what each column is and is used as and where splits
differ, and `_faults.py` what else is wrong with the rows. Rows are compared by their keys.
"""
