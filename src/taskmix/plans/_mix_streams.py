"""Streams mixed as a plan says, or by a policy, or by shares."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from taskmix.errors import InputError
from taskmix.plans._division import Division, Shares, Stages, Weighted
from taskmix.plans._plan import Part, Plan
from taskmix.policies import AnyPolicy, AnyReward
from taskmix.records import RecordWriter
from taskmix.training import MixedStream, WhenExhausted


def mix_streams(
    streams: Mapping[str, Any] | Sequence[Any],
    by: Plan | Part | Division | AnyPolicy | Mapping[str, float] | ArrayLike,
    *,
    seed: int,
    steps: int | None = None,  # draws of the whole run, for stages
    sizes: Sequence[int] | None = None,
    batch_size: int | None = None,
    when_exhausted: WhenExhausted = "repeat",
    with_draws: bool = False,
    reward: AnyReward | None = None,
    record: RecordWriter | None = None,
    log: str | Path | None = None,
    sharded: Collection[str] = (),
    processes: tuple[int, int] | None = None,
) -> MixedStream:
    """An iterable over streams, each row's stream drawn by a plan, a part of one, a policy or shares.

    The streams are data sets of Hugging Face (streamed or not), WebDataset's, one's own, any iterable
    that can be read again, or functions that open one. For a plan or a part they are named by task, and
    those of the plan's tasks are taken. `MixedStream` says what the options mean.

    >>> part = Part(tasks=("a", "b"), scored=("a",), share=1.0, division=Shares.equal(2))
    >>> rows = mix_streams({"b": range(10, 20), "a": range(10), "c": range(5)}, part, seed=0)
    >>> rows.shares
    {'a': 0.5, 'b': 0.5}
    """
    if isinstance(by, Plan):
        by = _only_part(by)
    if isinstance(by, Part):
        streams, by = _streams_of(by, streams), by.division
    shares: Any = by
    if isinstance(by, Weighted):
        raise InputError(
            "Streams should be mixed by shares, stages or a policy. Found a weighting, "
            f"{type(by.method).__name__}, which takes a batch of every task in each step. Read each "
            "stream by a loader of its own."
        )
    if isinstance(by, Shares):
        shares = by.probabilities
    elif isinstance(by, Stages):
        if steps is None:
            raise InputError(
                "Stages are shares of a run, so `steps` should say how many draws it has. Found none."
            )
        shares = by.policy(steps)
    elif isinstance(by, Mapping):
        shares = _shares_by_name(by, streams)
    return MixedStream(
        streams,
        shares=shares,
        seed=seed,
        sizes=sizes,
        batch_size=batch_size,
        when_exhausted=when_exhausted,
        with_draws=with_draws,
        reward=reward,
        record=record,
        log=log,
        sharded=sharded,
        processes=processes,
    )


def _only_part(plan: Plan) -> Part:
    if len(plan.parts) > 1:
        raise InputError(
            f"A plan should be one model to be one stream. Found {len(plan.parts)} models to train. Go "
            "through `plan.parts` and mix streams for each."
        )
    return plan.parts[0]


def _streams_of(part: Part, streams: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """In the order of the part's tasks."""
    if not isinstance(streams, Mapping):
        raise InputError(
            "The streams of a plan should be named by task, `{'books': ...}`. Found a "
            f"{type(streams).__name__}."
        )
    missing = [name for name in part.tasks if name not in streams]
    if missing:
        raise InputError(
            f"There should be a stream for each task of the plan. Found none for {missing[:10]} among "
            f"{list(streams)[:10]}."
        )
    return {name: streams[name] for name in part.tasks}


def _shares_by_name(
    shares: Mapping[str, float], streams: Mapping[str, Any] | Sequence[Any]
) -> list[float]:
    if not isinstance(streams, Mapping) or set(streams) != set(shares):
        names = list(streams) if isinstance(streams, Mapping) else "no names"
        raise InputError(
            f"Shares by name should name the streams. Found {sorted(shares)[:10]} and {names}."
        )
    return [float(shares[name]) for name in streams]
