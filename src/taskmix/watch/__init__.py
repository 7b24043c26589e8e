"""A study in progress as a page that renews itself: localhost only, and nothing is written.

with StudyServer(StudyWatcher(Path("study")), port=8765) as server:
    server.serve_forever()
"""

from taskmix.watch._server import StudyServer
from taskmix.watch._state import (
    StudyState,
    StudyWatcher,
    WatchedAdvice,
    WatchedCurve,
    WatchedRun,
)

__all__ = [
    "StudyServer",
    "StudyState",
    "StudyWatcher",
    "WatchedAdvice",
    "WatchedCurve",
    "WatchedRun",
]
