"""How fast members take their steps, once everything is compiled and warm."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch

from taskmix.engine import Progress, peak_operations
from taskmix.mixtures import SwarmOptions
from taskmix.models import CausalTransformer

EVERY = 1.0  # seconds between two notes
WARM = 0.25  # of what was noted is left out: compilers, first steps


@dataclass
class Meter:
    """Hears how far each member is, and notes the sum now and then."""

    steps: dict[int, int] = field(default_factory=dict)
    notes: list[tuple[float, int]] = field(default_factory=list)  # time, steps of all members

    def hear(self, progress: Progress) -> None:
        if progress.done and progress.run not in self.steps:
            return  # was done before
        self.steps[progress.run] = progress.step
        now = time.monotonic()
        if not self.notes or now - self.notes[-1][0] > EVERY:
            self.notes.append((now, sum(self.steps.values())))

    @property
    def speed(self) -> float:
        """Steps of single members a second."""
        if len(self.notes) < 3:
            return float("nan")
        (begin, first), (end, last) = self.notes[1 + int(WARM * len(self.notes))], self.notes[-1]
        return (last - first) / (end - begin) if end > begin else float("nan")


def speed_row(meter: Meter, options: SwarmOptions, members: int) -> dict[str, Any]:
    """The speed, and what share of the device's peak the products are."""
    architecture = options.architecture()
    assert isinstance(architecture, CausalTransformer)
    on_cuda = torch.cuda.is_available()
    peak = peak_operations("cuda") if on_cuda else None
    done = meter.speed * architecture.operations(options.batch_size)
    return {
        "at_once": members,
        "member_steps_per_second": meter.speed,
        "tokens_per_second": meter.speed * options.batch_size * options.context,
        "teraflops": done / 1e12,
        "share_of_peak": None if peak is None else done / peak,
        "device": torch.cuda.get_device_name() if on_cuda else "cpu",
        "memory_gb": torch.cuda.max_memory_allocated() / 1e9 if on_cuda else None,
    }
