"""Frozen encoders read their texts before the runs begin, once, in the process that asks for them.

The runs' own processes then find the vectors in the cache, and none of them reads what another reads
at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from taskmix.engine._run import Run
from taskmix.engine._source import TaskSource, load_once, select_once
from taskmix.engine._units import Stop
from taskmix.tasks import FeatureEncoding


class _StoppedReading(Exception):  # noqa: N818 - nothing is wrong
    pass


def read_ahead(
    runs: Sequence[Run],
    on_progress: Callable[[int, int], None] | None = None,
    *,
    stop: Stop | None = None,
) -> bool:
    """Has all texts of these runs read; False where `stop` said so before the end, in time.

    What was read by then is kept. Nothing happens where no run has a frozen encoder.

    >>> from taskmix.models import Perceptron
    >>> read_ahead([Run(label="a", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)])
    True
    """

    def tell(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(done, total)
        if stop is not None and done < total and stop():
            raise _StoppedReading

    wanted: dict[tuple[TaskSource, FeatureEncoding], set[str] | None] = {}
    for run in runs:
        encoding = run.architecture.encoding
        if isinstance(encoding, FeatureEncoding):
            names = wanted.setdefault((run.source, encoding), set())
            if run.tasks is None or names is None:
                wanted[run.source, encoding] = None  # all of them
            else:
                names.update(run.tasks)
    for (source, encoding), names in wanted.items():
        tasks = load_once(source)
        if names is not None and names != set(tasks.names):
            tasks = select_once(source, tuple(name for name in tasks.names if name in names))
        try:
            encoding.read(tasks, cache=getattr(source, "cache", None), on_progress=tell)
        except _StoppedReading:
            return False
    return True
