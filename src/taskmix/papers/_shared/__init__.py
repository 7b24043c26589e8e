"""What every experiment needs: its rows beside the paper's, its runs, and lines of published data."""

from taskmix.papers._shared._lines import read_lines
from taskmix.papers._shared._rows import row
from taskmix.papers._shared._runs import Executor, carry_out

__all__ = ["Executor", "carry_out", "read_lines", "row"]
