"""What is known of tasks in seconds, before anything is trained: `check_tasks`.

`_columns.py` says what each column is and is used as, `_of_tasks.py` and `_of_files.py` what is wrong
with the rows, beside what advice looks for anyway (`tasks/_looking`), `_shift.py` where splits differ.
"""

from taskmix.tasks._checking._check import check_tasks
from taskmix.tasks._checking._document import ColumnSeen, FileRead, TaskCheck, TaskRead

__all__ = ["ColumnSeen", "FileRead", "TaskCheck", "TaskRead", "check_tasks"]
