"""Names beside the rows of a chart: short enough for a phone, and still different from each other.

A long name has its begin and its end, on two lines; the tooltip and the tables have all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

LINE = 18  # characters; a third of a phone
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_NEAR = 6  # characters from where a line has to end, to look for a better place


def row_names(names: Sequence[str]) -> dict[str, str]:
    """What stands beside each row; lines are parted by a line feed."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        shown, number = _lines(name), 2
        while shown in taken:
            shown = _lines(name, f" ({number})")
            number += 1
        taken.add(shown)
        found[name] = shown
    return found


def _lines(name: str, mark: str = "") -> str:
    name = " ".join(name.split()) or name
    if len(name) + len(mark) <= LINE:
        return name + mark
    if len(name) + len(mark) <= 2 * LINE:
        place = _break(name, max(len(name) + len(mark) - LINE, 1), LINE)
        return f"{name[:place].rstrip()}\n{name[place:].lstrip()}{mark}"
    kept = LINE - len(mark)
    return f"{name[:LINE].rstrip()}\n{ELLIPSIS}{name[-(kept - 1) :].lstrip()}{mark}"


def _break(name: str, first: int, last: int) -> int:
    """Where to go on on the next line: behind the last space or sign before `last`, if there is one."""
    for place in range(last, max(first, last - _NEAR) - 1, -1):
        if name[place - 1] in " _-/,.:":
            return place
    return last
