"""What is known of tasks in seconds, before anything is trained: `check_tasks`.

`_check.py` says what each column is and is used as, and where splits differ; `_faults.py` what is wrong
with the rows, beside what advice looks for anyway (`tasks/_looking`).
"""
