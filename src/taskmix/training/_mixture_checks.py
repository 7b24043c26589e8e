"""What a mixture of streams can be made of, and told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError, RunError
from taskmix.policies import AnyPolicy, Capped, SizeProportional, Tempered
from taskmix.training._source import check_stream

NEEDS_SIZES = (Capped, SizeProportional, Tempered)


def as_losses(losses: Any, table: NDArray[np.int64]) -> NDArray[np.float64]:
    if isinstance(losses, torch.Tensor):
        losses = losses.detach().float().cpu().numpy()
    values = np.asarray(losses, dtype=np.float64)
    drawn = len(np.unique(table[:, 0]))
    if values.ndim == 0 and drawn == 1:
        return np.full(len(table), float(values))
    if values.shape != (len(table),):
        raise RunError(
            f"There should be one loss for each of the {len(table)} rows, or one for rows of one draw. "
            f"Found the shape {values.shape} for {drawn} draws. Compute the loss with "
            "`reduction='none'`, or draw whole batches with `batch_size`."
        )
    return values


def sizes_of(
    streams: Mapping[str, Any], policy: AnyPolicy, sizes: Sequence[int] | None
) -> NDArray[np.int64]:
    """Rows of each stream; a policy that does not go by them is told of one each."""
    if sizes is None:
        known = [len(each) if hasattr(each, "__len__") else None for each in streams.values()]
        if None in known and isinstance(policy, NEEDS_SIZES):
            raise OptionError(
                f"`{type(policy).__name__}` goes by the rows of each stream. Found streams whose length "
                "is not known. Give `sizes`, one number for each stream."
            )
        sizes = [1 if each is None else each for each in known]
    if len(sizes) != len(streams):
        raise OptionError(
            f"`sizes` should have one number for each of the {len(streams)} streams. Found {len(sizes)}."
        )
    return np.asarray(sizes, dtype=np.int64)


def check_mixture(
    streams: Mapping[str, Any],
    sharded: Collection[str],
    when_exhausted: str,
    batch_size: int | None,
) -> None:
    if not streams:
        raise InputError("There should be at least one stream. Found none.")
    for name, stream in streams.items():
        check_stream(name, stream)
    if set(sharded) - set(streams):
        raise OptionError(
            f"`sharded` should name some of the streams {list(streams)}. Found {sorted(sharded)}."
        )
    if when_exhausted not in ("repeat", "stop", "leave out"):
        raise OptionError(
            f"`when_exhausted` should be 'repeat', 'stop' or 'leave out'. Found {when_exhausted!r}."
        )
    if batch_size is not None and batch_size < 1:
        raise OptionError(f"`batch_size` should be 1 or more, or None. Found {batch_size}.")
