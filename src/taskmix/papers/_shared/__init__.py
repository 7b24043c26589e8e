"""What every experiment needs: its rows beside the paper's, its runs, and lines of published data."""

from taskmix.papers._shared._lines import read_lines
from taskmix.papers._shared._rows import PaperRow, row
from taskmix.papers._shared._runs import Executor

__all__ = ["Executor", "PaperRow", "read_lines", "row"]
