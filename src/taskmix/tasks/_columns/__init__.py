"""What the columns of a task say, over all of its files.

`StackedFiles` are the files of a task one below the other, each column of one type. The others ask
them questions: which cells are the same label (`_spelling.py`), what each column is (`_roles.py`:
text, numbers, dates, names of rows, ...), and what `train` has never seen.
"""
