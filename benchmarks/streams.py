"""How fast streams are mixed, against `datasets.interleave_datasets` on the same streams.

Both read the same eight streams of Hugging Face by the same shares, in turns; what a second brings is
the best of several turns. `changing` sets other shares every hundred rows, `logged` keeps the
probability of every draw for a file, and `drawn` puts each row's draw into the row: the peer does none
of this. `resume` is the share of the rows after a stop that are those of a reading that never stopped,
and `state` what taking a state costs.

    python benchmarks/streams.py [--quick] [--json]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import datasets

from _common import best_of, repeated, report, row
from taskmix.plans import mix_streams

TASKS, ROWS = 8, 20_000
SHARES = [0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05]
PEER = "datasets.interleave_datasets"


def generated(task: int) -> Iterator[dict[str, Any]]:
    for number in range(ROWS):
        yield {"text": f"row {number} of task {task}", "label": number % 3, "task": task}


def streams(kind: str) -> list[Any]:
    if kind == "generators":
        made = datasets.IterableDataset.from_generator
        return [made(generated, gen_kwargs={"task": task}) for task in range(TASKS)]
    return [
        datasets.Dataset.from_list(list(generated(task))).to_iterable_dataset(num_shards=4)
        for task in range(TASKS)
    ]


def ours(kind: str, **options: Any) -> Any:
    return mix_streams(
        {str(n): each for n, each in enumerate(streams(kind))}, SHARES, seed=0, **options
    )


def theirs(kind: str) -> Any:
    return datasets.interleave_datasets(
        streams(kind), probabilities=SHARES, seed=0, stopping_strategy="all_exhausted"
    )


def rows_a_second(mixtures: dict[str, Callable[[], Iterable[Any]]], count: int, times: int) -> Any:
    """Rows that each mixture gives in a second of processor time, in turns, the best of them."""
    best = dict.fromkeys(mixtures, 0.0)
    for _ in range(times):
        for name, make in mixtures.items():
            rows = iter(make())
            next(rows)  # opens the streams
            begin = time.process_time()
            read = sum(1 for _ in islice(rows, count))
            best[name] = max(best[name], read / (time.process_time() - begin))
    return best


def continued(make: Callable[[], Any], stopped: int, more: int) -> float:
    """The share of rows after a resume that are those of a reading that never stopped."""
    whole = list(islice(iter(make()), stopped + more))[stopped:]
    first = make()
    rows = iter(first)
    list(islice(rows, stopped))
    later = make()
    later.load_state_dict(first.state_dict())
    rest = list(islice(iter(later), more))
    return sum(a["text"] == b["text"] for a, b in zip(whole, rest, strict=True)) / more


def state_seconds(make: Callable[[], Any]) -> float:
    mixed = make()
    rows = iter(mixed)
    list(islice(rows, 1000))
    return best_of(1, repeated(mixed.state_dict, 100)) / 100


def changing(kind: str) -> Iterator[Any]:
    """Shares that are set anew every hundred rows; the peer would have to be made anew."""
    mixed = ours(kind)
    for number, each in enumerate(mixed):
        if not number % 100:
            mixed.shares = SHARES if number % 200 else SHARES[::-1]
        yield each


def measure(quick: bool) -> list[dict[str, Any]]:
    count, times = (2_000, 2) if quick else (15_000, 5)
    found = []
    for kind in ("generators", "arrow"):
        with tempfile.TemporaryDirectory() as folder:
            mixtures: dict[str, Callable[[], Iterable[Any]]] = {
                "peer": partial(theirs, kind),
                "plain": partial(ours, kind),
                "changing": partial(changing, kind),
                "logged": partial(ours, kind, log=folder),
                "drawn": partial(ours, kind, with_draws=True),
            }
            best = rows_a_second(mixtures, count, times)
        peer = best.pop("peer")
        found += [row(f"{kind}/{name}", best[name], peer, PEER, "rows a second") for name in best]
        both = partial(ours, kind), partial(theirs, kind)
        for stopped in (1, 1234):
            shares = [continued(make, stopped, 1000) for make in both]
            found.append(row(f"{kind}/resume after {stopped}", *shares, PEER, "share the same"))
        cost = [1e6 * state_seconds(make) for make in both]
        found.append(row(f"{kind}/state", *cost, PEER, "microseconds"))
    return found


if __name__ == "__main__":
    datasets.disable_progress_bars()
    report("streams", measure, __doc__ or "")
