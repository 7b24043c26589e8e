"""Takes many steps of a fleet without asking the device in between.

On CUDA a step is captured once as a graph and replayed: the hundred small kernels of a step cost one
launch. A step reads its rows at a counter on the device, so replays need nothing of the host, which
meanwhile decides about the steps after them.
"""

from __future__ import annotations

import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.engine._fleet._ahead import Ahead
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._perceptron import Room
from taskmix.errors import TaskmixWarning

AHEAD_BYTES = 1 << 27  # that the steps decided ahead may take
AHEAD_SECONDS = 1.0  # of work, after which the host wants to hear: a stop waits for so long
AHEAD_STEPS = 512  # at most
# Where steps are slow a device is given a few at first, and is busy while the others are decided.
SLOW_SECONDS, FIRST_STEPS = 5e-3, 4
WARM_UP_STEPS = 3  # before a capture: libraries set themselves up in the first ones


class Stepper:
    """Advances a fleet by any number of steps."""

    def __init__(self, fleet: StackedModels, *, graphs: bool | None = None) -> None:
        self._fleet = fleet
        targets = fleet.active * (16 * fleet.words + fleet.labels)
        bytes_a_step = len(fleet.members) * fleet.rows * (8 * fleet.groups + targets)
        self._most = int(np.clip(AHEAD_BYTES // bytes_a_step, 1, AHEAD_STEPS))
        self._pace = 0.0  # seconds a step, 0 until known
        on_cuda = fleet.device.type == "cuda"
        replays = on_cuda and graphs is not False
        replays &= fleet.weighing is None or fleet.weighing.on_device
        self._replayed = _Replayed(fleet, self._most) if replays else None
        self._side = _stream(fleet.device) if on_cuda else None
        if self._side is not None:  # what the fleet is made of has to be there first
            self._side.wait_stream(torch.cuda.current_stream(fleet.device))

    @property
    def replays(self) -> bool:
        """Whether steps are replayed as CUDA graphs."""
        return self._replayed is not None and self._replayed.works

    def advance(self, count: int) -> tuple[NDArray[np.float64], float]:
        """Takes at most `count` steps; what they tell, and the seconds it took.

        A step tells of each loss [told, member, slot] its value, and its weight where that changes.
        """
        begin = time.perf_counter()
        fleet = self._fleet
        wanted = max(1, int(AHEAD_SECONDS / self._pace)) if self._pace else min(self._most, 16)
        count = left = min(count, wanted)
        parts: list[Tensor] = []
        while left:
            size = min(left, self._most)
            if self._side is not None and not parts and self._pace > SLOW_SECONDS:
                size = min(size, FIRST_STEPS)
            with self._aside():
                ahead = fleet.look_ahead(size)
                room = fleet.encoder.room(ahead.rows, fleet.words)
            if self._side is not None:
                here = torch.cuda.current_stream(fleet.device)
                here.wait_stream(self._side)
                ahead.hold_for(here)
            parts.append(self._take(ahead, size, room))
            fleet.step += size
            left -= size
        told = torch.cat(parts).cpu().double().numpy()
        seconds = time.perf_counter() - begin
        self._pace = seconds / count
        return told, seconds

    def _aside(self) -> AbstractContextManager[object]:
        """Copies to the device that do not wait for the steps at work there."""
        return nullcontext() if self._side is None else torch.cuda.stream(self._side)

    def _take(self, ahead: Ahead, size: int, room: Room) -> Tensor:
        """What steps tell that are, perhaps, still at work."""
        if self._replayed is not None and self._replayed.works:
            return self._replayed.take(ahead, size, room)
        fleet = self._fleet
        told = torch.empty(size, *_shape(fleet), device=fleet.device)
        for moment in range(size):
            told[moment] = fleet.take(ahead, moment, room)
        return told


def _shape(fleet: StackedModels) -> tuple[int, int, int]:
    """Of what a step tells."""
    return fleet.told, len(fleet.members), fleet.active


def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class _Replayed:
    """Steps as CUDA graphs, one for each amount of room that the rows need."""

    def __init__(self, fleet: StackedModels, most: int) -> None:
        self.works = True
        self._fleet = fleet
        self._most = most
        self._ahead: Ahead | None = None  # what the graphs read
        self._told = torch.zeros(most, *_shape(fleet), device=fleet.device)
        self._counter = torch.zeros(1, dtype=torch.long, device=fleet.device)
        self._graphs: dict[Room, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None  # memory that the graphs share: one runs at a time

    def take(self, ahead: Ahead, size: int, room: Room) -> Tensor:
        if self._ahead is None:
            self._ahead = ahead.stretched(self._most)
        self._ahead.fill(ahead)
        self._counter.zero_()
        done = 0
        if room not in self._graphs:
            done = min(WARM_UP_STEPS, size)
            self._warm_up(done, room)
            if size > done:
                self._capture(room)
        graph = self._graphs.get(room)
        for _ in range(size - done):
            if graph is not None:
                graph.replay()
            else:
                self._step(room)
        return self._told[:size].clone()

    def _step(self, room: Room) -> None:
        assert self._ahead is not None
        told = self._fleet.take(self._ahead, self._counter, room)
        self._told.index_copy_(0, self._counter, told.unsqueeze(0))
        self._counter += 1

    @cached_property
    def _stream(self) -> torch.cuda.Stream:
        """Of captures and of the steps that prepare them."""
        return _stream(self._fleet.device)

    def _warm_up(self, count: int, room: Room) -> None:
        """Real steps, on a stream of their own as a capture wants it."""
        stream = self._stream
        here = torch.cuda.current_stream(self._fleet.device)
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            for _ in range(count):
                self._step(room)
        here.wait_stream(stream)

    def _capture(self, room: Room) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            with (
                torch.cuda.device(self._fleet.device),
                torch.cuda.graph(graph, pool=self._pool, stream=self._stream),
            ):
                self._step(room)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # some operation that cannot be captured: slower, as right
            self.works = False
            first = error.__context__ or error  # what ended the capture, before that was noticed
            words = f"Steps are not replayed as CUDA graphs: {str(first).splitlines()[0]}"
            warnings.warn(words, TaskmixWarning, stacklevel=2)
            return
        self._graphs[room] = graph
        self._pool = graph.pool()
