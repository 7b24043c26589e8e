"""An iterable data set over several streams, whose policy may learn from the losses it is told."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import IterableDataset, get_worker_info

from taskmix.errors import OptionError, RunError
from taskmix.policies import AnyPolicy, AnyReward, Choice, Scheduled, Unchanging, Uniform
from taskmix.records import RecordWriter
from taskmix.training._draws import KEY, DrawLog, own_key_error
from taskmix.training._learner import Gathering, Learner
from taskmix.training._mixed import (
    Cursor,
    Drawn,
    Mixer,
    WhenExhausted,
    as_losses,
    check_mixture,
    float_of_bits,
    sizes_of,
)
from taskmix.training._source import SharedShares, shares_itself


class MixedStream(IterableDataset[Any]):
    """Rows of several streams, each row's (or batch's) stream drawn by shares that may change.

    `shares` is a policy, or numbers that sum to 1 and can be set anew at any time
    (`mixed.shares = ...`); workers see it at their next draw. A schedule counts the draws of all
    readers. A policy that learns hears losses by `observe`, which needs `with_draws=True`: a row that is
    a dictionary then has the key `draw`, any other comes as `(row, draw)`.

    Rows are shared out over the workers of a `DataLoader` and over the processes of
    `torch.distributed`. Where accelerate shares them out (`accelerator.prepare(loader)`, the Trainer),
    say `processes=(0, 1)`. With `batch_size` a draw brings a list of so many rows of one stream: give
    the `DataLoader` `batch_size=None` and a `collate_fn`.

    >>> mixed = MixedStream({"a": range(0, 10), "b": range(10, 20)}, shares=[0.5, 0.5], seed=0)
    >>> rows = iter(mixed)
    >>> [next(rows) for _ in range(6)]
    [0, 10, 11, 1, 12, 13]
    >>> mixed.shares = [0.0, 1.0]
    >>> [next(rows) for _ in range(3)]
    [14, 15, 16]
    """

    def __init__(
        self,
        streams: Mapping[str, Any] | Sequence[Any],
        *,
        shares: AnyPolicy | ArrayLike,
        seed: int,
        sizes: Sequence[int] | None = None,  # rows of each stream, for policies that go by them
        batch_size: int | None = None,
        when_exhausted: WhenExhausted = "repeat",
        with_draws: bool = False,
        reward: AnyReward | None = None,
        record: RecordWriter | None = None,  # of what `observe` is told
        log: str | Path | None = None,  # a folder for every draw, see `read_draws`
        sharded: Collection[str] = (),  # streams that share their rows out themselves
        processes: tuple[int, int] | None = None,  # this one, and how many there are
    ) -> None:
        super().__init__()
        named = streams if isinstance(streams, Mapping) else dict(enumerate(streams))
        self._streams = {str(name): stream for name, stream in named.items()}
        check_mixture(self._streams, sharded, when_exhausted, batch_size, processes)
        if record is not None and when_exhausted == "leave out":
            raise OptionError(
                "A record has the probability of every stream at each draw, which are not known where "
                "streams are left out. Use `log`, or `when_exhausted='repeat'` or `'stop'`."
            )
        self._sharing = [
            name in sharded or shares_itself(stream) for name, stream in self._streams.items()
        ]
        self._seed, self._batch_size, self._when_exhausted = seed, batch_size, when_exhausted
        self._with_draws, self._processes = with_draws, processes
        self._log = Path(log) if log is not None else None
        self._settable = not hasattr(shares, "probabilities")
        policy: Any = Uniform() if self._settable else shares
        rows = sizes_of(self._streams, policy, sizes)
        self._learner = Learner(policy, rows, seed=seed, reward=reward, record=record)
        self._schedule = (policy, self._learner.state) if isinstance(policy, Scheduled) else None
        first: Any = shares if self._settable else self._learner.probabilities
        self._shares = SharedShares(first)
        if len(self._shares) != len(self._streams):
            raise OptionError(
                f"`shares` should have one number for each of the {len(self._streams)} streams. Found "
                f"{len(self._shares)}."
            )
        self._gathering = Gathering()
        self._epoch = 0
        self._start: dict[str, Any] | None = None
        self._mixer: Mixer | None = None
        self._draw_log: DrawLog | None = None
        self._arrived: dict[int, Cursor] = {}  # by reader, the rows that came from workers
        self._first = 0  # the worker's part that a loader's first worker reads
        self._next = 0  # the one whose batch is to arrive next

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_mixer": None, "_draw_log": None}  # a worker reads for itself

    @property
    def tasks(self) -> list[str]:
        """The names of the streams."""
        return list(self._streams)

    @property
    def shares(self) -> dict[str, float]:
        """What the next row is drawn by."""
        mixer = self._mixer
        values = mixer.shares_now() if mixer is not None else self._shares.get()[1]
        return dict(zip(self._streams, values.tolist(), strict=True))

    @shares.setter
    def shares(self, shares: Mapping[str, float] | ArrayLike) -> None:
        if not self._settable:
            raise OptionError(
                "Shares can be set where the stream was made with numbers. Found a policy, "
                f"{type(self._learner.policy).__name__}, which decides them. Make it with "
                "`shares=[...]`."
            )
        if isinstance(shares, Mapping):
            if set(shares) != set(self._streams):
                raise OptionError(
                    f"`shares` should name the streams {self.tasks}. Found {sorted(shares)}."
                )
            shares = [shares[name] for name in self._streams]
        self._shares.set(shares)

    def set_epoch(self, epoch: int) -> None:
        """Another order: of the draws, and of streams that shuffle. Loaders call it between passes."""
        if epoch != self._epoch:
            self._epoch, self._start, self._arrived = epoch, None, {}
            self._first = self._next = 0

    def __iter__(self) -> Iterator[Any]:
        reader, readers = self._where()
        cursor = self._begin(reader, readers)
        mixer = Mixer(
            self._streams,
            self._shares,
            self._schedule,
            cursor,
            seed=self._seed,
            when_exhausted=self._when_exhausted,
            sharing=self._sharing,
            batch_size=self._batch_size,
        )
        self._start, self._mixer = None, mixer
        if self._log is not None:
            self._draw_log = DrawLog(
                self._log, reader, cursor.epoch, self.tasks, begin=cursor.number
            )
        return self._rows(mixer, self._draw_log)

    def _rows(self, mixer: Mixer, log: DrawLog | None) -> Iterator[Any]:
        try:
            for drawn in mixer:
                if log is not None:
                    log.add(drawn.number, drawn.task, float_of_bits(drawn.bits))
                yield self._with_draw(drawn) if self._with_draws else drawn.rows
        finally:
            if log is not None:
                log.flush()

    def _with_draw(self, drawn: Drawn) -> Any:
        draw = np.array([drawn.number, drawn.task, drawn.version, drawn.bits], dtype=np.int64)
        if self._batch_size is None:
            return _tagged(drawn.rows, draw)
        return [_tagged(row, draw) for row in drawn.rows]

    def observe(self, losses: Any, draws: Any) -> None:
        """Learns from the loss of each row, or from the mean loss of rows that one draw brought.

        `draws` is what the rows have as `draw`, [row, 4]. Several processes share what they observed,
        so each of them has to call it equally often.
        """
        table = self.saw(draws)
        values = as_losses(losses, table)
        told: dict[int, list[int]] = {}
        for place, number in enumerate(table[:, 0].tolist()):
            told.setdefault(number, []).append(place)
        rows = []
        for number, places in told.items():
            _, task, version, bits = table[places[0]].tolist()
            loss = float(values[places].mean())
            rows.append([number, task, version, float_of_bits(bits), loss, len(places)])
        newest, _ = self._shares.get()
        for row in sorted(self._gathering.everyone(rows, checksum=newest)):
            number, task, version, examples = (int(row[place]) for place in (0, 1, 2, 5))
            choice = Choice(task, row[3])
            before = self._probabilities(number, version, choice)
            self._learner.learn(choice, before, row[4], examples=examples)
        if not self._settable and not isinstance(self._learner.policy, Scheduled | Unchanging):
            self._shares.set(self._learner.probabilities)

    def saw(self, draws: Any) -> NDArray[np.int64]:
        """Counts rows that have arrived, so that `state_dict` knows how far the workers' rows came.

        `observe` does so itself. Gives back the draws as an array, [row, 4].
        """
        if isinstance(draws, torch.Tensor):
            draws = draws.detach().cpu().numpy()
        table = np.asarray(draws, dtype=np.int64).reshape(-1, 4)
        if not self._shares.counters[1]:
            return table  # no worker read: the place is known here
        readers = int(self._shares.counters[2])
        for number, task, *_ in table.tolist():
            local, reader = divmod(number, readers)
            cursor = self._arrived.get(reader)
            if cursor is None or local + 1 < cursor.number:  # the loader began anew
                cursor = self._begin(reader, readers)
                if cursor.number and not cursor.counted:
                    raise RunError(
                        "A state that was taken without workers should be continued without them. "
                        "Found workers. Read without, or begin anew."
                    )
                cursor.taken, cursor.counted = cursor.taken or [0] * len(self._streams), True
                self._arrived[reader] = cursor
            cursor.taken[task] += 1
            cursor.number = local + 1
            workers = readers // self._process()[1]
            self._next = (reader + 1) % workers
        return table

    def state_dict(self) -> dict[str, Any]:
        """Where the reading is, to go on exactly; plain values. In a worker it is the worker's own.

        Of rows that a loader's workers read, those count that `observe` or `saw` was given: what workers
        have read ahead is drawn again, by the shares of then. torchdata's `StatefulDataLoader` asks the
        workers themselves. Each process has a state of its own.
        """
        if self._draw_log is not None:
            self._draw_log.flush()
        readers = {}
        if self._mixer is not None:
            readers[str(self._mixer.cursor.reader)] = self._mixer.state()
        if get_worker_info() is not None:
            return {"readers": readers}
        if self._shares.counters[1] and not self._arrived:
            raise RunError(
                "Where workers read, what has arrived should be known by its draws. Found workers, "
                "and no draw that was reported. Make the stream with `with_draws=True` and call "
                "`observe` or `saw` with each batch's draws, or use torchdata's `StatefulDataLoader`."
            )
        readers |= {str(reader): asdict(cursor) for reader, cursor in self._arrived.items()}
        return {
            "readers": readers,
            "epoch": self._epoch,
            "next": self._next,
            "learner": self._learner.state_dict(),
            "shares": self._shares.get()[1],
        }

    def load_state_dict(self, tree: dict[str, Any]) -> None:
        """The next iteration goes on from there, with as many processes and workers as there were."""
        counts = {len(each["taken"]) for each in tree["readers"].values()}
        if counts - {len(self._streams)}:
            raise OptionError(
                f"The state should be of {len(self._streams)} streams. Found one of {counts}. Give the "
                "streams the state was taken with."
            )
        self._start, self._arrived, self._mixer = tree["readers"], {}, None
        self._epoch = int(tree.get("epoch", self._epoch))
        self._first = self._next = int(tree.get("next", 0))
        if "learner" in tree:
            self._learner.load_state_dict(tree["learner"])
            self._shares.set(tree["shares"])

    def _begin(self, reader: int, readers: int) -> Cursor:
        """Where a reader begins: at the loaded state, once, or at the beginning."""
        start = self._start
        if not start:
            return Cursor(reader, readers, self._epoch)
        (before,) = {int(each["readers"]) for each in start.values()}
        own = start.get(str(reader))
        counted = any(each["counted"] for each in start.values())
        if before != readers or (own is None and not counted):
            raise OptionError(
                f"The state should be that of reader {reader} of {readers} (a worker of a process). "
                f"Found reader {', '.join(start)} of {before}. Read with as many processes and workers "
                "as before, and give each process its own state."
            )
        # A reader of whom nothing had arrived begins at the beginning.
        return Cursor(**_copied(own)) if own else Cursor(reader, readers, self._epoch)

    def _where(self) -> tuple[int, int]:
        """Which reader this is, of all workers of all processes."""
        process, processes = self._process()
        worker = get_worker_info()
        if worker is None:
            return process, processes
        workers = worker.num_workers
        readers = processes * workers
        self._shares.counters[1:] = 1, readers  # where a worker is, its process does not know
        # A loader asks its first worker first, who may not be the one whose batch comes next.
        return process * workers + (worker.id + self._first) % workers, readers

    def _process(self) -> tuple[int, int]:
        """This process, and how many there are."""
        if self._processes is not None:
            return self._processes
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        # A worker that was started anew knows the variables only.
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))

    def _probabilities(self, number: int, version: int, choice: Choice) -> NDArray[np.float64]:
        """Of every task, as it was for a draw."""
        if self._schedule is not None:
            policy, state = self._schedule
            return policy.probabilities(replace(state, step=number))
        shares = self._shares.of_version(version)
        return self._shares.get()[1] if shares is None else shares


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    return {name: list(each) if isinstance(each, list) else each for name, each in state.items()}


def _tagged(row: Any, draw: NDArray[np.int64]) -> Any:
    if not isinstance(row, Mapping):
        return row, draw
    if KEY in row:
        raise own_key_error("row")
    return {**row, KEY: draw}
