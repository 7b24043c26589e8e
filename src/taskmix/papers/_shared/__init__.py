"""What every experiment needs: its rows beside the paper's, and lines of published data."""

from taskmix.papers._shared._lines import read_lines
from taskmix.papers._shared._rows import row

__all__ = ["read_lines", "row"]
