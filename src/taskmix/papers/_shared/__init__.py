"""What every experiment needs: its rows beside the paper's, its runs, and lines of published data."""

from taskmix.papers._shared._lines import read_lines
from taskmix.papers._shared._rows import PaperRow, row

__all__ = ["PaperRow", "read_lines", "row"]
